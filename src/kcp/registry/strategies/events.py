"""Events, of the core group and of events.k8s.io: one kind of object in two shapes, and two sets of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from kcp.meta import wellknown
from kcp.meta.field import FieldPath, invalid, required
from kcp.meta.validation import check_dns1123_subdomain, check_path_segment_name, check_qualified_name
from kcp.registry.gostruct import GoStruct
from kcp.registry.metadata import (
    FIELD_IMMUTABLE,
    check_path_segment_prefix,
    validate_kube_finalizers,
    validate_object_meta_update,
)
from kcp.registry.strategies.kind import BuiltinStrategy

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import WriteContext

_INVOLVED_NAMESPACE: Final = FieldPath("involvedObject.namespace")
_SHORT: Final = 128
_NOTE: Final = 1024
# (in the core group, in events.k8s.io)
_RENAMED: Final = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
# Written even when empty, by Go's types: null for a time, an empty struct for a reference.
_ALWAYS_CORE: Final[Object] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_ALWAYS_NEW: Final[Object] = {
    "eventTime": None,
    "regarding": {},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}
_REFERENCE: Final = (
    ("kind", "Kind", ""),
    ("namespace", "Namespace", ""),
    ("name", "Name", ""),
    ("uid", "UID", ""),
    ("apiVersion", "APIVersion", ""),
    ("resourceVersion", "ResourceVersion", ""),
    ("fieldPath", "FieldPath", ""),
)
_SOURCE: Final = (("component", "Component", ""), ("host", "Host", ""))
_SELECTABLE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
# Fixed once the event was reported, in the order upstream checks them; `reason` is checked twice.
_FIXED: Final[tuple[tuple[str, str, Any], ...]] = (
    ("involvedObject", "involvedObject", {}),
    ("reason", "reason", ""),
    ("message", "message", ""),
    ("source", "source", {}),
    ("firstTimestamp", "firstTimestamp", None),
    ("lastTimestamp", "lastTimestamp", None),
    ("count", "count", 0),
    ("reason", "reason", ""),
    ("type", "type", ""),
    ("eventTime", "eventTime", None),
    ("action", "action", ""),
    ("related", "related", None),
    ("reportingComponent", "reportingController", ""),
    ("reportingInstance", "reportingInstance", ""),
)


class CoreEventStrategy(BuiltinStrategy):
    """Events through the core group: lenient, as reporters of old were."""

    allow_create_on_update = True
    field_labels: tuple[str, ...] = (
        *(f"involvedObject.{field}" for field in _SELECTABLE),
        "reason",
        "reportingComponent",
        "source",
        "type",
    )
    controller_field: ClassVar[str] = "reportingComponent"

    def check_name(self, name: str) -> list[str]:
        return check_path_segment_name(name)

    def check_generate_name(self, name: str) -> list[str]:
        return check_path_segment_prefix(name)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return _validate_legacy(obj, self.controller_field)

    def validate_with_metadata(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """The whole check of a new object, in which upstream has nothing to say about metadata."""
        return self.validate(obj, context)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        return _validate_legacy(obj, self.controller_field)

    def validate_update_with_metadata(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        return self.validate_update(obj, old, context)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        involved = obj.get("involvedObject") or {}
        controller = obj.get("reportingComponent", "")
        return {f"involvedObject.{field}": involved.get(field, "") for field in _SELECTABLE} | {
            "reason": obj.get("reason", ""),
            "reportingComponent": controller,
            "source": (obj.get("source") or {}).get("component") or controller,
            "type": obj.get("type", ""),
        }


class EventStrategy(CoreEventStrategy):
    """Events through events.k8s.io: a series instead of counters, and nothing may change but the series."""

    field_labels = (
        "reason",
        *(f"regarding.{field}" for field in _SELECTABLE),
        "reportingController",
        "type",
    )
    controller_field = "reportingController"

    def check_name(self, name: str) -> list[str]:
        return check_dns1123_subdomain(name)

    def check_generate_name(self, name: str) -> list[str]:
        return BuiltinStrategy.check_generate_name(self, name)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return self._validate_new(obj, [])

    def validate_with_metadata(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """The whole check of a new object: upstream looks at the metadata after the rules of old."""
        return self._validate_new(obj, self._validate_metadata(obj["metadata"], repeat=True))

    def _validate_new(self, obj: Object, of_metadata: list[FieldError]) -> list[FieldError]:
        event = to_core_event(obj)
        errors = _validate_legacy(event, self.controller_field)
        errors += of_metadata + validate_kube_finalizers(event["metadata"])
        return errors + _validate_series(event) + _validate_new_fields(event)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        return self._validate_change(to_core_event(obj), to_core_event(old), [])

    def validate_update_with_metadata(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        repeated = validate_object_meta_update(obj["metadata"], old["metadata"])
        return self._validate_change(to_core_event(obj), to_core_event(old), repeated)

    def _validate_change(self, event: Object, old: Object, repeated: list[FieldError]) -> list[FieldError]:
        errors = _validate_legacy(event, self.controller_field)
        errors += repeated + validate_kube_finalizers(event["metadata"])
        if event.get("series") != old.get("series"):
            errors += _validate_series(event)
        for field, shown_field, absent in _FIXED:
            value = event.get(field, absent)
            if value != old.get(field, absent):
                errors.append(invalid(FieldPath(shown_field), _show(field, value), FIELD_IMMUTABLE))
        return errors

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        regarding = obj.get("regarding") or {}
        return {f"regarding.{field}": regarding.get(field, "") for field in _SELECTABLE} | {
            "reason": obj.get("reason", ""),
            "reportingController": obj.get("reportingController", ""),
            "type": obj.get("type", ""),
        }


def to_core_event(event: Object) -> Object:
    """An events.k8s.io event in the shape of the core group, which is the one that is stored."""
    core = {**event, "apiVersion": "v1"}
    for core_name, new_name in _RENAMED:
        if new_name in core:
            core[core_name] = core.pop(new_name)
    return _ALWAYS_CORE | core


def to_new_event(event: Object) -> Object:
    """A core event in the shape of events.k8s.io."""
    new = {**event, "apiVersion": "events.k8s.io/v1"}
    for core_name, new_name in _RENAMED:
        if core_name in new:
            new[new_name] = new.pop(core_name)
    for field in ("reportingController", "reportingInstance"):
        if not new.get(field):
            new.pop(field, None)
    return _ALWAYS_NEW | new


def _validate_legacy(event: Object, controller_field: str) -> list[FieldError]:
    """What all events obey, in the words of the core group."""
    namespace = event["metadata"].get("namespace", "")
    involved = (event.get("involvedObject") or {}).get("namespace", "")
    if event.get("eventTime") is None:
        matches = namespace == involved if involved else namespace in ("", wellknown.NAMESPACE_DEFAULT)
        errors = [] if matches else [_namespace_mismatch(involved)]
    else:
        homes = (wellknown.NAMESPACE_DEFAULT, wellknown.NAMESPACE_SYSTEM)
        errors = [] if involved or namespace in homes else [_namespace_mismatch(involved)]
        errors += _validate_reporter(event, controller_field)
    errors += [invalid(FieldPath("namespace"), namespace, why) for why in check_dns1123_subdomain(namespace)]
    return errors


def _validate_reporter(event: Object, controller_field: str) -> list[FieldError]:
    controller = event.get("reportingComponent", "")
    path = FieldPath(controller_field)
    errors = [] if controller else [required(path)]
    errors += [invalid(path, controller, why) for why in check_qualified_name(controller)]
    for field in ("reportingInstance", "action", "reason"):
        text = event.get(field, "")
        if not text:
            errors.append(required(FieldPath(field)))
        errors += _validate_length(field, text, _SHORT)
    return errors + _validate_length("message", event.get("message", ""), _NOTE)


def _validate_length(field: str, text: str, limit: int) -> list[FieldError]:
    if len(text.encode("utf-8", "surrogatepass")) <= limit:
        return []
    return [invalid(FieldPath(field), "", f"can have at most {limit} characters")]


def _validate_series(event: Object) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    errors: list[FieldError] = []
    if series.get("count", 0) < 2:
        errors.append(invalid(FieldPath("series.count"), "", "should be at least 2"))
    if series.get("lastObservedTime") is None:
        errors.append(required(FieldPath("series.lastObservedTime")))
    return errors


def _validate_new_fields(event: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if event.get("eventTime") is None:
        errors.append(required(FieldPath("eventTime")))
    if event.get("type") not in ("Normal", "Warning"):
        errors.append(invalid(FieldPath("type"), "", f"has invalid value: {event.get('type', '')}"))
    for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(field):
            errors.append(invalid(FieldPath(field), "", "needs to be unset"))
    return errors


def _namespace_mismatch(namespace: str) -> FieldError:
    return invalid(_INVOLVED_NAMESPACE, namespace, "does not match event.namespace")


def _show(field: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if value is None:
        return None
    if field in ("involvedObject", "related"):
        return GoStruct.of(value, _REFERENCE)
    return GoStruct.of(value, _SOURCE) if field == "source" else value
