"""JSON merge patch (RFC 7386) as kube-apiserver applies it.

Nulls delete. Where the object has nothing to delete from, nulls are dropped from the patch, also inside of lists; but a
list that takes the place of an object is taken as it is, which is how the library of kube-apiserver behaves.
"""

from typing import Any

from kcp.meta.codec import DecodeError, Object, Text, find_duplicate_fields, loads
from kcp.meta.errors import BadRequest
from kcp.patch.go_values import json_kind


def decode_merge_patch(body: Text, *, strict: bool = True) -> tuple[Object, list[str]]:
    """The patch, and what strict field validation has to say about it.

    `strict` is for the validation directives Warn and Strict. Raises BadRequest.
    """
    try:
        patch = loads(body)
    except DecodeError as error:
        raise BadRequest(f"error decoding patch: {error}" if strict else "Invalid JSON Patch") from None
    if isinstance(patch, dict):
        return patch, [f'duplicate field "{path}"' for path in find_duplicate_fields(body)] if strict else []
    if patch is None or not strict:
        raise BadRequest("Invalid JSON Patch")
    kind = json_kind(patch)
    raise BadRequest(
        f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    )


def apply_merge_patch(document: Object, patch: Object) -> Object:
    """The patched object. Both arguments are consumed: the document is changed in place and takes in the patch."""
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
            continue
        current = document.get(key)
        if not isinstance(current, dict):
            document[key] = _without_nulls(value)
        elif isinstance(value, dict):
            apply_merge_patch(current, value)
        else:
            document[key] = value
    return document


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
