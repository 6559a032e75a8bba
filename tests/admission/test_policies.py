"""Validating admission policies: what they see, what they decide, and how they say it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcp.admission.attributes import Operation
from kcp.admission.matching import Matcher
from kcp.admission.policies import ValidatingAdmissionPolicy
from kcp.meta.errors import Forbidden, NotFound
from kcp.meta.gvk import GroupVersionKind, GroupVersionResource
from tests.admission.fakes import (
    ADMISSION,
    CLUSTER,
    OLD_WIDGET,
    OLD_WIDGETS,
    FakeAuthorizer,
    FakeKinds,
    FakeReader,
    widget,
    write,
)

RULE = {
    "apiGroups": ["conf.test"],
    "apiVersions": ["v1"],
    "resources": ["widgets"],
    "operations": ["CREATE", "UPDATE", "DELETE"],
}
SMALL = {"expression": "object.spec.n < 5"}


class Setup:
    """A logical cluster with a policy and what the policy needs."""

    def __init__(self) -> None:
        self.reader = FakeReader()
        self.reader.add_namespace("ns", metadata={"name": "ns", "labels": {"team": "a"}, "managedFields": []})
        self.authorizer = FakeAuthorizer()
        kinds = FakeKinds()
        matcher = Matcher(self.reader, kinds)
        self.plugin = ValidatingAdmissionPolicy(self.reader, kinds, matcher, self.authorizer.authorize)

    def policy(self, *validations: dict[str, Any], name: str = "p", **spec: Any) -> None:  # noqa: ANN401
        match = {"resourceRules": [RULE], "namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Equivalent"}
        full = {"failurePolicy": "Fail", "matchConstraints": match, "validations": list(validations)} | spec
        self.reader.add(ADMISSION, "validatingadmissionpolicies", {"metadata": {"name": name}, "spec": full})
        self.plugin.forget(CLUSTER, ADMISSION, "validatingadmissionpolicies")

    def bind(self, *actions: str, name: str = "b", policy: str = "p", **spec: Any) -> None:  # noqa: ANN401
        full = {"policyName": policy, "validationActions": list(actions or ("Deny",))} | spec
        self.reader.add(ADMISSION, "validatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": full})
        self.plugin.forget(CLUSTER, ADMISSION, "validatingadmissionpolicybindings")

    async def denied(self, obj: dict[str, Any] | None, **more: Any) -> str:  # noqa: ANN401
        """What the policy says against the write; nothing if it lets it pass."""
        try:
            await self.plugin.validate(write(obj, **more))
        except Forbidden as error:
            return error.message.partition(" denied request: ")[2]
        return ""


@pytest.fixture
def setup() -> Setup:
    return Setup()


async def test_a_denial_is_invalid_unless_the_policy_gives_a_reason(setup: Setup) -> None:
    setup.policy(SMALL)
    setup.bind()
    await setup.plugin.validate(write(widget(n=1)))
    with pytest.raises(Forbidden) as caught:
        await setup.plugin.validate(write(widget("b", n=9)))
    message = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: object.spec.n < 5"
    assert caught.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'widgets.conf.test "b" is forbidden: {message}',
        "reason": "Invalid",
        "details": {"name": "b", "group": "conf.test", "kind": "widgets", "causes": [{"message": message}]},
        "code": 422,
    }


@pytest.mark.parametrize(
    ("reason", "code"), [("Forbidden", 403), ("Unauthorized", 401), ("RequestEntityTooLarge", 413), ("Invalid", 422)]
)
async def test_the_reason_decides_the_code(setup: Setup, reason: str, code: int) -> None:
    setup.policy(SMALL | {"reason": reason, "message": " too large "})
    setup.bind()
    with pytest.raises(Forbidden, match=r"denied request: too large$") as caught:
        await setup.plugin.validate(write(widget(n=9)))
    assert (caught.value.reason, caught.value.code) == (reason, code)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({"messageExpression": "'n is ' + string(object.spec.n)"}, "n is 9"),
        ({"messageExpression": "object.spec.none", "message": "fixed"}, "fixed"),
        ({"messageExpression": "'  '", "message": "fixed"}, "fixed"),
        ({"messageExpression": "'a\\nb'"}, "failed expression: object.spec.n < 5"),
        ({"messageExpression": "[1,2,3,4,5,6].map(x, object.spec.long).join('')", "message": "fixed"}, "fixed"),
        ({"messageExpression": "1 +", "message": "fixed"}, "fixed"),
    ],
    ids=["made", "error", "blank", "lines", "long", "does not compile"],
)
async def test_messages_may_be_made_by_an_expression(setup: Setup, validation: dict[str, Any], message: str) -> None:
    setup.policy(SMALL | validation)
    setup.bind()
    assert await setup.denied(widget(n=9, long="y" * 1000)) == message


async def test_a_binding_may_warn_and_record_instead(setup: Setup) -> None:
    setup.policy({"expression": "true"}, SMALL | {"message": "large"})
    setup.bind("Warn", "Audit")
    a = write(widget(n=9))
    await setup.plugin.validate(a)
    assert a.warnings == ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': large"]
    recorded = json.loads(a.annotations["validation.policy.admission.k8s.io/validation_failure"])
    assert recorded == [
        {
            "message": "large",
            "policy": "p",
            "binding": "b",
            "expressionIndex": 1,
            "validationActions": ["Warn", "Audit"],
        }
    ]


async def test_a_policy_without_binding_does_nothing(setup: Setup) -> None:
    setup.policy(SMALL)
    assert not await setup.denied(widget(n=9))
    setup.bind(policy="another")
    assert not await setup.denied(widget(n=9))


async def test_errors_go_by_the_failure_policy(setup: Setup) -> None:
    setup.policy({"expression": "object.spec.s.size() > 0"})
    setup.bind()
    assert await setup.denied(widget(n=1)) == (
        "expression 'object.spec.s.size() > 0' resulted in error: no such key: s"
    )
    setup.policy({"expression": "object.spec.s.size() > 0"}, failurePolicy="Ignore")
    assert not await setup.denied(widget(n=1))


async def test_an_expression_that_no_longer_compiles_is_an_error(setup: Setup) -> None:
    setup.policy({"expression": "nothing"})
    setup.bind()
    assert (await setup.denied(widget())).startswith("compilation error: compilation failed: ERROR: <input>:1:1:")


async def test_match_conditions_come_first(setup: Setup) -> None:
    condition = {"name": "named", "expression": "object.metadata.name.startsWith('p')"}
    setup.policy(SMALL, matchConditions=[condition])
    setup.bind()
    assert not await setup.denied(widget("a", n=9))
    assert await setup.denied(widget("pb", n=9))


async def test_match_conditions_that_fail_deny_with_all_their_errors(setup: Setup) -> None:
    conditions = [{"name": name, "expression": f"object.spec.{name} == 1"} for name in ("x", "y")]
    setup.policy(SMALL, matchConditions=conditions)
    setup.bind()
    assert await setup.denied(widget(n=1)) == (
        "[expression 'object.spec.x == 1' resulted in error: no such key: x, "
        "expression 'object.spec.y == 1' resulted in error: no such key: y]"
    )
    setup.policy(SMALL, matchConditions=conditions, failurePolicy="Ignore")
    assert not await setup.denied(widget(n=9))
    setup.policy(SMALL, matchConditions=[*conditions, {"name": "z", "expression": "false"}])
    assert not await setup.denied(widget(n=9))


async def test_variables_are_computed_when_they_are_used(setup: Setup) -> None:
    variables = [
        {"name": "double", "expression": "object.spec.n * 2"},
        {"name": "quad", "expression": "variables.double * 2"},
        {"name": "broken", "expression": "object.spec.none"},
        {"name": "wrong", "expression": "none"},
    ]
    setup.policy({"expression": "variables.quad < 20 || variables.broken"}, variables=variables)
    setup.bind()
    assert not await setup.denied(widget(n=4))
    assert await setup.denied(widget(n=5)) == (
        "expression 'variables.quad < 20 || variables.broken' resulted in error: "
        'composited variable "broken" fails to evaluate: no such key: none'
    )
    setup.policy({"expression": "variables.wrong"}, variables=variables)
    assert "compilation error" in await setup.denied(widget(n=5))
    setup.policy({"expression": "variables.wrong == 1"}, variables=variables)
    assert 'composited variable "wrong" fails to compile: compilation failed: ERROR' in await setup.denied(widget())


async def test_variables_cannot_grow_without_end(setup: Setup) -> None:
    doubled = [{"name": f"v{n + 1}", "expression": f"variables.v{n} + variables.v{n}"} for n in range(24)]
    variables = [{"name": "v0", "expression": "object.metadata.name + 'x'"}, *doubled]
    setup.policy({"expression": "variables.v24.size() > 0"}, variables=variables)
    setup.bind()
    assert "operation cancelled: actual cost limit exceeded" in await setup.denied(widget())


async def test_deletions_have_an_old_object_only(setup: Setup) -> None:
    setup.policy({"expression": "request.operation != 'DELETE' || (object == null && oldObject.spec.n < 5)"})
    setup.bind()
    assert not await setup.denied(None, operation=Operation.DELETE, old_obj=widget(n=1), name="a")
    assert await setup.denied(None, operation=Operation.DELETE, old_obj=widget(n=9), name="a")


async def test_expressions_see_the_request_and_the_namespace(setup: Setup) -> None:
    setup.policy(
        {"expression": "request.userInfo.username == 'jane' && 'devs' in request.userInfo.groups"},
        {"expression": "request.userInfo.extra['scope'] == ['a', 'b'] && request.kind.kind == 'Widget'"},
        {"expression": "request.dryRun == false && request.name == 'a' && request.namespace == 'ns'"},
        {"expression": "namespaceObject.metadata.labels['team'] == 'a' && namespaceObject.status.phase == 'Active'"},
    )
    setup.bind()
    assert not await setup.denied(widget())


async def test_expressions_may_ask_for_permissions(setup: Setup) -> None:
    setup.policy(
        {"expression": "authorizer.requestResource.check('use').allowed()", "message": "1"},
        {"expression": "authorizer.path('/x').check('get').reason() == 'listed'", "message": "2"},
        {
            "expression": "authorizer.serviceAccount('ns', 'sa').group('').resource('pods').check('get').allowed()",
            "message": "3",
        },
    )
    setup.bind()
    assert await setup.denied(widget()) == "1"
    setup.authorizer.allowed = {("jane", "use", "widgets", "a"), ("jane", "get", "/x", "")}
    assert await setup.denied(widget()) == "3"
    setup.authorizer.allowed.add(("system:serviceaccount:ns:sa", "get", "pods", ""))
    assert not await setup.denied(widget())


async def test_an_equivalent_version_is_converted_for_the_policy(setup: Setup) -> None:
    setup.policy(SMALL)
    setup.bind()
    old = widget(size=9) | {"apiVersion": "conf.test/v1beta1"}
    assert await setup.denied(old, gvr=OLD_WIDGETS, gvk=OLD_WIDGET)
    exact = {"resourceRules": [RULE], "matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}}
    setup.policy(SMALL, matchConstraints=exact)
    assert not await setup.denied(old, gvr=OLD_WIDGETS, gvk=OLD_WIDGET)


async def test_bindings_may_narrow_what_the_policy_matches(setup: Setup) -> None:
    setup.policy(SMALL)
    setup.bind(matchResources={"objectSelector": {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]}})
    assert not await setup.denied(widget(labels={"free": "yes"}, n=9))
    assert await setup.denied(widget(n=9))


async def test_policies_are_not_asked_about_policies(setup: Setup) -> None:
    everything = {key: ["*"] for key in ("apiGroups", "apiVersions", "resources", "operations")}
    setup.policy({"expression": "false"}, matchConstraints={"resourceRules": [everything]})
    setup.bind()
    more = {
        "gvr": GroupVersionResource(ADMISSION, "v1", "validatingadmissionpolicies"),
        "gvk": GroupVersionKind(ADMISSION, "v1", "ValidatingAdmissionPolicy"),
        "namespace": "",
    }
    assert not await setup.denied({"metadata": {"name": "x"}}, **more)
    assert await setup.denied(widget())


async def test_a_namespace_that_is_gone_is_not_found(setup: Setup) -> None:
    setup.policy(SMALL)
    setup.bind()
    with pytest.raises(NotFound):
        await setup.plugin.validate(write(widget(n=1), namespace="gone"))


class TestParams:
    @pytest.fixture
    def setup(self, setup: Setup) -> Setup:
        setup.reader.add("conf.test", "widgets", widget("limits", n=5))
        setup.reader.add("conf.test", "widgets", widget("more", labels={"kind": "limit"}, n=7))
        setup.policy(
            {"expression": "object.spec.n < params.spec.n", "messageExpression": "'over ' + string(params.spec.n)"},
            paramKind={"apiVersion": "conf.test/v1", "kind": "Widget"},
        )
        return setup

    async def test_are_found_by_name(self, setup: Setup) -> None:
        setup.bind(paramRef={"name": "limits", "namespace": "ns", "parameterNotFoundAction": "Deny"})
        assert not await setup.denied(widget(n=4))
        assert await setup.denied(widget(n=6)) == "over 5"

    async def test_are_found_by_label_in_the_namespace_of_the_write(self, setup: Setup) -> None:
        setup.bind(paramRef={"selector": {"matchLabels": {"kind": "limit"}}, "parameterNotFoundAction": "Allow"})
        assert not await setup.denied(widget(n=6))
        assert await setup.denied(widget(n=7)) == "over 7"

    @pytest.mark.parametrize(
        ("action", "message"),
        [
            (
                "Deny",
                "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
            ),
            ("Allow", ""),
        ],
    )
    async def test_that_are_missing_deny_or_allow(self, setup: Setup, action: str, message: str) -> None:
        setup.bind(paramRef={"name": "none", "parameterNotFoundAction": action})
        assert await setup.denied(widget(n=6)) == message

    async def test_may_be_left_out_by_the_binding(self, setup: Setup) -> None:
        setup.bind()
        assert "no such" in await setup.denied(widget(n=6))

    async def test_of_a_kind_with_namespaces_need_one(self, setup: Setup) -> None:
        setup.bind(paramRef={"name": "limits"})
        assert "cannot use namespaced paramRef" in await setup.denied(widget(n=6), namespace="")

    async def test_of_a_kind_without_namespaces_may_not_name_one(self, setup: Setup) -> None:
        kind = {"apiVersion": "conf.test/v1", "kind": "Limit"}
        setup.policy({"expression": "object.spec.n < params.spec.n"}, paramKind=kind)
        setup.bind(paramRef={"name": "all", "namespace": "ns"})
        assert "paramRef.namespace must not be provided" in await setup.denied(widget(n=6))
        setup.bind(paramRef={"name": "all"})
        setup.reader.add("conf.test", "limits", {"metadata": {"name": "all"}, "spec": {"n": 9}})
        assert not await setup.denied(widget(n=6))

    async def test_of_an_unknown_kind_deny(self, setup: Setup) -> None:
        setup.policy(SMALL, paramKind={"apiVersion": "x/v1", "kind": "Y"})
        setup.bind(paramRef={"name": "z"})
        assert await setup.denied(widget(n=1)) == (
            "failed to configure binding: failed to find resource referenced by paramKind: 'x/v1, Kind=Y'"
        )
        setup.policy(SMALL, paramKind={"apiVersion": "x/v1", "kind": "Y"}, failurePolicy="Ignore")
        assert not await setup.denied(widget(n=9))


class TestAuditAnnotations:
    async def test_are_collected_over_bindings(self, setup: Setup) -> None:
        for name in ("one", "two"):
            setup.reader.add("", "configmaps", {"metadata": {"name": name, "namespace": "ns"}, "data": {"v": name}})
            setup.bind(name=name, paramRef={"name": name, "namespace": "ns"})
        annotations = [
            {"key": "seen", "valueExpression": "params.data.v + '!'"},
            {"key": "same", "valueExpression": "'same'"},
            {"key": "blank", "valueExpression": "''"},
            {"key": "none", "valueExpression": "null"},
        ]
        setup.policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, auditAnnotations=annotations)
        a = write(widget())
        await setup.plugin.validate(a)
        assert a.annotations == {"p/seen": "one!, two!", "p/same": "same"}

    async def test_that_fail_deny(self, setup: Setup) -> None:
        setup.policy(auditAnnotations=[{"key": "x", "valueExpression": "object.spec.x + 'a'"}])
        setup.bind()
        assert "no such key: x" in await setup.denied(widget())
        setup.policy(auditAnnotations=[{"key": "x", "valueExpression": "object.spec.x + 'a'"}], failurePolicy="Ignore")
        assert not await setup.denied(widget())

    async def test_of_another_type_deny(self, setup: Setup) -> None:
        setup.policy(auditAnnotations=[{"key": "x", "valueExpression": "object.spec.n"}])
        setup.bind()
        assert await setup.denied(widget(n=1)) == (
            "valueExpression 'object.spec.n' resulted in unsupported return type: int. "
            "Return type must be either string or null."
        )
