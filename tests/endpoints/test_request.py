"""A request's parameters, headers and body."""

from __future__ import annotations

from typing import Any

import pytest

from kcp.endpoints.request import MAX_BODY_BYTES, ClientGone, Request
from kcp.meta.errors import RequestEntityTooLarge


def make_request(
    query: bytes = b"", *headers: tuple[bytes, bytes], messages: list[dict[str, Any]] | None = None
) -> Request:
    left = list(messages or [])

    async def receive() -> dict[str, Any]:
        return left.pop(0)

    scope = {"method": "POST", "path": "/", "query_string": query, "headers": list(headers)}
    return Request(scope, receive)


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_the_first_of_several_values_counts() -> None:
    request = make_request(b"a=1&a=2&b=", (b"x-a", b"1"), (b"x-a", b"2"))
    assert request.parameter("a") == "1"
    assert request.query["a"] == ["1", "2"]
    assert request.parameter("b", "default") == ""
    assert request.parameter("c", "default") == "default"
    assert request.header(b"x-a") == "1"
    assert request.header(b"x-b", "default") == "default"


def test_without_a_query_everything_is_absent() -> None:
    request = make_request()
    assert request.query == {}
    assert request.parameter("a", "default") == "default"
    assert request.flag("a") is False


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (b"watch", True),
        (b"watch=", True),
        (b"watch=1", True),
        (b"watch=yes", True),
        (b"watch=0", False),
        (b"watch=FALSE", False),
        (b"other=1", False),
    ],
    ids=lambda value: str(value),
)
def test_flags_are_true_unless_they_say_otherwise(query: bytes, expected: bool) -> None:
    assert make_request(query).flag("watch") is expected


def test_parameters_are_unescaped_as_utf8() -> None:
    assert make_request(b"labelSelector=a%3D%C3%A4+b").parameter("labelSelector") == "a=ä b"


async def test_a_body_comes_in_pieces() -> None:
    assert await make_request(messages=[part(b"abc")]).body() == b"abc"
    assert await make_request(messages=[part(b"a", more=True), part(b"", more=True), part(b"bc")]).body() == b"abc"


@pytest.mark.parametrize(
    "request_",
    [
        make_request(b"", (b"content-length", str(MAX_BODY_BYTES + 1).encode())),
        make_request(b"", (b"content-length", b"many")),
        make_request(messages=[part(b"x" * (MAX_BODY_BYTES + 1))]),
        make_request(messages=[part(b"x" * MAX_BODY_BYTES, more=True), part(b"x", more=True)]),
    ],
    ids=["announced", "not a number", "at once", "in pieces"],
)
async def test_a_body_that_is_too_large_is_refused(request_: Request) -> None:
    with pytest.raises(RequestEntityTooLarge, match=r"Request entity too large: limit is 3145728"):
        await request_.body()


async def test_a_body_may_be_as_large_as_the_limit() -> None:
    request = make_request(b"", (b"content-length", b"4"), messages=[part(b"abc", more=True), part(b"d")])
    assert await request.body(4) == b"abcd"


@pytest.mark.parametrize("first", [[], [part(b"a", more=True)]], ids=["at once", "in the middle"])
async def test_a_client_that_hangs_up_is_gone(first: list[dict[str, Any]]) -> None:
    with pytest.raises(ClientGone):
        await make_request(messages=[*first, {"type": "http.disconnect"}]).body()
