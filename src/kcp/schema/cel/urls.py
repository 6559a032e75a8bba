"""URLs in expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from kcp.meta.gotext import quote
from kcp.schema.cel.descriptors import parts_of, value_of
from kcp.schema.cel.functions import Overload, function, method
from kcp.schema.cel.types import BOOL, STRING, URL, ListType, MapType
from kcp.schema.structural.urls import parse_request_uri

if TYPE_CHECKING:
    from kcp.schema.cel.descriptors import Value
    from kcp.schema.cel.functions import Function
    from kcp.schema.structural.urls import UrlParts


def parse(text: str) -> Value:
    if parse_request_uri(text) is None:
        raise ValueError(f"URL parse error during conversion from string: {explain(text)}")
    return value_of(URL, text)


def is_url(text: str) -> bool:
    return parse_request_uri(text) is not None


def explain(text: str) -> str:
    """Why it is no URL, in Go's words for the usual case."""
    return f"parse {quote(text)}: " + ("invalid URI for request" if text else "empty url")


def hostname(value: Value) -> str:
    return _split_host(_parts(value).host)[0]


def port(value: Value) -> str:
    return _split_host(_parts(value).host)[1]


def query(value: Value) -> dict[str, list[str]]:
    text = parts_of(value)[0].partition("#")[0].partition("?")[2]
    # Go drops pairs with a semicolon, which used to separate pairs as well.
    return parse_qs("&".join(pair for pair in text.split("&") if ";" not in pair), keep_blank_values=True)


def _parts(value: Value) -> UrlParts:
    parts = parse_request_uri(parts_of(value)[0].partition("#")[0])
    assert parts is not None  # `parse` has seen to it
    return parts


def _split_host(host: str) -> tuple[str, str]:
    name, colon, number = host.rpartition(":")
    if not colon or "]" in number:
        return host.strip("[]"), ""
    return name.strip("[]"), number


_ONE: Final = (URL,)

FUNCTIONS: Final[tuple[Function, ...]] = (
    function("url", Overload("string_to_url", (STRING,), URL, parse)),
    function("isURL", Overload("is_url_string", (STRING,), BOOL, is_url)),
    method("getScheme", Overload("url_get_scheme", _ONE, STRING, lambda value: _parts(value).scheme)),
    method("getHost", Overload("url_get_host", _ONE, STRING, lambda value: _parts(value).host)),
    method("getHostname", Overload("url_get_hostname", _ONE, STRING, hostname)),
    method("getPort", Overload("url_get_port", _ONE, STRING, port)),
    method("getEscapedPath", Overload("url_get_escaped_path", _ONE, STRING, lambda value: _parts(value).path)),
    method("getQuery", Overload("url_get_query", _ONE, MapType(ListType(STRING)), query)),
)
