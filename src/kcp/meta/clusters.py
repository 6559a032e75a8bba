"""Names of logical clusters and paths of workspaces.

A logical cluster has one name (`root`, `2k3abcd5e6f7g8h9`, `system:admin`). A workspace has paths: one or more words
from a starting point down, separated by colons. The same workspace may be reached by several of them:

    root                     (62208dab)          root:accounting:us-west
    `-- accounting           (c8a942c5)          c8a942c5:us-west
        `-- us-west          (33bab531)          33bab531

`system:...` is never a path: the whole of it is one name. `*` stands for all clusters at once and is neither.

Must not look anything up: whether a path leads somewhere is for the registry to say.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final, NewType

from kcp.meta.gotext import quote

ClusterName = NewType("ClusterName", str)

ROOT: Final = ClusterName("root")
SYSTEM_PREFIX: Final = "system:"

_WORD: Final = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PATH: Final = re.compile(f"{_WORD}(?::{_WORD})*+")
_NAME: Final = re.compile("[a-z0-9][a-z0-9-]{0,61}[a-z0-9]")
_BASE36_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_NAME_LENGTH: Final = 16  # 36^16 is 82 bits: a collision among 2^26 clusters is less likely than one in 10^9


@dataclass(frozen=True, slots=True)
class WorkspacePath:
    """A workspace path such as `root:org:team`. Made from any text; `is_valid` tells whether it can lead anywhere."""

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def is_valid(self) -> bool:
        """Whether each word is one to 63 of a-z, 0-9 and inner hyphens. WILDCARD is not a valid path."""
        return _PATH.fullmatch(self.text) is not None

    @property
    def cluster_name(self) -> ClusterName | None:
        """The logical cluster, where the path is nothing but its name."""
        is_name = ":" not in self.text or self.text.startswith(SYSTEM_PREFIX)
        return ClusterName(self.text) if is_name and self.is_valid else None

    def split(self) -> tuple["WorkspacePath | None", str]:
        """The path one level up, if there is one, and the last word. A `system:` name is not taken apart."""
        if self.text.startswith(SYSTEM_PREFIX):
            return None, self.text
        parent, colon, last = self.text.rpartition(":")
        return WorkspacePath(parent) if colon else None, last

    @property
    def parent(self) -> "WorkspacePath | None":
        return self.split()[0]

    @property
    def last(self) -> str:
        return self.split()[1]

    def words(self) -> tuple[str, ...]:
        """The starting point (a logical cluster, or `user`), then the names of workspaces."""
        return (self.text,) if self.text.startswith(SYSTEM_PREFIX) else tuple(self.text.split(":"))

    def join(self, name: str) -> "WorkspacePath":
        return WorkspacePath(f"{self.text}:{name}" if self.text else name)

    def has_prefix(self, other: "WorkspacePath") -> bool:
        """Whether this is `other` or lies below it."""
        return self == other or self.text.startswith(f"{other.text}:")


# All logical clusters at once, in the URLs of wildcard lists and watches.
WILDCARD: Final = WorkspacePath("*")


def parse_path(text: str) -> WorkspacePath:
    """Read what stands behind `/clusters/` in a URL. Raises ValueError unless it is a valid path or WILDCARD."""
    path = WorkspacePath(text)
    if path == WILDCARD:
        return WILDCARD
    if not path.is_valid:
        raise ValueError(
            f"invalid cluster: {quote(text)} is not a workspace path: each part between colons must be 1 to 63 "
            "characters of a-z, 0-9 and '-', and start and end with a letter or digit"
        )
    return path


def is_cluster_name(text: str) -> bool:
    """Whether a logical cluster may be called this: 2 to 63 of a-z, 0-9 and inner hyphens, or `system:` and a path."""
    return _NAME.fullmatch(text) is not None or (text.startswith(SYSTEM_PREFIX) and _PATH.fullmatch(text) is not None)


def make_cluster_name(random_bytes: bytes) -> ClusterName:
    """The name of a new logical cluster, from 32 random bytes."""
    return ClusterName(base36(hashlib.sha224(random_bytes).digest())[:_NAME_LENGTH])


def make_home_cluster_name(user_name: str) -> ClusterName:
    """The logical cluster of a user's home workspace; the same user always has the same."""
    return ClusterName(base36(hashlib.sha224(user_name.encode()).digest()[:8]))


def base36(data: bytes) -> str:
    """The bytes as one big number in base 36; a leading zero byte gives a "0", so that no two byte strings collide."""
    leading_zeros = len(data) - len(data.lstrip(b"\0"))
    number, digits = int.from_bytes(data), []
    while number:
        number, digit = divmod(number, 36)
        digits.append(_BASE36_DIGITS[digit])
    return "0" * leading_zeros + "".join(reversed(digits))
