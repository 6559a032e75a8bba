"""JSON patch (RFC 6902) as kube-apiserver applies it.

It follows the library that kube-apiserver uses, which forgives more than the RFC: negative indices count from the end,
`replace` may add a field, `copy` of a missing field copies null, and what stands before the first slash is ignored.
"""

import re
from typing import Any, Final

from kcp.meta.codec import DecodeError, Object, Text, dumps, find_duplicate_fields, loads, loads_own
from kcp.meta.errors import BadRequest, Invalid, RequestEntityTooLarge, StatusError
from kcp.patch.go_values import json_kind

MAX_COPIED_BYTES: Final = 3 << 20  # by all copies of one patch together, as kube-apiserver has it
MAX_OPERATIONS: Final = 10_000

_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}")
_ESCAPE: Final = re.compile("~[01]")
_FIELDS: Final = ("op", "path", "from", "value")


class _Failure(Exception):
    """The patch does not apply. Why is not told: kube-apiserver answers all of these with one sentence."""


def decode_json_patch(body: Text, *, strict: bool = True) -> tuple[list[Object], list[str]]:
    """The operations of a patch, and what strict field validation has to say about them.

    `strict` is for the validation directives Warn and Strict. Raises BadRequest and RequestEntityTooLarge.
    """
    prefix = "error decoding patch: " if strict else ""
    try:
        operations = loads(body)
    except DecodeError as error:
        raise BadRequest(f"{prefix}{error}") from None
    complaint = _find_type_error(operations, strict=strict)
    if complaint:
        raise BadRequest(f"{prefix}json: cannot unmarshal {complaint}")
    operations = [operation or {} for operation in operations or ()]
    complaints = _find_strict_errors(body, operations) if strict else []
    if len(operations) > MAX_OPERATIONS:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    return operations, complaints


def apply_json_patch(document: Any, operations: list[Object]) -> Any:  # noqa: ANN401 - any JSON document
    """The patched document, which is an object unless the patch makes it a list.

    `document` is consumed: it is changed in place. Raises Invalid if the patch does not apply.
    """
    copied = 0
    try:
        for operation in operations:
            if operation.get("op") == "copy":
                copied += _copy(document, operation)
                if copied > MAX_COPIED_BYTES:
                    raise _Failure
            else:
                document = _apply(document, operation)
        dumps(document)  # paths may have led deeper than anything that can be sent
    except (_Failure, TypeError):
        raise rejected() from None
    return document


def rejected() -> StatusError:
    """What kube-apiserver says when a patch cannot be applied to the object as it is."""
    message = "the server rejected our request due to an error in our request"
    return Invalid.with_message(message, details={})


def _find_type_error(operations: Any, *, strict: bool) -> str:  # noqa: ANN401
    """What of the patch has another type than Go would decode it into."""
    if operations is None:
        return ""
    if not isinstance(operations, list):
        target = "[]handlers.jsonPatchOp" if strict else "jsonpatch.Patch"
        return f"{json_kind(operations)} into Go value of type {target}"
    for operation in operations:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            target = "handlers.jsonPatchOp" if strict else "jsonpatch.Operation"
            return f"{json_kind(operation)} into Go value of type {target}"
        for name in ("op", "path", "from") if strict else ():
            value = operation.get(name)
            if value is not None and not isinstance(value, str):
                return f"{json_kind(value)} into Go struct field jsonPatchOp.{name} of type string"
    return ""


def _find_strict_errors(body: Text, operations: list[Object]) -> list[str]:
    unknown = [
        f'json patch unknown field "[{position}].{name}"'
        for position, operation in enumerate(operations)
        for name in operation
        if name not in _FIELDS
    ]
    return [f'json patch duplicate field "{path}"' for path in find_duplicate_fields(body)] + unknown


def _apply(document: Any, operation: Object) -> Any:  # noqa: ANN401
    kind = operation.get("op")
    path = _pointer(operation, "path") if kind not in ("move", "copy") else ""
    value = operation.get("value")
    if path == "" and kind == "replace":
        if not isinstance(value, dict | list):
            raise _Failure
        return value
    if kind == "test":
        if not _identical(document if path == "" else _get(*_find(document, path)), value):
            raise _Failure
    elif kind == "add":
        _add(*_find(document, path), value)
    elif kind == "remove":
        _remove(*_find(document, path))
    elif kind == "replace":
        _replace(*_find(document, path), value)
    elif kind == "move":
        _move(document, operation)
    else:
        raise _Failure
    return document


def _pointer(operation: Object, name: str) -> str:
    path = operation.get(name)
    if not isinstance(path, str):
        raise _Failure
    return path


def _move(document: Any, operation: Object) -> None:  # noqa: ANN401
    parent, key = _find(document, _pointer(operation, "from"))
    value = _get(parent, key)
    _remove(parent, key)
    _add(*_find(document, _pointer(operation, "path")), value)


def _copy(document: Any, operation: Object) -> int:  # noqa: ANN401
    """How many bytes of JSON were copied. Copies of copies double, so a short patch could ask for any amount."""
    copied = dumps(_get(*_find(document, _pointer(operation, "from"))))
    if len(copied) > MAX_COPIED_BYTES:
        raise _Failure
    _add(*_find(document, _pointer(operation, "path")), loads_own(copied))
    return len(copied)


def _find(document: Any, path: str) -> tuple[Any, str]:  # noqa: ANN401
    """The object or list which has, or shall have, what the path names, and the last part of the path."""
    parts = path.split("/")
    if len(parts) < 2:
        raise _Failure
    if "~" in path:
        parts = [_ESCAPE.sub(lambda found: "/" if found[0] == "~1" else "~", part) for part in parts]
    parent = document
    for part in parts[1:-1]:
        parent = _get(parent, part)
        if not isinstance(parent, dict | list):
            raise _Failure
    return parent, parts[-1]


def _get(parent: Any, key: str) -> Any:  # noqa: ANN401
    """The value, or null if an object has no such field."""
    if isinstance(parent, dict):
        return parent.get(key)
    return parent[_index(key, len(parent))]


def _add(parent: Any, key: str, value: Any) -> None:  # noqa: ANN401
    if isinstance(parent, dict):
        parent[key] = value
    elif key == "-":
        parent.append(value)
    else:
        parent.insert(_index(key, len(parent) + 1), value)


def _remove(parent: Any, key: str) -> None:  # noqa: ANN401
    if not isinstance(parent, dict):
        del parent[_index(key, len(parent))]
    elif key in parent:
        del parent[key]
    else:
        raise _Failure


def _replace(parent: Any, key: str, value: Any) -> None:  # noqa: ANN401
    if isinstance(parent, dict):
        parent[key] = value
    else:
        parent[_index(key, len(parent))] = value


def _index(key: str, length: int) -> int:
    if _INDEX.fullmatch(key) is None:
        raise _Failure
    index = int(key)
    if not -length <= index < length:
        raise _Failure
    return index + length if index < 0 else index


def _identical(left: Any, right: Any) -> bool:  # noqa: ANN401
    """Whether a test passes. Scalars are compared as text in Go, so that 1 is neither 1.0 nor true."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_identical(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_identical, left, right))
    return bool(left == right)
