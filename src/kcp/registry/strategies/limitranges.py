"""LimitRanges: that minima, maxima, defaults and ratios fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.meta.field import FieldPath, duplicate, forbidden, invalid, required
from kcp.meta.names import make_uid
from kcp.meta.validation import check_qualified_name
from kcp.registry.gostruct import named
from kcp.registry.strategies.kind import BuiltinStrategy, Step
from kcp.registry.strategies.resource_names import (
    can_overcommit,
    round_up,
    validate_container_name,
    validate_resource_name,
)
from kcp.schema import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import WriteContext
    from kcp.schema.quantity import Quantity

_POD: Final = "Pod"
_CONTAINER: Final = "Container"
_CLAIM: Final = "PersistentVolumeClaim"
_LISTS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_ONE: Final = quantity.from_int(1)
_MAX_MILLI_VALUE: Final = (2**63 - 1) // 1000

# (the smaller, the larger, whose field is blamed, whose value is shown, in which words): all must be in this order.
_ORDERED: Final = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


class LimitRangeStrategy(BuiltinStrategy):
    allow_create_on_update = True
    update_steps = (Step.METADATA, Step.CONTENT)

    def default(self, obj: Object) -> None:
        for item in obj.get("spec", {}).get("limits") or ():
            if item.get("type") == _CONTAINER:
                _default_container(item)
            for name in _LISTS:
                round_up(item.get(name))

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = make_uid()

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        errors: list[FieldError] = []
        seen: set[str] = set()
        for position, item in enumerate(obj.get("spec", {}).get("limits") or ()):
            path, limit_type = FieldPath("spec.limits").index(position), item.get("type", "")
            errors += _validate_type(limit_type, path.child("type"))
            if limit_type in seen:
                errors.append(duplicate(path.child("type"), named(limit_type)))
            seen.add(limit_type)
            errors += _validate_item(item, limit_type, path)
        return errors


def _default_container(item: Object) -> None:
    """Requests default to limits, limits to the maximum."""
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    for name, amounts in (("default", default), ("defaultRequest", request)):
        if amounts:
            item[name] = dict(sorted(amounts.items()))


def _validate_type(limit_type: str, path: FieldPath) -> list[FieldError]:
    errors = [invalid(path, named(limit_type), why) for why in check_qualified_name(limit_type)]
    if not errors and "/" not in limit_type and limit_type not in (_POD, _CONTAINER, _CLAIM):
        errors.append(invalid(path, named(limit_type), "must be a standard limit type or fully qualified"))
    return errors


def _validate_item(item: Object, limit_type: str, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    amounts: dict[str, dict[str, Quantity]] = {}
    validate_name = validate_container_name if limit_type in (_POD, _CONTAINER) else validate_resource_name
    for field in _LISTS:
        if field == "maxLimitRequestRatio" and limit_type == _CLAIM:
            errors += _validate_claim(item, path)
        if field in ("default", "defaultRequest") and limit_type == _POD:
            if item.get(field):
                errors.append(forbidden(path.child(field), "may not be specified when `type` is 'Pod'"))
            continue
        for name, text in (item.get(field) or {}).items():
            errors += validate_name(name, path.child(field).key(name))
            amounts.setdefault(name, {})[field] = quantity.parse(text)
    for name, found in amounts.items():
        errors += _validate_amounts(name, found, path)
    return errors


def _validate_claim(item: Object, path: FieldPath) -> list[FieldError]:
    if "storage" in (item.get("min") or ()) or "storage" in (item.get("max") or ()):
        return []
    why = "either minimum or maximum storage value is required, but neither was provided"
    return [required(path.child("limits"), why)]


def _validate_amounts(name: str, amounts: dict[str, Quantity], path: FieldPath) -> Iterator[FieldError]:
    for smaller, larger, blamed, shown, why in _ORDERED:
        low, high = amounts.get(smaller), amounts.get(larger)
        if low is not None and high is not None and low > high:
            yield invalid(path.child(blamed).key(name), str(amounts[shown]), why.format(low, high))
    yield from _validate_ratio(amounts, path.child("maxLimitRequestRatio").key(name))
    default, request = amounts.get("default"), amounts.get("defaultRequest")
    if not can_overcommit(name) and default is not None and request is not None and default != request:
        why = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid(path.child("defaultRequest").key(name), str(request), why)


def _validate_ratio(amounts: dict[str, Quantity], path: FieldPath) -> Iterator[FieldError]:
    ratio, low, high = amounts.get("maxLimitRequestRatio"), amounts.get("min"), amounts.get("max")
    if ratio is None:
        return
    if ratio < _ONE:
        yield invalid(path, str(ratio), f"ratio {ratio} is less than 1")
    if low is None or high is None:
        return
    values = float(ratio.value()), low.value(), high.value()
    if max(ratio.value(), low.value(), high.value()) < _MAX_MILLI_VALUE:
        values = ratio.milli_value() / 1000, low.milli_value(), high.milli_value()
    limit = values[2] / values[1] if values[1] else float("inf")
    if values[0] > limit:
        yield invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {limit:f}")
