"""ResourceQuotas and LimitRanges."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kcp.auth.user import UserInfo
from kcp.registry.strategies import resource_names
from kcp.registry.strategies.builtin import BUILTIN
from kcp.registry.strategy import WriteContext

if TYPE_CHECKING:
    from kcp.meta.codec import Object

CONTEXT = WriteContext("root", UserInfo("jane"), datetime(2025, 1, 1, tzinfo=UTC), lambda *_: True)
QUOTAS = BUILTIN["", "resourcequotas"]
LIMIT_RANGES = BUILTIN["", "limitranges"]


def make(**spec: Any) -> Object:  # noqa: ANN401
    return {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}, "spec": spec}


def complaints(obj: Object) -> list[str]:
    strategy = LIMIT_RANGES if "limits" in obj["spec"] else QUOTAS
    return list(map(str, strategy.validate(obj, CONTEXT)))


STANDARD = "must be a standard resource type or fully qualified"
QUOTA = "must be a standard resource for quota"
CONFLICT = "conflicting scopes"
MISAPPLIED = "unsupported scope applied to resource"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"hard": {"cpu": "1", "count/secrets": "3", "requests.hugepages-2Mi": "1"}}, [], id="valid"),
        pytest.param(
            {"hard": {"x": "-1"}},
            [
                f'spec.hard[x]: Invalid value: "x": {STANDARD}',
                f'spec.hard[x]: Invalid value: "x": {QUOTA}',
                'spec.hard[x]: Invalid value: "-1": must be greater than or equal to 0',
            ],
            id="unknown name and negative amount",
        ),
        pytest.param(
            {"hard": {"storage": "1"}}, [f'spec.hard[storage]: Invalid value: "storage": {QUOTA}'], id="storage"
        ),
        pytest.param(
            {"hard": {"pods": "500m", "count/x": "1500m"}},
            [
                'spec.hard[pods]: Invalid value: "500m": must be an integer',
                'spec.hard[count/x]: Invalid value: "1500m": must be an integer',
            ],
            id="counted in wholes",
        ),
        pytest.param(
            {"hard": {"cpu": "1"}, "scopes": ["BestEffort", "NotBestEffort", "Odd"]},
            [
                f'spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Odd"]: {MISAPPLIED}',
                'spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Odd"]: unsupported scope',
                f'spec.scopes: Invalid value: ["BestEffort","NotBestEffort","Odd"]: {CONFLICT}',
            ],
            id="scopes",
        ),
    ],
)
def test_quota_spec(spec: Object, expected: list[str]) -> None:
    assert complaints(make(**spec)) == expected


def test_quota_scope_selectors() -> None:
    good = {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}
    assert complaints(make(scopeSelector={"matchExpressions": [good]})) == []
    wrong = [
        {"scopeName": "Odd", "operator": "Like"},
        {"scopeName": "PriorityClass", "operator": "NotIn"},
        {"scopeName": "Terminating", "operator": "DoesNotExist", "values": ["x"]},
        {"scopeName": "NotTerminating", "operator": "Exists"},
    ]
    found = complaints(make(scopeSelector={"matchExpressions": wrong}))
    root = "spec.scopeSelector.matchExpressions"
    assert found == [
        f'{root}.scopeName: Invalid value: "Odd": unsupported scope',
        f'{root}.operator: Invalid value: "Like": not a valid selector operator',
        f"{root}.values: Required value: "
        "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
        f"{root}.operator: Invalid value: \"DoesNotExist\": must be 'Exists' when scope is any of "
        "ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
        "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
        f'{root}.values: Invalid value: ["x"]: '
        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        f"{root}: Invalid value: null: {CONFLICT}",
    ]


def test_quota_scope_selectors_are_printed_as_go_prints_them() -> None:
    expressions = [{"scopeName": "BestEffort", "operator": "Exists"}]
    found = complaints(make(hard={"cpu": "1"}, scopeSelector={"matchExpressions": expressions}))
    shown = '{"MatchExpressions":[{"ScopeName":"BestEffort","Operator":"Exists","Values":null}]}'
    assert found == [f"spec.scopeSelector.matchExpressions: Invalid value: {shown}: {MISAPPLIED}"]


def test_quota_scopes_cannot_change() -> None:
    old = make(hard={"pods": "1"}, scopes=["BestEffort"])
    assert QUOTAS.validate_update(make(hard={"pods": "2"}, scopes=["BestEffort"]), old, CONTEXT) == []
    assert list(map(str, QUOTAS.validate_update(make(hard={"pods": "1"}), old, CONTEXT))) == [
        "spec.scopes: Invalid value: null: field is immutable"
    ]


def test_quota_status_is_written_apart() -> None:
    obj = make(hard={"pods": "1"}) | {"status": {"hard": {"pods": "1"}}}
    QUOTAS.prepare_for_create(obj, CONTEXT)
    assert obj["status"] == {}
    changed = make(hard={"pods": "2"}) | {"status": {"hard": {"odd": "1"}, "used": {"pods": "-1"}}}
    QUOTAS.prepare_for_update(changed, obj, CONTEXT)
    assert changed["status"] == {}
    status = QUOTAS.subresource("status")
    assert status is not None
    changed = make(hard={"pods": "2"}) | {"status": {"hard": {"odd": "1"}, "used": {"pods": "-1"}}}
    status.prepare_for_update(changed, obj, CONTEXT)
    assert changed["spec"] == {"hard": {"pods": "1"}}
    del changed["metadata"]["resourceVersion"]
    assert [error.field for error in status.validate_update(changed, obj, CONTEXT)] == [
        "resourceVersion",
        "status.hard[odd]",
        "status.hard[odd]",
        "status.used[pods]",
    ]


def test_quotas_are_rounded_up_to_thousandths() -> None:
    obj = make(hard={"cpu": "1u", "memory": "1Gi"}) | {"status": {"used": {"cpu": "2500u"}}}
    QUOTAS.default(obj)
    assert obj["spec"]["hard"] == {"cpu": "1m", "memory": "1Gi"}
    assert obj["status"]["used"] == {"cpu": "3m"}


def test_quotas_warn_when_requests_exceed_limits() -> None:
    hard = {"cpu": "2", "limits.cpu": "1", "requests.storage": "1", "requests.memory": "1Gi", "limits.memory": "2Gi"}
    assert QUOTAS.warnings_on_create(make(hard=hard), CONTEXT) == [
        "ResourceQuota cpu (2) should be less than limits.cpu (1)"
    ]


@pytest.mark.parametrize(
    ("name", "is_native", "is_extended", "can_overcommit"),
    [
        ("cpu", True, False, True),
        ("hugepages-2Mi", True, False, False),
        ("kubernetes.io/x", True, False, True),
        ("example.com/gpu", False, True, False),
        ("requests.example.com/gpu", False, False, False),
    ],
)
def test_resource_names(name: str, is_native: bool, is_extended: bool, can_overcommit: bool) -> None:
    assert resource_names.is_native(name) is is_native
    assert resource_names.is_extended(name) is is_extended
    assert resource_names.can_overcommit(name) is can_overcommit


def test_limits_of_containers_default_to_each_other() -> None:
    item = {"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"pods": "1"}, "default": {"cpu": "1"}}
    obj = make(limits=[item, {"type": "Pod", "max": {"cpu": "1"}}, {"type": "Container"}])
    LIMIT_RANGES.default(obj)
    assert item["default"] == {"cpu": "1", "memory": "1Gi"}
    assert item["defaultRequest"] == {"cpu": "1", "memory": "1Gi", "pods": "1"}
    assert obj["spec"]["limits"][1:] == [{"type": "Pod", "max": {"cpu": "1"}}, {"type": "Container"}]


def test_limit_ranges_without_a_name_get_one() -> None:
    obj: Object = {"metadata": {}, "spec": {"limits": []}}
    LIMIT_RANGES.prepare_for_create(obj, CONTEXT)
    assert len(obj["metadata"]["name"]) == 36
    kept = make(limits=[])
    LIMIT_RANGES.prepare_for_create(kept, CONTEXT)
    assert kept["metadata"]["name"] == "a"


ROOT = "spec.limits[0]"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param({"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "1"}}, [], id="valid"),
        pytest.param({"type": "x.io/y", "max": {"storage": "1"}}, [], id="type of one's own"),
        pytest.param(
            {"type": "Odd"},
            [f'{ROOT}.type: Invalid value: "Odd": must be a standard limit type or fully qualified'],
            id="unknown type",
        ),
        pytest.param(
            {"type": "Pod", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}},
            [
                f"{ROOT}.default: Forbidden: may not be specified when `type` is 'Pod'",
                f"{ROOT}.defaultRequest: Forbidden: may not be specified when `type` is 'Pod'",
            ],
            id="pods have no defaults",
        ),
        pytest.param(
            {"type": "PersistentVolumeClaim", "max": {"cpu": "1"}},
            [
                f"{ROOT}.limits: Required value: either minimum or maximum storage value is required, "
                "but neither was provided"
            ],
            id="claims need storage",
        ),
        pytest.param({"type": "PersistentVolumeClaim", "min": {"storage": "1"}}, [], id="claims"),
        pytest.param(
            {"type": "Container", "max": {"pods": "1", "requests.a/b": "1"}},
            [
                f'{ROOT}.max[pods]: Invalid value: "pods": must be a standard resource for containers',
                f'{ROOT}.max[requests.a/b]: Invalid value: "requests.a/b": '
                "doesn't follow extended resource name standard",
            ],
            id="resources of containers",
        ),
        pytest.param(
            {
                "type": "Container",
                "max": {"cpu": "1"},
                "min": {"cpu": "4"},
                "default": {"cpu": "2"},
                "defaultRequest": {"cpu": "3"},
            },
            [
                f'{ROOT}.min[cpu]: Invalid value: "4": min value 4 is greater than max value 1',
                f'{ROOT}.defaultRequest[cpu]: Invalid value: "3": min value 4 is greater than default request value 3',
                f'{ROOT}.defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than max value 1',
                f'{ROOT}.defaultRequest[cpu]: Invalid value: "3": '
                "default request value 3 is greater than default limit value 2",
                f'{ROOT}.default[cpu]: Invalid value: "4": min value 4 is greater than default value 2',
                f'{ROOT}.default[cpu]: Invalid value: "1": default value 2 is greater than max value 1',
            ],
            id="out of order",
        ),
        pytest.param(
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}},
            [f'{ROOT}.maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
            id="ratio below one",
        ),
        pytest.param(
            {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "3"}, "maxLimitRequestRatio": {"cpu": "2"}},
            [f'{ROOT}.maxLimitRequestRatio[cpu]: Invalid value: "2": ratio 2 is greater than max/min = 1.500000'],
            id="ratio out of reach",
        ),
        pytest.param(
            {"type": "Pod", "min": {"cpu": "0"}, "max": {"cpu": "9E"}, "maxLimitRequestRatio": {"cpu": "2"}},
            [],
            id="ratio to nothing",
        ),
        pytest.param(
            {"type": "Container", "default": {"a/b": "2"}, "defaultRequest": {"a/b": "1"}},
            [
                f'{ROOT}.defaultRequest[a/b]: Invalid value: "1": '
                "default value 2 must equal to defaultRequest value 1 in a/b"
            ],
            id="no overcommit of extended resources",
        ),
    ],
)
def test_limits(item: Object, expected: list[str]) -> None:
    assert complaints(make(limits=[item])) == expected


def test_each_type_is_limited_once() -> None:
    assert complaints(make(limits=[{"type": "Pod"}, {"type": "Pod"}])) == [
        'spec.limits[1].type: Duplicate value: "Pod"'
    ]
