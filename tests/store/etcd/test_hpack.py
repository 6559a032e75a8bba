"""Header blocks: the examples of RFC 7541, Appendix C, and what a server should not send."""

from __future__ import annotations

import pytest

from kcp.store.etcd.hpack import BadHeaders, decode_headers, encode_request


def test_huffman_coded_values_are_read() -> None:
    block = (
        "4882640258 85aec3771a4b 6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3"
    )
    assert decode_headers(bytes.fromhex(block)) == {
        ":status": "302",
        "cache-control": "private",
        "date": "Mon, 21 Oct 2013 20:13:21 GMT",
        "location": "https://www.example.com",
    }


def test_indexed_and_literal_headers_are_read() -> None:
    block = b"\x20\x88\x40\x0bgrpc-status\x0213\x00\x0cgrpc-message\x04a%20"
    assert decode_headers(block) == {":status": "200", "grpc-status": "13", "grpc-message": "a%20"}


@pytest.mark.parametrize("length", [0, 126, 127, 128, 300, 70000])
def test_requests_are_written_as_they_are_read(length: int) -> None:
    block = encode_request("/p", "host:1", tls=True, headers=(("token", "x" * length),))
    headers = decode_headers(block)
    assert (headers[":path"], headers[":authority"], headers["token"]) == ("/p", "host:1", "x" * length)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"\xc8", id="dynamic-table"),
        pytest.param(b"\x00\x05ab", id="too-short"),
        pytest.param(b"\x7f\xff", id="endless-number"),
    ],
)
def test_blocks_that_cannot_be_meant_are_refused(block: bytes) -> None:
    with pytest.raises(BadHeaders):
        decode_headers(block)


def test_a_character_with_a_long_code_ends_the_text() -> None:
    """Backslash has 19 bits; it can only be in an error's text."""
    block = b"\x00\x01m\x84" + (0b00011_1111111111111110000_11111111 >> 0).to_bytes(4, "big")
    assert decode_headers(block)["m"].startswith("a")
