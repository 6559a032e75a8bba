"""Pruning, defaulting and validating by a structural schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.meta import field
from kcp.meta.field import FieldPath
from kcp.registry.strategies.crd_metadata import EMBEDDED_METADATA
from kcp.schema.structural import Structural, StructuralError, compile
from kcp.schema.structural.nodes import copy_json, is_same
from kcp.schema.structural.objectmeta import CoerceError
from kcp.schema.structural.values import ValueSchema

ANY = {"x-kubernetes-preserve-unknown-fields": True}


def of_spec(**properties: Any) -> Structural:  # noqa: ANN401 - schemas
    spec = {"type": "object", "properties": properties}
    return compile({"type": "object", "properties": {"spec": spec}}, EMBEDDED_METADATA)


def messages(structural: Structural, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(error) for error in structural.validate(obj, old)]


def of_value(schema: dict[str, Any], value: Any) -> list[str]:  # noqa: ANN401
    return messages(of_spec(f=schema), {"spec": {"f": value}})


def test_pruning_drops_and_reports_what_is_not_specified() -> None:
    item = {"type": "object", "properties": {"x": {"type": "integer"}}}
    structural = of_spec(
        n={"type": "integer"},
        o={"type": "object", "properties": {"a": {"type": "string"}}},
        l={"type": "array", "items": item},
    )
    unknown: list[str] = []
    given = {
        "kind": "W",
        "metadata": {"name": "a", "odd": 1},
        "spec": {"n": 1, "m": 2, "o": {"a": "x", "b": "y"}, "l": [{"x": 1, "y": 2}]},
        "top": "gone",
    }
    pruned = structural.prune(given, unknown)
    assert pruned == {
        "kind": "W",
        "metadata": {"name": "a", "odd": 1},
        "spec": {"n": 1, "o": {"a": "x"}, "l": [{"x": 1}]},
    }
    assert unknown == [f'unknown field "{path}"' for path in ("spec.l[0].y", "spec.m", "spec.o.b", "top")]
    assert "m" in given["spec"]


def test_unknown_fields_are_kept_where_the_schema_says_so_but_not_below() -> None:
    known = {"type": "object", "properties": {"k": {"type": "object", "properties": {"a": {"type": "string"}}}}, **ANY}
    structural = of_spec(p=known, l={"type": "array", "items": known, **ANY})
    obj = {"spec": {"p": {"free": {"x": 1}, "k": {"a": "x", "gone": 1}}, "l": [{"free": 1, "k": {"gone": 1}}, 5]}}
    assert structural.prune(obj) == {"spec": {"p": {"free": {"x": 1}, "k": {"a": "x"}}, "l": [{"free": 1, "k": {}}, 5]}}


@pytest.mark.parametrize(
    ("schema", "value", "left"),
    [
        pytest.param({"type": "object", "additionalProperties": True}, {"a": {"b": 1}}, {"a": {}}, id="true"),
        pytest.param({"type": "object", "additionalProperties": False}, {"a": 1}, {"a": 1}, id="false"),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string"}}, {"a": "x", "b": None}, {"a": "x"}, id="null"
        ),
        pytest.param({"type": "string"}, [{"a": 1}, [2]], [{}, [2]], id="objects in place of a string"),
    ],
)
def test_pruning_of_maps_and_of_values_of_the_wrong_type(schema: Any, value: Any, left: Any) -> None:  # noqa: ANN401
    assert of_spec(f=schema).prune({"spec": {"f": value}}) == {"spec": {"f": left}}


def test_nulls_stay_only_where_they_are_allowed_or_will_be_defaulted() -> None:
    structural = of_spec(
        yes={"type": "string", "nullable": True}, no={"type": "string"}, preset={"type": "string", "default": "d"}
    )
    obj = structural.prune({"spec": {"yes": None, "no": None, "preset": None}})
    assert obj == {"spec": {"yes": None, "preset": None}}
    structural.default(obj)
    assert obj == {"spec": {"yes": None, "preset": "d"}}


def test_defaults_fill_objects_lists_and_maps_but_make_no_parents() -> None:
    nested = {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}}
    structural = of_spec(
        o=nested,
        l={"type": "array", "items": nested},
        m={"type": "object", "additionalProperties": nested},
        t={"type": "object", "properties": {"a": {"type": "string", "default": "unset"}}},
        z={"type": "string", "nullable": True, "default": "d"},
    )
    obj: dict[str, Any] = {"spec": {"l": [{}, None], "m": {"k": {}, "n": None}, "z": None}}
    structural.default(obj)
    assert obj == {
        "spec": {
            "l": [{"a": "x"}, {"a": "x"}],
            "m": {"k": {"a": "x"}, "n": {"a": "x"}},
            "z": None,
            "o": {"a": "x"},
        }
    }
    empty: dict[str, Any] = {}
    structural.default(empty)
    assert empty == {}


def test_each_object_gets_its_own_copy_of_a_default() -> None:
    structural = of_spec(
        o={"type": "object", "default": {"a": [1]}, "properties": {"a": {"type": "array", "items": {}}}}
    )
    first: dict[str, Any] = {"spec": {}}
    structural.default(first)
    first["spec"]["o"]["a"].append(2)
    second: dict[str, Any] = {"spec": {}}
    structural.default(second)
    assert second == {"spec": {"o": {"a": [1]}}}


def test_old_defaults_that_are_not_specified_are_pruned_before_use() -> None:
    structural = of_spec(o={"type": "object", "default": {"a": 1, "b": 2}, "properties": {"a": {"type": "integer"}}})
    obj: dict[str, Any] = {"spec": {}}
    structural.default(obj)
    assert obj == {"spec": {"o": {"a": 1}}}


@pytest.mark.parametrize(
    ("schema", "value", "complaint"),
    [
        ({"type": "integer"}, "x", '~"string": @ must be of type integer: "string"'),
        ({"type": "integer"}, 1.5, '~"number": @ must be of type integer: "number"'),
        ({"type": "integer", "maximum": 5}, 6, "~6: @ should be less than or equal to 5"),
        ({"type": "number", "maximum": 2.5}, 3.5, "~3.5: @ should be less than or equal to 2.5"),
        ({"type": "string", "minLength": 2}, "a", '~"a": @ should be at least 2 chars long'),
        ({"type": "string", "maxLength": 1}, "éé", "spec.f: Too long: may not be more than 1 byte"),
        ({"type": "string", "pattern": "^a"}, "b", "~\"b\": @ should match '^a'"),
        (
            {"type": "string", "enum": ["on", "off"]},
            "x",
            'spec.f: Unsupported value: "x": supported values: "on", "off"',
        ),
        ({"type": "string", "format": "date"}, "x", '~"x": @ must be of type date: "x"'),
        ({"type": "array", "items": {}, "maxItems": 1}, [1, 2], "spec.f: Too many: 2: must have at most 1 item"),
        ({"x-kubernetes-int-or-string": True}, True, '~"boolean": @ must be of type integer,string: "boolean"'),
        ({"type": "object", "additionalProperties": False}, {"a": 1}, '~"a": spec.f.a in body is a forbidden property'),
        ({"type": "integer", "multipleOf": 0}, 4, "~0: factor MultipleOf declared for spec.f must be positive: 0"),
        (
            {"type": "integer", "not": {"enum": [1]}},
            1,
            '<nil>: Invalid value: "": "spec.f" must not validate the schema (not)',
        ),
        (
            {"type": "array", "uniqueItems": True, "items": {"type": "integer"}},
            [1, 1],
            '~"": @ shouldn\'t contain duplicates',
        ),
    ],
)
def test_complaints_have_kubernetes_words(schema: Any, value: Any, complaint: str) -> None:  # noqa: ANN401
    expected = complaint.replace("~", "spec.f: Invalid value: ").replace("@", "spec.f in body")
    assert of_value(schema, value) == [expected]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 2.0),
        ({"type": "integer"}, 2**63 - 1),
        ({"type": "number"}, 5),
        ({"type": "number", "minimum": 1}, 1.5),
        ({"type": "number", "multipleOf": 0.5}, 1.5),
        ({"type": "string", "nullable": True, "enum": ["a"]}, "a"),
        ({"type": "array", "uniqueItems": True, "items": {"type": "integer"}}, [1, 2]),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, "50%"),
        ({"x-kubernetes-int-or-string": True, "pattern": "%$"}, 5),
        ({"type": "object", "anyOf": [{"required": ["a"]}, {"minProperties": 0}]}, {}),
        ({"type": "integer", "enum": [1, 2.0]}, 2),
        ({"type": "integer", "multipleOf": 3}, 9),
        ({"type": "string", "format": "made-up"}, "anything"),
    ],
)
def test_valid_values_are_accepted(schema: Any, value: Any) -> None:  # noqa: ANN401
    assert of_value(schema, value) == []


@pytest.mark.parametrize(
    ("value", "allowed", "is_member"),
    [(1.5, 1, True), (65, "A", True), (2**40, "\ufffd", True), (True, 1, False), (None, None, False), ("a", "a", True)],
)
def test_enumerations_convert_as_go_does(value: Any, allowed: Any, is_member: bool) -> None:  # noqa: ANN401
    errors = ValueSchema({"enum": [allowed]}).validate(value, "f").errors
    assert (not errors) is is_member


def test_defaults_count_unchecked_formats_when_types_are_compared() -> None:
    values = ValueSchema({"type": "integer", "format": "int32"}, is_default=True)
    assert [failure.message for failure in values.validate(1.5).errors] == [' in body must be of type int32: "float64"']
    assert ValueSchema({"type": "boolean", "format": "odd"}, is_default=True).validate("text").errors == []


def test_a_pattern_that_is_none_is_explained() -> None:
    (failure,) = ValueSchema({"pattern": "("}).validate("x", "f").errors
    why = "error parsing regexp: missing closing ): `(`"
    assert failure.message == f"f in body should match '(, but pattern is invalid: {why}'"


def test_an_integer_beyond_int64_is_a_number() -> None:
    found = of_value({"type": "integer"}, 2**63)
    assert found == ['spec.f: Invalid value: "number": spec.f in body must be of type integer: "number"']


def test_what_was_invalid_may_stay_until_it_changes() -> None:
    structural = of_spec(a={"type": "integer", "maximum": 10}, b={"type": "integer"})
    old = {"spec": {"a": 50, "b": 1}}
    assert messages(structural, {"spec": {"a": 50, "b": 2}}, old) == []
    assert messages(structural, {"spec": {"a": 51, "b": 1}}, old) == [
        "spec.a: Invalid value: 51: spec.a in body should be less than or equal to 10"
    ]


def test_items_of_a_keyed_list_may_stay_invalid_one_by_one() -> None:
    item = {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer", "maximum": 3}}}
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    old = {"spec": {"l": [{"k": "a", "n": 9}, {"k": "b", "n": 1}, {"n": 9}]}}
    new = {"spec": {"l": [{"k": "b", "n": 8}, {"k": "a", "n": 9}, {"k": "c", "n": 9}]}}
    found = messages(of_spec(l=keyed), new, old)
    assert [text.partition(":")[0] for text in found] == ["spec.l[0].n", "spec.l[2].n"]


@pytest.mark.parametrize(
    ("list_type", "new", "is_forgiven"),
    [
        pytest.param("atomic", [{"k": "a", "n": 9}], True, id="unchanged list"),
        pytest.param("atomic", [{"k": "a", "n": 9}, {"k": "b"}], False, id="longer list"),
        pytest.param("map", [{"k": "b", "n": 9}], False, id="another key"),
        pytest.param("map", [{"k": "a", "n": 9, "odd": [1]}], True, id="more of the same item"),
        pytest.param("map", [{"n": 9}], False, id="no key"),
        pytest.param("map", [{"k": ["a"], "n": 9}], False, id="a key that is no scalar"),
    ],
)
def test_lists_are_forgiven_as_a_whole_or_by_key(list_type: str, new: Any, is_forgiven: bool) -> None:  # noqa: ANN401
    item = {"type": "object", "properties": {"k": {**ANY}, "n": {"type": "integer", "maximum": 3}}, **ANY}
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": list_type, "x-kubernetes-list-map-keys": ["k"]}
    old = {"spec": {"l": [{"k": "a", "n": 9}]}}
    assert (messages(of_spec(l=keyed), {"spec": {"l": new}}, old) == []) is is_forgiven


def test_a_list_that_turned_invalid_as_a_whole_may_stay() -> None:
    item = {"type": "object", "properties": {"k": {"type": "string"}}}
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    structural = of_spec(l={**keyed, "maxItems": 1}, m={"type": "string", "enum": ["x"], "nullable": True})
    old = {"spec": {"l": [{"k": "a"}, {"k": "b"}], "m": None}}
    assert messages(structural, {"spec": {"l": [{"k": "a"}, {"k": "b"}], "m": None}}, old) == []
    assert len(messages(structural, {"spec": {"l": [{"k": "a"}, {"k": "c"}], "m": None}}, old)) == 1
    assert len(messages(structural, {"spec": {"l": [{"k": "b"}, {"k": "a", "z": 1}], "m": "y"}}, old)) == 2


def test_bounds_beyond_int64_wrap_as_in_go() -> None:
    complaint = "should be less than or equal to -9223372036854775808"
    assert complaint in of_value({"type": "integer", "maximum": 1e19}, 1)[0]
    assert complaint in of_value({"type": "integer", "maximum": float("inf")}, 1)[0]


def test_duplicates_are_found_unless_there_were_some_before() -> None:
    structural = of_spec(
        s={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        m={"type": "object", "additionalProperties": {"type": "array", "items": {}, "x-kubernetes-list-type": "set"}},
    )
    obj = {"spec": {"s": ["a", "b", "a", "a"], "m": {"k": [1, 1.0, True, 1]}}}
    assert messages(structural, obj) == ["spec.m[k][3]: Duplicate value: 1", 'spec.s[2]: Duplicate value: "a"'][::-1]
    assert messages(structural, obj, {"spec": {"s": ["x", "x"]}}) == []


def test_a_list_by_keys_holds_objects_only() -> None:
    keyed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {**ANY}}
    structural = of_spec(l=keyed)
    assert messages(structural, {"spec": {"l": [{}, 5]}}) == [
        "spec.l[1]: Invalid value: 5: must be an object for an array of list-type map"
    ]
    assert messages(structural, {"spec": {"l": [{}, None]}}) == ["spec.l[1]: Duplicate value: {}"]


def test_status_errors_are_told_from_the_status_on() -> None:
    status = {"type": "object", "required": ["m"], "properties": {"n": {"type": "integer", "maximum": 3}}}
    structural = compile({"type": "object", "properties": {"status": status}})
    found = structural.validate_status({"status": {"n": 9, "m": 1}}, {})
    assert list(map(str, found)) == ["status.n: Invalid value: 9: n in body should be less than or equal to 3"]
    assert structural.validate_status({"status": {"n": 9, "m": 1}}, {"status": {"n": 9, "m": 2}}) == []
    assert structural.validate_status({}, {}) == []
    assert structural.validate_status({"status": {"n": 1, "m": 1}}, {}) == []
    assert compile({"type": "object"}).validate_status({"status": 5}, {}) == []


def test_rules_are_asked_only_about_objects_that_fit_their_types() -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "x"}], "properties": {"n": {"type": "integer"}}}
    structural = compile(schema)
    complaint = field.invalid(FieldPath("n"), 1, "failed rule")
    asked = []

    class Rules:
        def __call__(self, obj: dict[str, Any], old: dict[str, Any] | None) -> list[field.FieldError]:
            asked.append((obj, old))
            return [complaint]

        def warnings(self, obj: dict[str, Any]) -> list[str]:
            return []

    assert structural.validate({"n": 1}, rules=Rules()) == [complaint]
    found = structural.validate({"n": "x"}, rules=Rules())
    assert [error.body.partition(": ")[2][:34] for error in found][1] == "null: some validation rules were n"
    assert asked == [({"n": 1}, None)]
    assert structural.validate({"n": 1}) == []


def test_embedded_resources_have_types_and_metadata() -> None:
    structural = of_spec(f={"type": "object", "x-kubernetes-embedded-resource": True, **ANY})
    unknown: list[str] = []
    resource = {"kind": "Pod", "metadata": {"name": "Bad_Name", "odd": 1}, "more": {"x": 1}}
    obj = structural.prune({"spec": {"f": resource}}, unknown)
    assert obj["spec"]["f"]["metadata"] == {"name": "Bad_Name"}
    assert unknown == ['unknown field "spec.f.metadata.odd"']
    assert messages(structural, obj) == ["spec.f.apiVersion: Required value"]
    with pytest.raises(CoerceError, match=r"spec.f.metadata: Invalid value: .text.: json: cannot unmarshal string"):
        structural.prune({"spec": {"f": {"metadata": "text"}}})
    with pytest.raises(CoerceError, match=r"spec.f.kind: Invalid value: 5: must be a string"):
        structural.prune({"spec": {"f": {"kind": 5}}})


@pytest.mark.parametrize(
    ("resource", "complaint"),
    [
        ({"apiVersion": "a/b/c", "kind": "Pod"}, "unexpected GroupVersion string: a/b/c"),
        ({"apiVersion": "", "kind": "Pod"}, "must not be empty"),
        ({"apiVersion": 5, "kind": "Pod"}, "must be a string"),
        ({"apiVersion": "v1", "kind": "bad kind"}, "may have mixed case"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": 5}, "cannot unmarshal number"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}}, "may not contain '/'"),
    ],
)
def test_embedded_resources_are_judged_in_lists_and_maps(resource: Any, complaint: str) -> None:  # noqa: ANN401
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, **ANY}
    structural = of_spec(l={"type": "array", "items": embedded}, m={"type": "object", "additionalProperties": embedded})
    for holder in ({"l": [resource]}, {"m": {"k": resource}}):
        assert complaint in messages(structural, {"spec": holder})[0]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$ref": "#/x"}, "OpenAPIV3Schema '$ref' is not supported"),
        ({"additionalItems": False}, "OpenAPIV3Schema 'additionalItems' is not supported"),
        ({"items": [{}]}, "OpenAPIV3Schema 'items' must be a schema, but is an array"),
        ({"not": {"properties": {"a": {"definitions": {"x": {}}}}}}, "OpenAPIV3Schema 'definitions' is not supported"),
        ({"anyOf": [{"id": "x"}]}, "OpenAPIV3Schema 'id' is not supported"),
        ({ANY_KEY: False for ANY_KEY in ANY}, "'x-kubernetes-preserve-unknown-fields' must be true or undefined"),
    ],
)
def test_schemas_that_cannot_be_structural_are_refused(schema: Any, why: str) -> None:  # noqa: ANN401
    with pytest.raises(StructuralError) as caught:
        compile(schema)
    assert why in str(caught.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=12,
)


@given(json_values)
def test_copies_are_the_same_and_independent(value: Any) -> None:  # noqa: ANN401
    copied = copy_json(value)
    assert is_same(copied, value)
    assert copied is not value or not isinstance(value, dict | list)


@given(st.dictionaries(st.sampled_from("abcd"), json_values))
def test_pruning_twice_is_pruning_once(spec: Any) -> None:  # noqa: ANN401
    structural = of_spec(
        a={"type": "object", "properties": {"b": {"type": "string"}}}, b={"type": "array", "items": {"type": "string"}}
    )
    once = structural.prune({"spec": spec})
    unknown: list[str] = []
    assert structural.prune(once, unknown) == once
    assert unknown == []
