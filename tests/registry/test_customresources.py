"""Custom resources by the rules of their definition."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kcp.auth.user import UserInfo
from kcp.meta import errors, field
from kcp.meta.field import FieldPath
from kcp.registry.strategies.customresources import CustomResourceStrategy, make_strategy
from kcp.registry.strategy import Strategy, WriteContext

CONTEXT = WriteContext("root", UserInfo("me"), datetime(2026, 1, 2, tzinfo=UTC), lambda *asked: True)
SPEC = {"type": "object", "properties": {"n": {"type": "integer", "default": 3}, "s": {"type": "string"}}}
STATUS = {"type": "object", "properties": {"n": {"type": "integer"}, "selector": {"type": "string"}}}
SCALE = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.selector"}

if TYPE_CHECKING:
    from kcp.meta.codec import Object


def strategy_of(**version: Any) -> CustomResourceStrategy:  # noqa: ANN401
    open_api = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
    settings = {"name": "v1", "schema": {"openAPIV3Schema": open_api}, **version}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.test", "scope": "Namespaced", "names": names, "versions": [settings]}
    return make_strategy({"spec": spec}, "v1")


def widget(**fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"apiVersion": "example.test/v1", "kind": "Widget", "metadata": {"name": "a"}, **fields}


def status_of(strategy: CustomResourceStrategy) -> Strategy:
    found = strategy.subresource("status")
    assert found is not None
    return found


def test_decoding_prunes_and_cleans_the_metadata() -> None:
    unknown: list[str] = []
    given = widget(spec={"n": 1, "odd": 2}, top=1)
    given["metadata"] |= {"creationTimestamp": None, "odd": 1}
    decoded = strategy_of().decode(given, unknown)
    assert decoded == widget(spec={"n": 1})
    assert list(decoded) == ["apiVersion", "kind", "metadata", "spec"]
    assert unknown == ['unknown field "metadata.odd"', 'unknown field "spec.odd"', 'unknown field "top"']
    assert "odd" in given["spec"]


def test_objects_of_another_kind_are_left_to_validation() -> None:
    strategy = strategy_of()
    obj = strategy.decode({"apiVersion": "example.test/v1", "kind": "Gadget", "odd": 1})
    assert obj == {"apiVersion": "example.test/v1", "kind": "Gadget", "odd": 1}
    assert [str(error) for error in strategy.validate(obj, CONTEXT)] == [
        'kind: Invalid value: "Gadget": must be Widget'
    ]


def test_metadata_of_the_wrong_form_is_refused_in_gos_words() -> None:
    with pytest.raises(ValueError, match=r"cannot unmarshal number into Go struct field ObjectMeta\.labels"):
        strategy_of().decode({**widget(), "metadata": {"labels": 5}})
    with pytest.raises(ValueError, match=r"cannot unmarshal array into Go value of type v1.ObjectMeta"):
        strategy_of().decode({**widget(), "metadata": []})
    assert strategy_of().decode({**widget(), "metadata": None})["metadata"] == {}


def test_defaults_and_values_follow_the_schema() -> None:
    strategy = strategy_of()
    obj = widget(spec={})
    strategy.default(obj)
    assert obj["spec"] == {"n": 3}
    assert strategy.validate(obj, CONTEXT) == []
    (error,) = strategy.validate(widget(spec={"n": "x"}), CONTEXT)
    assert error.field == "spec.n"
    assert strategy.validate_update(widget(spec={"n": "x", "s": "b"}), widget(spec={"n": "x"}), CONTEXT) == []


def test_a_version_without_a_schema_keeps_nothing_but_metadata() -> None:
    strategy = strategy_of(schema=None)
    assert strategy.decode(widget(spec={"n": 1})) == widget()


def test_status_is_kept_from_ordinary_writes_where_it_has_its_own_endpoint() -> None:
    strategy = strategy_of(subresources={"status": {}})
    obj = widget(status={"n": 1})
    strategy.prepare_for_create(obj, CONTEXT)
    assert "status" not in obj
    obj = widget(spec={"n": 2}, status={"n": 1})
    strategy.prepare_for_update(obj, widget(status={"n": 7}), CONTEXT)
    assert obj["status"] == {"n": 7}
    strategy.prepare_for_update(obj, widget(), CONTEXT)
    assert "status" not in obj
    assert strategy.reset_fields == (("status",),)


def test_without_the_subresource_status_is_a_field_like_others() -> None:
    strategy = strategy_of()
    obj = widget(status={"n": 1})
    strategy.prepare_for_create(obj, CONTEXT)
    strategy.prepare_for_update(obj, widget(), CONTEXT)
    assert obj["status"] == {"n": 1}
    assert strategy.subresource("status") is None
    assert strategy.spec_of(obj) == {"apiVersion": "example.test/v1", "kind": "Widget", "status": {"n": 1}}


def test_status_writes_change_nothing_else() -> None:
    status = status_of(strategy_of(subresources={"status": {}}))
    old = widget(spec={"n": 1}, status={"n": 1})
    old["metadata"]["managedFields"] = [1]
    obj = widget(spec={"n": 9}, status={"n": 2})
    obj["metadata"] |= {"labels": {"x": "y"}, "managedFields": [1, 2]}
    status.prepare_for_update(obj, old, CONTEXT)
    assert obj == {**widget(spec={"n": 1}, status={"n": 2}), "metadata": {"name": "a", "managedFields": [1, 2]}}
    assert old["metadata"]["managedFields"] == [1]
    obj = widget(spec={"n": 9})
    status.prepare_for_update(obj, old, CONTEXT)
    assert obj == widget(spec={"n": 1})
    defaulted = widget(spec={})
    status.default(defaulted)
    assert defaulted["spec"] == {"n": 3}


def test_only_the_status_is_checked_when_it_is_written() -> None:
    status = status_of(strategy_of(subresources={"status": {}, "scale": SCALE}))
    old = widget()
    assert status.validate_update(widget(spec={"n": "x"}, status={"n": 1}), old, CONTEXT) == []
    found = status.validate_update(widget(status={"n": "x"}), old, CONTEXT)
    assert [error.field for error in found] == ["status.n", ".status.n"]
    assert status.validate_update({**widget(), "kind": "X"}, old, CONTEXT)[0].field == "kind"
    assert status.selectable_fields(widget()) == {}


@pytest.mark.parametrize(
    ("finalizer", "warning"),
    [
        ("a.b/c", None),
        ("orphan", None),
        ("foo", "prefer a domain-qualified finalizer name to avoid"),
        ("foo.bar", "prefer a domain-qualified finalizer name including a path (/) to avoid"),
        ("a b/c", "prefix part a lowercase RFC 1123 subdomain"),
    ],
)
def test_odd_finalizers_earn_a_warning_when_they_are_new(finalizer: str, warning: str | None) -> None:
    strategy = strategy_of(subresources={"status": {}})
    obj = widget()
    obj["metadata"]["finalizers"] = [finalizer]
    found = strategy.warnings_on_create(obj, CONTEXT)
    assert (warning in found[0]) if warning else found == []
    assert strategy.warnings_on_update(obj, widget(), CONTEXT) == found
    assert status_of(strategy).warnings_on_update(obj, obj, CONTEXT) == []


def test_selectable_fields_are_texts() -> None:
    strategy = strategy_of(
        selectableFields=[{"jsonPath": ".spec.n"}, {"jsonPath": ".spec.s"}, {"jsonPath": ".spec.n.x"}]
    )
    assert strategy.field_labels == ("spec.n", "spec.s", "spec.n.x")
    assert strategy.selectable_fields(widget(spec={"n": True})) == {"spec.n": "true", "spec.s": "", "spec.n.x": ""}


def test_conversion_none_changes_the_version_only() -> None:
    old = {**widget(spec={"n": 1}), "apiVersion": "example.test/v0"}
    assert strategy_of().convert(old) == widget(spec={"n": 1})


def test_rules_are_asked_with_the_old_object() -> None:
    strategy = strategy_of()
    strategy.structural.has_rules = True

    class Rules:
        def __call__(self, obj: Object, old: Object | None) -> list[field.FieldError]:
            return [field.invalid(FieldPath("x"), old, "changed")]

        def warnings(self, obj: Object) -> list[str]:
            return ["forgiven"]

    strategy.rules = Rules()
    assert "forgiven" in strategy.warnings_on_update(widget(), widget(spec={}), CONTEXT)
    (error,) = strategy.validate_update(widget(), widget(spec={}), CONTEXT)
    assert error.bad_value == widget(spec={})


def test_the_scale_of_an_object_is_read_at_its_paths() -> None:
    strategy = strategy_of(subresources={"scale": SCALE})
    obj = widget(spec={"n": 5}, status={"n": 2, "selector": "app=x"})
    obj["metadata"] |= {"uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}
    assert strategy.scale_of(obj) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": 5},
        "status": {"replicas": 2, "selector": "app=x"},
    }
    assert strategy.scale_of(widget(spec={"n": 0}))["spec"] == {}


def test_without_replicas_there_is_no_scale_to_read_but_one_to_write() -> None:
    strategy = strategy_of(subresources={"scale": {**SCALE, "labelSelectorPath": ""}})
    assert strategy.scale is not None
    with pytest.raises(errors.InternalError, match=r'the spec replicas field ".spec.n" does not exist'):
        strategy.scale_of(widget(spec={}))
    scale = strategy.scale.read_for_update(widget(spec=None))
    with pytest.raises(errors.BadRequest, match=r'the spec replicas field ".spec.n" cannot be empty'):
        strategy.apply_scale(widget(), scale)
    assert strategy.scale.read_for_update(widget(spec={"n": 1}))["spec"] == {"replicas": 1}


def test_a_written_scale_sets_replicas_and_resource_version() -> None:
    strategy = strategy_of(subresources={"scale": SCALE})
    obj = widget()
    strategy.apply_scale(obj, {"spec": {"replicas": 4}, "metadata": {"resourceVersion": "9"}})
    assert obj["spec"] == {"n": 4}
    assert obj["metadata"]["resourceVersion"] == "9"
    strategy.apply_scale(obj, {})
    assert obj["spec"] == {"n": 0}
    with pytest.raises(errors.StatusError, match=r"value cannot be set because .spec is not a map"):
        strategy.apply_scale(widget(spec=5), {"spec": {"replicas": 4}})


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"spec": {"n": -1}}, ".spec.n: Invalid value: -1: should be a non-negative integer"),
        ({"spec": {"n": 2**31}}, ".spec.n: Invalid value: 2147483648: should be less than or equal to 2147483647"),
        (
            {"status": {"selector": 5}},
            '.status.selector: Invalid value: "": .status.selector accessor error: '
            "5 is of the type int64, expected string",
        ),
        (
            {"status": {"n": [1, None, {"a": 1.5}, "x"]}},
            ".status.n: Invalid value: 0: .status.n accessor error: "
            "[1 <nil> map[a:1.5] x] is of the type []interface {}, expected int64",
        ),
    ],
)
def test_replicas_have_to_be_usable(fields: Any, complaint: str) -> None:  # noqa: ANN401
    strategy = strategy_of(subresources={"scale": SCALE})
    assert complaint in [str(error) for error in strategy.validate(widget(**fields), CONTEXT)]


def test_what_is_no_number_has_no_scale() -> None:
    strategy = strategy_of(subresources={"scale": SCALE})
    with pytest.raises(errors.StatusError, match=r"\.spec\.n accessor error: text is of the type string, expected map"):
        strategy.scale_of(widget(spec="text"))
