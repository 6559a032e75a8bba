"""Strategic merge patch: merge patch for kinds whose lists are known to merge, and how.

Beside nulls, a patch may hold directives:

    $patch: replace | delete | merge    in a map, or in an item of a list that merges by key
    $retainKeys: [a, b]                 drop all other fields of the map
    $deleteFromPrimitiveList/f: [x]     take items out of the list f
    $setElementOrder/f: [...]           the order in which list f shall be

Must not be offered for custom resources: Kubernetes has no such knowledge of their lists. `strategic_lists` merges
lists.
"""

from typing import Any, Final

from kcp.meta.codec import DecodeError, Object, Text, find_duplicate_fields, loads
from kcp.meta.errors import BadRequest, StatusError
from kcp.meta.gotext import quote
from kcp.patch.go_values import json_kind
from kcp.patch.json_patch import rejected
from kcp.patch.merge_schema import MergeSchema, PatchMeta
from kcp.patch.strategic_lists import (
    DELETE,
    DIRECTIVE,
    MERGE,
    REPLACE,
    ListMerge,
    MergeError,
    check_order,
    element_type,
    merge_lists,
)

_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_FROM_LIST: Final = "$deleteFromPrimitiveList"
_SET_ORDER: Final = "$setElementOrder"
_BAD_PRIMITIVE_LIST: Final = "invalid patch format of primitive list"
_BAD_RETAIN_KEYS: Final = "invalid patch format of retainKeys"
_BAD_SET_ORDER: Final = "invalid patch format of setElementOrder list"
_BAD_FORMATS: Final = (_BAD_PRIMITIVE_LIST, _BAD_RETAIN_KEYS, _BAD_SET_ORDER)


def decode_strategic_merge_patch(body: Text, *, strict: bool = True) -> tuple[Object, list[str]]:
    """The patch, and what strict field validation has to say about it. Raises BadRequest."""
    try:
        patch = loads(body)
    except DecodeError as error:
        raise BadRequest(str(error)) from None
    if patch is None:
        return {}, []
    if not isinstance(patch, dict):
        raise BadRequest(f"json: cannot unmarshal {json_kind(patch)} into Go value of type map[string]interface {{}}")
    return patch, [f'duplicate field "{path}"' for path in find_duplicate_fields(body)] if strict else []


def apply_strategic_merge_patch(document: Object, patch: Object, schema: MergeSchema) -> Object:
    """The patched object. Both arguments are consumed: they may be changed, and the result is made of their parts.

    Raises BadRequest, Invalid or, as Kubernetes does for most mistakes, StatusError with code 500.
    """
    try:
        return _merge_map(document, patch, schema)
    except MergeError as error:
        message = str(error)
        if message in _BAD_FORMATS:
            raise BadRequest(message) from None
        if message == MergeError.LIST_OF_LISTS:
            raise rejected() from None
        raise StatusError(message) from None
    except (TypeError, RecursionError):
        # Lists or maps where scalars are compared; Go panics.
        raise StatusError("a list or an object stands where the patch needs a scalar") from None


def _merge_map(original: Object, patch: Object, schema: MergeSchema) -> Object:
    if DIRECTIVE in patch:
        return _obey_directive(patch)
    _retain_keys(original, patch)
    for key in [key for key in patch if key.startswith(_SET_ORDER)]:
        _merge_ordered_list(original, patch, key, schema)
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM_LIST):
            name = _field_of(key, _DELETE_FROM_LIST, _BAD_PRIMITIVE_LIST)
            _merge_field(original, name, value, schema, is_delete_list=True)
        else:
            _merge_field(original, key, value, schema, is_delete_list=False)
    return original


def _obey_directive(patch: Object) -> Object:
    directive = patch[DIRECTIVE]
    if directive == REPLACE:
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == DELETE:
        return {}
    raise MergeError.unknown_directive(directive, patch)


def _merge_field(original: Object, key: str, value: Any, schema: MergeSchema, *, is_delete_list: bool) -> None:  # noqa: ANN401
    if value is None:
        original.pop(key, None)
        return
    current = original.get(key)
    if key not in original or type(current) is not type(value):
        if not is_delete_list:
            _discard_nulls(value)
            _set(original, key, value)
        return
    if isinstance(value, dict):
        subschema, meta = _lookup(schema, key)
        original[key] = value if meta.strategy == REPLACE else _merge_map(original[key], value, subschema)
    elif isinstance(value, list):
        subschema, meta = _lookup_list(schema, key)
        if meta.strategy == MERGE or is_delete_list:
            request = ListMerge(subschema, meta.merge_key, _merge_map, is_delete_list=is_delete_list)
            original[key] = merge_lists(original[key], value, request)
        else:
            original[key] = value
    else:
        original[key] = value


def _merge_ordered_list(original: Object, patch: Object, directive: str, schema: MergeSchema) -> None:
    """Merge one list whose order is given, and take both lists out of the patch."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise MergeError.bad_type([], order)
    key = _field_of(directive, _SET_ORDER, _BAD_SET_ORDER)
    ours, theirs = original.get(key), patch.get(key)
    for value, is_there in ((ours, key in original), (theirs, key in patch)):
        if is_there and not isinstance(value, list):
            raise MergeError.bad_type([], value)
    subschema, meta = _lookup_list(schema, key)
    check_order(theirs or [], order, meta.merge_key)
    request = ListMerge(subschema, meta.merge_key, _merge_map, is_delete_list=False)
    if theirs is None:
        if ours is None:
            return
        merged = ours
    elif ours is None:
        merged = _without_directives(theirs)
    elif meta.strategy == MERGE:
        merged = merge_lists(ours, theirs, request)
    else:
        merged = theirs
    element_type(ours or [], theirs or [])
    original[key] = request.put_in_order(merged, order, ours or [])
    patch.pop(key, None)


def _retain_keys(original: Object, patch: Object) -> None:
    if _RETAIN_KEYS not in patch:
        return
    retained = patch.pop(_RETAIN_KEYS)
    if not isinstance(retained, list):
        raise MergeError(_BAD_RETAIN_KEYS)
    keys = {key for key in retained if isinstance(key, str)}
    for key, value in patch.items():
        is_directive = key.startswith((_DELETE_FROM_LIST, _SET_ORDER))
        if value is not None and not is_directive and key not in keys:
            raise MergeError(_BAD_RETAIN_KEYS)
    for key in original.keys() - keys:
        del original[key]


def _field_of(directive: str, prefix: str, complaint: str) -> str:
    head, slash, key = directive.partition("/")
    if not slash or head != prefix:
        raise MergeError(complaint)
    return key


def _lookup(schema: MergeSchema, key: str) -> tuple[MergeSchema, PatchMeta]:
    """A field of the Go struct behind this schema. Like Go's decoder, it does not insist on upper and lower case."""
    if not schema.go_name:
        kind = "map" if schema.is_map else "slice" if schema.is_list else "string"
        raise MergeError(f"merging an object in json but data type is not struct, instead is: {kind}")
    field = schema.fields.get(key)
    if field is None:
        key = next((name for name in schema.fields if name.casefold() == key.casefold()), key)
        field = schema.fields.get(key)
    if field is None:
        raise MergeError(f"unable to find api field in struct {schema.go_name} for the json field {quote(key)}")
    return field, schema.patch_meta[key]


def _lookup_list(schema: MergeSchema, key: str) -> tuple[MergeSchema, PatchMeta]:
    field, meta = _lookup(schema, key)
    if not field.is_list or field.is_map:
        raise MergeError("expected slice or array type, but got: struct")
    return field.item, meta


def _set(original: Object, key: str, value: Any) -> None:  # noqa: ANN401
    if isinstance(value, dict) and DIRECTIVE in value:
        original.pop(key, None)
    else:
        original[key] = _without_directives(value)


def _discard_nulls(value: Any) -> None:  # noqa: ANN401
    """Drop nulls in place; those in lists are items, not fields, and stay."""
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for item in value.values():
            _discard_nulls(item)
    elif isinstance(value, list):
        for item in value:
            _discard_nulls(item)


def _without_directives(value: Any) -> Any:  # noqa: ANN401
    """A value that takes the place of nothing: what carries a directive is not there."""
    if isinstance(value, dict):
        return {key: _without_directives(item) for key, item in value.items() if not _has_directive(item)}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _has_directive(item)]
    return value


def _has_directive(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, dict) and DIRECTIVE in value
