"""Which names a definition gets, and the conditions that tell of it.

kube-apiserver has five controllers for this (status, establish, apiapproval, nonstructuralschema); these are their
decisions as functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcp.meta import field
from kcp.meta.clock import format_time
from kcp.meta.field import FieldPath
from kcp.meta.gotext import quote
from kcp.registry.strategies.crd_approval import find_approval, is_protected_group
from kcp.registry.strategies.crd_conversion import is_valid_ca_bundle
from kcp.schema.structural.invariants import validate_structural
from kcp.schema.structural.nodes import StructuralError, make_node

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError

NAMES_ACCEPTED: Final = "NamesAccepted"
ESTABLISHED: Final = "Established"
TERMINATING: Final = "Terminating"
APPROVAL: Final = "KubernetesAPIApprovalPolicyConformant"
NON_STRUCTURAL: Final = "NonStructuralSchema"
_NAMES: Final = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def naming_conditions(crd: Object, others: Iterable[Object], now: datetime) -> Object:
    """The status that a definition gets beside others of its cluster; its own old status counts as what it has.

    `others` may hold definitions of other groups, and the definition itself; both are left out.
    """
    status: Object = dict(crd.get("status") or {})
    names, accepted = _accept_names(crd, others)
    status["acceptedNames"] = names
    conditions = [dict(condition) for condition in status.get("conditions") or ()]
    status["conditions"] = conditions
    status.setdefault("storedVersions", [])
    set_condition(conditions, NAMES_ACCEPTED, *accepted, now=now)
    set_condition(conditions, ESTABLISHED, *_establish(crd, conditions), now=now)
    if is_protected_group((crd.get("spec") or {}).get("group", "")):
        state, message = find_approval(crd)
        reason, value = state.value
        set_condition(conditions, APPROVAL, value, reason, message, now=now)
    violations = _find_violations(crd)
    if violations is None:
        conditions[:] = [condition for condition in conditions if condition["type"] != NON_STRUCTURAL]
    else:
        set_condition(conditions, NON_STRUCTURAL, *violations, now=now)
    return {name: status[name] for name in ("conditions", "acceptedNames", "storedVersions")}


def set_condition(
    conditions: list[Object], kind: str, status: str, reason: str, message: str, *, now: datetime
) -> None:
    """Write a condition; its time changes only with its status."""
    moment = format_time(now)
    for condition in conditions:
        if condition["type"] == kind:
            if condition["status"] != status or not condition.get("lastTransitionTime"):
                condition["lastTransitionTime"] = moment
            condition.update(status=status, reason=reason, message=message)
            return
    conditions.append(
        {"type": kind, "status": status, "lastTransitionTime": moment, "reason": reason, "message": message}
    )


def is_condition_true(crd: Object, kind: str) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == kind and condition.get("status") == "True" for condition in conditions)


def _accept_names(crd: Object, others: Iterable[Object]) -> tuple[Object, tuple[str, str, str]]:
    resources, kinds = _claimed_names(crd, others)
    wanted: Object = (crd.get("spec") or {}).get("names") or {}
    had: Object = (crd.get("status") or {}).get("acceptedNames") or {}
    names = dict(had)
    accepted = ("True", "NoConflicts", "no conflicts found")
    for name, reason, used in (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        conflict = _find_conflict(wanted.get(name), had.get(name), used)
        if conflict:
            accepted = ("False", reason, conflict)  # the last one is shown
        else:
            names[name] = wanted.get(name)
    names["categories"] = wanted.get("categories")
    # Of these, Go writes only plural and kind when they are empty.
    shown = {name: names.get(name) for name in _NAMES if names.get(name)}
    shown.setdefault("plural", "")
    shown.setdefault("kind", "")
    return {name: shown[name] for name in _NAMES if name in shown}, accepted


def _claimed_names(crd: Object, others: Iterable[Object]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    spec = crd.get("spec") or {}
    # Its own accepted names count as claimed, too: a name it has is compared before this is asked.
    for other in (*others, crd):
        if other["spec"].get("group") != spec.get("group"):
            continue
        if other is not crd and other["metadata"].get("name") == crd["metadata"].get("name"):
            continue
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources.update((names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())))
        kinds.update((names.get("kind", ""), names.get("listKind", "")))
    return resources, kinds


def _find_conflict(wanted: Any, had: Any, used: set[str]) -> str:  # noqa: ANN401 - a name or a list of names
    if wanted == had:
        return ""
    if not isinstance(wanted, list):
        return f"{quote(wanted)} is already in use" if wanted in used else ""
    conflicts = [f"{quote(name)} is already in use" for name in wanted if name not in (had or ()) and name in used]
    unique = list(dict.fromkeys(conflicts))
    return f"[{', '.join(unique)}]" if len(unique) > 1 else "".join(unique)


def _establish(crd: Object, conditions: list[Object]) -> tuple[str, str, str]:
    """Once established, always established."""
    old = next((condition for condition in conditions if condition["type"] == ESTABLISHED), None)
    if old is not None and old["status"] == "True":
        return "True", old.get("reason", ""), old.get("message", "")
    if not any(condition["type"] == NAMES_ACCEPTED and condition["status"] == "True" for condition in conditions):
        if old is not None:
            return old["status"], old.get("reason", ""), old.get("message", "")
        return "False", "NotAccepted", "not all names are accepted"
    webhook = ((crd.get("spec") or {}).get("conversion") or {}).get("webhook") or {}
    ca_bundle = (webhook.get("clientConfig") or {}).get("caBundle")
    if ca_bundle and not is_valid_ca_bundle(ca_bundle):
        return "False", "InvalidCABundle", "The conversion webhook CABundle is invalid"
    return "True", "InitialNamesAccepted", "the initial names have been accepted"


def _find_violations(crd: Object) -> tuple[str, str, str] | None:
    """Why a schema is not structural: possible only in definitions older than this rule."""
    spec: Object = crd.get("spec") or {}
    errors: list[FieldError] = []
    if spec.get("preserveUnknownFields"):
        errors.append(field.invalid(FieldPath("spec").child("preserveUnknownFields"), True, "must be false"))
    for index, version in enumerate(spec.get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            continue
        try:
            make_node(schema)
        except StructuralError as error:
            why = f"failed to check validation schema for version {version.get('name', '')}: {error}"
            return "Unknown", "StructuralError", why
        path = FieldPath("spec").child("versions").index(index).child("schema", "openAPIV3Schema")
        errors += validate_structural(schema, path)
    return ("True", "Violations", field.aggregate(errors)) if errors else None
