"""Answers and watch events as they arrive, however the network cuts them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.api.wire import Answer, EventCounter, decode_chunks

BODY = b'{"kind":"List","items":[{"a":1},{"b":2}]}\n'
WITH_LENGTH = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
CHUNKED = b"HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n5\r\n%b\r\n%x;x=y\r\n%b\r\n0\r\n\r\n" % (
    BODY[:5],
    len(BODY) - 5,
    BODY[5:],
)
EMPTY_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
NO_BODY = b"HTTP/1.1 204 No Content\r\nDate: today\r\n\r\n"
EMPTY = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def pieces(whole: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % len(whole) for cut in cuts), len(whole)]
    return [whole[start:end] for start, end in itertools.pairwise(edges) if start < end]


@pytest.mark.parametrize(
    ("whole", "status", "body"),
    [
        (WITH_LENGTH, 200, BODY),
        (CHUNKED, 201, BODY),
        (EMPTY_CHUNKED, 200, b""),
        (NO_BODY, 204, b""),
        (EMPTY, 404, b""),
    ],
    ids=["with length", "chunked", "chunked and empty", "no body", "length 0"],
)
@given(cuts=st.lists(st.integers(0, 1000), max_size=12))
def test_an_answer_is_complete_with_its_last_byte_and_not_before(
    whole: bytes, status: int, body: bytes, cuts: list[int]
) -> None:
    answer = Answer()
    fed = [answer.feed(piece) for piece in pieces(whole, cuts)]
    assert fed == [False] * (len(fed) - 1) + [True]
    assert (answer.status, answer.body) == (status, body)


def test_an_answer_that_comes_byte_by_byte_is_read() -> None:
    answer = Answer()
    assert [answer.feed(CHUNKED[at : at + 1]) for at in range(len(CHUNKED))].index(True) == len(CHUNKED) - 1
    assert answer.body == BODY


@given(parts=st.lists(st.binary(min_size=1, max_size=40), max_size=5))
def test_chunks_are_joined(parts: list[bytes]) -> None:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    assert decode_chunks(framed) == b"".join(parts)


@given(count=st.integers(0, 20), cuts=st.lists(st.integers(0, 5000), max_size=30))
def test_each_event_of_a_watch_is_counted_once(count: int, cuts: list[int]) -> None:
    event = b'{"type":"ADDED","object":{"data":{"text":"}\\n"}}}\n'
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    stream = head + b"%x\r\n%b\r\n" % (len(event), event) * count
    counter = EventCounter()
    for piece in pieces(stream, cuts):
        counter.feed(piece)
    assert counter.count == count
