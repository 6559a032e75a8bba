"""OpenAPI v2 as protobuf, checked against bytes that gnostic's own Go code reads as the same document."""

from __future__ import annotations

import json

import pytest

from kcp.apis import openapi
from kcp.schema.openapi import build_v2, to_protobuf

DOCUMENT = {
    "swagger": "2.0",
    "info": {"title": "K", "version": "v1"},
    "paths": {
        "/a/{name}": {
            "get": {
                "operationId": "readA",
                "tags": ["a"],
                "produces": ["application/json"],
                "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/A"}}},
                "x-kubernetes-action": "get",
            },
            "put": {
                "consumes": ["*/*"],
                "schemes": ["https"],
                "parameters": [{"in": "body", "name": "body", "required": True, "schema": {"$ref": "#/definitions/A"}}],
                "responses": {"401": {"description": "no"}},
            },
            "parameters": [
                {"in": "path", "name": "name", "required": True, "type": "string", "uniqueItems": True},
                {"in": "query", "name": "pretty", "type": "string", "uniqueItems": True},
            ],
        }
    },
    "definitions": {
        "A": {
            "type": "object",
            "required": ["s"],
            "properties": {
                "s": {"type": "string", "enum": ["x"], "maxLength": 300, "minLength": 0, "pattern": "^x"},
                "n": {"type": "number", "maximum": 1.5, "exclusiveMaximum": True, "minimum": -1},
                "l": {"type": "array", "items": {"type": "integer", "format": "int64"}, "maxItems": -1},
                "m": {"type": "object", "additionalProperties": {"type": "string"}},
                "f": {"type": "object", "additionalProperties": False},
            },
        }
    },
    "security": [{"BearerToken": []}],
    "securityDefinitions": {"BearerToken": {"in": "header", "name": "authorization", "type": "apiKey"}},
}
ENCODED = (
    "0a03322e3012070a014b1202763142ff0112fc010a092f612f7b6e616d657d12ee0112632a0572656164410a016132106170"
    "706c69636174696f6e2f6a736f6e4a240a220a03323030121b0a190a024f4b12130a110a0f232f646566696e6974696f6e73"
    "2f416a1f0a13782d6b756265726e657465732d616374696f6e1208120622676574220a1a443a032a2f2a5205687474707342"
    "250a230a211a04626f64791204626f647920012a110a0f232f646566696e6974696f6e732f414a0f0a0d0a0334303112060a"
    "040a026e6f4a1f0a1d121b221912047061746822046e616d6508012a06737472696e679801014a200a1e121c1a1a12057175"
    "65727922067072657474793206737472696e67a001014ad1010ace010a014112c801b201080a066f626a6563749a010173ca"
    "01b5010a200a0173121bb201080a06737472696e67a2010612042278220a58ac026a025e780a240a016e121fb201080a066e"
    "756d62657239000000000000f83f400149000000000000f0bf0a320a016c122db201070a056172726179ba01150a13b20109"
    "0a07696e74656765721205696e74363470ffffffffffffffffff010a200a016d121bb201080a066f626a656374aa010d0a0b"
    "b201080a06737472696e670a150a01661210b201080a066f626a656374aa0102100062110a0f0a0b426561726572546f6b65"
    "6e12006a320a300a0b426561726572546f6b656e1221121f1a06686561646572120d617574686f72697a6174696f6e0a0661"
    "70694b6579"
)


def test_bytes_are_those_that_gnostic_reads() -> None:
    assert to_protobuf(json.dumps(DOCUMENT).encode()).hex() == ENCODED


def read_message(data: bytes) -> list[tuple[int, bytes]]:
    """The texts and messages in a message, without knowing what it is."""
    fields: list[tuple[int, bytes]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        assert tag & 7 in (0, 2)
        if tag & 7 == 0:
            varint()
        else:
            length = varint()
            fields.append((tag >> 3, data[at : at + length]))
            at += length
    return fields


def names_in(message: bytes, number: int) -> list[str]:
    entries = [read_message(value) for field, value in read_message(message) if field == number and value]
    return [str(dict(entry)[1], "utf-8") for entry in entries]


@pytest.mark.parametrize(("part", "field", "entries"), [("paths", 8, 2), ("definitions", 9, 1)])
def test_the_whole_document_is_there(part: str, field: int, entries: int) -> None:
    body, _ = build_v2(openapi.published(), (), openapi.definitions(), version="v1.35.0")
    message = dict(read_message(to_protobuf(body)))[field]
    assert names_in(message, entries) == list(json.loads(body)[part])
