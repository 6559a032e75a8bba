"""Read the generated data files, each at most once."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kcp.meta import codec

if TYPE_CHECKING:
    from kcp.meta.codec import Object

DATA: Final = Path(__file__).parent / "data"


@functools.cache
def read_data(name: str) -> Object:
    """The content of one data file, such as `zz_types.json`; to be read only, since all callers share it."""
    content: Object = codec.loads((DATA / name).read_bytes())
    return content
