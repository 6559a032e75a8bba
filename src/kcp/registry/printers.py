"""The cells of the built-in resources' Tables, as kube-apiserver's printers have them with all columns shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kcp.meta import clock
from kcp.meta.duration import human_duration

if TYPE_CHECKING:
    from kcp.meta.codec import Object

Printer = Callable[["Object", datetime], list[Any]]

_UNKNOWN: Final = "<unknown>"
_UNSET: Final = "<unset>"
_NONE: Final = "<none>"
_ZERO_TIME: Final = "0001-01-01T00:00:00Z"


@lru_cache(maxsize=8192)
def _age(timestamp: str, now: datetime) -> str:
    """All rows of a table are printed at one moment, and many of their objects were made in the same second."""
    return human_duration(now - clock.parse_time(timestamp))


def age(timestamp: str | None, now: datetime) -> str:
    """How long ago it was, for people. Raises ValueError if it is no time."""
    if not timestamp or timestamp == _ZERO_TIME:
        return _UNKNOWN
    return _age(timestamp, now)


def print_created_at(obj: Object, now: datetime) -> list[Any]:
    """The two cells of every resource that has no printer of its own."""
    metadata = obj["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or _ZERO_TIME]


def _name_and_age(obj: Object, now: datetime) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("name", ""), age(metadata.get("creationTimestamp"), now)


def _print_namespace(obj: Object, now: datetime) -> list[Any]:
    name, created = _name_and_age(obj, now)
    return [name, _at(obj, "status", "phase") or "", created]


def _print_config_map(obj: Object, now: datetime) -> list[Any]:
    name, created = _name_and_age(obj, now)
    return [name, len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), created]


def _print_secret(obj: Object, now: datetime) -> list[Any]:
    name, created = _name_and_age(obj, now)
    return [name, obj.get("type", ""), len(obj.get("data") or ()), created]


def _print_service_account(obj: Object, now: datetime) -> list[Any]:
    return list(_name_and_age(obj, now))


def _print_core_event(obj: Object, now: datetime) -> list[Any]:
    component = obj.get("reportingComponent")
    names = ("firstTimestamp", "lastTimestamp", "count", "involvedObject", "source", "message")
    return _event_cells(obj, dict(zip(_EVENT_PARTS, map(obj.get, names), strict=True)), component, now)


def _print_event(obj: Object, now: datetime) -> list[Any]:
    controller = obj.get("reportingController")
    deprecated = ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount")
    names = (*deprecated, "regarding", "deprecatedSource", "note")
    return _event_cells(obj, dict(zip(_EVENT_PARTS, map(obj.get, names), strict=True)), controller, now)


_EVENT_PARTS: Final = ("first", "last", "count", "object", "source", "message")


def _event_cells(obj: Object, parts: Object, controller: str | None, now: datetime) -> list[Any]:
    """The cells of an event in either group; `parts` are the fields whose names differ."""
    first = age(parts["first"] or obj.get("eventTime"), now)
    last = age(parts["last"], now) if parts["last"] else first
    count = parts["count"] or 1
    series = obj.get("series")
    if series is not None:
        last = age(series.get("lastObservedTime"), now)
        count = series.get("count", 0)
    target = parts["object"] or {}
    source = parts["source"] or {}
    kind, name = target.get("kind", "").lower(), target.get("name")
    component = source.get("component") or controller or ""
    instance = source.get("host") or obj.get("reportingInstance")
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        target.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        (parts["message"] or "").strip(),
        first,
        count,
        obj["metadata"].get("name", ""),
    ]


def _print_resource_quota(obj: Object, now: datetime) -> list[Any]:
    name, created = _name_and_age(obj, now)
    hard, used = _at(obj, "status", "hard") or {}, _at(obj, "status", "used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        column = limits if resource.startswith("limits.") else requests
        column.append(f"{resource}: {used.get(resource, '0')}/{hard[resource]}")
    return [name, ", ".join(requests), ", ".join(limits), created]


def _print_lease(obj: Object, now: datetime) -> list[Any]:
    name, created = _name_and_age(obj, now)
    return [name, _at(obj, "spec", "holderIdentity") or "", created]


def _print_role_binding(obj: Object, now: datetime) -> list[Any]:
    name, created = _name_and_age(obj, now)
    role = obj.get("roleRef") or {}
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        kind, subject_name = subject.get("kind"), subject.get("name", "")
        if kind == "ServiceAccount":
            subject_name = f"{subject.get('namespace', '')}/{subject_name}"
        if kind in subjects:
            subjects[kind].append(subject_name)
    role_text = f"{role.get('kind', '')}/{role.get('name', '')}"
    return [name, role_text, created, *(", ".join(names) for names in subjects.values())]


def _print_certificate_signing_request(obj: Object, now: datetime) -> list[Any]:
    name, created = _name_and_age(obj, now)
    spec = obj.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    requested = _NONE if seconds is None else human_duration(timedelta(seconds=seconds))
    username = spec.get("username", "")
    return [name, created, spec.get("signerName") or _NONE, username, requested, _csr_condition(obj)]


def _csr_condition(obj: Object) -> str:
    conditions = {condition.get("type") for condition in _at(obj, "status", "conditions") or ()}
    decision = next((word for word in ("Denied", "Approved") if word in conditions), "Pending")
    failed = ",Failed" if "Failed" in conditions else ""
    issued = ",Issued" if _at(obj, "status", "certificate") else ""
    return decision + failed + issued


def _print_webhooks(obj: Object, now: datetime) -> list[Any]:
    name, created = _name_and_age(obj, now)
    return [name, len(obj.get("webhooks") or ()), created]


def _print_validating_policy(obj: Object, now: datetime) -> list[Any]:
    return _policy_cells(obj, "validations", now)


def _print_mutating_policy(obj: Object, now: datetime) -> list[Any]:
    return _policy_cells(obj, "mutations", now)


def _policy_cells(obj: Object, rules: str, now: datetime) -> list[Any]:
    name, created = _name_and_age(obj, now)
    param = _at(obj, "spec", "paramKind")
    kind = _UNSET if param is None else f"{param.get('apiVersion', '')}/{param.get('kind', '')}"
    return [name, len(_at(obj, "spec", rules) or ()), kind, created]


def _print_policy_binding(obj: Object, now: datetime) -> list[Any]:
    name, created = _name_and_age(obj, now)
    return [name, _at(obj, "spec", "policyName") or "", _param_name(_at(obj, "spec", "paramRef") or {}), created]


def _param_name(param: Object) -> str:
    if param.get("name"):
        # The scope of the parameter is not known here, so no namespace means any.
        return f"{param.get('namespace') or '*'}/{param['name']}"
    selector = param.get("selector")
    return _UNSET if selector is None else _selector_text(selector)


def _selector_text(selector: Object) -> str:
    """A label selector in the notation of generated protobuf code, which is what reaches the table."""
    labels = selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{requirement.get('key', '')},Operator:{requirement.get('operator', '')},"
        f"Values:[{' '.join(requirement.get('values') or ())}],}},"
        for requirement in selector.get("matchExpressions") or ()
    )
    lists = f"MatchLabels:map[string]string{{{pairs}}},MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},"
    return f"&LabelSelector{{{lists}}}"


def _at(obj: Object, section: str, field: str) -> Any:  # noqa: ANN401 - a field's value
    return (obj.get(section) or {}).get(field)


_ADMISSION: Final = "admissionregistration.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
# By group and resource.
PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "configmaps"): _print_config_map,
    ("", "events"): _print_core_event,
    ("", "namespaces"): _print_namespace,
    ("", "resourcequotas"): _print_resource_quota,
    ("", "secrets"): _print_secret,
    ("", "serviceaccounts"): _print_service_account,
    (_ADMISSION, "mutatingadmissionpolicies"): _print_mutating_policy,
    (_ADMISSION, "mutatingadmissionpolicybindings"): _print_policy_binding,
    (_ADMISSION, "mutatingwebhookconfigurations"): _print_webhooks,
    (_ADMISSION, "validatingadmissionpolicies"): _print_validating_policy,
    (_ADMISSION, "validatingadmissionpolicybindings"): _print_policy_binding,
    (_ADMISSION, "validatingwebhookconfigurations"): _print_webhooks,
    (_RBAC, "clusterrolebindings"): _print_role_binding,
    (_RBAC, "rolebindings"): _print_role_binding,
    ("certificates.k8s.io", "certificatesigningrequests"): _print_certificate_signing_request,
    ("coordination.k8s.io", "leases"): _print_lease,
    ("events.k8s.io", "events"): _print_event,
}
