import re
import uuid

import pytest

from kcp.meta.names import make_generated_name, make_uid


@pytest.mark.parametrize("base", ["", "web-", "a" * 58, "a" * 59, "a" * 300], ids=len)
def test_generated_names_fit_a_dns_label(base: str) -> None:
    name = make_generated_name(base)
    assert re.fullmatch(re.escape(base[:58]) + "[bcdfghjklmnpqrstvwxz2456789]{5}", name)
    assert len(name) <= 63


def test_generated_names_differ() -> None:
    assert len({make_generated_name("a-") for _ in range(100)}) > 90


def test_uids_are_random_uuids() -> None:
    uids = [make_uid() for _ in range(200)]
    assert len(set(uids)) == 200
    for text in uids:
        parsed = uuid.UUID(text)
        assert str(parsed) == text
        assert parsed.version == 4
        assert parsed.variant == uuid.RFC_4122
