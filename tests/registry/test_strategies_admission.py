"""Webhook configurations, admission policies and their bindings."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from kcp.auth.user import UserInfo
from kcp.meta.field import FieldPath
from kcp.registry.strategies.builtin import BUILTIN, make_builtin
from kcp.registry.strategies.conditions import validate_conditions
from kcp.registry.strategies.expressions import Expression, ExpressionKind, trust_expression
from kcp.registry.strategies.webhookconfigurations import validate_webhook_service, validate_webhook_url
from kcp.registry.strategy import WriteContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.meta.codec import Object

CONTEXT = WriteContext("root", UserInfo("jane"), datetime(2025, 1, 1, tzinfo=UTC), lambda *_: True)
GROUP = "admissionregistration.k8s.io"
RULE = {"apiGroups": ["g"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["x"], "scope": "*"}
FORM = "; desired format: https://host[/path]"


def texts(errors: list[Any]) -> list[str]:
    return list(map(str, errors))


def hook(**fields: Any) -> Object:  # noqa: ANN401
    filled = {
        "name": "hook.conf.test",
        "clientConfig": {"url": "https://h/x"},
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return copy.deepcopy(filled | fields)


def configuration(*hooks: Object) -> Object:
    return {"metadata": {"name": "a"}, "webhooks": list(hooks)}


def check_hook(**fields: Any) -> list[str]:  # noqa: ANN401
    strategy = BUILTIN[GROUP, "mutatingwebhookconfigurations"]
    obj = configuration(hook(**fields))
    strategy.default(obj)
    return texts(strategy.validate(obj, CONTEXT))


def test_webhook_defaults() -> None:
    obj = configuration(
        hook(clientConfig={"service": {"namespace": "n", "name": "s"}}, rules=[{**RULE, "scope": None}])
    )
    BUILTIN[GROUP, "mutatingwebhookconfigurations"].default(obj)
    (found,) = obj["webhooks"]
    assert found["clientConfig"]["service"]["port"] == 443
    assert found["rules"][0]["scope"] == "*"
    defaulted = ("failurePolicy", "matchPolicy", "namespaceSelector", "objectSelector", "timeoutSeconds")
    assert [found[field] for field in defaulted] == ["Fail", "Equivalent", {}, {}, 10]
    assert found["reinvocationPolicy"] == "Never"
    validating = configuration(hook(failurePolicy="Ignore", timeoutSeconds=3, matchPolicy="Exact"))
    BUILTIN[GROUP, "validatingwebhookconfigurations"].default(validating)
    assert "reinvocationPolicy" not in validating["webhooks"][0]
    assert validating["webhooks"][0]["failurePolicy"] == "Ignore"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"name": ""}, ["name: Required value"], id="no name"),
        pytest.param({"name": "A.b.c"}, ['name: Invalid value: "A.b.c": a lowercase RFC 1123 subdomain'], id="name"),
        pytest.param(
            {"name": "two.parts"},
            ['name: Invalid value: "two.parts": should be a domain with at least three segments separated by dots'],
            id="short name",
        ),
        pytest.param(
            {"sideEffects": None},
            ["sideEffects: Required value: must specify one of None, NoneOnDryRun"],
            id="no side effects",
        ),
        pytest.param(
            {"sideEffects": "Some"},
            ['sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
            id="side effects",
        ),
        pytest.param(
            {"failurePolicy": "x", "matchPolicy": "<", "reinvocationPolicy": "z"},
            [
                'failurePolicy: Unsupported value: "x": supported values: "Fail", "Ignore"',
                'matchPolicy: Unsupported value: "\\u003c": supported values: "Equivalent", "Exact"',
                'reinvocationPolicy: Unsupported value: "z": supported values: "IfNeeded", "Never"',
            ],
            id="choices",
        ),
        pytest.param(
            {"timeoutSeconds": 31},
            ["timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"],
            id="timeout",
        ),
        pytest.param(
            {"clientConfig": {}},
            ["clientConfig: Required value: exactly one of url or service is required"],
            id="nowhere",
        ),
        pytest.param(
            {"admissionReviewVersions": []},
            ["admissionReviewVersions: Required value: must specify one of v1, v1beta1"],
            id="no versions",
        ),
        pytest.param(
            {"admissionReviewVersions": ["v2", "v2"]},
            [
                'admissionReviewVersions[1]: Invalid value: "v2": duplicate version',
                'admissionReviewVersions: Invalid value: ["v2","v2"]: must include at least one of v1, v1beta1',
            ],
            id="versions",
        ),
        pytest.param(
            {"objectSelector": {"matchExpressions": [{"key": "k", "operator": "Odd"}]}},
            ['objectSelector.matchExpressions[0].operator: Invalid value: "Odd": not a valid selector operator'],
            id="selector",
        ),
        pytest.param(
            {"matchConditions": [{"name": "", "expression": " "}, {"name": "x", "expression": "true"}] * 2},
            [
                "matchConditions[0].expression: Required value",
                "matchConditions[0].name: Required value",
                "matchConditions[2].expression: Required value",
                "matchConditions[2].name: Required value",
                'matchConditions[3].name: Duplicate value: "x"',
            ],
            id="match conditions",
        ),
    ],
)
def test_webhooks(fields: Object, expected: list[str]) -> None:
    found = check_hook(**fields)
    assert len(found) == len(expected)
    assert all(text.startswith(f"webhooks[0].{start}") for text, start in zip(found, expected, strict=True))


def test_too_many_match_conditions() -> None:
    many = [{"name": f"x{number}", "expression": "true"} for number in range(65)]
    assert check_hook(matchConditions=many) == ["webhooks[0].matchConditions: Too many: 65: must have at most 64 items"]


def test_webhook_names_are_unique() -> None:
    strategy = BUILTIN[GROUP, "validatingwebhookconfigurations"]
    twice = configuration(hook(), hook())
    assert texts(strategy.validate(twice, CONTEXT)) == ['webhooks[1].name: Duplicate value: "hook.conf.test"']
    assert strategy.validate_update(twice, twice, CONTEXT) == []


def test_what_was_stored_before_it_was_checked_may_stay() -> None:
    strategy = BUILTIN[GROUP, "validatingwebhookconfigurations"]
    exists = {"key": "k", "operator": "Exists"}
    selector = {"matchExpressions": [exists, {"key": "k", "operator": "In", "values": ["a b"]}]}
    conditions = [{"name": "a b", "expression": ""}]
    odd = hook(sideEffects="Some", admissionReviewVersions=["v9"], objectSelector=selector, matchConditions=conditions)
    assert len(strategy.validate(configuration(odd), CONTEXT)) == 5
    assert strategy.validate_update(configuration(odd), configuration(odd), CONTEXT) == []
    assert strategy.spec_of(configuration(odd)) == [odd]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"operations": []}, ["operations: Required value"]),
        (
            {"operations": ["*", "CREATE"]},
            ['operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations'],
        ),
        (
            {"operations": ["GET"]},
            ['operations[0]: Unsupported value: "GET": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"'],
        ),
        ({"apiGroups": []}, ["apiGroups: Required value"]),
        ({"apiVersions": [""]}, ["apiVersions[0]: Required value"]),
        ({"scope": "Odd"}, ['scope: Unsupported value: "Odd": supported values: "*", "Cluster", "Namespaced"']),
        ({"resources": []}, ["resources: Required value"]),
        ({"resources": [""]}, ["resources[0]: Required value"]),
        (
            {"resources": ["a/*", "a/b"]},
            ["resources[1]: Invalid value: \"a/b\": if 'a/*' is present, must not specify a/b"],
        ),
        (
            {"resources": ["*/b", "a/b"]},
            ["resources[1]: Invalid value: \"a/b\": if '*/b' is present, must not specify a/b"],
        ),
        (
            {"resources": ["*/*", "a"]},
            ['resources: Invalid value: ["*/*","a"]: if \'*/*\' is present, must not specify other resources'],
        ),
        (
            {"resources": ["*", "a"]},
            [
                'resources: Invalid value: ["*","a"]: '
                "if '*' is present, must not specify other resources without subresources"
            ],
        ),
    ],
)
def test_rules(rule: Object, expected: list[str]) -> None:
    assert check_hook(rules=[{**RULE, **rule}]) == [f"webhooks[0].rules[0].{text}" for text in expected]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h:8080/a/b/", []),
        ("https://[::1]:80/x", []),
        ("http://h", [f"x: Invalid value: \"http\": 'https' is the only allowed URL scheme{FORM}"]),
        (
            "//h/x",
            [f"x: Invalid value: \"\": 'https' is the only allowed URL scheme{FORM}"],
        ),
        ("https://", [f'x: Invalid value: "": host must be specified{FORM}']),
        ("https:///x", [f'x: Invalid value: "": host must be specified{FORM}']),
        ("https:x", [f'x: Invalid value: "": host must be specified{FORM}']),
        (
            "https://u:p@h/x?y#z",
            [
                'x: Invalid value: "u:p": user information is not permitted in the URL',
                'x: Invalid value: "z": fragments are not permitted in the URL',
                'x: Invalid value: "y": query parameters are not permitted in the URL',
            ],
        ),
        (":x", ['parse ":x": missing protocol scheme']),
        ("1:b", ['parse "1:b": first path segment in URL cannot contain colon']),
        ("https://h\x01", ['parse "https://h\\x01": net/url: invalid control character in URL']),
        ("https://us er@h/", ['parse "https://us er@h/": net/url: invalid userinfo']),
        ("https://h:x/", ['parse "https://h:x/": invalid port ":x" after host']),
        ("https://[::1/", ["parse \"https://[::1/\": missing ']' in host"]),
        ("https://a b/", ['parse "https://a b/": invalid character " " in host name']),
        ("https://%41/", ['parse "https://%41/": invalid URL escape "%41"']),
        ("https://u%zz@h/", ['parse "https://u%zz@h/": invalid URL escape "%zz"']),
        ("https://h/%zz", ['parse "https://h/%zz": invalid URL escape "%zz"']),
    ],
)
def test_webhook_urls(url: str, expected: list[str]) -> None:
    if expected and expected[0].startswith("parse"):
        expected = [f"x: Required value: url must be a valid URL: {expected[0]}{FORM}"]
    assert texts(validate_webhook_url(url, FieldPath("x"))) == expected


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ({"name": "s", "namespace": "n", "port": 1, "path": "/"}, []),
        ({"name": "s", "namespace": "n", "port": 1, "path": "/a/b/"}, []),
        # Upstream confuses the two.
        ({"name": "s", "port": 1}, ["x.name: Required value"]),
        ({"namespace": "n", "port": 1}, ["x.namespace: Required value"]),
        (
            {"name": "s", "namespace": "n"},
            ["x.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"],
        ),
        (
            {"name": "s", "namespace": "n", "port": 1, "path": "//"},
            ['x.path: Invalid value: "//": segment[0] may not be empty'],
        ),
        (
            {"name": "s", "namespace": "n", "port": 1, "path": "ab//c"},
            [
                "x.path: Invalid value: \"ab//c\": must start with a '/'",
                'x.path: Invalid value: "ab//c": segment[1] may not be empty',
            ],
        ),
    ],
)
def test_webhook_services(service: Object, expected: list[str]) -> None:
    assert texts(validate_webhook_service(service, FieldPath("x"))) == expected
    assert check_hook(clientConfig={"service": {"namespace": "n", "name": "s"}}) == []


def test_paths_of_services_are_dns_names() -> None:
    service = {"name": "s", "namespace": "n", "port": 1, "path": "/A"}
    (error,) = validate_webhook_service(service, FieldPath("x"))
    assert error.detail.startswith("segment[0]: a lowercase RFC 1123 subdomain must")


def refuse(kind: ExpressionKind, seen: list[Expression]) -> Callable[[Expression], list[str]]:
    def compile_expression(expression: Expression) -> list[str]:
        seen.append(expression)
        return ["compilation failed: x"] if expression.kind is kind else []

    return compile_expression


def policy(**spec: Any) -> Object:  # noqa: ANN401
    filled = {
        "paramKind": {"apiVersion": "g/v1", "kind": "Param"},
        "matchConstraints": {"resourceRules": [dict(RULE)]},
        "matchConditions": [{"name": "m", "expression": " true "}],
        "variables": [{"name": "v", "expression": "1"}, {"name": "w", "expression": "2"}],
        "validations": [{"expression": "true ", "messageExpression": "'x'", "message": "m", "reason": "Invalid"}],
        "auditAnnotations": [{"key": "k", "valueExpression": " 'a'"}],
    }
    return {"metadata": {"name": "p"}, "spec": copy.deepcopy(filled | spec)}


def check_policy(**spec: Any) -> list[str]:  # noqa: ANN401
    strategy = BUILTIN[GROUP, "validatingadmissionpolicies"]
    obj = policy(**spec)
    strategy.default(obj)
    return texts(strategy.validate(obj, CONTEXT))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ExpressionKind.VALIDATION, 'spec.validations[0].expression: Invalid value: "true "'),
        (ExpressionKind.MATCH_CONDITION, 'spec.matchConditions[0].expression: Invalid value: "true"'),
        (ExpressionKind.MESSAGE, "spec.validations[0].messageExpression: Invalid value: \"'x'\""),
        (ExpressionKind.AUDIT_ANNOTATION, "spec.auditAnnotations[0].valueExpression: Invalid value: \" 'a'\""),
    ],
)
def test_expressions_are_compiled(kind: ExpressionKind, expected: str) -> None:
    seen: list[Expression] = []
    strategy = make_builtin(refuse(kind, seen))[GROUP, "validatingadmissionpolicies"]
    obj = policy()
    strategy.default(obj)
    assert texts(strategy.validate(obj, CONTEXT)) == [f"{expected}: compilation failed: x"]
    asked = next(expression for expression in seen if expression.kind is kind)
    assert asked.has_params
    assert asked.has_authorizer is (kind is not ExpressionKind.MESSAGE)
    assert len(asked.variables) == (0 if kind is ExpressionKind.MATCH_CONDITION else 2)


def test_variables_see_those_before_them() -> None:
    seen: list[Expression] = []
    strategy = make_builtin(refuse(ExpressionKind.VARIABLE, seen))[GROUP, "validatingadmissionpolicies"]
    found = strategy.validate_update(policy(), policy(), CONTEXT)
    assert [error.field for error in found][-2:] == ["spec.variables[0].expression", "spec.variables[1].expression"]
    variables = [expression for expression in seen if expression.kind is ExpressionKind.VARIABLE]
    assert [expression.variables for expression in variables] == [(), (("v", "1"),)]
    # What did not change is not looked at again.
    assert ExpressionKind.MATCH_CONDITION not in {expression.kind for expression in seen}


def test_policy_defaults() -> None:
    obj: Object = {"metadata": {"name": "p"}}
    strategy = BUILTIN[GROUP, "validatingadmissionpolicies"]
    strategy.default(obj)
    assert obj["spec"] == {"failurePolicy": "Fail"}
    full = policy()
    strategy.default(full)
    assert full["spec"]["matchConstraints"] == {
        "resourceRules": [RULE],
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    }
    assert check_policy() == []
    assert trust_expression(Expression("x", ExpressionKind.VALIDATION)) == []


BOTH = "validations or auditAnnotations must contain at least one item"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"failurePolicy": "Maybe"}, ['failurePolicy: Unsupported value: "Maybe": supported'], id="policy"),
        pytest.param({"matchConstraints": None}, ["matchConstraints: Required value"], id="no constraints"),
        pytest.param({"matchConstraints": {}}, ["matchConstraints.resourceRules: Required value"], id="no rules"),
        pytest.param(
            {"matchConstraints": {"matchPolicy": "x", "resourceRules": [{**RULE, "resourceNames": ["a", "a", "b/c"]}]}},
            [
                'matchConstraints.matchPolicy: Unsupported value: "x": supported values: "Equivalent", "Exact"',
                'matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"',
                "matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: \"b/c\": may not contain '/'",
            ],
            id="constraints",
        ),
        pytest.param(
            {"paramKind": {}}, ["paramKind.apiVersion: Required value", "paramKind.kind: Required value"], id="params"
        ),
        pytest.param(
            {"paramKind": {"apiVersion": "a/b/c", "kind": "1"}},
            [
                'paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
                'paramKind.kind: Invalid value: "1": may have mixed case, but should otherwise match: a DNS-1035',
            ],
            id="param kind",
        ),
        pytest.param(
            {"paramKind": {"apiVersion": "A/1", "kind": "X"}},
            [
                'paramKind.apiVersion: Invalid value: "A": a lowercase',
                'paramKind.apiVersion: Invalid value: "1": a DNS',
            ],
            id="param group and version",
        ),
        pytest.param(
            {"paramKind": {"apiVersion": "a/", "kind": "X"}},
            ['paramKind.apiVersion: Invalid value: "a/": version must be specified'],
            id="param version",
        ),
        pytest.param(
            {"variables": [{}, {"name": "in", "expression": "1"}]},
            [
                "variables[0].name: Required value: name is not specified",
                "variables[0].expression: Required value: expression is not specified",
                'variables[1].name: Invalid value: "in": must be a valid CEL identifier',
            ],
            id="variables",
        ),
        pytest.param(
            {"validations": [], "auditAnnotations": None},
            [f"validations: Required value: {BOTH}", f"auditAnnotations: Required value: {BOTH}"],
            id="nothing to do",
        ),
        pytest.param(
            {"validations": [{"messageExpression": " ", "message": " ", "reason": "Gone"}]},
            [
                "validations[0].expression: Required value: expression is not specified",
                'validations[0].messageExpression: Invalid value: " ": must be non-empty if specified',
                'validations[0].message: Invalid value: " ": must be non-empty if specified',
                'validations[0].reason: Unsupported value: "Gone": '
                'supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"',
            ],
            id="empty validation",
        ),
        pytest.param(
            {"validations": [{"expression": "true", "message": "a\nb"}]},
            ['validations[0].message: Invalid value: "a\\nb": must not contain line breaks'],
            id="message",
        ),
        pytest.param(
            {"auditAnnotations": [{"key": "a b"}, {"key": "a b", "valueExpression": "x" * 5121}]},
            [
                'auditAnnotations[0].key: Invalid value: "p/a b": name part must consist',
                "auditAnnotations[0].valueExpression: Required value: valueExpression is not specified",
                'auditAnnotations[1].key: Invalid value: "p/a b": name part must consist',
                "auditAnnotations[1].valueExpression: Required value: must not exceed 5120 bytes in length",
                'auditAnnotations[1].key: Duplicate value: "a b"',
            ],
            id="annotations",
        ),
    ],
)
def test_policies(spec: Object, expected: list[str]) -> None:
    found = check_policy(**spec)
    assert len(found) == len(expected)
    assert all(text.startswith(f"spec.{start}") for text, start in zip(found, expected, strict=True))


def test_audit_annotations_are_few_and_named_after_the_policy() -> None:
    many = [{"key": f"k{number}", "valueExpression": "'x'"} for number in range(21)]
    (found,) = check_policy(auditAnnotations=many)
    assert found.startswith('spec.auditAnnotations: Invalid value: [{"Key":"k0","ValueExpression":"\'x\'"},')
    assert found.endswith("must not have more than 20 auditAnnotations")
    nameless = policy(failurePolicy="Fail", matchConstraints=None, matchConditions=None)
    nameless["metadata"] = {}
    errors = BUILTIN[GROUP, "validatingadmissionpolicies"].validate(nameless, CONTEXT)
    assert texts(errors)[-1] == 'spec.auditAnnotations[0].key: Invalid value: "k": requires metadata.name be non-empty'


def test_without_defaults_policies_are_incomplete() -> None:
    found = BUILTIN[GROUP, "validatingadmissionpolicies"].validate(policy(), CONTEXT)
    assert texts(found) == [
        "spec.failurePolicy: Required value",
        "spec.matchConstraints.matchPolicy: Required value",
        "spec.matchConstraints.namespaceSelector: Required value",
        "spec.matchConstraints.objectSelector: Required value",
    ]


def test_policy_status_is_written_apart() -> None:
    strategy = BUILTIN[GROUP, "validatingadmissionpolicies"]
    obj = policy() | {"status": {"observedGeneration": 1}}
    strategy.prepare_for_create(obj, CONTEXT)
    assert obj["status"] == {}
    changed = policy(failurePolicy="Ignore") | {"status": {"observedGeneration": 1}}
    strategy.prepare_for_update(changed, obj, CONTEXT)
    assert changed["status"] == {}
    status = strategy.subresource("status")
    assert status is not None
    assert status.subresource("status") is None
    changed = policy(failurePolicy="Ignore") | {"status": {"observedGeneration": 1}}
    changed["metadata"]["labels"] = {"a": "b"}
    status.prepare_for_update(changed, obj, CONTEXT)
    assert changed == obj | {"status": {"observedGeneration": 1}}
    changed["status"] = {"typeChecking": {"expressionWarnings": [{}, {"warning": "w", "fieldRef": "spec.x"}]}}
    assert texts(status.validate_update(changed, obj, CONTEXT)) == [
        "status.typeChecking.expressionWarnings[0].warning: Required value",
        "status.typeChecking.expressionWarnings[0].fieldRef: Required value",
    ]


def test_conditions() -> None:
    good = {"type": "A", "status": "True", "reason": "R", "lastTransitionTime": "t"}
    assert validate_conditions([good], FieldPath("c")) == []
    wrong = {"type": "A", "status": "<", "observedGeneration": -1, "message": "m" * 32769}
    assert texts(validate_conditions([good, wrong], FieldPath("c"))) == [
        'c[1].type: Duplicate value: "A"',
        'c[1].status: Unsupported value: "\\u003c": supported values: "False", "True", "Unknown"',
        "c[1].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
        "c[1].lastTransitionTime: Required value",
        "c[1].reason: Required value",
        "c[1].message: Too long: may not be more than 32768 bytes",
    ]
    odd = {**good, "type": "a b", "reason": "1" * 1025}
    found = texts(validate_conditions([odd], FieldPath("c")))
    assert [text.split(":")[0] for text in found] == ["c[0].type", "c[0].reason", "c[0].reason"]
    assert found[1].endswith("regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')")


def binding(**spec: Any) -> Object:  # noqa: ANN401
    return {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]} | spec}


def check_binding(kind: str = "validating", **spec: Any) -> list[str]:  # noqa: ANN401
    strategy = BUILTIN[GROUP, f"{kind}admissionpolicybindings"]
    obj = binding(**spec)
    strategy.default(obj)
    found = texts(strategy.validate(obj, CONTEXT))
    assert texts(strategy.validate_update(obj, binding(), CONTEXT)) == found
    return found


EXCLUSIVE = "name and selector are mutually exclusive"
SERVES = "(repeating the same validation failure information in the API response and headers serves no purpose)"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param({"policyName": ""}, ["policyName: Required value"], id="no policy"),
        pytest.param({"policyName": "A"}, ['policyName: Invalid value: "A": a lowercase'], id="policy name"),
        pytest.param({"matchResources": {"resourceRules": [dict(RULE)]}}, [], id="resources"),
        pytest.param(
            {"paramRef": {}},
            ["paramRef: Required value: one of name or selector", "paramRef.parameterNotFoundAction: Required value"],
            id="no params",
        ),
        pytest.param(
            {"paramRef": {"name": "a/b", "selector": {}, "parameterNotFoundAction": "x"}},
            [
                "paramRef.name: Invalid value: \"a/b\": may not contain '/'",
                f"paramRef.name: Forbidden: {EXCLUSIVE}",
                f"paramRef.selector: Forbidden: {EXCLUSIVE}",
                'paramRef.parameterNotFoundAction: Unsupported value: "x": supported values: "Deny", "Allow"',
            ],
            id="params",
        ),
        pytest.param(
            {"validationActions": []},
            ["validationActions: Required value: at least one validation action is required"],
            id="no actions",
        ),
        pytest.param(
            {"validationActions": ["Deny", "Warn", "Odd", "Deny"]},
            [
                'validationActions[2]: Unsupported value: "Odd": supported values: "Audit", "Deny", "Warn"',
                'validationActions[3]: Duplicate value: "Deny"',
                'validationActions: Invalid value: ["Deny","Warn","Odd","Deny"]: '
                f"must not contain both Deny and Warn {SERVES}",
            ],
            id="actions",
        ),
    ],
)
def test_bindings(spec: Object, expected: list[str]) -> None:
    found = check_binding(**spec)
    assert len(found) == len(expected)
    assert all(text.startswith(f"spec.{start}") for text, start in zip(found, expected, strict=True))


DELETING = {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}
MUTATING = 'Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"'


def test_mutating_bindings_cannot_act_on_deletion() -> None:
    assert check_binding("mutating", matchResources=copy.deepcopy(DELETING)) == [
        f"spec.matchResources.resourceRules.operations: {MUTATING}"
    ]
    assert check_binding("mutating") == []


def check_mutating(seen: Callable[[Expression], list[str]] = trust_expression, **spec: Any) -> list[str]:  # noqa: ANN401
    strategy = make_builtin(seen)[GROUP, "mutatingadmissionpolicies"]
    mutations = [{"patchType": "JSONPatch", "jsonPatch": {"expression": " [] "}}]
    obj = policy(**({"mutations": mutations, "reinvocationPolicy": "Never", "validations": None} | spec))
    strategy.default(obj)
    return texts(strategy.validate(obj, CONTEXT))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="valid"),
        pytest.param(
            {"matchConstraints": DELETING}, [f"matchConstraints.resourceRules.operations: {MUTATING}"], id="op"
        ),
        pytest.param(
            {"mutations": []}, ["mutations: Required value: mutations must contain at least one item"], id="nothing"
        ),
        pytest.param({"reinvocationPolicy": ""}, ["reinvocationPolicy: Required value"], id="no policy"),
        pytest.param(
            {"reinvocationPolicy": "x"},
            ['reinvocationPolicy: Unsupported value: "x": supported values: "IfNeeded", "Never"'],
            id="policy",
        ),
        pytest.param({"mutations": [{}]}, ["mutations[0].patchType: Required value"], id="no type"),
        pytest.param(
            {"mutations": [{"patchType": "x"}]},
            ['mutations[0].patchType: Unsupported value: "x": supported values: "ApplyConfiguration", "JSONPatch"'],
            id="type",
        ),
        pytest.param(
            {"mutations": [{"patchType": "JSONPatch", "applyConfiguration": {}}]},
            [
                "mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
                'mutations[0].applyConfiguration: Invalid value: "{applyConfiguration}": '
                "must not be specified when patchType is JSONPatch",
            ],
            id="other patch",
        ),
        pytest.param(
            {"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": " "}}]},
            ["mutations[0].applyConfiguration.expression: Required value"],
            id="no expression",
        ),
    ],
)
def test_mutating_policies(spec: Object, expected: list[str]) -> None:
    assert check_mutating(**copy.deepcopy(spec)) == [f"spec.{text}" for text in expected]


def test_mutations_are_compiled() -> None:
    assert check_mutating(refuse(ExpressionKind.JSON_PATCH, [])) == [
        'spec.mutations[0].jsonPatch.expression: Invalid value: "[]": compilation failed: x'
    ]
