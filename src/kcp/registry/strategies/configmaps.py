"""ConfigMaps: keys, total size, immutability."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kcp.meta.field import FieldPath, forbidden, invalid, too_long
from kcp.meta.validation import check_config_map_key
from kcp.registry.strategies.kind import BuiltinStrategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import WriteContext

MAX_BYTES: Final = 1 << 20
FROZEN: Final = "field is immutable when `immutable` is set"
_MAX_CACHED: Final = 254  # longer keys are wrong anyway
# How Go prints a path whose only element has no name: upstream blames the object as a whole.
_WHOLE_OBJECT: Final = FieldPath("[]")


class ConfigMapStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        errors: list[FieldError] = []
        data: Mapping[str, str] = obj.get("data") or {}
        binary_data: Mapping[str, str] = obj.get("binaryData") or {}
        size = 0
        for key, text in data.items():
            errors += check_key("data", key)
            if key in binary_data:
                why = "duplicate of key present in binaryData"
                errors.append(invalid(FieldPath("data").key(key), key, why))
            size += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        for key, encoded in binary_data.items():
            errors += check_key("binaryData", key)
            size += decoded_length(encoded)
        if size > MAX_BYTES:
            errors.append(too_long(_WHOLE_OBJECT, MAX_BYTES))
        return errors

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        return validate_frozen(obj, old, "data", "binaryData")


def check_key(field: str, key: str) -> list[FieldError]:
    if len(key) < _MAX_CACHED and _is_key(key):
        return []
    return [invalid(FieldPath(field).key(key), key, why) for why in check_config_map_key(key)]


@lru_cache(maxsize=8192)
def _is_key(key: str) -> bool:
    return not check_config_map_key(key)


def validate_frozen(obj: Object, old: Object, *fields: str) -> list[FieldError]:
    """An object that declared itself immutable stays so, and so do these fields."""
    if old.get("immutable") is not True:
        return []
    errors = [] if obj.get("immutable") is True else [forbidden(FieldPath("immutable"), FROZEN)]
    changed = (field for field in fields if (obj.get(field) or {}) != (old.get(field) or {}))
    return errors + [forbidden(FieldPath(field), FROZEN) for field in changed]


def decoded_length(encoded: str | None) -> int:
    """How many bytes a base64 text stands for."""
    return len(encoded) * 3 // 4 - encoded[-2:].count("=") if encoded else 0
