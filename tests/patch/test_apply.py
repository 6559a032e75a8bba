"""Server-side apply."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.meta.codec import Object
from kcp.meta.errors import BadRequest, Conflict, StatusError
from kcp.meta.gvk import GroupVersionKind
from kcp.patch.apply import apply
from kcp.patch.comparison import SchemaError, owned_fields
from kcp.patch.field_set import FieldSet
from kcp.patch.last_applied import ANNOTATION
from kcp.patch.managed_fields import WriteScope, update_managed_fields
from kcp.patch.merge_schema import UNTYPED, MergeSchema
from kcp.patch.merging import merge, remove_items
from tests.patch.kinds import CONFIG_MAPS, LATER, NOW, SERVICES, WIDGET, WIDGETS, config_map, managers_of, widget


def applied(
    live: Object | None, config: Object, manager: str = "alice", scope: WriteScope = CONFIG_MAPS, *, force: bool = False
) -> Object:
    before, given_config = copy.deepcopy(live), copy.deepcopy(config)
    result = apply(live, config, scope, manager=manager, now=LATER, force=force)
    assert (live, config) == (before, given_config)
    result["metadata"]["uid"] = "u"
    return result


def widgets(live: Object | None, spec: Object, manager: str = "alice", *, force: bool = False) -> Object:
    return applied(live, widget(spec), manager, WIDGETS, force=force)


def created(obj: Object, manager: str = "creator", scope: WriteScope = CONFIG_MAPS) -> Object:
    obj["metadata"]["uid"] = "u"
    update_managed_fields(None, obj, scope, manager=manager, now=NOW)
    return obj


def test_what_is_not_there_is_created() -> None:
    obj = applied(None, config_map({"k": "v"}, labels={"l": "1"}))
    fields = {"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}
    assert obj["data"] == {"k": "v"}
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "alice",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2025-06-01T13:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
    ]
    assert applied(obj, config_map({"k": "v"}, labels={"l": "1"})) == obj


def test_fields_no_longer_applied_go() -> None:
    obj = applied(applied(None, config_map({"k": "v", "l": "w"})), config_map({"k": "v"}))
    assert (obj["data"], managers_of(obj)) == ({"k": "v"}, {"alice/A": {"f:data": {"f:k": {}}}})
    obj = applied(obj, config_map())
    assert "data" not in obj
    assert "managedFields" not in obj["metadata"]


def test_conflicts_between_appliers() -> None:
    live = applied(None, config_map({"k": "v", "l": "w"}))
    with pytest.raises(Conflict) as caught:
        applied(live, config_map({"k": "x"}), "bob")
    assert caught.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "alice": .data.k',
        "reason": "Conflict",
        "details": {
            "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "alice"', "field": ".data.k"}]
        },
        "code": 409,
    }
    with pytest.raises(Conflict) as caught:
        applied(live, config_map({"k": "x", "l": "y"}), "bob")
    assert caught.value.message == 'Apply failed with 2 conflicts: conflicts with "alice":\n- .data.k\n- .data.l'
    forced = applied(live, config_map({"k": "x"}), "bob", force=True)
    assert forced["data"] == {"k": "x", "l": "w"}
    assert managers_of(forced) == {"alice/A": {"f:data": {"f:l": {}}}, "bob/A": {"f:data": {"f:k": {}}}}


def test_conflicts_with_updaters_name_version_and_subresource() -> None:
    live = created(config_map({"k": "v"}), "updater")
    with pytest.raises(Conflict, match=r'conflict with "updater" using v1: \.data\.k'):
        applied(live, config_map({"k": "x"}))
    live["metadata"]["managedFields"][0]["subresource"] = "status"
    with pytest.raises(Conflict, match=r'conflict with "updater" with subresource "status" using v1: \.data\.k'):
        applied(live, config_map({"k": "x"}))
    forced = applied(live, config_map({"k": "x"}), force=True)
    assert managers_of(forced) == {"alice/A": {"f:data": {"f:k": {}}}, "updater/U": {"f:data": {}}}


def test_the_same_value_may_have_two_owners() -> None:
    obj = applied(applied(None, config_map({"k": "v"})), config_map({"k": "v"}), "bob")
    assert [entry.get("time") for entry in obj["metadata"]["managedFields"]] == [None, "2025-06-01T13:00:00Z"]
    obj = applied(obj, config_map(), "alice")
    assert obj["data"] == {"k": "v"}
    assert managers_of(obj) == {"bob/A": {"f:data": {"f:k": {}}}}


def test_an_unmanaged_object_is_owned_by_what_was_before() -> None:
    live = config_map({"k": "v", "l": "w"}, uid="u")
    obj = applied(live, config_map({"k": "v"}))
    assert managers_of(obj) == {
        "alice/A": {"f:data": {"f:k": {}}},
        "before-first-apply/U": {"f:data": {".": {}, "f:k": {}, "f:l": {}}},
    }
    with pytest.raises(Conflict, match=r'conflict with "before-first-apply" using v1: \.data\.k'):
        applied(live, config_map({"k": "x"}))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"metadata": {"name": "a"}}, "invalid object type: /, Kind="),
        ({"apiVersion": "v1"}, "invalid object type: /v1, Kind="),
        ({"apiVersion": "v9", "kind": "ConfigMap"}, "invalid object type: /v9, Kind=ConfigMap"),
        ({"apiVersion": "a/b/c", "kind": "ConfigMap"}, "invalid object type: /, Kind="),
        ({"apiVersion": 5, "kind": ["x"]}, "invalid object type: /, Kind="),
        (config_map(managedFields=[{"manager": "x"}]), "metadata.managedFields must be nil"),
        (config_map(managedFields=[]), "metadata.managedFields must be nil"),
    ],
    ids=str,
)
def test_configurations_of_another_kind_are_bad_requests(config: Object, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        apply(None, config, CONFIG_MAPS, manager="alice", now=NOW)
    assert caught.value.message == message


WHO = "failed to create typed patch object (/a; conf.test/v1, Kind=Widget): "


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"map": [{"name": "p"}, {"name": "p"}]}, '.spec.map: duplicate entries for key [name="p"]'),
        ({"set": ["x", "x"]}, '.spec.set: duplicate entries for key [="x"]'),
        (
            {"map": [{"port": 5}]},
            '.spec.map: element 0: associative list with keys has an element that omits all key fields ["name"] '
            "(and doesn't have default values for any key fields)",
        ),
        ({"n": "text"}, ".spec.n: expected numeric (int or float), got string"),
        ({"n": True}, ".spec.n: expected numeric (int or float), got bool"),
        ({"n": {}}, ".spec.n: expected numeric (int or float), got map[string]interface {}"),
        ({"s": 1}, ".spec.s: expected string, got &value.valueUnstructured{Value:1}"),
        ({"s": True}, ".spec.s: expected string, got &value.valueUnstructured{Value:true}"),
        (
            {"s": {"a": [1000000, "x", None]}},
            '.spec.s: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":[]interface {}'
            '{1e+06, "x", interface {}(nil)}}}',
        ),
        ({"b": "yes"}, ".spec.b: expected boolean, got &{yes}"),
        ({"set": "x"}, ".spec.set: expected list, got &{x}"),
        ({"nested": [1, {"a": 1.5}, None, False]}, ".spec.nested: expected map, got &{[1 map[a:1.5] <nil> false]}"),
        ({"unknown": 1}, ".spec.unknown: field not declared in schema"),
        (
            {"map": [{"name": "p", "port": "x"}]},
            '.spec.map[name="p"].port: expected numeric (int or float), got string',
        ),
        ({"atomic": ["a", 1]}, ".spec.atomic[1]: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"n": "x", "s": 1},
            "errors:\n  .spec.n: expected numeric (int or float), got string\n  "
            ".spec.s: expected string, got &value.valueUnstructured{Value:1}",
        ),
    ],
    ids=str,
)
def test_what_does_not_fit_the_schema_is_refused(spec: Object, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        widgets(None, spec)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (500, "", WHO + message)


def test_names_in_messages() -> None:
    with pytest.raises(StatusError, match=r"typed patch object \(ns/a; /v1, Kind=ConfigMap\): \.x: field not declared"):
        applied(None, {**config_map(namespace="ns"), "x": 1})
    with pytest.raises(StatusError, match=r"typed patch object \(/; /v1, Kind=ConfigMap\): \.metadata: expected map"):
        apply(None, {**config_map(), "metadata": 5}, CONFIG_MAPS, manager="alice", now=NOW)
    config = {"apiVersion": "v1", "kind": "Service", "spec": {"limits": {"cpu": {}}}}
    with pytest.raises(StatusError, match=r"expected any scalar, got &\{map\[\]\}"):
        apply(None, config, SERVICES, manager="alice", now=NOW)


def test_a_stored_object_that_no_longer_fits() -> None:
    live = widgets(None, {"n": 1})
    live["spec"]["n"] = "x"
    with pytest.raises(StatusError, match="failed to create typed live object"):
        widgets(live, {"s": "x"})
    del live["metadata"]["managedFields"]
    with pytest.raises(StatusError, match="failed to create manager for existing fields: failed to convert new object"):
        widgets(live, {"s": "x"})
    live["metadata"]["managedFields"] = [{"operation": "x"}]
    with pytest.raises(StatusError, match="failed to decode managed fields: operation must be `Apply` or `Update`"):
        widgets(live, {"s": "x"})


def test_all_kinds_of_lists_and_maps() -> None:
    spec = {
        "set": ["x", "y"],
        "map": [{"name": "p", "port": 1}],
        "atomic": ["1"],
        "whole": {"k": "v"},
        "labels": {"k": "v"},
    }
    assert managers_of(widgets(None, spec))["alice/A"] == {
        "f:spec": {
            "f:atomic": {},
            "f:labels": {"f:k": {}},
            "f:map": {'k:{"name":"p"}': {".": {}, "f:name": {}, "f:port": {}}},
            "f:set": {'v:"x"': {}, 'v:"y"': {}},
            "f:whole": {},
        }
    }


def test_sets_merge() -> None:
    obj = widgets(None, {"set": ["x", "y"]})
    obj = widgets(obj, {"set": ["z", "x"]}, "bob")
    assert obj["spec"]["set"] == ["z", "x", "y"]
    obj = widgets(obj, {"set": ["y"]})
    assert obj["spec"]["set"] == ["z", "x", "y"]
    assert widgets(obj, {"set": ["z"]}, "bob")["spec"]["set"] == ["z", "y"]


def test_keyed_lists_merge() -> None:
    obj = widgets(None, {"map": [{"name": "p", "port": 1}, {"name": "q", "port": 2}]})
    obj = widgets(obj, {"map": [{"name": "r", "port": 3}, {"name": "p", "proto": "UDP"}]}, "bob")
    assert [item["name"] for item in obj["spec"]["map"]] == ["r", "p", "q"]
    obj = widgets(obj, {"map": [{"name": "q", "port": 5}]})
    assert obj["spec"]["map"] == [{"name": "r", "port": 3}, {"name": "p", "proto": "UDP"}, {"name": "q", "port": 5}]
    with pytest.raises(Conflict, match=r'conflict with "alice": \.spec\.map\[name="q"\]\.port'):
        widgets(obj, {"map": [{"name": "q", "port": 6}]}, "bob")


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        ("abc", "cba", "cba"),
        ("abc", "xbx", None),
        ("axbycz", "cba", "xyczba"),
        ("abc", "bx", "abcx"),
        ("aab", "b", "aab"),
        ("aab", "ba", "ba"),
        ("abcd", "dxa", "bcdxa"),
        ("", "ab", "ab"),
        ("ab", "", "ab"),
    ],
)
def test_the_order_of_merged_sets(ours: str, theirs: str, merged: str | None) -> None:
    live = created(widget({"set": [*ours]}), scope=WIDGETS)
    if merged is None:
        with pytest.raises(StatusError, match="duplicate entries"):
            widgets(live, {"set": [*theirs]})
    else:
        assert "".join(widgets(live, {"set": [*theirs]}, force=True)["spec"]["set"]) == merged


def test_untyped_fields_merge_maps_and_replace_lists() -> None:
    obj = widgets(None, {"free": {"m": {"x": 1, "y": [1]}, "l": [{"name": "p"}]}})
    obj = widgets(obj, {"free": {"m": {"z": 2}}}, "bob")
    assert obj["spec"]["free"] == {"m": {"x": 1, "y": [1], "z": 2}, "l": [{"name": "p"}]}
    assert managers_of(obj)["bob/A"] == {"f:spec": {"f:free": {"f:m": {".": {}, "f:z": {}}}}}
    assert widgets(obj, {"free": {"l": {"a": None}}}, force=True)["spec"]["free"]["l"] == {"a": None}


def test_null_keeps_what_a_map_has_but_takes_a_scalar() -> None:
    obj = created(widget({"nested": {"a": "x"}, "s": "y", "set": ["a"], "any": {"a": 1}}), scope=WIDGETS)
    config: Object = {"nested": None, "s": None, "set": None, "any": None}
    assert widgets(obj, config, force=True)["spec"] == {"nested": {"a": "x"}, "s": None, "set": ["a"], "any": {"a": 1}}


def test_an_item_from_which_all_is_taken_stays_as_null() -> None:
    obj = widgets(None, {"map": [{"name": "p", "port": 1}]})
    obj["metadata"]["managedFields"][0]["fieldsV1"] = {
        "f:spec": {
            "f:map": {'k:{"name":"p"}': {"f:name": {}, "f:port": {}}},
            "f:atomic": {'v:"a"': {}},
            "f:s": {"f:x": {}},
        }
    }
    update_managed_fields(obj, {**copy.deepcopy(obj), "status": {}}, WIDGETS, manager="other", now=NOW)
    assert widgets(obj, {"n": 1})["spec"].get("map") in (None, [None])


def test_fields_that_the_endpoint_ignores() -> None:
    main = WriteScope(WIDGETS.gvk, WIDGET, reset_fields=FieldSet.of(["status"]))
    live = applied(None, widget({"n": 1}, status={"a": 1}), scope=main)
    assert managers_of(live) == {"alice/A": {"f:spec": {"f:n": {}}}}
    status = WriteScope(WIDGETS.gvk, WIDGET, subresource="status", reset_fields=FieldSet.of(["spec"]))
    both = applied(live, widget({"n": 5}, status={"a": 2}), "controller", status)
    assert managers_of(both)["controller/A"] == {"f:status": {"f:a": {}}}


def versions(api_version: str) -> WriteScope:
    def convert(obj: Object, target: str) -> tuple[Object, MergeSchema] | None:
        return ({**obj, "apiVersion": target}, UNTYPED) if target in ("g/v1", "g/v2") else None

    group, _, version = api_version.partition("/")
    return WriteScope(GroupVersionKind(group, version, "W"), UNTYPED, convert=convert)


def in_version(api_version: str, spec: Object) -> Object:
    return {"apiVersion": api_version, "kind": "W", "metadata": {"name": "a"}, "spec": spec}


def test_an_applier_is_the_same_in_every_version() -> None:
    obj = applied(None, in_version("g/v1", {"n": 1}), "alice", versions("g/v1"))
    obj["apiVersion"] = "g/v2"
    obj = applied(obj, in_version("g/v2", {"m": 1}), "alice", versions("g/v2"))
    assert obj["spec"] == {"m": 1}
    assert [entry["apiVersion"] for entry in obj["metadata"]["managedFields"]] == ["g/v2"]
    obj["apiVersion"] = "g/v1"
    with pytest.raises(Conflict):
        applied(obj, in_version("g/v1", {"m": 2}), "bob", versions("g/v1"))


def test_versions_that_are_gone() -> None:
    obj = applied(None, in_version("g/v1", {"n": 1, "m": 1}), "alice", versions("g/v1"))
    other = applied(obj, in_version("g/v1", {"m": 1}), "bob", versions("g/v1"))
    for entry in other["metadata"]["managedFields"]:
        entry["apiVersion"] = "g/v0"
    after = applied(other, in_version("g/v1", {"m": 1}), "alice", versions("g/v1"))
    assert after["spec"] == {"n": 1, "m": 1}, "nobody can tell what was applied in a version that is gone"
    assert [*managers_of(after)] == ["alice/A"]


def test_other_versions_are_left_alone_without_a_converter() -> None:
    obj = applied(None, config_map({"k": "v"}))
    obj["metadata"]["managedFields"][0]["apiVersion"] = "v0"
    after = applied(obj, config_map({"k": "x"}), "bob")
    assert managers_of(after) == {"alice/A": {"f:data": {"f:k": {}}}, "bob/A": {"f:data": {"f:k": {}}}}


def kubectl(live: Object, config: Object) -> Object:
    return applied(live, config, "kubectl")


def last_applied_map(data: Object, annotation: str) -> Object:
    return created(config_map(data, annotations={ANNOTATION: annotation}), "kubectl-client-side-apply")


def test_kubectl_takes_over_what_it_applied_on_the_client_side() -> None:
    live = last_applied_map({"k": "v", "l": "w"}, '{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"v","l":"old"}}')
    after = kubectl(live, config_map({"k": "x"}, annotations={"b": "<"}))
    assert after["data"] == {"k": "x", "l": "w"}
    assert after["metadata"]["annotations"][ANNOTATION] == (
        '{"apiVersion":"v1","data":{"k":"x"},"kind":"ConfigMap","metadata":{"annotations":{"b":"\\u003c"},"name":"a"}}\n'
    )
    with pytest.raises(Conflict, match=r"1 conflict: .*: \.data\.l"):
        kubectl(live, config_map({"k": "x", "l": "y"}))


@pytest.mark.parametrize(
    "annotation",
    [
        "",
        "garbage",
        "[]",
        '{"kind":"ConfigMap"}',
        '{"apiVersion":"v1","data":{"k":"v"}}',
        '{"apiVersion":"v1","kind":"ConfigMap","data":{"k":5}}',
    ],
)
def test_an_annotation_that_does_not_help(annotation: str) -> None:
    with pytest.raises(Conflict):
        kubectl(last_applied_map({"k": "v"}, annotation), config_map({"k": "x"}))


def test_an_annotation_that_grows_too_large_is_dropped() -> None:
    live = last_applied_map({}, "x")
    after = kubectl(live, config_map({"k": "x" * 300_000}))
    assert ANNOTATION not in after["metadata"]["annotations"]
    unannotated = kubectl(created(config_map({})), config_map({"k": "x"}))
    assert "annotations" not in unannotated["metadata"]


# What loses all its entries is null or gone before it is empty, in Kubernetes as well; so nothing is empty here.
TEXTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), min_size=1, max_size=3)
ITEMS = st.dictionaries(st.sampled_from("pqr"), st.integers(0, 2), min_size=1, max_size=3).map(
    lambda ports: [{"name": name, "port": port} for name, port in ports.items()]
)
SPECS = st.fixed_dictionaries(
    {"n": st.integers(0, 2)},
    optional={
        "set": st.lists(st.sampled_from("abc"), unique=True, min_size=1, max_size=3),
        "map": ITEMS,
        "atomic": st.lists(st.sampled_from("ab"), max_size=2),
        "whole": TEXTS,
        "labels": TEXTS,
        "free": st.dictionaries(st.sampled_from("ab"), TEXTS | st.integers(0, 1), min_size=1, max_size=2),
    },
)


@given(st.lists(st.tuples(st.sampled_from(["alice", "bob"]), SPECS), min_size=1, max_size=5))
def test_applying_again_changes_nothing(steps: list[tuple[str, Any]]) -> None:
    live = None
    for manager, spec in steps:
        live = widgets(live, spec, manager, force=True)
        assert widgets(live, spec, manager) == live
    owned = FieldSet()
    for fields in managers_of(live or {"metadata": {}}).values():
        owned = owned.union(FieldSet.parse(fields))
    manager, spec = steps[-1]
    alone = managers_of(widgets(None, spec, manager)).get(f"{manager}/A", {})
    assert FieldSet.parse(alone).difference(owned) == FieldSet(), "whoever applied last owns all of it"


def test_deep_nesting_is_survived() -> None:
    deep: Object = {}
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(StatusError):
        apply(None, widget({"free": deep}), WIDGETS, manager="alice", now=NOW)
    obj = widget({"free": deep})
    update_managed_fields(None, obj, WIDGETS, manager="m", now=NOW)
    assert "managedFields" not in obj["metadata"]


@pytest.mark.parametrize(
    ("value", "fields", "left"),
    [
        ({"n": 1}, {"f:n": {"f:x": {}}}, {"n": 1}),
        ({"nested": None, "s": "x"}, {"f:nested": {"f:a": {}}}, {"nested": None, "s": "x"}),
        ({"whole": {"a": "b"}}, {"f:whole": {"f:a": {}}}, {"whole": None}),
        ({"set": None}, {"f:set": {'v:"a"': {}}}, {"set": None}),
        ({"set": ["a", None]}, {"f:set": {'v:"a"': {}}}, {"set": [None]}),
        ({"atomic": ["a"]}, {"f:atomic": {'v:"a"': {}}}, {"atomic": None}),
        ({"odd": {"a": 1}}, {"f:odd": {"f:a": {}}}, {"odd": None}),
        ({"map": [{"name": "p"}]}, {"f:map": {'k:{"name":"p"}': {"f:name": {}}}}, {"map": [None]}),
    ],
    ids=str,
)
def test_taking_fields_out(value: Object, fields: Object, left: Object) -> None:
    assert remove_items(WIDGET.fields["spec"], value, fields) == left


@pytest.mark.parametrize("spec", [{"odd": 1}, {}], ids=str)
def test_merging_checks_declared_fields(spec: Object) -> None:
    config = {"odd": 1} if not spec else {"odd": 2}
    with pytest.raises(SchemaError):
        merge(WIDGET.fields["spec"], spec, config)


def test_what_applies_leaves_no_hole_for_odd_items() -> None:
    assert owned_fields(WIDGET.fields["spec"], {"set": [None, "a", "a"], "map": "x"}) == {"f:set": {'v:"a"': {}}}
    with pytest.raises(SchemaError):
        owned_fields(WIDGET.fields["spec"], {"odd": 1})


def test_an_emptied_map_becomes_null_before_it_is_empty() -> None:
    obj = widgets(widgets(None, {"n": 0, "free": {"a": {}}}), {"n": 0, "free": {}})
    assert obj["spec"]["free"] is None
    assert widgets(obj, {"n": 0, "free": {}})["spec"]["free"] == {}
