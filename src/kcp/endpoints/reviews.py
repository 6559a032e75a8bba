"""Kinds that are asked and answered but never stored: access reviews, token reviews and token requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.admission.attributes import Operation
from kcp.apis.typed import typed_for
from kcp.auth import reviews
from kcp.endpoints import bodies, negotiation
from kcp.endpoints.options import WriteOptions
from kcp.endpoints.reads import media_for, show
from kcp.endpoints.writes import decode_body, write_request
from kcp.meta import codec, errors
from kcp.meta.gvk import GroupKind, GroupVersionKind
from kcp.patch.managed_fields import WriteScope, update_managed_fields
from kcp.registry.builtin import merge_schema
from kcp.registry.create import begin
from kcp.registry.strategies import reviews as rules
from kcp.registry.writing import make_attributes

if TYPE_CHECKING:
    from collections.abc import Callable

    from kcp.auth.authenticator import Authenticator
    from kcp.auth.token_requests import TokenRequests
    from kcp.endpoints.request import Request
    from kcp.endpoints.respond import Response
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource

TOKEN_REQUEST: Final = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
_WRONG_NAMESPACE: Final = "the namespace of the provided object does not match the namespace sent on the request"
_CHECKS: Final[dict[str, Callable[[Object], list[FieldError]]]] = {
    "subjectaccessreviews": rules.validate_subject_access_review,
    "selfsubjectaccessreviews": rules.validate_self_subject_access_review,
    "localsubjectaccessreviews": rules.validate_local_subject_access_review,
}


class Reviews:
    resources: Final = frozenset(
        {
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectreviews",
            "selfsubjectrulesreviews",
            "subjectaccessreviews",
            "tokenreviews",
        }
    )

    def __init__(self, registry: Registry, authenticator: Authenticator, token_requests: TokenRequests) -> None:
        self._registry = registry
        self._authenticator = authenticator
        self._tokens = token_requests

    async def create(self, request: Request, resource: Resource) -> Response:
        media = media_for(request, resource, collection=False)
        options = WriteOptions(request, "CreateOptions")
        obj = await decode_body(self._registry, resource, request, options)
        write = write_request(request, options)
        begin(resource, write, obj)
        self._track(obj, resource.gvk, options.manager, "")
        attributes = make_attributes(resource, write, Operation.CREATE, obj, None)
        await self._registry.chain.mutate(attributes)
        await self._registry.chain.validate(attributes)
        check = _CHECKS.get(resource.gvr.resource)
        problems = check(obj) if check else []
        if problems:
            raise errors.Invalid(GroupKind(resource.gvr.group, ""), "", problems)
        answer = await self._answer(request, resource.gvr.resource, obj)
        return show(self._registry, resource, request, codec.dumps(answer), media=media, status=201)

    async def _answer(self, request: Request, resource: str, obj: Object) -> Object:
        authorizer, cluster, user = self._registry.authorizer, request.cluster, request.user
        match resource:
            case "subjectaccessreviews":
                return reviews.review_subject_access(authorizer, cluster, obj)
            case "localsubjectaccessreviews":
                return reviews.review_local_subject_access(authorizer, cluster, request.info.namespace, obj)
            case "selfsubjectaccessreviews":
                return reviews.review_self_subject_access(authorizer, cluster, user, obj)
            case "selfsubjectrulesreviews":
                return reviews.review_self_subject_rules(authorizer, cluster, user, obj)
            case "selfsubjectreviews":
                return reviews.review_self_subject(user, self._registry.clock.now())
            case _:
                return await reviews.review_token(self._authenticator, cluster, obj)

    async def create_token(self, request: Request, resource: Resource) -> Response:
        """serviceaccounts/token"""
        media = media_for(request, resource, collection=False)
        options = WriteOptions(request, "CreateOptions")
        info = request.info
        data = await request.body()
        content_type = negotiation.parse_content_type(request.header(b"content-type"))
        mode = options.field_validation or "Warn"
        parsed = bodies.parse_body(data, content_type, TOKEN_REQUEST, strict=mode != "Ignore")
        obj = bodies.check_type(parsed.value, TOKEN_REQUEST, data, self._registry.catalogue.known_kinds)
        decoded, warnings = bodies.decode(parsed, obj, TOKEN_REQUEST, typed_for(TOKEN_REQUEST).decode, mode)
        request.warnings += warnings
        given = (decoded.get("metadata") or {}).get("namespace", "")
        if given and given != info.namespace:
            raise errors.BadRequest(_WRONG_NAMESPACE)
        rules.default_token_request(decoded)
        self._track(decoded, TOKEN_REQUEST, options.manager, "token")
        prepared = self._tokens.prepare(request.cluster, info.namespace, info.name, decoded)
        attributes = make_attributes(resource, write_request(request, options), Operation.CREATE, prepared, None)
        await self._registry.chain.mutate(attributes)
        await self._registry.chain.validate(attributes)
        answer = self._tokens.issue(request.cluster, prepared)
        if not (decoded.get("spec") or {}).get("audiences"):
            answer["spec"] = {name: value for name, value in answer["spec"].items() if name != "audiences"}
        return show(self._registry, resource, request, codec.dumps(answer), media=media, status=201)

    def _track(self, obj: Object, gvk: GroupVersionKind, manager: str, subresource: str) -> None:
        obj.setdefault("metadata", {})
        scope = WriteScope(gvk, merge_schema(gvk), subresource=subresource)
        # What Go has before a client says anything: fields that are written even when they are empty are there.
        nothing = typed_for(gvk).decode({})
        update_managed_fields(nothing, obj, scope, manager=manager, now=self._registry.clock.now())
