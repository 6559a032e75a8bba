"""Which names of compute and storage resources Kubernetes knows (core/helper), for quotas and limit ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.meta.field import invalid
from kcp.meta.validation import check_qualified_name
from kcp.registry.gostruct import named
from kcp.schema import quantity

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath

_HUGE_PAGES: Final = "hugepages-"
_REQUESTS: Final = "requests."
_NATIVE_DOMAIN: Final = "kubernetes.io/"
_MILLI: Final = -3

CONTAINER: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
_COUNTED: Final = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_QUOTA: Final = (
    _COUNTED
    | CONTAINER
    | {f"{prefix}.{name}" for prefix in ("requests", "limits") for name in CONTAINER}
    | {"requests.storage"}
)
_STANDARD: Final = _QUOTA | {"storage"}


def is_quota_name(name: str) -> bool:
    return name in _QUOTA or _is_quota_huge_page(name)


def is_native(name: str) -> bool:
    return "/" not in name or _NATIVE_DOMAIN in name


def is_extended(name: str) -> bool:
    return not is_native(name) and not name.startswith(_REQUESTS) and not check_qualified_name(f"{_REQUESTS}{name}")


def is_integer(name: str) -> bool:
    return name in _COUNTED or is_extended(name)


def can_overcommit(name: str) -> bool:
    return is_native(name) and not name.startswith(_HUGE_PAGES)


def validate_resource_name(name: str, path: FieldPath) -> list[FieldError]:
    errors = [invalid(path, named(name), why) for why in check_qualified_name(name)]
    if not errors and "/" not in name and name not in _STANDARD and not _is_quota_huge_page(name):
        errors.append(invalid(path, named(name), "must be a standard resource type or fully qualified"))
    return errors


def validate_quota_name(name: str, path: FieldPath) -> list[FieldError]:
    errors = validate_resource_name(name, path)
    if "/" not in name and not is_quota_name(name):
        errors.append(invalid(path, named(name), "must be a standard resource for quota"))
    return errors


def validate_container_name(name: str, path: FieldPath) -> list[FieldError]:
    errors = validate_resource_name(name, path)
    if "/" not in name:
        if name not in CONTAINER and not name.startswith(_HUGE_PAGES):
            errors.append(invalid(path, named(name), "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid(path, named(name), "doesn't follow extended resource name standard"))
    return errors


def round_up(resources: Object | None) -> None:
    """No resource is counted in less than thousandths (SetDefaults_ResourceList)."""
    for name, text in (resources or {}).items():
        amount = quantity.parse(text)
        if amount.exponent < _MILLI:
            milli = amount.milli_value()
            resources[name] = str(quantity.Quantity(milli, _MILLI, amount.format))  # type: ignore[index]


def _is_quota_huge_page(name: str) -> bool:
    return name.startswith((_HUGE_PAGES, f"{_REQUESTS}{_HUGE_PAGES}"))
