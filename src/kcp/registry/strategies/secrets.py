"""Secrets: what each type has to hold, total size, immutability."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from kcp.meta import codec
from kcp.meta.field import FieldPath, invalid, required, too_long
from kcp.registry.gostruct import named
from kcp.registry.metadata import FIELD_IMMUTABLE
from kcp.registry.strategies.configmaps import MAX_BYTES, check_key, decoded_length, validate_frozen
from kcp.registry.strategies.kind import BuiltinStrategy
from kcp.registry.strategies.pkcs10 import explain_key_pair

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import WriteContext

TYPE_OPAQUE: Final = "Opaque"
TYPE_SERVICE_ACCOUNT_TOKEN: Final = "kubernetes.io/service-account-token"
TYPE_TLS: Final = "kubernetes.io/tls"
SERVICE_ACCOUNT_NAME_ANNOTATION: Final = "kubernetes.io/service-account.name"
_DOCKER_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_DATA: Final = FieldPath("data")


class SecretStrategy(BuiltinStrategy):
    field_labels = ("type",)

    def default(self, obj: Object) -> None:
        if not obj.get("type"):
            obj["type"] = TYPE_OPAQUE
        string_data = obj.pop("stringData", None)
        if string_data:
            encoded = {key: base64.b64encode(text.encode()).decode() for key, text in string_data.items()}
            obj["data"] = dict(sorted(((obj.get("data") or {}) | encoded).items()))

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        data = obj.get("data") or {}
        errors: list[FieldError] = []
        for key in data:
            errors += check_key("data", key)
        if sum(map(decoded_length, data.values())) > MAX_BYTES:
            errors.append(too_long(_DATA, MAX_BYTES))
        secret_type = obj.get("type", "")
        if secret_type != TYPE_OPAQUE:
            errors += _validate_type(secret_type, obj)
        return errors

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        errors: list[FieldError] = []
        secret_type = obj.get("type", "")
        if secret_type != old.get("type", ""):
            errors.append(invalid(FieldPath("type"), named(secret_type), FIELD_IMMUTABLE))
        return errors + validate_frozen(obj, old, "data")

    def warnings_on_create(self, obj: Object, context: WriteContext) -> list[str]:
        if obj.get("type") != TYPE_TLS:
            return []
        data = obj.get("data") or {}
        why = explain_key_pair(_decoded(data.get("tls.crt")), _decoded(data.get("tls.key")))
        return [why] if why else []

    def warnings_on_update(self, obj: Object, old: Object, context: WriteContext) -> list[str]:
        return self.warnings_on_create(obj, context)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"type": obj.get("type", "")}


def _validate_type(secret_type: str, obj: Object) -> list[FieldError]:
    data = obj.get("data") or {}
    match secret_type:
        case "kubernetes.io/service-account-token":
            if not (obj["metadata"].get("annotations") or {}).get(SERVICE_ACCOUNT_NAME_ANNOTATION):
                return [required(FieldPath("metadata.annotations").key(SERVICE_ACCOUNT_NAME_ANNOTATION))]
        case "kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson":
            return _validate_docker_config(data, _DOCKER_KEYS[secret_type])
        case "kubernetes.io/basic-auth":
            if not data.keys() & {"username", "password"}:
                return _require("username", "password")
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                return _require("ssh-privatekey")
        case "kubernetes.io/tls":
            return _require(*(key for key in ("tls.crt", "tls.key") if key not in data))
    return []


def _validate_docker_config(data: Object, key: str) -> list[FieldError]:
    if key not in data:
        return _require(key)
    why = _explain_json_object(_decoded(data[key]))
    return [invalid(_DATA.key(key), "<secret contents redacted>", why)] if why else []


def _explain_json_object(text: bytes) -> str:
    """Why Go cannot read the text into a map; empty if it can. Null gives an empty map."""
    if not text:
        return "unexpected end of JSON input"
    try:
        value = codec.loads(text)
    except codec.DecodeError as error:
        return str(error)
    match value:
        case None | dict():
            return ""
        case bool():
            found = "bool"
        case str():
            found = "string"
        case list():
            found = "array"
        case _:
            found = "number"
    return f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"


def _require(*keys: str) -> list[FieldError]:
    return [required(_DATA.key(key)) for key in keys]


def _decoded(encoded: str | None) -> bytes:
    return base64.b64decode(encoded or "")
