"""Roles, bindings, access reviews and token requests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kcp.auth.user import UserInfo
from kcp.registry.strategies import reviews
from kcp.registry.strategies.builtin import BUILTIN
from kcp.registry.strategy import WriteContext

if TYPE_CHECKING:
    from kcp.meta.codec import Object

CONTEXT = WriteContext("root", UserInfo("jane"), datetime(2025, 1, 1, tzinfo=UTC), lambda *_: True)
GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = BUILTIN[GROUP, "roles"], BUILTIN[GROUP, "clusterroles"]
BINDINGS, CLUSTER_BINDINGS = BUILTIN[GROUP, "rolebindings"], BUILTIN[GROUP, "clusterrolebindings"]
READ = {"apiGroups": [""], "resources": ["x"], "verbs": ["get"]}
REF = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "r"}


def make(**fields: Any) -> Object:  # noqa: ANN401
    return {"metadata": {"name": "a"}, **fields}


def texts(errors: list[Any]) -> list[str]:
    return list(map(str, errors))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (READ, []),
        ({**READ, "verbs": []}, ["rules[0].verbs: Required value: verbs must contain at least one value"]),
        (
            {"verbs": ["get"]},
            [
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ],
        ),
        (
            {**READ, "nonResourceURLs": ["/x"]},
            [
                'rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
                'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
                "rules cannot apply to both regular resources and non-resource URLs",
            ],
        ),
    ],
    ids=["valid", "no verbs", "no resources", "both"],
)
def test_rules(rule: Object, expected: list[str]) -> None:
    assert texts(ROLES.validate(make(rules=[rule]), CONTEXT)) == expected
    assert texts(ROLES.validate_update(make(rules=[rule]), make(), CONTEXT)) == expected


def test_cluster_roles_may_name_urls() -> None:
    assert CLUSTER_ROLES.validate(make(rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}]), CONTEXT) == []


def test_aggregation_rules() -> None:
    assert texts(CLUSTER_ROLES.validate(make(aggregationRule={}), CONTEXT)) == [
        "aggregationRule.clusterRoleSelectors: Required value: "
        "at least one clusterRoleSelector required if aggregationRule is non-nil"
    ]
    good = make(aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    assert CLUSTER_ROLES.validate(good, CONTEXT) == []
    expression = {"key": "a", "operator": "In", "values": ["b c"]}
    odd = make(aggregationRule={"clusterRoleSelectors": [{"matchExpressions": [expression]}]})
    fields = [
        "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values[0]",
        "aggregationRule.clusterRoleSelectors[0]",
    ]
    assert [error.field for error in CLUSTER_ROLES.validate_update(odd, good, CONTEXT)] == fields
    # What was stored before it was checked may stay; that it selects nothing is still said.
    found = CLUSTER_ROLES.validate_update(odd, odd, CONTEXT)
    assert texts(found) == [f"{fields[1]}: Invalid value: null: invalid label selector."]


def test_role_names_only_have_to_fit_into_a_path() -> None:
    assert ROLES.check_name("system:a B") == []
    assert ROLES.check_name("..") == ROLES.check_generate_name("..") == ["may not be '..'"]


def test_bindings_default_their_groups() -> None:
    binding = make(
        roleRef={"kind": "Role", "name": "r"},
        subjects=[
            {"kind": "User", "name": "u"},
            {"kind": "Group", "name": "g"},
            {"kind": "ServiceAccount", "name": "s"},
        ],
    )
    BINDINGS.default(binding)
    assert binding["roleRef"] == {"kind": "Role", "name": "r", "apiGroup": GROUP}
    assert [subject.get("apiGroup") for subject in binding["subjects"]] == [GROUP, GROUP, None]
    before = dict(binding)
    BINDINGS.default(binding)
    assert binding == before


def test_role_references() -> None:
    wrong = make(roleRef={"apiGroup": "x", "kind": "Nope"})
    assert texts(BINDINGS.validate(wrong, CONTEXT)) == [
        f'roleRef.apiGroup: Unsupported value: "x": supported values: "{GROUP}"',
        'roleRef.kind: Unsupported value: "Nope": supported values: "Role", "ClusterRole"',
        "roleRef.name: Required value",
    ]
    namespaced = make(roleRef={**REF, "kind": "Role", "name": "a/b"})
    assert texts(CLUSTER_BINDINGS.validate(namespaced, CONTEXT)) == [
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        "roleRef.name: Invalid value: \"a/b\": may not contain '/'",
    ]


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ({"kind": "User", "apiGroup": GROUP, "name": "u"}, []),
        ({"kind": "User", "name": "u"}, [f'apiGroup: Unsupported value: "": supported values: "{GROUP}"']),
        ({"kind": "Martian"}, ["name: Required value", 'kind: Unsupported value: "Martian": supported values: ']),
        (
            {"kind": "ServiceAccount", "apiGroup": "x", "name": "a"},
            ['apiGroup: Unsupported value: "x": supported values: ""', "namespace: Required value"],
        ),
        ({"kind": "ServiceAccount", "name": "a", "namespace": "n"}, []),
        ({"kind": "ServiceAccount", "name": "A", "namespace": "n"}, ['name: Invalid value: "A": a lowercase RFC']),
        ({"kind": "ServiceAccount", "namespace": "n"}, ["name: Required value"]),
    ],
    ids=["user", "group of user", "kind", "account", "valid account", "account name", "no name"],
)
def test_subjects(subject: Object, expected: list[str]) -> None:
    found = texts(CLUSTER_BINDINGS.validate(make(roleRef=REF, subjects=[subject]), CONTEXT))
    assert len(found) == len(expected)
    for text, start in zip(found, expected, strict=True):
        assert text.startswith(f"subjects[0].{start}")


def test_role_references_cannot_change() -> None:
    old, new = make(roleRef=REF), make(roleRef={**REF, "name": "other"})
    assert texts(BINDINGS.validate_update(new, old, CONTEXT)) == [
        f'roleRef: Invalid value: {{"APIGroup":"{GROUP}","Kind":"ClusterRole","Name":"other"}}: cannot change roleRef'
    ]
    assert BINDINGS.validate_update(old, old, CONTEXT) == []


CHOICE = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"user": "u", "resourceAttributes": {"verb": "get"}}, []),
        ({"groups": ["g"], "nonResourceAttributes": {"path": "/"}}, []),
        ({"user": "u"}, [f"spec.resourceAttributes: Invalid value: null: {CHOICE}"]),
        (
            {"resourceAttributes": {}, "nonResourceAttributes": {"path": "/x", "verb": "get"}},
            [
                'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: '
                "cannot be specified in combination with resourceAttributes",
                'spec.user: Invalid value: "": at least one of user or group must be specified',
            ],
        ),
    ],
    ids=["resource", "path", "neither", "both"],
)
def test_subject_access_reviews(spec: Object, expected: list[str]) -> None:
    assert texts(reviews.validate_subject_access_review({"spec": spec})) == expected


def test_reviews_have_no_metadata() -> None:
    owner = {"apiVersion": "v1", "kind": "X", "name": "n", "uid": "u"}
    metadata = {
        "namespace": "n",
        "ownerReferences": [owner],
        "managedFields": [{"operation": "Update", "manager": "m"}],
    }
    obj: Object = {"metadata": metadata, "spec": {"resourceAttributes": {}}}
    assert texts(reviews.validate_self_subject_access_review(obj)) == [
        'metadata: Invalid value: {"namespace":"n","ownerReferences":[{"apiVersion":"v1","kind":"X","name":"n",'
        '"uid":"u"}],"managedFields":[{"manager":"m","operation":"Update"}]}: must be empty'
    ]
    obj = {"metadata": {"managedFields": [{}], "labels": {}}, "spec": {"resourceAttributes": {}}}
    assert reviews.validate_self_subject_access_review(obj) == []


def test_local_reviews_stay_in_their_namespace() -> None:
    spec: Object = {"user": "u", "resourceAttributes": {"namespace": "m"}, "nonResourceAttributes": {}}
    found = reviews.validate_local_subject_access_review({"metadata": {"namespace": "n", "name": "x"}, "spec": spec})
    assert [error.detail for error in found] == [
        "cannot be specified in combination with resourceAttributes",
        "must be empty except for namespace",
        "must match metadata.namespace",
        "disallowed on this kind of request",
    ]
    good: Object = {"user": "u", "resourceAttributes": {"namespace": "n"}}
    assert reviews.validate_local_subject_access_review({"metadata": {"namespace": "n"}, "spec": good}) == []
    nowhere: Object = {"user": "u", "nonResourceAttributes": {}}
    assert len(reviews.validate_local_subject_access_review({"spec": nowhere})) == 1


def test_selectors_in_reviews() -> None:
    attributes = {
        "fieldSelector": {"rawSelector": "a=b", "requirements": [{"operator": "In"}, {"key": "a", "operator": "Odd"}]},
        "labelSelector": {},
    }
    found = texts(reviews.validate_self_subject_access_review({"spec": {"resourceAttributes": attributes}}))
    root = "spec.resourceAttributes"
    assert found == [
        f'{root}.fieldSelector.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements',
        f"{root}.fieldSelector.requirements[0].key: Required value: must be specified",
        f"{root}.fieldSelector.requirements[0].values: Required value: "
        "must be specified when `operator` is 'In' or 'NotIn'",
        f"{root}.labelSelector.requirements: Required value: "
        f"when {root}.labelSelector is specified, requirements or rawSelector is required",
    ]
    labels = {"labelSelector": {"requirements": [{"key": "a", "operator": "Exists", "values": ["x"]}]}}
    found = texts(reviews.validate_self_subject_access_review({"spec": {"resourceAttributes": labels}}))
    why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    assert found == [f"{root}.labelSelector.requirements[0].values: Forbidden: {why}"]


def test_token_requests_default_to_an_hour() -> None:
    obj: Object = {}
    reviews.default_token_request(obj)
    assert obj == {"spec": {"expirationSeconds": 3600}}
    kept: Object = {"spec": {"expirationSeconds": 700}}
    reviews.default_token_request(kept)
    assert kept["spec"] == {"expirationSeconds": 700}
