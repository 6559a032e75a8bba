"""Managed fields of creates, updates and patches."""

import copy
from typing import Any

import pytest

from kcp.meta.codec import Object
from kcp.meta.gvk import GroupVersionKind
from kcp.patch.field_set import FieldSet
from kcp.patch.managed_fields import (
    WriteScope,
    find_managed_fields_error,
    ignore_timestamps,
    update_managed_fields,
)
from kcp.patch.merge_schema import UNTYPED, MergeSchema
from tests.patch.kinds import (
    CONFIG_MAPS,
    LATER,
    NOW,
    SERVICES,
    WIDGET,
    WIDGETS,
    config_map,
    managers_of,
    widget,
)


def create(obj: Object, manager: str = "m", scope: WriteScope = CONFIG_MAPS) -> Object:
    obj["metadata"]["uid"] = "u"
    update_managed_fields(None, obj, scope, manager=manager, now=NOW)
    return obj


def update(live: Object, new: Object, manager: str = "m", scope: WriteScope = CONFIG_MAPS) -> Object:
    before = copy.deepcopy(live)
    update_managed_fields(live, new, scope, manager=manager, now=LATER)
    assert live == before
    return new


def changed(obj: Object, **data: Any) -> Object:  # noqa: ANN401
    new = copy.deepcopy(obj)
    new["data"] = {key: value for key, value in {**new.get("data", {}), **data}.items() if value is not None}
    return new


def test_the_creator_owns_all_but_what_is_the_servers() -> None:
    obj = create(config_map({"k": "v", "a": "b"}, labels={"l": "1"}, creationTimestamp="2025-01-01T00:00:00Z"))
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "m",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2025-06-01T12:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}, "f:k": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}},
        }
    ]
    assert [*obj["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]] == [".", "f:a", "f:k"]
    assert [*obj["metadata"]][-1] == "managedFields"


def test_an_object_with_nothing_to_own_has_no_managers() -> None:
    assert "managedFields" not in create(config_map())["metadata"]
    assert create(config_map({"a": "b"}), manager="")["metadata"]["managedFields"][0]["manager"] == "unknown"


def test_structs_that_go_always_writes_are_not_owned() -> None:
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {},
        "spec": {"hosts": None, "type": "x", "ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]},
        "status": None,
    }
    assert managers_of(create(service, scope=SERVICES)) == {
        "m/U": {
            "f:spec": {
                "f:ports": {
                    ".": {},
                    'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}},
                    'k:{"port":80,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}},
                },
                "f:type": {},
            }
        }
    }


def test_custom_resources_own_their_maps() -> None:
    obj = create(widget({"n": 1, "atomic": ["a"], "set": ["x"], "whole": {"a": "b"}, "nested": {}}), scope=WIDGETS)
    assert managers_of(obj)["m/U"] == {
        "f:spec": {
            ".": {},
            "f:atomic": {},
            "f:n": {},
            "f:nested": {},
            "f:set": {".": {}, 'v:"x"': {}},
            "f:whole": {},
        }
    }


def test_a_change_takes_ownership_and_what_is_gone_has_no_owner() -> None:
    live = create(config_map({"k": "v", "l": "w", "o": "p"}), "alice")
    new = update(live, changed(live, k="x", o=None, n="new"), "bob")
    assert managers_of(new) == {
        "alice/U": {"f:data": {".": {}, "f:l": {}}},
        "bob/U": {"f:data": {"f:k": {}, "f:n": {}}},
    }
    assert [entry["time"] for entry in new["metadata"]["managedFields"]] == [
        "2025-06-01T12:00:00Z",
        "2025-06-01T13:00:00Z",
    ]


def test_a_manager_left_without_fields_is_dropped() -> None:
    live = create(config_map({"k": "v"}), "alice")
    new = config_map(uid="u", managedFields=live["metadata"]["managedFields"])
    assert "managedFields" not in update(live, new, "bob")["metadata"]


def test_a_write_that_changes_nothing_keeps_all_times() -> None:
    live = create(config_map({"k": "v"}))
    assert update(live, copy.deepcopy(live), "other") == live


def test_a_removal_does_not_touch_the_time() -> None:
    live = create(config_map({"k": "v", "l": "w"}))
    new = update(live, changed(live, l=None))
    assert new["metadata"]["managedFields"][0]["time"] == "2025-06-01T12:00:00Z"


def test_clients_may_forget_the_managers_but_not_lose_them() -> None:
    live = create(config_map({"k": "v"}))
    new = config_map({"k": "v"}, uid="u")
    assert managers_of(update(live, new)) == managers_of(live)


@pytest.mark.parametrize("reset", [[], [{}], [{"manager": ""}]], ids=str)
def test_clients_may_clear_the_managers(reset: list[Object]) -> None:
    live = create(config_map({"k": "v"}))
    cleared = update(live, {**config_map({"k": "x"}), "metadata": {"name": "a", "uid": "u", "managedFields": reset}})
    assert "managedFields" not in cleared["metadata"]
    again = update(cleared, changed(cleared, k="y"))
    assert "managedFields" not in again["metadata"], "an unmanaged object stays so until it is applied"


def entry(**more: Any) -> Object:  # noqa: ANN401
    return {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}, **more}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry(operation="Patch")], "operation must be `Apply` or `Update`"),
        ([entry(apiVersion="")], "apiVersion must not be empty"),
        ([entry(fieldsType="")], "missing fieldsType in managed fields entry 0"),
        ([entry(), entry(fieldsType="V2")], 'invalid fieldsType "V2" in managed fields entry 1'),
        ([entry(fieldsV1={"bad": {}})], "missing colon: bad"),
        ([entry(manager=5)], "manager must be a string"),
        ([entry(time=5)], "time must be a string"),
        (
            [entry(time="yesterday")],
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
        ),
        ([5], "managedFields must be a list of objects"),
        ({}, "managedFields must be a list"),
        (None, ""),
        ([entry(time=None, manager=None, fieldsV1=None)], ""),
    ],
    ids=str,
)
def test_broken_managers_given_by_a_client_do_not_count(entries: Any, message: str) -> None:  # noqa: ANN401
    assert find_managed_fields_error(entries) == message
    if message:
        live = create(config_map({"k": "v"}))
        new = {**config_map({"k": "v"}), "metadata": {"name": "a", "uid": "u", "managedFields": entries}}
        assert managers_of(update(live, new)) == managers_of(live)


def test_managers_given_by_a_client_are_taken_and_put_in_form() -> None:
    live = create(config_map({"k": "v"}))
    given = [
        entry(manager="z", time="2025-01-01T02:00:00+02:00", fieldsV1={"f:data": {"f:k": {}, ".": {}}}),
        entry(manager="y", operation="Apply", fieldsV1={"f:data": {"f:k": {}}}),
    ]
    new = update(live, {**config_map({"k": "v"}), "metadata": {"uid": "u", "managedFields": given}})
    assert [found.get("time") for found in new["metadata"]["managedFields"]] == [None, "2025-01-01T00:00:00Z"]
    assert [*managers_of(new)] == ["y/A", "z/U"]
    broken = {**live, "metadata": {**live["metadata"], "managedFields": [5]}}
    assert "managedFields" not in update(broken, changed(broken, k="z"))["metadata"]


def test_a_subresource_keeps_its_own_entry_and_the_stored_managers() -> None:
    status = WriteScope(WIDGETS.gvk, WIDGET, subresource="status")
    live = create(widget({"n": 1}), scope=WIDGETS)
    new = {**copy.deepcopy(live), "status": {"x": 1}}
    new["metadata"]["managedFields"] = []
    update(live, new, scope=status)
    assert [found.get("subresource") for found in new["metadata"]["managedFields"]] == [None, "status"]
    assert new["metadata"]["managedFields"][1]["fieldsV1"] == {"f:status": {".": {}, "f:x": {}}}


def test_fields_that_the_endpoint_ignores_are_not_owned() -> None:
    main = WriteScope(WIDGETS.gvk, WIDGET, reset_fields=FieldSet.of(["status"]))
    obj = create(widget({"n": 1}, status={"x": 1}), scope=main)
    assert managers_of(obj) == {"m/U": {"f:spec": {".": {}, "f:n": {}}}}


def test_old_update_managers_are_thrown_together() -> None:
    live = create(config_map({"k0": "v"}), "m0")
    for number in range(1, 14):
        live = update(live, changed(live, **{f"k{number}": "v"}), f"m{number}")
    entries = live["metadata"]["managedFields"]
    assert len(entries) == 10
    assert entries[0]["manager"] == "ancient-changes"
    assert entries[0]["fieldsV1"] == {
        "f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k10": {}, "f:k11": {}, "f:k12": {}}
    }


def test_versions_have_their_own_buckets_and_few_are_left_alone() -> None:
    given = [entry(manager=f"m{n}", apiVersion=f"v{n}", fieldsV1={"f:data": {"f:k": {}}}) for n in range(1, 13)]
    live = create(config_map({"k": "v"}))
    new = update(live, {**config_map({"k": "v"}), "metadata": {"uid": "u", "managedFields": given}})
    assert len(new["metadata"]["managedFields"]) == 12, "only managers of the same version can share a bucket"


def test_other_versions_are_left_alone_without_a_converter() -> None:
    live = create(config_map({"k": "v"}))
    live["metadata"]["managedFields"].append(entry(apiVersion="v9", fieldsV1={"f:data": {"f:k": {}}}))
    new = update(live, changed(live, k="x"))
    assert managers_of(new)["x/U"] == {"f:data": {"f:k": {}}}


def test_other_versions_are_looked_at_with_a_converter() -> None:
    def convert(obj: Object, api_version: str) -> tuple[Object, MergeSchema] | None:
        return ({**obj, "apiVersion": api_version}, UNTYPED) if api_version == "g/v2" else None

    scope = WriteScope(GroupVersionKind("g", "v1", "W"), UNTYPED, convert=convert)
    live: Object = {"apiVersion": "g/v1", "kind": "W", "metadata": {"uid": "u"}, "spec": {"a": 1, "b": 1}}
    fields: Object = {"f:spec": {"f:a": {}, "f:b": {}}}
    live["metadata"]["managedFields"] = [
        entry(apiVersion="g/v2", fieldsV1=fields),
        entry(apiVersion="g/v3", fieldsV1=fields),
    ]
    new = update(live, {**copy.deepcopy(live), "spec": {"a": 2, "b": 1}}, scope=scope)
    assert managers_of(new) == {"x/U": {"f:spec": {"f:b": {}}}, "m/U": {"f:spec": {"f:a": {}}}}


def test_what_has_become_atomic_is_owned_as_a_whole() -> None:
    live = create(widget({"whole": {"a": "b"}, "atomic": ["a"], "free": {"a": {"b": 1}}, "s": "x"}), scope=WIDGETS)
    live["metadata"]["managedFields"][0]["fieldsV1"] = {
        "f:spec": {
            "f:whole": {"f:a": {}},
            "f:atomic": {".": {}, 'v:"a"': {}},
            "f:free": {"f:a": {"f:b": {}}},
            "f:map": {'k:{"name":"p"}': {".": {}, "f:port": {}}},
            "f:s": {"f:odd": {"f:x": {}}},
            'v:"odd"': {"f:x": {}},
        }
    }
    new = update(live, {**copy.deepcopy(live), "status": {"a": 1}}, "other", scope=WIDGETS)
    fields = managers_of(new)["m/U"]["f:spec"]
    assert (fields["f:whole"], fields["f:atomic"]) == ({}, {})
    assert fields["f:free"] == {"f:a": {"f:b": {}}}
    assert fields["f:map"] == {'k:{"name":"p"}': {".": {}, "f:port": {}}}


@pytest.mark.parametrize(
    ("old", "new", "owned"),
    [
        (1, True, {}),
        (1, 1.0, None),
        ("x", {"a": 1}, {".": {}, "f:a": {}}),
        ({"a": 1}, "x", {}),
        ({"a": 1}, None, None),
        (None, {"a": 1}, {"f:a": {}}),
        (None, {}, {}),
        ([1], {"a": 1}, {".": {}, "f:a": {}}),
        ({"a": 1}, [1], {}),
        ([True], [1], {}),
        ({"a": [1]}, {"a": [1]}, None),
        ([1], None, {}),
        ({}, {}, None),
    ],
    ids=str,
)
def test_changes_of_untyped_values(old: Any, new: Any, owned: Object | None) -> None:  # noqa: ANN401
    live = create(widget({"any": old}), "alice", scope=WIDGETS)
    after = update(live, {**copy.deepcopy(live), "spec": {"any": new}}, "bob", scope=WIDGETS)
    assert managers_of(after).get("bob/U") == (None if owned is None else {"f:spec": {"f:any": owned}})


@pytest.mark.parametrize(
    ("old", "new", "owned"),
    [
        (["a", "a"], ["a", "a"], None),
        (["a", "a"], ["a", "a", "a"], {'v:"a"': {}}),
        (["a", "a"], ["a"], {'v:"a"': {}}),
        (["a"], ["a", "a"], {'v:"a"': {}}),
        (["b"], ["b", "a", "a"], {'v:"a"': {}}),
        ([], ["a", "a"], {'v:"a"': {}}),
        (["a", "b"], ["b", "a"], None),
        (["a"], "text", None),
        ("text", ["a"], {'v:"a"': {}}),
    ],
    ids=str,
)
def test_changes_of_sets_with_repeated_items(old: Any, new: Any, owned: Object | None) -> None:  # noqa: ANN401
    live = create(widget({"set": old}), "alice", scope=WIDGETS)
    after = update(live, {**copy.deepcopy(live), "spec": {"set": new}}, "bob", scope=WIDGETS)
    assert managers_of(after).get("bob/U") == (None if owned is None else {"f:spec": {"f:set": owned}})


@pytest.mark.parametrize(
    "spec",
    [{"undeclared": 1}, {"set": [None]}, {"set": [{}]}, {"set": [[]]}, {"map": [None]}, {"map": ["x"]}, {"map": [{}]}],
    ids=str,
)
def test_what_does_not_fit_the_schema_has_no_managers(spec: Object) -> None:
    assert "managedFields" not in create(widget(spec), scope=WIDGETS)["metadata"]
    live = create(widget({"n": 1}), scope=WIDGETS)
    assert "managedFields" not in update(live, {**widget(spec), "metadata": {"uid": "u"}}, scope=WIDGETS)["metadata"]
    stale = {**live, "spec": spec}
    if "undeclared" in spec:
        assert "managedFields" not in update(stale, {**copy.deepcopy(live)}, scope=WIDGETS)["metadata"]


def test_objects_without_metadata_are_left_alone() -> None:
    obj: Object = {"metadata": 5}
    update_managed_fields(None, obj, CONFIG_MAPS, manager="m", now=NOW)
    assert obj == {"metadata": 5}
    deep: Object = config_map({"k": "v"}, uid="u")
    update_managed_fields({"metadata": None}, deep, CONFIG_MAPS, manager="m", now=NOW)
    assert managers_of(deep) == {"m/U": {"f:data": {".": {}, "f:k": {}}}}


def test_large_sets_take_linear_time() -> None:
    live = create(widget({"set": [f"a{n}" for n in range(10_000)]}), scope=WIDGETS)
    new = {**copy.deepcopy(live), "spec": {"set": [f"a{n}" for n in range(10_001)]}}
    assert managers_of(update(live, new, "other", scope=WIDGETS))["other/U"] == {
        "f:spec": {"f:set": {'v:"a10000"': {}}}
    }


def test_times_alone_are_not_worth_a_write() -> None:
    live = create(config_map({"k": "v"}))
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"][0]["time"] = "2025-06-01T14:00:00Z"
    ignore_timestamps(new, live)
    assert new == live


@pytest.mark.parametrize("change", ["data", "manager", "none"])
def test_times_stay_if_anything_else_changed(change: str) -> None:
    live = create(config_map({"k": "v"}))
    new = copy.deepcopy(live)
    new["metadata"]["managedFields"][0]["time"] = "2025-06-01T14:00:00Z"
    if change == "data":
        new["data"]["k"] = "x"
    elif change == "manager":
        new["metadata"]["managedFields"][0]["manager"] = "x"
    else:
        del new["metadata"]["managedFields"]
    expected = copy.deepcopy(new)
    ignore_timestamps(new, live)
    assert new == expected
