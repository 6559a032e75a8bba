"""MutatingAdmissionWebhook and ValidatingAdmissionWebhook: other servers that change or refuse writes."""

from __future__ import annotations

import asyncio
import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.admission import expressions
from kcp.admission.chain import Plugin
from kcp.admission.conditions import ConditionsFailed, are_met, prepare_conditions
from kcp.admission.configuration import GROUP, Configurations
from kcp.admission.matching import parse_criteria
from kcp.admission.patching import PatchFailed, patch
from kcp.admission.request import make_request
from kcp.admission.review import InvalidResponse, Response, make_review, parse_response, to_status_error
from kcp.admission.webhook_client import CallFailed
from kcp.meta import errors
from kcp.meta.gotext import marshal_json, quote
from kcp.meta.names import make_uid
from kcp.patch.json_patch import decode_json_patch
from kcp.schema.cel.engine import EvaluationError

if TYPE_CHECKING:
    from kcp.admission.attributes import Attributes
    from kcp.admission.conditions import Expression
    from kcp.admission.configuration import Kinds
    from kcp.admission.expressions import Authorize
    from kcp.admission.matching import Criteria, Match, Matcher
    from kcp.admission.webhook_client import WebhookCaller
    from kcp.auth.reader import Reader
    from kcp.meta.codec import Object

VALIDATING: Final = "validatingwebhookconfigurations"
MUTATING: Final = "mutatingwebhookconfigurations"
_EXEMPT: Final = frozenset(
    (
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    )
)
_HARMLESS: Final = ("None", "NoneOnDryRun")
_DEFAULT_TIMEOUT: Final = 10
_SCOPE: Final = expressions.Scope(authorizer=True)


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a configuration."""

    name: str
    configuration: str
    identity: str  # tells webhooks of one name apart
    url: str
    service: str  # the name of a service, which cannot be reached from here
    ca_bundle: bytes
    criteria: Criteria
    conditions: tuple[Expression, ...]
    failure_policy: str
    side_effects: str
    timeout_seconds: int
    review_versions: tuple[str, ...]
    reinvocation_policy: str

    @property
    def ignores_failures(self) -> bool:
        return self.failure_policy == "Ignore"


class _CallingFailed(Exception):
    """There was no usable answer: what happens now is for the failure policy to say."""


class _Invocation(NamedTuple):
    hook: Hook
    match: Match
    position: int


class _Webhooks(Plugin):
    """What both plugins do alike: find the webhooks that a write is meant for, and ask them."""

    resource: str

    def __init__(
        self, reader: Reader, kinds: Kinds, matcher: Matcher, authorize: Authorize, caller: WebhookCaller
    ) -> None:
        self._reader = reader
        self._kinds = kinds
        self._matcher = matcher
        self._authorize = authorize
        self._caller = caller
        self._configurations = Configurations(((GROUP, self.resource),), self._load)

    def forget(self, cluster: str | None, group: str, resource: str) -> None:
        self._configurations.forget(cluster, group, resource)

    def _load(self, cluster: str) -> tuple[Hook, ...]:
        configurations = self._reader.list(cluster, GROUP, self.resource, None)
        return tuple(hook for configuration in configurations for hook in parse_hooks(configuration))

    def _hooks(self, a: Attributes) -> tuple[Hook, ...]:
        hooks = self._configurations.get(a.cluster)
        return () if hooks and a.gvk.group == GROUP and a.gvk.kind in _EXEMPT else hooks

    def _invocation(self, hook: Hook, position: int, a: Attributes) -> _Invocation | None:
        """None if the webhook has nothing to do with the write. Raises StatusError."""
        match = self._matcher.match(hook.criteria, a)
        if match is None:
            return None
        if hook.conditions:
            try:
                if not are_met(hook.conditions, self._evaluator(match, a), hook.failure_policy):
                    return None
            except ConditionsFailed as error:
                raise errors.Forbidden(a.gvr.group_resource, a.name, str(error)) from None
        return _Invocation(hook, match, position)

    def _evaluator(self, match: Match, a: Attributes) -> _Evaluator:
        obj, old_obj = self._versioned(match, a)
        request = make_request(a, match._replace(gvr=a.gvr))
        values = expressions.make_values(obj, old_obj, request, None)
        activation = expressions.make_activation(expressions.with_authorizer(values, a), a, self._authorize)

        def evaluate(condition: Expression) -> object:
            if condition.program is None:
                raise EvaluationError(condition.error)
            try:
                return condition.program.evaluate(activation)
            except EvaluationError as error:
                raise EvaluationError(f"expression '{condition.text}' resulted in error: {error}") from None

        return evaluate

    def _versioned(self, match: Match, a: Attributes) -> tuple[Object | None, Object | None]:
        if match.gvk == a.gvk:
            return a.obj, a.old_obj
        obj = None if a.obj is None else self._kinds.convert(a.cluster, a.obj, match.gvk)
        old_obj = None if a.old_obj is None else self._kinds.convert(a.cluster, a.old_obj, match.gvk)
        return obj, old_obj

    async def _call(self, invocation: _Invocation, a: Attributes, *, mutating: bool) -> Response:
        """Ask, note warnings and annotations, and return what was allowed.

        Raises _CallingFailed, and StatusError for a refusal.
        """
        hook = invocation.hook
        if a.dry_run and hook.side_effects not in _HARMLESS:
            raise errors.BadRequest(f"admission webhook {quote(hook.name)} does not support dry run")
        obj, old_obj = self._versioned(invocation.match, a)
        uid = make_uid()
        try:
            version, body = make_review(uid, make_request(a, invocation.match), obj, old_obj, hook.review_versions)
            answer = await self._post(hook, body)
            response = parse_response(answer, uid, version, mutating=mutating)
        except CallFailed as error:
            raise _CallingFailed(
                f"failed calling webhook {quote(hook.name)}: failed to call webhook: {error}"
            ) from None
        except InvalidResponse as error:
            raise _CallingFailed(f"failed calling webhook {quote(hook.name)}: {error}") from None
        a.annotations |= {f"{hook.name}/{key}": value for key, value in response.audit_annotations.items()}
        a.warnings.extend(response.warnings)
        if not response.allowed:
            raise to_status_error(hook.name, response.status)
        return response

    async def _post(self, hook: Hook, body: bytes) -> bytes:
        url = f"{hook.url}{'&' if '?' in hook.url else '?'}timeout={hook.timeout_seconds}s"
        if hook.service:
            raise CallFailed(f"Post {quote(url)}: service {quote(hook.service)} not found")
        return await self._caller.post(url, body, ca_bundle=hook.ca_bundle, timeout=hook.timeout_seconds)


class MutatingAdmissionWebhook(_Webhooks):
    """Asks one after the other, each with what the ones before have made of the object."""

    name = "MutatingAdmissionWebhook"
    resource = MUTATING

    async def admit(self, a: Attributes) -> None:
        hooks = self._hooks(a)
        if not hooks:
            return
        again = await self._round(hooks, a, 0)
        if again:
            # Those that asked for it see once more what was changed after them. There is no third time.
            await self._round(tuple(hook for hook in hooks if hook.identity in again), a, 1)

    async def _round(self, hooks: tuple[Hook, ...], a: Attributes, number: int) -> set[str]:
        called: set[str] = set()
        again: set[str] = set()
        for position, hook in enumerate(hooks):
            invocation = self._invocation(hook, position, a)
            if invocation is None:
                continue
            place = f"round_{number}_index_{position}"
            try:
                if await self._mutate(invocation, a, place):
                    again |= called
                    called.clear()
            except _CallingFailed as error:
                if not hook.ignores_failures:
                    raise errors.InternalError(str(error)) from None
                a.annotations[f"failed-open.mutation.webhook.admission.k8s.io/{place}"] = hook.name
            if hook.reinvocation_policy == "IfNeeded":
                called.add(hook.identity)
        return again

    async def _mutate(self, invocation: _Invocation, a: Attributes, place: str) -> bool:
        """Whether the webhook changed the object."""
        hook = invocation.hook
        key = f"mutation.webhook.admission.k8s.io/{place}"
        a.annotations[key] = _describe(hook, mutated=False)
        response = await self._call(invocation, a, mutating=True)
        operations = _decode_patch(hook, response)
        if not operations:
            return False
        if a.obj is None:
            raise errors.InternalError(
                f"admission webhook {quote(hook.name)} attempted to modify the object, "
                "which is not supported for this operation"
            )
        before, _ = self._versioned(invocation.match, a)
        assert before is not None
        try:
            patched = self._kinds.decode(a.cluster, patch(before, operations), invocation.match.gvk)
        except (PatchFailed, ValueError) as error:
            raise errors.InternalError(str(error)) from None
        changed = patched != before
        if changed:
            a.obj = patched if invocation.match.gvk == a.gvk else self._kinds.convert(a.cluster, patched, a.gvk)
        a.annotations[key] = _describe(hook, mutated=changed)
        return changed


class ValidatingAdmissionWebhook(_Webhooks):
    """Asks all at once; of several refusals the first webhook's counts."""

    name = "ValidatingAdmissionWebhook"
    resource = VALIDATING

    async def validate(self, a: Attributes) -> None:
        hooks = self._hooks(a)
        if not hooks:
            return
        found = (self._invocation(hook, position, a) for position, hook in enumerate(hooks))
        invocations = [invocation for invocation in found if invocation is not None]
        if not invocations:
            return
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(invocation, a)) for invocation in invocations]
        for task in tasks:
            error = task.result()
            if error is not None:
                raise error

    async def _ask(self, invocation: _Invocation, a: Attributes) -> errors.StatusError | None:
        hook = invocation.hook
        try:
            await self._call(invocation, a, mutating=False)
        except _CallingFailed as error:
            if not hook.ignores_failures:
                return errors.InternalError(str(error))
            a.annotations[f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{invocation.position}"] = (
                hook.name
            )
        except errors.StatusError as error:
            return error
        return None


def parse_hooks(configuration: Object) -> list[Hook]:
    name = configuration["metadata"]["name"]
    return [
        _parse_hook(name, f"{name}/{hook['name']}/{index}", hook)
        for index, hook in enumerate(configuration.get("webhooks") or ())
    ]


def _parse_hook(configuration: str, identity: str, hook: Object) -> Hook:
    client = hook.get("clientConfig") or {}
    service = client.get("service") or {}
    url = client.get("url") or (
        f"https://{service.get('name')}.{service.get('namespace')}.svc:{service.get('port') or 443}"
        f"{service.get('path') or '/'}"
    )
    return Hook(
        name=hook["name"],
        configuration=configuration,
        identity=identity,
        url=url,
        service=str(service.get("name") or "") if not client.get("url") else "",
        ca_bundle=_decode_bundle(client.get("caBundle") or ""),
        criteria=parse_criteria(hook, hook.get("rules") or (), matches_without_rules=False),
        conditions=prepare_conditions(hook.get("matchConditions") or (), _SCOPE),
        failure_policy=hook.get("failurePolicy") or "Fail",
        side_effects=hook.get("sideEffects") or "",
        timeout_seconds=hook.get("timeoutSeconds") or _DEFAULT_TIMEOUT,
        review_versions=tuple(hook.get("admissionReviewVersions") or ()),
        reinvocation_policy=hook.get("reinvocationPolicy") or "Never",
    )


def _decode_bundle(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""


def _decode_patch(hook: Hook, response: Response) -> list[Object]:
    if not response.patch:
        return []
    failed = f"failed calling webhook {quote(hook.name)}: "
    try:
        operations, _ = decode_json_patch(response.patch, strict=False)
    except errors.StatusError as error:
        raise _CallingFailed(f"{failed}received undecodable patch in webhook response: {error.message}") from None
    if operations and response.patch_type != "JSONPatch":
        raise _CallingFailed(f"{failed}unsupported patch type {quote(response.patch_type)}")
    return operations


def _describe(hook: Hook, *, mutated: bool) -> str:
    configuration, name = marshal_json(hook.configuration), marshal_json(hook.name)
    return f'{{"configuration":{configuration},"webhook":{name},"mutated":{marshal_json(mutated)}}}'


if TYPE_CHECKING:
    from collections.abc import Callable

    _Evaluator = Callable[[Expression], object]
