"""OpenAPI v2 in protobuf: the messages of gnostic's openapi.v2, which client-go asks for.

Field numbers are those of OpenAPIv2.proto. Only what `build_v2` writes is known here; as in any proto3 message, zeros
and empty texts are left out. Values of any type travel as YAML, of which JSON is a part.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kcp.meta import codec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kcp.meta.codec import Object

# (field number, value) -> the encoded field
Encode: TypeAlias = Callable[[int, Any], bytes]


def to_protobuf(document: bytes) -> bytes:
    """The same document, as `application/com.github.proto-openapi.spec.v2.v1.0+protobuf`."""
    return _document(codec.loads(document))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode()) if value else b""


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_message(number, value.encode()) for value in values)


def _boolean(number: int, value: bool) -> bytes:
    return _varint(number << 3) + b"\x01" if value else b""


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(int(value) & 0xFFFF_FFFF_FFFF_FFFF) if value else b""


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value) if value else b""


def _any(number: int, value: Any) -> bytes:  # noqa: ANN401
    return _message(number, _message(2, codec.dumps(value) + b"\n"))


def _anys(number: int, values: Iterable[Any]) -> bytes:
    return b"".join(_any(number, value) for value in values)


def _named(number: int, name: str, value: bytes) -> bytes:
    return _message(number, _text(1, name) + value)


def _fields(node: Object, table: dict[str, tuple[int, Encode]], extension_number: int = 0) -> bytes:
    """Encode what the table names, and vendor extensions if they have a number."""
    parts = []
    for key, value in node.items():
        entry = table.get(key)
        if entry is not None:
            parts.append(entry[1](entry[0], value))
        elif extension_number and key.startswith("x-"):
            parts.append(_named(extension_number, key, _any(2, value)))
    return b"".join(parts)


def _schema(number: int, schema: Object) -> bytes:
    return _message(number, _fields(schema, _SCHEMA, 31))


def _schemas(number: int, schemas: Iterable[Object]) -> bytes:
    return b"".join(_schema(number, schema) for schema in schemas)


def _named_schemas(number: int, schemas: dict[str, Object]) -> bytes:
    return _message(number, b"".join(_named(1, name, _schema(2, schema)) for name, schema in schemas.items()))


def _schema_or_boolean(number: int, value: Object | bool) -> bytes:
    # A boolean is one of two alternatives here, so it is written even if false.
    alternative = b"\x10" + bytes([value]) if isinstance(value, bool) else _schema(1, value)
    return _message(number, alternative)


_SCHEMA: Final[dict[str, tuple[int, Encode]]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _boolean),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _boolean),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _boolean),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _texts),
    "enum": (20, _anys),
    "additionalProperties": (21, _schema_or_boolean),
    "type": (22, lambda number, value: _message(number, _text(1, value))),
    "items": (23, lambda number, value: _message(number, _schema(1, value))),
    "allOf": (24, _schemas),
    "properties": (25, _named_schemas),
}

_BODY_PARAMETER: Final[dict[str, tuple[int, Encode]]] = {
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _boolean),
    "schema": (5, _schema),
}
_PATH_PARAMETER: Final[dict[str, tuple[int, Encode]]] = {
    "required": (1, _boolean),
    "in": (2, _text),
    "name": (4, _text),
    "type": (5, _text),
    "uniqueItems": (19, _boolean),
}
_QUERY_PARAMETER: Final[dict[str, tuple[int, Encode]]] = {
    "in": (2, _text),
    "name": (4, _text),
    "type": (6, _text),
    "uniqueItems": (20, _boolean),
}


def _parameters(number: int, parameters: Iterable[Object]) -> bytes:
    return b"".join(_message(number, _message(1, _parameter(parameter))) for parameter in parameters)


def _parameter(parameter: Object) -> bytes:
    if parameter["in"] == "body":
        return _message(1, _fields(parameter, _BODY_PARAMETER))
    if parameter["in"] == "path":
        return _message(2, _message(4, _fields(parameter, _PATH_PARAMETER)))
    return _message(2, _message(3, _fields(parameter, _QUERY_PARAMETER)))


def _responses(number: int, responses: dict[str, Object]) -> bytes:
    values = (_named(1, code, _message(2, _message(1, _fields(value, _RESPONSE)))) for code, value in responses.items())
    return _message(number, b"".join(values))


_RESPONSE: Final[dict[str, tuple[int, Encode]]] = {
    "description": (1, _text),
    "schema": (2, lambda number, value: _message(number, _schema(1, value))),
}
_OPERATION: Final[dict[str, tuple[int, Encode]]] = {
    "tags": (1, _texts),
    "operationId": (5, _text),
    "produces": (6, _texts),
    "consumes": (7, _texts),
    "parameters": (8, _parameters),
    "responses": (9, _responses),
    "schemes": (10, _texts),
}


def _operation(number: int, operation: Object) -> bytes:
    return _message(number, _fields(operation, _OPERATION, 13))


_PATH_ITEM: Final[dict[str, tuple[int, Encode]]] = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}
_INFO: Final[dict[str, tuple[int, Encode]]] = {"title": (1, _text), "version": (2, _text)}
_API_KEY: Final[dict[str, tuple[int, Encode]]] = {"type": (1, _text), "name": (2, _text), "in": (3, _text)}


def _paths(number: int, paths: dict[str, Object]) -> bytes:
    items = (_named(2, path, _message(2, _fields(item, _PATH_ITEM))) for path, item in paths.items())
    return _message(number, b"".join(items))


def _security(number: int, requirements: Iterable[Object]) -> bytes:
    named = (
        b"".join(_named(1, name, _message(2, _texts(1, scopes))) for name, scopes in requirement.items())
        for requirement in requirements
    )
    return b"".join(_message(number, requirement) for requirement in named)


def _security_definitions(number: int, definitions: dict[str, Object]) -> bytes:
    named = (
        _named(1, name, _message(2, _message(2, _fields(definition, _API_KEY))))
        for name, definition in definitions.items()
    )
    return _message(number, b"".join(named))


_DOCUMENT: Final[dict[str, tuple[int, Encode]]] = {
    "swagger": (1, _text),
    "info": (2, lambda number, value: _message(number, _fields(value, _INFO))),
    "paths": (8, _paths),
    "definitions": (9, _named_schemas),
    "security": (12, _security),
    "securityDefinitions": (13, _security_definitions),
}


def _document(document: Object) -> bytes:
    return _fields(document, _DOCUMENT)
