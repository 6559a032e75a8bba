"""How many bytes of bodies may be on their way at once: they wait in memory until they are complete."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Final

from kcp.endpoints.request import MAX_BODY_BYTES
from kcp.meta.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL_BYTES: Final = 64 * 1024  # these count for nothing: the connection's own buffers hold as much
TOTAL_BYTES: Final = 256 << 20
SHARE: Final = 4  # one logical cluster may use this part of the total


class BodyBudget:
    """Large bodies reserve their size before they are read. Clusters that have none on their way cost nothing."""

    def __init__(self, total: int = TOTAL_BYTES) -> None:
        self._total = total
        self._used = 0
        self._by_cluster: Counter[str] = Counter()

    @contextlib.contextmanager
    def reserve(self, cluster: str, content_length: bytes | None) -> Iterator[None]:
        """Raises TooManyRequests if there is no room. A body that does not say its size may be as large as any."""
        size = int(content_length) if content_length is not None and content_length.isdigit() else MAX_BODY_BYTES
        size = min(size, MAX_BODY_BYTES)  # what is larger is refused before it is read
        if size <= SMALL_BYTES:
            yield
            return
        if self._used + size > self._total or self._by_cluster[cluster] + size > self._total // SHARE:
            raise TooManyRequests("too many large requests at once, please try again later", 1)
        self._used += size
        self._by_cluster[cluster] += size
        try:
            yield
        finally:
            self._used -= size
            self._by_cluster[cluster] -= size
            if not self._by_cluster[cluster]:
                del self._by_cluster[cluster]
