"""Webhooks: whom they are called for, what they are told, and what becomes of their answers."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from kcp.admission.attributes import Operation
from kcp.admission.matching import Matcher
from kcp.admission.webhook_client import CallFailed
from kcp.admission.webhooks import MutatingAdmissionWebhook, ValidatingAdmissionWebhook, parse_hooks
from kcp.meta.errors import BadRequest, Forbidden, InternalError, StatusError
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

if TYPE_CHECKING:
    from collections.abc import Callable

    Respond = Callable[[dict[str, Any]], dict[str, Any]]

RULE = {"apiGroups": ["conf.test"], "apiVersions": ["v1"], "resources": ["widgets"], "operations": ["*"]}
ALLOW = {"allowed": True}


class FakeCaller:
    """Webhooks by URL; what they were asked is kept."""

    def __init__(self) -> None:
        self.responses: dict[str, Respond] = {}
        self.requests: list[dict[str, Any]] = []
        self.calls: list[tuple[str, bytes, float]] = []

    async def post(self, url: str, body: bytes, *, ca_bundle: bytes, timeout: float) -> bytes:
        self.calls.append((url, ca_bundle, timeout))
        request = json.loads(body)["request"]
        self.requests.append(request)
        await asyncio.sleep(0)
        answer = self.responses[url.partition("?")[0]](request)
        if "raw" in answer:
            return bytes(answer["raw"])
        version = json.loads(body)["apiVersion"]
        response = {"uid": request["uid"]} | answer
        review = {"apiVersion": version, "kind": "AdmissionReview", "response": response} | response.pop("review", {})
        return json.dumps(review).encode()


class Setup:
    def __init__(self) -> None:
        self.reader = FakeReader()
        self.reader.add_namespace("ns", metadata={"name": "ns", "labels": {"team": "a"}})
        self.caller = FakeCaller()
        self.authorizer = FakeAuthorizer()
        kinds = FakeKinds()
        needs = (self.reader, kinds, Matcher(self.reader, kinds), self.authorizer.authorize, self.caller)
        self.mutating = MutatingAdmissionWebhook(*needs)
        self.validating = ValidatingAdmissionWebhook(*needs)

    def hook(self, kind: str, name: str, respond: Respond, **more: Any) -> None:  # noqa: ANN401
        url = f"https://{name}.test/admit"
        self.caller.responses[url] = respond
        bundle = base64.b64encode(b"pem").decode()
        hook = {
            "name": name,
            "clientConfig": {"url": url, "caBundle": bundle},
            "rules": [RULE],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 5,
        } | more
        resource = f"{kind}webhookconfigurations"
        self.reader.add(ADMISSION, resource, {"metadata": {"name": f"of-{name}"}, "webhooks": [hook]})
        for plugin in (self.mutating, self.validating):
            plugin.forget(CLUSTER, ADMISSION, resource)


@pytest.fixture
def setup() -> Setup:
    return Setup()


def patching(*operations: dict[str, Any]) -> Respond:
    text = base64.b64encode(json.dumps(list(operations)).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": text}


def adding(path: str, value: object) -> Respond:
    return patching({"op": "add", "path": path, "value": value})


def allow(request: dict[str, Any]) -> dict[str, Any]:
    return dict(ALLOW)


def refuse(**status: Any) -> Respond:  # noqa: ANN401
    return lambda request: {"allowed": False, "status": status}


class TestValidating:
    @pytest.mark.parametrize(
        ("respond", "expected"),
        [
            (lambda r: {"allowed": False}, ("without explanation", 400, "")),
            (refuse(message="too large"), (": too large", 400, "")),
            (refuse(reason="Nope"), (": Nope", 400, "Nope")),
            (refuse(message="x", code=409, reason="Conflict"), (": x", 409, "Conflict")),
            (refuse(message="x", code=200, status="Success"), (": x", 400, "")),
            (refuse(message="x", reason="Forbidden"), (": x", 400, "Forbidden")),
        ],
        ids=["nothing", "message", "reason", "code", "success", "reason without code"],
    )
    async def test_refusals_name_the_webhook(
        self, setup: Setup, respond: Respond, expected: tuple[str, int, str]
    ) -> None:
        setup.hook("validating", "hook", respond)
        with pytest.raises(StatusError) as caught:
            await setup.validating.validate(write(widget()))
        why, code, reason = expected
        start = 'admission webhook "hook" denied the request'
        assert caught.value.message == start + (why if why.startswith(":") else f" {why}")
        assert (caught.value.code, caught.value.reason) == (code, reason)
        assert caught.value.to_status()["status"] == "Failure"

    async def test_a_refusal_without_details_is_sent_without_details(self, setup: Setup) -> None:
        setup.hook("validating", "hook", refuse(message="no"))
        with pytest.raises(StatusError) as caught:
            await setup.validating.validate(write(widget()))
        assert caught.value.to_status() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'admission webhook "hook" denied the request: no',
            "code": 400,
        }

    async def test_the_request_tells_everything(self, setup: Setup) -> None:
        setup.hook("validating", "hook", allow)
        old, new = widget(n=1), widget(n=2)
        options = {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
        await setup.validating.validate(write(new, old_obj=old, operation=Operation.UPDATE, options=options))
        (request,) = setup.caller.requests
        kind = {"group": "conf.test", "version": "v1", "kind": "Widget"}
        resource = {"group": "conf.test", "version": "v1", "resource": "widgets"}
        assert request.pop("uid")
        assert request == {
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": "a",
            "namespace": "ns",
            "operation": "UPDATE",
            "userInfo": {
                "username": "jane",
                "uid": "7",
                "groups": ["devs"],
                "extra": {"scope": ["a", "b"]},
            },
            "object": new,
            "oldObject": old,
            "dryRun": False,
            "options": options,
        }
        assert setup.caller.calls == [("https://hook.test/admit?timeout=5s", b"pem", 5)]

    async def test_a_subresource_is_named_twice(self, setup: Setup) -> None:
        setup.hook("validating", "hook", allow, rules=[RULE | {"resources": ["widgets/*"]}])
        await setup.validating.validate(write(widget(), subresource="status"))
        (request,) = setup.caller.requests
        assert (request["subResource"], request["requestSubResource"]) == ("status", "status")

    async def test_warnings_and_annotations_are_passed_on(self, setup: Setup) -> None:
        answer = ALLOW | {"warnings": ["mind the gap"], "auditAnnotations": {"k": "v"}}
        setup.hook("validating", "hook", lambda request: answer)
        a = write(widget())
        await setup.validating.validate(a)
        assert (a.warnings, a.annotations) == (["mind the gap"], {"hook/k": "v"})

    async def test_all_are_asked_and_the_first_refusal_counts(self, setup: Setup) -> None:
        setup.hook("validating", "a", refuse(message="first"))
        setup.hook("validating", "b", refuse(message="second"))
        with pytest.raises(StatusError, match="first"):
            await setup.validating.validate(write(widget()))
        assert len(setup.caller.requests) == 2

    async def test_no_answer_refuses_or_is_ignored(self, setup: Setup) -> None:
        def fail(request: dict[str, Any]) -> dict[str, Any]:
            raise CallFailed('Post "https://x": EOF')

        setup.hook("validating", "hook", fail)
        with pytest.raises(InternalError) as caught:
            await setup.validating.validate(write(widget()))
        why = 'failed calling webhook "hook": failed to call webhook: Post "https://x": EOF'
        assert caught.value.message == f"Internal error occurred: {why}"
        assert caught.value.details == {"causes": [{"message": why}]}
        setup.hook("validating", "hook", fail, failurePolicy="Ignore")
        a = write(widget())
        await setup.validating.validate(a)
        assert a.annotations == {"failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "hook"}

    @pytest.mark.parametrize(
        ("answer", "why"),
        [
            ({"raw": b"{"}, "failed to call webhook: couldn't get version/kind; json parse error"),
            ({"raw": b"{}"}, "received invalid webhook response: webhook response was absent"),
            ({"uid": "x"}, 'received invalid webhook response: expected response.uid="'),
            (
                ALLOW | {"review": {"apiVersion": "x/v2"}},
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got x/v2, Kind=",
            ),
            (ALLOW | {"patch": "W10="}, "validating webhook may not return response.patch"),
            (ALLOW | {"patchType": "JSONPatch"}, "validating webhook may not return response.patchType"),
        ],
        ids=["no JSON", "empty", "uid", "version", "patch", "patch type"],
    )
    async def test_an_answer_that_cannot_be_used_is_none(self, setup: Setup, answer: dict[str, Any], why: str) -> None:
        setup.hook("validating", "hook", lambda request: answer)
        with pytest.raises(InternalError) as caught:
            await setup.validating.validate(write(widget()))
        assert why in caught.value.message

    async def test_a_dry_run_needs_a_webhook_without_side_effects(self, setup: Setup) -> None:
        setup.hook("validating", "hook", allow, sideEffects="Some")
        with pytest.raises(BadRequest, match='admission webhook "hook" does not support dry run'):
            await setup.validating.validate(write(widget(), dry_run=True))
        setup.hook("validating", "hook", allow, sideEffects="NoneOnDryRun")
        await setup.validating.validate(write(widget(), dry_run=True))

    async def test_a_service_cannot_be_reached(self, setup: Setup) -> None:
        setup.hook("validating", "hook", allow, clientConfig={"service": {"name": "s", "namespace": "n"}})
        with pytest.raises(InternalError, match=r'Post "https://s\.n\.svc:443/\?timeout=5s": service "s" not found'):
            await setup.validating.validate(write(widget()))

    async def test_the_older_review_is_spoken_too(self, setup: Setup) -> None:
        setup.hook("validating", "hook", lambda request: ALLOW | {"uid": ""}, admissionReviewVersions=["v2", "v1beta1"])
        await setup.validating.validate(write(widget()))
        setup.hook("validating", "hook", allow, admissionReviewVersions=["v2"])
        with pytest.raises(InternalError, match="webhook does not accept known AdmissionReview versions"):
            await setup.validating.validate(write(widget()))


class TestMatching:
    @pytest.mark.parametrize(
        ("more", "obj", "called"),
        [
            ({}, widget(), True),
            ({"rules": []}, widget(), False),
            ({"rules": [RULE | {"operations": ["DELETE"]}]}, widget(), False),
            ({"rules": [RULE | {"apiGroups": ["other"]}]}, widget(), False),
            ({"rules": [RULE | {"resources": ["*/*"]}]}, widget(), True),
            ({"rules": [RULE | {"resources": ["widgets/status"]}]}, widget(), False),
            ({"rules": [RULE | {"scope": "Cluster"}]}, widget(), False),
            ({"rules": [RULE | {"scope": "Namespaced"}]}, widget(), True),
            ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, widget(), True),
            ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, widget(), False),
            ({"objectSelector": {"matchLabels": {"on": "yes"}}}, widget(), False),
            ({"objectSelector": {"matchLabels": {"on": "yes"}}}, widget(labels={"on": "yes"}), True),
            ({"matchConditions": [{"name": "x", "expression": "object.spec.n > 1"}]}, widget(n=1), False),
            ({"matchConditions": [{"name": "x", "expression": "object.spec.n > 1"}]}, widget(n=2), True),
            (
                {"matchConditions": [{"name": "x", "expression": "object.spec.n > 1"}], "failurePolicy": "Ignore"},
                widget(),
                False,
            ),
        ],
    )
    async def test_only_webhooks_that_match_are_called(
        self, setup: Setup, more: dict[str, Any], obj: dict[str, Any], called: bool
    ) -> None:
        setup.hook("validating", "hook", allow, **more)
        await setup.validating.validate(write(obj))
        assert bool(setup.caller.requests) is called

    async def test_a_condition_that_fails_refuses_the_write(self, setup: Setup) -> None:
        setup.hook("validating", "hook", allow, matchConditions=[{"name": "x", "expression": "object.spec.n > 1"}])
        with pytest.raises(Forbidden) as caught:
            await setup.validating.validate(write(widget()))
        assert caught.value.message == (
            "widgets.conf.test \"a\" is forbidden: expression 'object.spec.n > 1' resulted in error: no such key: n"
        )
        setup.hook("validating", "hook", allow, matchConditions=[{"name": "x", "expression": "nothing"}])
        with pytest.raises(Forbidden, match="compilation error"):
            await setup.validating.validate(write(widget()))

    async def test_labels_of_a_namespace_itself_are_those_it_will_have(self, setup: Setup) -> None:
        rule = RULE | {"apiGroups": [""], "resources": ["namespaces"], "scope": "Cluster"}
        setup.hook("validating", "hook", allow, rules=[rule], namespaceSelector={"matchLabels": {"new": "yes"}})
        kind = {"gvr": GroupVersionResource("", "v1", "namespaces"), "gvk": GroupVersionKind("", "v1", "Namespace")}
        namespace = {"metadata": {"name": "ns", "labels": {"new": "yes"}}}
        await setup.validating.validate(write(namespace, operation=Operation.UPDATE, **kind))
        await setup.validating.validate(write(None, operation=Operation.DELETE, old_obj=namespace, **kind))
        assert [request["operation"] for request in setup.caller.requests] == ["UPDATE"]

    async def test_an_equivalent_version_is_sent_as_the_rule_says(self, setup: Setup) -> None:
        setup.hook("mutating", "hook", adding("/spec/n", 3))
        a = write(widget(size=2) | {"apiVersion": "conf.test/v1beta1"}, gvr=OLD_WIDGETS, gvk=OLD_WIDGET)
        await setup.mutating.admit(a)
        (request,) = setup.caller.requests
        assert (request["object"]["spec"], request["kind"]["version"]) == ({"n": 2}, "v1")
        assert request["requestKind"]["version"] == "v1beta1"
        assert a.obj is not None
        assert (a.obj["spec"], a.obj["apiVersion"]) == ({"size": 3}, "conf.test/v1beta1")

    async def test_configurations_of_admission_are_exempt(self, setup: Setup) -> None:
        everything = {key: ["*"] for key in ("apiGroups", "apiVersions", "resources", "operations")}
        setup.hook("validating", "hook", allow, rules=[everything])
        gvk = GroupVersionKind(ADMISSION, "v1", "ValidatingWebhookConfiguration")
        gvr = GroupVersionResource(ADMISSION, "v1", "validatingwebhookconfigurations")
        await setup.validating.validate(write({"metadata": {"name": "x"}}, gvk=gvk, gvr=gvr, namespace=""))
        assert not setup.caller.requests

    async def test_without_webhooks_nothing_is_read_twice(self, setup: Setup) -> None:
        for _ in range(3):
            await setup.validating.validate(write(widget()))
            await setup.mutating.admit(write(widget()))
        assert setup.reader.lists == 2

    def test_a_bundle_that_is_no_base64_counts_as_none(self) -> None:
        configuration = {"metadata": {"name": "c"}, "webhooks": [{"name": "h", "clientConfig": {"caBundle": "x"}}]}
        (hook,) = parse_hooks(configuration)
        assert hook.ca_bundle == b""


class TestMutating:
    async def test_patches_are_applied_one_after_the_other(self, setup: Setup) -> None:
        setup.hook("mutating", "a", adding("/spec/s", "added"))
        setup.hook("mutating", "b", lambda request: adding("/spec/seen", request["object"]["spec"]["s"])(request))
        original = widget(n=1)
        a = write(original)
        await setup.mutating.admit(a)
        assert a.obj is not None
        assert a.obj["spec"] == {"n": 1, "s": "added", "seen": "added"}
        assert original["spec"] == {"n": 1}
        assert a.annotations["mutation.webhook.admission.k8s.io/round_0_index_0"] == (
            '{"configuration":"of-a","webhook":"a","mutated":true}'
        )

    async def test_what_a_patch_makes_is_decoded_again(self, setup: Setup) -> None:
        setup.hook("mutating", "hook", adding("/spec/unknown", 1))
        a = write(widget(n=1))
        await setup.mutating.admit(a)
        assert a.obj == widget(n=1)
        setup.hook("mutating", "hook", adding("/spec/n", "bad"))
        with pytest.raises(InternalError, match="Internal error occurred: n must be a number"):
            await setup.mutating.admit(a)

    async def test_a_patch_that_does_not_apply_is_an_internal_error(self, setup: Setup) -> None:
        setup.hook("mutating", "hook", patching({"op": "remove", "path": "/spec/none"}))
        with pytest.raises(InternalError) as caught:
            await setup.mutating.admit(write(widget(n=1)))
        why = "error in remove for path: '/spec/none': Unable to remove nonexistent key: none: missing value"
        assert caught.value.details == {"causes": [{"message": why}]}

    @pytest.mark.parametrize(
        ("answer", "why"),
        [
            ({"patch": "W10="}, "webhook returned response.patch but not response.patchType"),
            ({"patchType": "JSONPatch"}, "webhook returned response.patchType but not response.patch"),
            ({"patch": "W10=", "patchType": ""}, 'webhook returned invalid response.patchType of ""'),
            ({"patch": "!", "patchType": "JSONPatch"}, "response.patch is not base64"),
            ({"patch": "e30=", "patchType": "JSONPatch"}, "received undecodable patch in webhook response"),
            (
                {"patch": base64.b64encode(b'[{"op":"test","path":""}]').decode(), "patchType": "Merge"},
                'failed calling webhook "hook": unsupported patch type "Merge"',
            ),
        ],
        ids=["no type", "no patch", "empty type", "no base64", "no list", "other type"],
    )
    async def test_a_patch_must_be_one(self, setup: Setup, answer: dict[str, Any], why: str) -> None:
        setup.hook("mutating", "hook", lambda request: ALLOW | answer)
        with pytest.raises(InternalError) as caught:
            await setup.mutating.admit(write(widget()))
        assert why in caught.value.message
        setup.hook("mutating", "hook", lambda request: ALLOW | answer, failurePolicy="Ignore")
        a = write(widget())
        await setup.mutating.admit(a)
        assert "failed-open.mutation.webhook.admission.k8s.io/round_0_index_0" in a.annotations

    async def test_a_deletion_cannot_be_patched(self, setup: Setup) -> None:
        setup.hook("mutating", "hook", adding("/spec/s", 1))
        with pytest.raises(InternalError, match="attempted to modify the object, which is not supported"):
            await setup.mutating.admit(write(None, old_obj=widget(), operation=Operation.DELETE))
        setup.hook("mutating", "hook", patching())
        await setup.mutating.admit(write(None, old_obj=widget(), operation=Operation.DELETE))

    async def test_a_refusal_ends_it(self, setup: Setup) -> None:
        setup.hook("mutating", "a", refuse(message="no"))
        setup.hook("mutating", "b", allow)
        with pytest.raises(StatusError, match="denied the request: no"):
            await setup.mutating.admit(write(widget()))
        assert len(setup.caller.requests) == 1

    async def test_earlier_webhooks_may_see_later_changes_once(self, setup: Setup) -> None:
        seen: list[str] = []

        def watching(name: str, respond: Respond) -> Respond:
            def answer(request: dict[str, Any]) -> dict[str, Any]:
                seen.append(name)
                return respond(request)

            return answer

        setup.hook("mutating", "a", watching("a", adding("/spec/a", 1)), reinvocationPolicy="IfNeeded")
        setup.hook("mutating", "b", watching("b", adding("/spec/b", 1)), reinvocationPolicy="Never")
        setup.hook("mutating", "c", watching("c", allow), reinvocationPolicy="IfNeeded")
        await setup.mutating.admit(write(widget()))
        assert seen == ["a", "b", "c", "a"]
