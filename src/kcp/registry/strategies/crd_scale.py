"""The scale subresource of custom resources: replicas at paths that the definition names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcp.meta import errors, field
from kcp.meta.field import FieldPath
from kcp.meta.gotext import format_float, quote

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError

MAX_INT32: Final = 2**31 - 1
# What a scale's replicas are while an object has none, so that a patch that sets none can be told from one that does.
UNSET_REPLICAS: Final = -(2**31)
_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_GO_TYPES: Final = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}


class AccessError(ValueError):
    """There is something else at the path than was expected; the text is Kubernetes'."""


class ScalePaths:
    """Reads and writes the replicas of one kind's objects."""

    def __init__(self, scale: Object) -> None:
        self.spec_replicas: str = scale.get("specReplicasPath") or ""
        self.status_replicas: str = scale.get("statusReplicasPath") or ""
        self.label_selector: str = scale.get("labelSelectorPath") or ""

    def read(self, obj: Object) -> Object:
        """The Scale of an object. Raises InternalError if it has no replicas."""
        scale, found = self._make(obj)
        if not found:
            raise errors.InternalError(f"the spec replicas field {quote(self.spec_replicas)} does not exist")
        return scale

    def read_for_update(self, obj: Object) -> Object:
        """The Scale that a write starts from."""
        scale, found = self._make(obj)
        if not found:
            scale["spec"]["replicas"] = UNSET_REPLICAS
        return scale

    def write(self, obj: Object, scale: Object) -> None:
        """Set an object's replicas, and the resource version if the scale has one. Raises BadRequest."""
        replicas = (scale.get("spec") or {}).get("replicas", 0)
        if replicas == UNSET_REPLICAS:
            raise errors.BadRequest(f"the spec replicas field {quote(self.spec_replicas)} cannot be empty")
        *parents, last = _split(self.spec_replicas)
        target = obj
        for index, name in enumerate(parents):
            child = target.setdefault(name, {})
            if not isinstance(child, dict):
                where = "." + ".".join(parents[: index + 1])
                message = f"value cannot be set because {where} is not a map[string]interface{{}}"
                raise errors.StatusError(message)
            target = child
        target[last] = replicas
        version = (scale.get("metadata") or {}).get("resourceVersion")
        if version:
            obj["metadata"]["resourceVersion"] = version

    def validate_spec(self, obj: Object) -> list[FieldError]:
        return _validate_replicas(obj, self.spec_replicas)

    def validate_status(self, obj: Object) -> list[FieldError]:
        problems = _validate_replicas(obj, self.status_replicas)
        if self.label_selector:
            try:
                _find(obj, self.label_selector, str)
            except AccessError as error:
                problems.append(field.invalid(FieldPath(self.label_selector), "", str(error)))
        return problems

    def _make(self, obj: Object) -> tuple[Object, bool]:
        try:
            replicas = _find(obj, self.spec_replicas, int)
            current = _find(obj, self.status_replicas, int)
            selector = _find(obj, self.label_selector, str) if self.label_selector else ""
        except AccessError as error:
            raise errors.StatusError(str(error)) from None
        metadata = {name: obj["metadata"][name] for name in _METADATA if obj["metadata"].get(name)}
        status: Object = {"replicas": _as_int32(current or 0)}
        if selector:
            status["selector"] = selector
        shown = _as_int32(replicas or 0)
        scale = {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": metadata,
            "spec": {"replicas": shown} if shown else {},
            "status": status,
        }
        return scale, replicas is not None


def _split(json_path: str) -> list[str]:
    return json_path.removeprefix(".").split(".")


def _find(obj: Object, json_path: str, kind: type) -> Any:  # noqa: ANN401 - of the kind, or None
    names = _split(json_path)
    value: Any = obj
    for index, name in enumerate(names):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise AccessError(_complain(names[: index + 1], value, "map[string]interface{}"))
        if name not in value:
            return None
        value = value[name]
    if value.__class__ is not kind:
        raise AccessError(_complain(names, value, _GO_TYPES[kind]))
    return value


def _complain(names: list[str], value: Any, expected: str) -> str:  # noqa: ANN401 - any JSON value
    where, found = ".".join(names), _GO_TYPES[value.__class__]
    return f".{where} accessor error: {show_value(value)} is of the type {found}, expected {expected}"


def show_value(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Go's verb %v."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, list):
        return "[" + " ".join(map(show_value, value)) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{show_value(value[name])}" for name in sorted(value)) + "]"
    return str(value)


def _validate_replicas(obj: Object, json_path: str) -> list[FieldError]:
    path = FieldPath(json_path)
    try:
        replicas = _find(obj, json_path, int) or 0
    except AccessError as error:
        return [field.invalid(path, 0, str(error))]
    if replicas < 0:
        return [field.invalid(path, replicas, "should be a non-negative integer")]
    if replicas > MAX_INT32:
        return [field.invalid(path, replicas, f"should be less than or equal to {MAX_INT32}")]
    return []


def _as_int32(value: int) -> int:
    """Go's conversion keeps the lower bits."""
    return (value + 2**31) % 2**32 - 2**31
