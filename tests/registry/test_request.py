"""What a verb is told besides the object."""

from __future__ import annotations

from kcp.registry.request import WriteRequest
from tests.registry.verbs import ADMIN


def test_requests_do_not_share_their_warnings_or_options() -> None:
    one, another = WriteRequest("root", ADMIN), WriteRequest("root", ADMIN)
    one.warnings.append("careful")
    one.options["dryRun"] = ["All"]
    assert (another.warnings, another.options) == ([], {})
