"""Metadata rules that all kinds share (apimachinery's api/validation/objectmeta.go), in Kubernetes' words and order.

Must not set anything: uids, times and names are the registry's business.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kcp.meta import gvk, validation, wellknown
from kcp.meta.field import FieldError, FieldPath, forbidden, invalid, required, too_long
from kcp.meta.gotext import quote
from kcp.registry.gostruct import GoStruct, named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kcp.meta.codec import Object
    from kcp.registry.strategy import Strategy, WriteContext

    CheckName = Callable[[str], list[str]]

METADATA: Final = FieldPath("metadata")
FIELD_IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
MAX_ERRORS: Final = 1_000  # of one list: nobody reads more, and a body can have hundreds of thousands
MAX_ANNOTATIONS_BYTES: Final = 256 << 10
MAX_MANAGER_BYTES: Final = 128
MAX_SUBRESOURCE_BYTES: Final = 256

_MAX_CACHED: Final = 320  # the longest label key there can be; longer texts are not worth a place in a cache
_MAX_SURPLUS_CONTROLLERS: Final = 4  # that are told: each tells all references, and thousands would be gigabytes
_OPERATIONS: Final = frozenset(("Apply", "Update"))
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_STANDARD_FINALIZERS: Final = frozenset(
    (wellknown.FINALIZER_KUBERNETES, wellknown.FINALIZER_ORPHAN, wellknown.FINALIZER_FOREGROUND)
)
# (field, what Go prints where it is absent); a change of any of them is refused.
_IMMUTABLE: Final = (
    ("name", ""),
    ("namespace", ""),
    ("uid", ""),
    ("creationTimestamp", None),
    ("deletionTimestamp", None),
    ("deletionGracePeriodSeconds", None),
)
_RESET_FOR_STATUS: Final = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


def validate_new_object(
    strategy: Strategy, obj: Object, context: WriteContext, *, namespaced: bool
) -> list[FieldError]:
    """Everything that rest.BeforeCreate would refuse, in its order."""
    validate_all = getattr(strategy, "validate_with_metadata", None)
    if validate_all is not None:
        # Such kinds leave part of the metadata to the check for all kinds, which only valid objects reach.
        return validate_all(obj, context) or _validate_common(obj["metadata"], namespaced=namespaced)
    errors = validate_object_meta(
        obj["metadata"],
        namespaced=namespaced,
        check_name=strategy.check_name,
        check_generate_name=getattr(strategy, "check_generate_name", None),
    )
    return errors + strategy.validate(obj, context)


def validate_changed_object(
    strategy: Strategy, obj: Object, old: Object, context: WriteContext, *, namespaced: bool
) -> list[FieldError]:
    """Everything that rest.BeforeUpdate would refuse, in its order. `obj` has its resourceVersion already.

    Many kinds look at the metadata a second and a third time in their own check. That finds nothing new, but what is
    wrong shows up in as many causes; only then is `validate_update_with_metadata` worth its time.
    """
    metadata = obj["metadata"]
    errors = _validate_common(metadata, namespaced=namespaced) + validate_object_meta_update(metadata, old["metadata"])
    check = getattr(strategy, "validate_update_with_metadata", None) if errors else None
    return errors + (check or strategy.validate_update)(obj, old, context)


def validate_object_meta(
    metadata: Object,
    *,
    namespaced: bool,
    check_name: CheckName,
    path: FieldPath = METADATA,
    check_generate_name: CheckName | None = None,
) -> list[FieldError]:
    """What is wrong with the metadata of a new object, whose name was generated before if it has a generateName."""
    errors: list[FieldError] = []
    name, generate_name = metadata.get("name", ""), metadata.get("generateName", "")
    if generate_name:
        check_prefix = check_generate_name or (lambda prefix: check_name(mask_trailing_dash(prefix)))
        errors += [invalid(path.child("generateName"), generate_name, why) for why in check_prefix(generate_name)]
    if name:
        errors += [invalid(path.child("name"), name, why) for why in check_name(name)]
    else:
        errors.append(required(path.child("name"), "name or generateName is required"))
    errors += _validate_namespace(metadata.get("namespace", ""), path, namespaced=namespaced)
    if metadata.get("generation", 0) < 0:
        errors.append(invalid(path.child("generation"), metadata["generation"], NOT_NEGATIVE))
    errors += _validate_maps_and_owners(metadata, path)
    if finalizers := metadata.get("finalizers"):
        errors += validate_finalizers(finalizers, path.child("finalizers"))
    return errors + _validate_managed_fields(metadata, path)


def validate_object_meta_update(new: Object, old: Object, path: FieldPath = METADATA) -> list[FieldError]:
    """What is wrong with a change of metadata."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp") is not None:
        errors += _validate_no_new_finalizers(new.get("finalizers") or (), old.get("finalizers") or (), path)
    if not new.get("resourceVersion"):
        errors.append(invalid(path.child("resourceVersion"), "", "must be specified for an update"))
    if new.get("generation", 0) < old.get("generation", 0):
        errors.append(invalid(path.child("generation"), new.get("generation", 0), "must not be decremented"))
    for field, absent in _IMMUTABLE:
        value: Any = new.get(field, absent)
        if value != old.get(field, absent):
            errors.append(invalid(path.child(field), named(value) if field == "uid" else value, FIELD_IMMUTABLE))
    errors += _validate_maps_and_owners(new, path)
    return errors + _validate_managed_fields(new, path)


def validate_kube_finalizers(metadata: Object, path: FieldPath = METADATA) -> list[FieldError]:
    """The stricter rule of built-in kinds (core/validation): a finalizer is a known word or has a domain."""
    errors: list[FieldError] = []
    for position, finalizer in enumerate(metadata.get("finalizers") or ()):
        errors += validate_kube_finalizer(finalizer, path.child("finalizers").index(position))
    return errors


def validate_kube_finalizer(finalizer: str, path: FieldPath) -> list[FieldError]:
    if "/" in finalizer or finalizer in _STANDARD_FINALIZERS:
        return []
    return [invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified")]


def validate_finalizer_name(finalizer: str, path: FieldPath) -> list[FieldError]:
    return [invalid(path, finalizer, why) for why in validation.check_qualified_name(finalizer)]


def validate_finalizers(finalizers: Sequence[str], path: FieldPath) -> list[FieldError]:
    errors = [error for finalizer in finalizers for error in validate_finalizer_name(finalizer, path)]
    if wellknown.FINALIZER_ORPHAN in finalizers and wellknown.FINALIZER_FOREGROUND in finalizers:
        both = f"finalizer {wellknown.FINALIZER_ORPHAN} and {wellknown.FINALIZER_FOREGROUND} cannot be both set"
        errors.append(invalid(path, list(finalizers), both))
    return errors


def validate_labels(labels: Mapping[str, str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in labels.items():
        if not is_label_key(key):
            errors += [invalid(path, key, why) for why in validation.check_qualified_name(key)]
        if not is_label_value(value):
            errors += [invalid(path, value, why) for why in validation.check_label_value(value)]
        if len(errors) > MAX_ERRORS:
            break
    return errors


def validate_annotations(annotations: Mapping[str, str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in annotations:
        errors += [invalid(path, key, why) for why in validation.check_qualified_name(key.lower())]
        if len(errors) > MAX_ERRORS:
            break
    if not _is_short(annotations) and _count_bytes(annotations) > MAX_ANNOTATIONS_BYTES:
        errors.append(too_long(path, MAX_ANNOTATIONS_BYTES))
    return errors


def validate_owner_references(references: Sequence[Object], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    controller, surplus = "", 0
    for reference in references:
        errors += _validate_owner_reference(reference, path)
        if reference.get("controller") is not True:
            continue
        name = f"{reference.get('kind', '')}/{reference.get('name', '')}"
        if controller and surplus < _MAX_SURPLUS_CONTROLLERS:
            surplus += 1
            shown = GoStruct.list_of([show_owner(each) for each in references])
            why = f'Found "true" in references for {controller} and {name}'
            errors.append(invalid(path, shown, f"Only one reference can have Controller set to true. {why}"))
        controller = controller or name
    return errors


def validate_managed_fields(entries: Sequence[Object], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, entry in enumerate(entries):
        operation, fields_type = entry.get("operation", ""), entry.get("fieldsType", "")
        if operation not in _OPERATIONS:
            where = path.index(position).child("operation")
            errors.append(invalid(where, named(operation), "must be `Apply` or `Update`"))
        if fields_type not in ("", "FieldsV1"):
            errors.append(invalid(path.index(position).child("fieldsType"), fields_type, "must be `FieldsV1`"))
        manager = entry.get("manager", "")
        if len(manager) > MAX_MANAGER_BYTES // 4 or not manager.isprintable():
            errors += validate_field_manager(manager, path.index(position).child("manager"))
        if _byte_length(entry.get("subresource", "")) > MAX_SUBRESOURCE_BYTES:
            errors.append(too_long(path.index(position).child("subresource"), MAX_SUBRESOURCE_BYTES))
    return errors


def validate_field_manager(manager: str, path: FieldPath) -> list[FieldError]:
    errors = [too_long(path, MAX_MANAGER_BYTES)] if _byte_length(manager) > MAX_MANAGER_BYTES else []
    if not manager.isprintable():
        position = 0
        for character in manager:
            if not character.isprintable():
                why = f"invalid character U+{ord(character):04X} (at position {position})"
                errors.append(invalid(path, manager, why))
            position += _byte_length(character)
    return errors


def check_path_segment_prefix(name: str) -> list[str]:
    """What a generateName obeys for a kind whose names are only path segments."""
    return [f"may not contain '{refused}'" for refused in ("/", "%") if refused in name]


def mask_trailing_dash(name: str) -> str:
    """A generateName as the DNS rules should see it: it may end in a dash, as more will follow.

    Upstream cuts two characters where it means one, which decides for names such as `a.-`.
    """
    return name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name


def reset_object_meta_for_status(metadata: Object, old: Object) -> None:
    """Metadata that a write through `status` leaves alone where the kind says so (metav1.ResetObjectMetaForStatus)."""
    for field in _RESET_FOR_STATUS:
        if field in old:
            metadata[field] = old[field]
        else:
            metadata.pop(field, None)


def is_label_key(key: str) -> bool:
    return _is_label_key(key) if len(key) < _MAX_CACHED else not validation.check_qualified_name(key)


def is_label_value(value: str) -> bool:
    return _is_label_value(value) if len(value) < _MAX_CACHED else not validation.check_label_value(value)


@lru_cache(maxsize=8192)
def _is_label_key(key: str) -> bool:
    return not validation.check_qualified_name(key)


@lru_cache(maxsize=8192)
def _is_label_value(value: str) -> bool:
    return not validation.check_label_value(value)


def _validate_common(metadata: Object, *, namespaced: bool) -> list[FieldError]:
    """What all kinds obey, whatever their own rules are."""
    return validate_object_meta(
        metadata,
        namespaced=namespaced,
        check_name=validation.check_path_segment_name,
        check_generate_name=check_path_segment_prefix,
    )


def _validate_namespace(namespace: str, path: FieldPath, *, namespaced: bool) -> list[FieldError]:
    if not namespaced:
        return [forbidden(path.child("namespace"), "not allowed on this type")] if namespace else []
    if not namespace:
        return [required(path.child("namespace"))]
    return [invalid(path.child("namespace"), namespace, why) for why in validation.check_dns1123_label(namespace)]


def _validate_maps_and_owners(metadata: Object, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    # Each write passes here up to four times, and nearly always all is well: no path is made before one is needed.
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    if labels and not (all(map(is_label_key, labels)) and all(map(is_label_value, labels.values()))):
        errors += validate_labels(labels, path.child("labels"))
    if annotations and not (all(map(is_label_key, annotations)) and _is_short(annotations)):
        errors += validate_annotations(annotations, path.child("annotations"))
    if references := metadata.get("ownerReferences"):
        errors += validate_owner_references(references, path.child("ownerReferences"))
    return errors


def _validate_managed_fields(metadata: Object, path: FieldPath) -> list[FieldError]:
    entries = metadata.get("managedFields")
    return validate_managed_fields(entries, path.child("managedFields")) if entries else []


def _validate_no_new_finalizers(new: Sequence[str], old: Sequence[str], path: FieldPath) -> list[FieldError]:
    added = sorted(set(new) - set(old))
    if not added:
        return []
    listed = ", ".join(map(quote, added))
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [forbidden(path.child("finalizers"), why)]


def _validate_owner_reference(reference: Object, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    api_version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    try:
        owner = gvk.parse_gvk(api_version, kind)
    except ValueError:
        owner = gvk.GroupVersionKind("", "", kind)
    if not owner.version:
        errors.append(invalid(path.child("apiVersion"), api_version, "version must not be empty"))
    for field in ("kind", "name", "uid"):
        if not reference.get(field):
            errors.append(invalid(path.child(field), "", "must not be empty"))
    if owner == ("", "v1", "Event"):
        errors.append(invalid(path, show_owner(reference), f"{owner} is disallowed from being an owner"))
    return errors


def show_owner(reference: Object) -> GoStruct:
    """An owner reference as Go prints it in an error."""
    always: dict[str, Any] = {"apiVersion": "", "kind": "", "name": "", "uid": ""}
    return GoStruct.tagged(always | reference, _OWNER_FIELDS)


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _is_short(texts: Mapping[str, str]) -> bool:
    """Whether the limit cannot be exceeded, without counting bytes: a character takes four at most."""
    return sum(map(len, texts)) + sum(map(len, texts.values())) <= MAX_ANNOTATIONS_BYTES // 4


def _count_bytes(texts: Mapping[str, str]) -> int:
    return sum(_byte_length(key) + _byte_length(value) for key, value in texts.items())
