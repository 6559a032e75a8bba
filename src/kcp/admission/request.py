"""A write as an AdmissionRequest: what webhooks are sent, and what expressions know as `request`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kcp.admission.attributes import Attributes
    from kcp.admission.matching import Match
    from kcp.auth.user import UserInfo
    from kcp.meta.codec import Object
    from kcp.meta.gvk import GroupVersionKind, GroupVersionResource


def make_request(a: Attributes, match: Match) -> Object:
    """All of it but the uid and the objects, with Go's order of fields and what Go leaves out left out."""
    request: Object = {"kind": _kind(match.gvk), "resource": _resource(match.gvr)}
    if a.subresource:
        request["subResource"] = a.subresource
    request |= {"requestKind": _kind(a.gvk), "requestResource": _resource(a.gvr)}
    if a.subresource:
        request["requestSubResource"] = a.subresource
    if a.name:
        request["name"] = a.name
    if a.namespace:
        request["namespace"] = a.namespace
    request |= {"operation": a.operation.value, "userInfo": make_user_info(a.user)}
    request |= {"dryRun": a.dry_run, "options": a.options or None}
    return request


def make_user_info(user: UserInfo) -> Object:
    info: Object = {"username": user.name} if user.name else {}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = _lists(user.extra)
    return info


def _lists(extra: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {key: list(values) for key, values in sorted(extra.items())}


def _kind(gvk: GroupVersionKind) -> Object:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(gvr: GroupVersionResource) -> Object:
    return {"group": gvr.group, "version": gvr.version, "resource": gvr.resource}
