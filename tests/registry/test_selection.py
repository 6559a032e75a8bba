"""Selectors on stored bytes: the same answers as on objects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.meta import fields, labels
from kcp.registry.builtin import builtin_resources
from kcp.registry.custom import compile_definition
from kcp.registry.selection import Selection, unsupported_field
from kcp.store import Revision, pack_object
from kcp.store.value import stamp
from tests.registry.verbs import CLUSTER_ROLES, CONFIGMAPS, NAMESPACES, NEW_EVENTS, SECRETS, crd, version

RESOURCES = builtin_resources()

# Few and alike, so that one is often part of another.
KEYS = st.sampled_from(["a", "aa", "a.io/a", "b", "a-b"])
VALUES = st.sampled_from(["", "a", "aa", "b", "1", "7", "10", "x.y"])
NUMBERS = st.sampled_from(["0", "5", "7", "10", "03"])
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)


@st.composite
def requirements(draw: st.DrawFn) -> labels.Requirement:
    operator = draw(st.sampled_from(labels.Operator))
    match operator:
        case labels.Operator.EXISTS | labels.Operator.DOES_NOT_EXIST:
            values = []
        case labels.Operator.GREATER_THAN | labels.Operator.LESS_THAN:
            values = [draw(NUMBERS)]
        case labels.Operator.IN | labels.Operator.NOT_IN:
            values = draw(st.lists(VALUES, min_size=1, max_size=3, unique=True))
        case _:
            values = [draw(VALUES)]
    return labels.make_requirement(draw(KEYS), operator, values)


def stored(obj: dict[str, Any]) -> bytes:
    return stamp(pack_object(obj), Revision(7))


def select(gvr: Any, label: str = "", field: str = "") -> Selection:  # noqa: ANN401 - a GroupVersionResource
    return Selection(RESOURCES[gvr], labels.parse(label), fields.parse(field))


@given(found=LABELS, asked=st.lists(requirements(), max_size=3))
def test_label_selectors_answer_on_bytes_as_on_labels(found: dict[str, str], asked: list[labels.Requirement]) -> None:
    selector = labels.everything().add(*asked)
    selection = Selection(RESOURCES[CONFIGMAPS], selector, fields.everything())
    accept = selection.accept
    kept = stored({"metadata": {"name": "x", "labels": found} if found else {"name": "x"}})
    assert (accept is None) == selector.is_empty
    assert (accept is None or accept(kept)) == selector.matches(found)
    assert selection.contains in kept or not selector.matches(found), "the quick look misses nothing"


@given(found=LABELS, asked=requirements(), name=st.sampled_from(["x", "y"]))
def test_label_and_field_selectors_both_have_to_match(
    found: dict[str, str], asked: labels.Requirement, name: str
) -> None:
    selector = labels.everything().add(asked)
    accept = Selection(RESOURCES[CONFIGMAPS], selector, fields.parse("metadata.name=x")).accept
    assert accept is not None
    wanted = selector.matches(found) and name == "x"
    assert accept(stored({"metadata": {"name": name, "labels": found}})) == wanted


@pytest.mark.parametrize(
    ("gvr", "field", "obj", "expected"),
    [
        (CONFIGMAPS, "metadata.name=a", {}, True),
        (CONFIGMAPS, "metadata.name!=a", {}, False),
        (CONFIGMAPS, "metadata.namespace=default,metadata.name=a", {}, True),
        (CONFIGMAPS, "metadata.namespace=other", {}, False),
        (SECRETS, "type=Opaque", {"type": "Opaque"}, True),
        (SECRETS, "type!=Opaque", {"type": "Opaque"}, False),
        (NAMESPACES, "status.phase=Active", {"status": {"phase": "Active"}}, True),
        (NAMESPACES, "status.phase=Active", {}, False),
        (CLUSTER_ROLES, "metadata.namespace=default", {"metadata": {"name": "a"}}, False),
        (CLUSTER_ROLES, "metadata.namespace!=default", {"metadata": {"name": "a"}}, True),
    ],
)
def test_field_selectors(gvr: Any, field: str, obj: dict[str, Any], expected: bool) -> None:  # noqa: ANN401
    accept = select(gvr, field=field).accept
    assert accept is not None
    assert accept(stored({"metadata": {"name": "a", "namespace": "default"}} | obj)) is expected


def test_fields_are_those_of_the_version_asked_for() -> None:
    """Events are stored in the older form, where the note is called message."""
    event = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "ConfigMap", "name": "a"},
        "reason": "Made",
    }
    accept = select(NEW_EVENTS, field="regarding.kind=ConfigMap,reason=Made").accept
    assert accept is not None
    assert accept(stored(event))
    other = select(NEW_EVENTS, field="regarding.kind=Secret").accept
    assert other is not None
    assert not other(stored(event))


@pytest.mark.parametrize(
    ("field", "name"),
    [("", None), ("metadata.name=a", "a"), ("metadata.name!=a", None), ("metadata.namespace=a", None)],
)
def test_a_selector_for_one_name_is_known_to_be_one(field: str, name: str | None) -> None:
    assert select(CONFIGMAPS, field=field).name == name


@pytest.mark.parametrize(
    ("found", "expected"),
    [({"a": "v7"}, True), ({"a": "v"}, False), ({"b": "v7"}, False), ({"aa": "x", "a": "v999", "b": "y"}, True)],
    ids=["one of them", "part of one", "another label", "between others"],
)
def test_labels_with_one_of_many_values(found: dict[str, str], expected: bool) -> None:
    values = ",".join(f"v{number}" for number in range(1000))
    kept = stored({"metadata": {"name": "x", "labels": found}})
    for operator, answer in (("in", expected), ("notin", not expected)):
        accept = select(CONFIGMAPS, f"a {operator} ({values})").accept
        assert accept is not None
        assert accept(kept) is answer


def custom_resource(scope: str) -> Any:  # noqa: ANN401 - a Resource
    settings = version(selectableFields=[{"jsonPath": ".spec.color"}])
    return compile_definition(crd(settings, scope=scope))["v1"]


@pytest.mark.parametrize(
    ("resource", "field", "unsupported"),
    [
        (RESOURCES[CONFIGMAPS], "metadata.name=a,metadata.namespace=b", None),
        (RESOURCES[CONFIGMAPS], "data.a=b", "data.a"),
        (RESOURCES[SECRETS], "type=a", None),
        (RESOURCES[NAMESPACES], "status.phase=a", None),
        (RESOURCES[NAMESPACES], "metadata.name=a,metadata.namespace=a", "metadata.namespace"),
        (RESOURCES[CLUSTER_ROLES], "metadata.namespace=a", None),
        (custom_resource("Namespaced"), "spec.color=red,metadata.namespace=a", None),
        (custom_resource("Namespaced"), "spec.size=1", "spec.size"),
        (custom_resource("Cluster"), "metadata.namespace=a", "metadata.namespace"),
        (custom_resource("Cluster"), "metadata.name=a", None),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "singular", None),
)
def test_which_fields_can_be_selected_by(resource: Any, field: str, unsupported: str | None) -> None:  # noqa: ANN401
    assert unsupported_field(resource, fields.parse(field)) == unsupported
