"""Names and conditions of definitions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kcp.registry.strategies.crd_names import is_condition_true, naming_conditions, set_condition

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAMES = {"plural": "widgets", "singular": "widget", "shortNames": ["wd"], "kind": "Widget", "listKind": "WidgetList"}


def definition(name: str = "widgets.example.test", names: Any = None, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    spec = {"group": "example.test", "names": names or NAMES, "versions": [], **more}
    return {"metadata": {"name": name}, "spec": spec, "status": {"storedVersions": ["v1"]}}


def told(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in status["conditions"]}


def test_the_first_of_its_names_is_established_at_once() -> None:
    status = naming_conditions(definition(), [], NOW)
    assert status["acceptedNames"] == NAMES
    assert status["storedVersions"] == ["v1"]
    assert told(status) == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
    }
    assert {each["lastTransitionTime"] for each in status["conditions"]} == {"2026-01-02T03:04:05Z"}


def test_a_taken_kind_is_not_accepted() -> None:
    first = definition()
    first["status"] = naming_conditions(first, [], NOW)
    names = {**NAMES, "plural": "gadgets", "singular": "gadget", "shortNames": ["gd"], "listKind": "GadgetList"}
    second = definition("gadgets.example.test", names)
    elsewhere = definition("x.other.test", group="other.test")
    status = naming_conditions(second, [elsewhere, first], NOW)
    assert status["acceptedNames"] == {
        "plural": "gadgets",
        "singular": "gadget",
        "shortNames": ["gd"],
        "kind": "",
        "listKind": "GadgetList",
    }
    assert told(status) == {
        "NamesAccepted": ("False", "KindConflict", '"Widget" is already in use'),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }
    again = naming_conditions({**second, "status": status}, [first], NOW)
    assert again == status


def test_all_taken_short_names_are_told() -> None:
    first = definition(names={**NAMES, "shortNames": ["a", "b"]})
    first["status"] = naming_conditions(first, [], NOW)
    second = definition("y.example.test", {"plural": "ys", "singular": "y", "kind": "Y", "listKind": "YList"})
    second["spec"]["names"]["shortNames"] = ["a", "b", "c"]
    status = naming_conditions(second, [first], NOW)
    message = '["a" is already in use, "b" is already in use]'
    assert told(status)["NamesAccepted"] == ("False", "ShortNamesConflict", message)
    assert "shortNames" not in status["acceptedNames"]


def test_new_names_are_accepted_and_the_old_ones_given_up() -> None:
    crd = definition()
    crd["status"] = naming_conditions(crd, [], NOW)
    crd["spec"]["names"] = {**NAMES, "shortNames": ["wd", "wi"], "categories": ["all"]}
    later = NOW.replace(year=2027)
    status = naming_conditions(crd, [crd, definition()], later)
    assert status["acceptedNames"] == {**NAMES, "shortNames": ["wd", "wi"], "categories": ["all"]}
    assert {each["lastTransitionTime"] for each in status["conditions"]} == {"2026-01-02T03:04:05Z"}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("https://x/y", ("True", "ApprovedAnnotation", "approved in https://x/y")),
        ("unapproved, x", ("False", "UnapprovedAnnotation", 'not approved: "unapproved, x"')),
        ("maybe", ("False", "InvalidAnnotation", "")),
        ("", ("False", "MissingAnnotation", "")),
    ],
)
def test_protected_groups_tell_of_their_approval(annotation: str, expected: tuple[str, str, str]) -> None:
    crd = definition(group="x.k8s.io")
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}
    found = told(naming_conditions(crd, [], NOW))["KubernetesAPIApprovalPolicyConformant"]
    assert found[:2] == expected[:2]
    assert expected[2] in found[2]


def test_violations_of_old_definitions_are_told_until_they_are_gone() -> None:
    loose = {"name": "v1", "schema": {"openAPIV3Schema": {"properties": {}}}}
    crd = definition(versions=[{"name": "v0"}, loose], preserveUnknownFields=True)
    status = naming_conditions(crd, [], NOW)
    assert told(status)["NonStructuralSchema"] == (
        "True",
        "Violations",
        "[spec.preserveUnknownFields: Invalid value: true: must be false, "
        "spec.versions[1].schema.openAPIV3Schema.type: Required value: must not be empty at the root]",
    )
    assert "NonStructuralSchema" not in told(naming_conditions({**definition(), "status": status}, [], NOW))
    loose["schema"] = {"openAPIV3Schema": {"$ref": "x"}}
    assert told(naming_conditions(crd, [], NOW))["NonStructuralSchema"] == (
        "Unknown",
        "StructuralError",
        "failed to check validation schema for version v1: OpenAPIV3Schema '$ref' is not supported",
    )


def test_an_invalid_certificate_keeps_it_from_being_established() -> None:
    webhook = {"clientConfig": {"caBundle": "bm90aGluZw=="}}
    crd = definition(conversion={"strategy": "Webhook", "webhook": webhook})
    assert told(naming_conditions(crd, [], NOW))["Established"][1] == "InvalidCABundle"


def test_a_condition_changes_its_time_with_its_status_only() -> None:
    conditions = [
        {"type": "A", "status": "True", "lastTransitionTime": "2000-01-01T00:00:00Z"},
        {"type": "B", "status": "x"},
    ]
    set_condition(conditions, "A", "True", "r", "m", now=NOW)
    assert conditions[0]["lastTransitionTime"] == "2000-01-01T00:00:00Z"
    set_condition(conditions, "A", "False", "r", "m", now=NOW)
    assert conditions[0]["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    set_condition(conditions, "B", "x", "r", "m", now=NOW)
    assert conditions[1]["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert is_condition_true({"status": {"conditions": [{"type": "A", "status": "True"}]}}, "A")
    assert not is_condition_true({}, "A")
