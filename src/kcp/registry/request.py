"""What a verb is told about the request besides the object."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kcp.auth.user import UserInfo
    from kcp.meta.codec import Object


@dataclass(slots=True)
class WriteRequest:
    """One write to one logical cluster."""

    cluster: str
    user: UserInfo
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    manager: str = ""
    """The field manager: the parameter, or what the user agent begins with."""

    dry_run: bool = False
    options: Object = field(default_factory=dict)
    """CreateOptions and the like, as admission shows them to webhooks."""

    warnings: list[str] = field(default_factory=list)
    """For the client, filled on the way."""
