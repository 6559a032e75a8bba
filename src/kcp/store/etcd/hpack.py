"""HTTP/2 header blocks (HPACK, RFC 7541), as far as a client that speaks gRPC to etcd needs them.

Stateless on purpose: we tell the server to keep no dynamic table (SETTINGS_HEADER_TABLE_SIZE 0) and use none ourselves.
So a block means the same whenever it comes, and the few different ones are decoded once. It must not know frames.
"""

from __future__ import annotations

from functools import lru_cache

# Appendix A, the names only, and the values that a server's answer can use. Index 1 is the first.
_STATIC_NAMES = """
:authority :method :method :path :path :scheme :scheme :status :status :status :status :status :status :status
accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow authorization
cache-control content-disposition content-encoding content-language content-length content-location content-range
content-type cookie date etag expect expires from host if-match if-modified-since if-none-match if-range
if-unmodified-since last-modified link location max-forwards proxy-authenticate proxy-authorization range referer
refresh retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary via www-authenticate
""".split()  # noqa: SIM905 - sixty lines otherwise
_STATIC_VALUES = {8: "200", 9: "204", 10: "206", 11: "304", 12: "400", 13: "404", 14: "500"}
_POST, _HTTP, _HTTPS = b"\x83", b"\x86", b"\x87"  # indexes of ":method: POST" and the two schemes

# Appendix B: the characters by the length of their code, in the order of the code, which is canonical. All that has a
# code of more than 15 bits (backslash, control characters, bytes over 127) is left out: see `_decode_huffman`.
_HUFFMAN = {
    5: "012aceiost",
    6: " %-./3456789=A_bdfghlmnpru",
    7: ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",
    8: "&*,;XZ",
    10: '!"()?',
    11: "'+|",
    12: "#>",
    13: "\0$@[]~",
    14: "^}",
    15: "<`{",
}


def _make_codes() -> dict[tuple[int, int], str]:
    """(length, code) to character. A canonical code counts up, and moves left by a bit when codes get longer."""
    codes = {}
    code = length = 0
    for new_length, characters in _HUFFMAN.items():
        code <<= new_length - length
        length = new_length
        for character in characters:
            codes[length, code] = character
            code += 1
    return codes


_CODES = _make_codes()


class BadHeaders(Exception):
    """A header block that the server should not have sent."""


def encode_request(path: str, authority: str, *, tls: bool, headers: tuple[tuple[str, str], ...]) -> bytes:
    """The header block of a POST, with every name and value spelled out."""
    named = [(":path", path), (":authority", authority), *headers]
    return _POST + (_HTTPS if tls else _HTTP) + b"".join(_encode_literal(name, value) for name, value in named)


def _encode_literal(name: str, value: str) -> bytes:
    return b"\0" + _encode_string(name.encode()) + _encode_string(value.encode())


def _encode_string(octets: bytes) -> bytes:
    if len(octets) < 127:
        return bytes([len(octets)]) + octets
    rest, length = len(octets) - 127, b"\x7f"
    while rest >= 128:
        length += bytes([rest & 127 | 128])
        rest >>= 7
    return length + bytes([rest]) + octets


@lru_cache(maxsize=256)
def decode_headers(block: bytes) -> dict[str, str]:
    """Names and values; of a name that comes twice, the last. Do not change the result: it is shared."""
    headers: dict[str, str] = {}
    position = 0
    try:
        while position < len(block):
            first = block[position]
            if first & 0x80:
                index, position = _decode_integer(block, position, 7)
                headers[_STATIC_NAMES[index - 1]] = _STATIC_VALUES.get(index, "")
            elif first & 0xE0 == 0x20:
                _, position = _decode_integer(block, position, 5)  # the size of the table that nobody uses
            else:
                index, position = _decode_integer(block, position, 6 if first & 0x40 else 4)
                if index:
                    name = _STATIC_NAMES[index - 1]
                else:
                    name, position = _decode_string(block, position)
                headers[name], position = _decode_string(block, position)
    except IndexError:
        raise BadHeaders(f"a header block that cannot be read: {block.hex()}") from None
    return headers


def _decode_integer(block: bytes, position: int, prefix_bits: int) -> tuple[int, int]:
    limit = (1 << prefix_bits) - 1
    number = block[position] & limit
    position += 1
    shift = 0
    while number >= limit:
        octet = block[position]
        position += 1
        number += (octet & 127) << shift
        shift += 7
        if octet < 128:
            break
    return number, position


def _decode_string(block: bytes, position: int) -> tuple[str, int]:
    is_huffman = block[position] & 0x80
    length, start = _decode_integer(block, position, 7)
    octets = block[start : start + length]
    if len(octets) < length:
        raise IndexError
    return _decode_huffman(octets) if is_huffman else octets.decode("latin-1"), start + length


def _decode_huffman(octets: bytes) -> str:
    """The text, up to the first character that has one of the long codes (never in what gRPC's rules depend on)."""
    decoded = []
    code = length = 0
    for octet in octets:
        for bit in range(7, -1, -1):
            code = code << 1 | octet >> bit & 1
            length += 1
            character = _CODES.get((length, code))
            if character is not None:
                decoded.append(character)
                code = length = 0
            elif length > 15:
                return "".join(decoded) + "..."
    return "".join(decoded)
