"""Query parameters as options."""

from __future__ import annotations

import pytest

from kcp.endpoints.options import check_manager, list_options, manager_of, parse_integer
from kcp.meta.errors import BadRequest
from tests.endpoints.api import API, CONFIGMAPS, configmap
from tests.endpoints.test_request import make_request

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


@pytest.mark.parametrize(("text", "value"), [("5", 5), ("+5", 5), ("-5", -5), ("9223372036854775807", (1 << 63) - 1)])
def test_integers(text: str, value: int) -> None:
    assert parse_integer(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("٣", 'strconv.ParseInt: parsing "٣": invalid syntax'),
        ("1_0", 'strconv.ParseInt: parsing "1_0": invalid syntax'),
        ('"\n', 'strconv.ParseInt: parsing "\\"\\n": invalid syntax'),
        ("9223372036854775808", 'strconv.ParseInt: parsing "9223372036854775808": value out of range'),
        ("9" * 5000, f'strconv.ParseInt: parsing "{"9" * 5000}": value out of range'),
    ],
    ids=["letter", "empty", "other digits", "underscore", "quotes", "too large", "huge"],
)
def test_what_is_no_integer_is_refused_in_go_s_words(text: str, why: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_integer(text)
    assert caught.value.message == why


def test_list_options_are_read_from_the_query() -> None:
    query = (
        b"labelSelector=a%3Db&fieldSelector=metadata.name%3Dx&limit=-3&continue=c&resourceVersion=7&timeoutSeconds=9"
        b"&resourceVersionMatch=Exact&watch=1&sendInitialEvents=false&allowWatchBookmarks=true"
    )
    options = list_options(make_request(query))
    assert options.label_selector == "a=b"
    assert options.field_selector == "metadata.name=x"
    assert (options.limit, options.continue_token, options.timeout_seconds) == (0, "c", 9)
    assert (options.resource_version, options.resource_version_match) == ("7", "Exact")
    assert (options.watch, options.send_initial_events, options.allow_bookmarks) == (True, False, True)
    assert list_options(make_request(b"a=b")).send_initial_events is None


@pytest.mark.parametrize(
    ("agent", "manager"),
    [
        (b"kubectl/v1.35 (linux)", "kubectl"),
        (b"", "unknown"),
        (b"/x", "unknown"),
        (b"a\x01b/1", "ab"),
        (b"x" * 200, "x" * 128),
        ("ä".encode() * 100, "ä" * 64),
        (b"x" + "ä".encode() * 100, "x" + "ä" * 63),
        (b"\xff/1", "\ufffd"),
    ],
    ids=["program", "none", "no name", "unprintable", "long", "two bytes each", "cut in the middle", "not UTF-8"],
)
def test_a_client_without_a_manager_is_called_by_its_user_agent(agent: bytes, manager: str) -> None:
    assert manager_of(agent) == manager


def test_managers_are_short_and_printable() -> None:
    assert check_manager("a" * 128) == []
    assert str(check_manager("ä" * 65)[0]) == "fieldManager: Too long: may not be more than 128 bytes"
    assert "invalid character U+000A (at position 1)" in str(check_manager("a\nb")[0])


@pytest.mark.parametrize(
    ("method", "kind", "query", "why"),
    [
        ("POST", "CreateOptions", {"dryRun": "Some"}, 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
        (
            "PUT",
            "UpdateOptions",
            {"fieldValidation": "Often"},
            'fieldValidation: Unsupported value: "Often": supported values: "", "Ignore", "Strict", "Warn"',
        ),
        ("PATCH", "PatchOptions", {"force": "true"}, "force: Forbidden: may not be specified for non-apply patch"),
    ],
)
async def test_options_that_make_no_sense_are_invalid(
    api: API, method: str, kind: str, query: dict[str, str], why: str
) -> None:
    path = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/a"
    answer = await api.call(
        method, path, configmap(), headers={"content-type": MERGE} if kind[0] == "P" else None, **query
    )
    assert answer.status == 422
    assert answer.message == f'{kind}.meta.k8s.io "" is invalid: {why}'


async def test_apply_needs_a_manager(api: API) -> None:
    answer = await api.patch(f"{CONFIGMAPS}/a", configmap(), APPLY)
    assert answer.message == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )
    assert (await api.patch(f"{CONFIGMAPS}/a", configmap(), APPLY, fieldManager="m", force="true")).status == 201


async def test_the_manager_is_recorded(api: API) -> None:
    one = await api.must("POST", CONFIGMAPS, configmap("a", data={"a": "b"}), fieldManager="me")
    two = await api.must("POST", CONFIGMAPS, configmap("b", data={"a": "b"}), headers={"user-agent": "agent/7 (x)"})
    managers = [each["metadata"]["managedFields"][0]["manager"] for each in (one, two)]
    assert managers == ["me", "agent"]
