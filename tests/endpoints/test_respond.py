"""Answers and errors as bytes with their headers."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from kcp.endpoints import protobuf
from kcp.endpoints.negotiation import JSON, PROTOBUF, YAML
from kcp.endpoints.respond import COMPRESS_FROM_BYTES, warning_headers
from kcp.meta import codec
from tests.endpoints.api import API, CONFIGMAPS, TABLE, configmap


async def test_headers_of_an_answer(api: API) -> None:
    answer = await api.get("/version")
    assert answer.headers == [
        ("cache-control", "no-cache, private"),
        ("content-type", JSON),
        ("content-length", str(len(answer.body))),
    ]


async def test_large_answers_are_compressed_for_those_who_can_read_them(api: API) -> None:
    await api.create_configmap("large", data={"x": "y" * COMPRESS_FROM_BYTES})
    path = f"{CONFIGMAPS}/large"
    plain = await api.get(path)
    assert plain.header("content-encoding") is None
    packed = await api.get(path, headers={"accept-encoding": "deflate, gzip"})
    assert packed.header("content-encoding") == "gzip"
    assert packed.header("vary") == "Accept-Encoding"
    assert packed.header("content-length") == str(len(packed.body))
    assert zlib.decompress(packed.body, 31) == plain.body
    small = await api.get("/version", headers={"accept-encoding": "gzip"})
    assert small.header("content-encoding") is None


async def test_head_is_get_without_the_body(api: API) -> None:
    await api.create_configmap()
    for path in (CONFIGMAPS, f"{CONFIGMAPS}/a", "/api", "/version"):
        answer, head = await api.get(path), await api.call("HEAD", path)
        assert (head.status, head.headers, head.body) == (200, answer.headers, b"")


@pytest.mark.parametrize(
    ("agent", "query", "pretty"),
    [
        ("kubectl/v1", {}, False),
        ("curl/8", {}, True),
        ("Wget/1", {}, True),
        ("Mozilla/5.0 (X11)", {}, True),
        ("curl/8", {"pretty": "false"}, False),
        ("curl/8", {"pretty": "yes"}, False),
        ("curl/8", {"pretty": ""}, True),
        ("curl/8", {"labelSelector": "pretty"}, True),
        ("kubectl/v1", {"pretty": "1"}, True),
        ("kubectl/v1", {"pretty": "True"}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", [f"{CONFIGMAPS}/a", CONFIGMAPS, "/apis", f"{CONFIGMAPS}/missing"])
async def test_people_get_line_breaks(api: API, path: str, agent: str, query: dict[str, str], pretty: bool) -> None:
    await api.create_configmap()
    answer = await api.get(path, headers={"user-agent": agent}, **query)
    assert answer.body.startswith(b'{\n  "kind": ') == pretty
    assert answer.json()["kind"]


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", JSON),
        (YAML, YAML),
        (PROTOBUF, PROTOBUF),
        (f"{PROTOBUF},{JSON}", PROTOBUF),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,{JSON}", JSON),
        (f"{TABLE},{JSON}", JSON),
        (TABLE, JSON),
    ],
    ids=lambda value: str(value),
)
async def test_errors_are_told_in_the_client_s_format(api: API, accept: str, media: str) -> None:
    answer = await api.get(f"{CONFIGMAPS}/missing", accept=accept)
    assert (answer.status, answer.media) == (404, media)
    decode = protobuf.decode if media == PROTOBUF else codec.loads_yaml  # JSON is YAML too
    status: Any = decode(answer.body)
    assert status["message"] == 'configmaps "missing" not found'


def texts(*warnings: str) -> list[str]:
    return [value.decode() for name, value in warning_headers(warnings) if name == b"warning"]


def test_warnings_are_quoted_and_sent_once() -> None:
    assert texts('a "b" \\', "c", 'a "b" \\', "ä") == [r'299 - "a \"b\" \\"', '299 - "c"', '299 - "ä"']


def test_warnings_that_no_header_can_carry_are_dropped() -> None:
    assert texts("", "a\nb", "\x7f", "\x85", "ok") == ['299 - "ok"']


def test_too_many_warnings_are_shortened() -> None:
    assert texts("a" * 4096) == [f'299 - "{"a" * 4096}"']
    assert texts("a" * 4000, "b" * 97) == [f'299 - "{"a" * 256}"', f'299 - "{"b" * 97}"']
    many = texts(*(f"{number:03}" + "x" * 300 for number in range(40)))
    assert len(many) == 16
    assert all(len(text) == len('299 - ""') + 256 for text in many)


async def test_unknown_fields_are_warned_about(api: API) -> None:
    answer = await api.post(CONFIGMAPS, configmap(nonsense=1, other={}))
    assert answer.status == 201
    assert answer.all("warning") == ['299 - "unknown field \\"nonsense\\""', '299 - "unknown field \\"other\\""']


async def test_a_missing_identity_is_told_how_to_come_back(api: API) -> None:
    answer = await api.get("/version", token="wrong")
    assert (answer.status, answer.header("www-authenticate")) == (401, 'Bearer realm="kcp"')
