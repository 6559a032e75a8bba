"""Answers to the review kinds: who am I, what may I, what may they, whose token is this.

Each takes a valid review and gives it back with its status; nothing is stored. Validation is the strategies' part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.auth.attributes import Attributes
from kcp.auth.rbac import describe_not_found, join_errors
from kcp.auth.user import UserInfo
from kcp.meta import errors, fields, labels, wellknown
from kcp.meta.clock import format_time

if TYPE_CHECKING:
    from datetime import datetime

    from kcp.auth.authenticator import Authenticator
    from kcp.auth.authorizer import Authorizer
    from kcp.meta.codec import Object


def review_subject_access(authorizer: Authorizer, cluster: str, review: Object) -> Object:
    """A SubjectAccessReview: what may this user do."""
    spec = review["spec"]
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    user = UserInfo(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)
    return _review_access(authorizer, cluster, user, review)


def review_local_subject_access(authorizer: Authorizer, cluster: str, namespace: str, review: Object) -> Object:
    """A LocalSubjectAccessReview, for one namespace. Raises BadRequest if the two namespaces differ."""
    if (review.get("metadata") or {}).get("namespace", "") != namespace:
        raise errors.BadRequest(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return review_subject_access(authorizer, cluster, review)


def review_self_subject_access(authorizer: Authorizer, cluster: str, user: UserInfo, review: Object) -> Object:
    """A SelfSubjectAccessReview: what may I do."""
    return _review_access(authorizer, cluster, user, review)


def review_self_subject_rules(authorizer: Authorizer, cluster: str, user: UserInfo, review: Object) -> Object:
    """A SelfSubjectRulesReview: all that I may do in a namespace. Raises BadRequest without one."""
    namespace = (review.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise errors.BadRequest("no namespace on request")
    found = authorizer.rules_for(user, cluster, namespace)
    resource_fields = ("verbs", "apiGroups", "resources", "resourceNames")
    status: Object = {
        "resourceRules": [_pick(rule, resource_fields) for rule in found.rules if rule.get("resources")],
        "nonResourceRules": [
            _pick(rule, ("verbs", "nonResourceURLs")) for rule in found.rules if rule.get("nonResourceURLs")
        ],
        "incomplete": False,
    }
    if found.missing:
        status["evaluationError"] = join_errors(describe_not_found(ref.kind.lower(), ref) for ref in found.missing)
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": status,
    }


def review_self_subject(user: UserInfo, now: datetime) -> Object:
    """A SelfSubjectReview: who am I."""
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": format_time(now)},
        "status": {"userInfo": describe_user(user)},
    }


async def review_token(authenticator: Authenticator, cluster: str, review: Object) -> Object:
    """A TokenReview: whose token is this. Raises BadRequest if there is none."""
    spec = review.get("spec") or {}
    token = spec.get("token", "")
    if not token:
        raise errors.BadRequest("token is required for TokenReview in authentication")
    audiences = spec.get("audiences") or authenticator.api_audiences
    identity, complaint = await authenticator.review(token, cluster, audiences)
    if identity is None:
        return {**review, "status": {"user": {}, "error": complaint}}
    user = identity.user
    if user.extra.get(wellknown.EXTRA_CLUSTER_NAME) == (cluster,):
        # At home a service account is what it is in Kubernetes; only elsewhere its origin matters.
        extra = {key: values for key, values in user.extra.items() if key != wellknown.EXTRA_CLUSTER_NAME}
        user = UserInfo(user.name, user.uid, user.groups, extra)
    status = {"authenticated": True, "user": describe_user(user), "audiences": list(identity.audiences)}
    return {**review, "status": status}


def describe_user(user: UserInfo) -> Object:
    """authentication.k8s.io UserInfo, without what is empty."""
    extra = {key: list(values) for key, values in user.extra.items()}
    described = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    return {field: value for field, value in described.items() if value}


def _review_access(authorizer: Authorizer, cluster: str, user: UserInfo, review: Object) -> Object:
    spec = review["spec"]
    asked = spec.get("resourceAttributes")
    if asked is not None:
        attributes = Attributes(
            user=user,
            verb=asked.get("verb", ""),
            cluster=cluster,
            group=asked.get("group", ""),
            version=asked.get("version") or "*",
            resource=asked.get("resource", ""),
            subresource=asked.get("subresource", ""),
            namespace=asked.get("namespace", ""),
            name=asked.get("name", ""),
        )
    else:
        asked = spec.get("nonResourceAttributes") or {}
        attributes = Attributes(user, asked.get("verb", ""), cluster, path=asked.get("path", ""))
    decision = authorizer.authorize(attributes)
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    problems = _check_selectors(spec.get("resourceAttributes") or {})
    if problems:
        status["evaluationError"] = "; ".join(problems)
    return {**review, "status": status}


def _check_selectors(asked: Object) -> list[str]:
    """Selectors do not narrow what RBAC allows, but a client should know when one could not be read."""
    problems = []
    for title, bad, good in (
        ("fieldSelector", *_read_field_selector(asked.get("fieldSelector") or {})),
        ("labelSelector", *_read_label_selector(asked.get("labelSelector") or {})),
    ):
        if bad:
            extent = "partially ignored" if good else "ignored"
            problems.append(f"spec.resourceAttributes.{title} {extent} due to parse error")
    return problems


def _read_field_selector(selector: Object) -> tuple[int, int]:
    """How many requirements cannot be read, and how many can."""
    requirements = selector.get("requirements") or ()
    if requirements:
        good = sum(
            item.get("operator") in ("In", "NotIn") and len(item.get("values") or ()) == 1 for item in requirements
        )
        return len(requirements) - good, good
    try:
        fields.parse(selector.get("rawSelector") or "")
    except ValueError:
        return 1, 0
    return 0, 0


def _read_label_selector(selector: Object) -> tuple[int, int]:
    requirements = selector.get("requirements") or ()
    good = sum(map(_is_label_requirement, requirements))
    if requirements:
        return len(requirements) - good, good
    try:
        labels.parse(selector.get("rawSelector") or "")
    except ValueError:
        return 1, 0
    return 0, 0


def _is_label_requirement(item: Object) -> bool:
    try:
        labels.from_label_selector({"matchExpressions": [item]})
    except ValueError:
        return False
    return True


def _pick(rule: Object, names: tuple[str, ...]) -> Object:
    return {name: list(rule[name]) for name in names if rule.get(name)}
