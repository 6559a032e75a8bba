"""IP addresses and networks in expressions."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

from kcp.meta.gotext import quote
from kcp.schema.cel.descriptors import parts_of, value_of
from kcp.schema.cel.functions import Overload, function, method
from kcp.schema.cel.types import BOOL, CIDR, INT, IP, STRING

if TYPE_CHECKING:
    from kcp.schema.cel.descriptors import Value
    from kcp.schema.cel.functions import Function

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_BITS: Final = re.compile("0|[1-9][0-9]{0,2}")
_FAILED: Final = "network address parse error during conversion from string"


def parse_address(text: str) -> Address:
    """Raises ValueError in the words of Kubernetes and, inside, of Go's netip."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(
            f"IP Address {quote(text)} parse error during conversion from string: "
            f"ParseAddr({quote(text)}): unable to parse IP"
        ) from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            raise ValueError(f"IP address {quote(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise ValueError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def parse_network(text: str) -> tuple[Address, int]:
    """The address, which may have bits beyond the prefix set, and the prefix's length."""
    host, slash, bits = text.rpartition("/")
    why = "no '/'"
    if slash:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            why = f"ParseAddr({quote(host)}): unable to parse IP"
        else:
            if "%" in host:
                why = "IPv6 zones cannot be present in a prefix"
            elif not _BITS.fullmatch(bits):
                why = f"bad bits after slash: {quote(bits)}"
            elif int(bits) > address.max_prefixlen:
                why = "prefix length out of range"
            else:
                if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
                    raise ValueError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
                return address, int(bits)
    raise ValueError(f"{_FAILED}: netip.ParsePrefix({quote(text)}): {why}")


def to_ip(text: str) -> Value:
    return value_of(IP, str(parse_address(text)))


def is_ip(text: str) -> bool:
    try:
        parse_address(text)
    except ValueError:
        return False
    return True


def to_cidr(text: str) -> Value:
    try:
        address, bits = parse_network(text)
    except ValueError as error:
        raise ValueError(f"{_FAILED}: {error}") from None
    return value_of(CIDR, f"{address}/{bits}")


def is_cidr(text: str) -> bool:
    try:
        parse_network(text)
    except ValueError:
        return False
    return True


def is_global_unicast(value: Value) -> bool:
    """Go's meaning, which counts private addresses in."""
    address = _address(value)
    if isinstance(address, ipaddress.IPv4Address) and address == ipaddress.IPv4Address("255.255.255.255"):
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or is_link_local_unicast(value))


def is_link_local_unicast(value: Value) -> bool:
    return _address(value).is_link_local


def is_link_local_multicast(value: Value) -> bool:
    address = _address(value)
    if isinstance(address, ipaddress.IPv4Address):
        return address in ipaddress.ip_network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def contains_ip(value: Value, other: Value | str) -> bool:
    address = parse_address(other) if isinstance(other, str) else _address(other)
    network = _network(value)
    return address.version == network.version and address in network


def contains_cidr(value: Value, other: Value | str) -> bool:
    inner = _network(to_cidr(other) if isinstance(other, str) else other)
    outer = _network(value)
    return outer.version == inner.version and outer.overlaps(inner) and outer.prefixlen <= inner.prefixlen


def _text(value: Value) -> str:
    return parts_of(value)[0]


def _address(value: Value) -> Address:
    return ipaddress.ip_address(_text(value))


def _network(value: Value) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_network(_text(value), strict=False)


_IP: Final = (IP,)
_CIDR: Final = (CIDR,)

FUNCTIONS: Final[tuple[Function, ...]] = (
    function("ip", Overload("string_to_ip", (STRING,), IP, to_ip)),
    function("isIP", Overload("is_ip", (STRING,), BOOL, is_ip)),
    function(
        "ip.isCanonical", Overload("ip_is_canonical", (STRING,), BOOL, lambda text: str(parse_address(text)) == text)
    ),
    function(
        "string",
        Overload("ip_to_string", _IP, STRING, _text),
        Overload("cidr_to_string", _CIDR, STRING, _text),
    ),
    method("family", Overload("ip_family", _IP, INT, lambda value: _address(value).version)),
    method("isUnspecified", Overload("ip_is_unspecified", _IP, BOOL, lambda value: _address(value).is_unspecified)),
    method("isLoopback", Overload("ip_is_loopback", _IP, BOOL, lambda value: _address(value).is_loopback)),
    method("isLinkLocalMulticast", Overload("ip_is_link_local_multicast", _IP, BOOL, is_link_local_multicast)),
    method("isLinkLocalUnicast", Overload("ip_is_link_local_unicast", _IP, BOOL, is_link_local_unicast)),
    method("isGlobalUnicast", Overload("ip_is_global_unicast", _IP, BOOL, is_global_unicast)),
    function("cidr", Overload("string_to_cidr", (STRING,), CIDR, to_cidr)),
    function("isCIDR", Overload("is_cidr", (STRING,), BOOL, is_cidr)),
    method(
        "containsIP",
        Overload("cidr_contains_ip_string", (CIDR, STRING), BOOL, contains_ip),
        Overload("cidr_contains_ip_ip", (CIDR, IP), BOOL, contains_ip),
    ),
    method(
        "containsCIDR",
        Overload("cidr_contains_cidr_string", (CIDR, STRING), BOOL, contains_cidr),
        Overload("cidr_contains_cidr", (CIDR, CIDR), BOOL, contains_cidr),
    ),
    method("ip", Overload("cidr_ip", _CIDR, IP, lambda value: to_ip(_text(value).partition("/")[0]))),
    method("prefixLength", Overload("cidr_prefix_length", _CIDR, INT, lambda value: _network(value).prefixlen)),
    method("masked", Overload("cidr_masked", _CIDR, CIDR, lambda value: value_of(CIDR, str(_network(value))))),
)
