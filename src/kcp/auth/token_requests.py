"""The TokenRequest API: a token for a service account, on request."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from kcp.auth.service_account_tokens import Bound
from kcp.meta import errors, field
from kcp.meta.clock import format_time
from kcp.meta.gvk import GroupKind, GroupResource, GroupVersion, GroupVersionKind, parse_group_version

if TYPE_CHECKING:
    from kcp.auth.reader import Reader
    from kcp.auth.service_account_tokens import ServiceAccountTokens
    from kcp.meta.clock import Clock
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError

DEFAULT_SECONDS: Final = 3600
MIN_SECONDS: Final = 600
MAX_SECONDS: Final = 1 << 32

_KIND: Final = GroupKind("authentication.k8s.io", "TokenRequest")
_METADATA: Final = field.FieldPath("metadata")


class TokenRequests:
    """First `prepare`, then validating admission, then `issue`: so the request is complete when admission sees it."""

    def __init__(self, tokens: ServiceAccountTokens, reader: Reader, clock: Clock) -> None:
        self._tokens = tokens
        self._reader = reader
        self._clock = clock

    def prepare(self, cluster: str, namespace: str, name: str, request: Object) -> Object:
        """The request with all that it leaves open. Raises Invalid, NotFound or Conflict."""
        metadata, spec = request.get("metadata") or {}, request.get("spec") or {}
        for key, value in (("name", name), ("namespace", namespace)):
            if metadata.get(key) and metadata[key] != value:
                detail = f"must match the service account {key} if specified"
                raise errors.Invalid(_KIND, name, [field.invalid(_METADATA.child(key), metadata[key], detail)])
        uid = self._service_account(cluster, namespace, name)["metadata"]["uid"]
        if metadata.get("uid") and metadata["uid"] != uid:
            raise errors.Conflict(
                GroupResource(*_KIND),
                name,
                f"the UID in the token request ({metadata['uid']}) does not match the UID of the service account "
                f"({uid})",
            )
        seconds = spec.get("expirationSeconds")
        prepared = {
            **request,
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                **metadata,
                "name": name,
                "namespace": namespace,
                "uid": uid,
                "creationTimestamp": format_time(self._clock.now()),
            },
            "spec": {
                "audiences": list(spec.get("audiences") or self._tokens.api_audiences),
                "expirationSeconds": DEFAULT_SECONDS if seconds is None else seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": "", "expirationTimestamp": None},
        }
        problems = _validate(prepared["spec"])
        if problems:
            raise errors.Invalid(_KIND, "", problems)
        return prepared

    def issue(self, cluster: str, request: Object) -> Object:
        """The answer to a prepared request. Raises NotFound, Conflict or BadRequest about the bound object."""
        metadata, spec = request["metadata"], request["spec"]
        service_account = self._service_account(cluster, metadata["namespace"], metadata["name"])
        bound = self._find_bound(cluster, metadata["namespace"], spec["boundObjectRef"])
        ends = self._clock.now() + timedelta(seconds=spec["expirationSeconds"])
        token = self._tokens.issue(cluster, service_account, spec["audiences"], spec["expirationSeconds"], bound)
        return {**request, "status": {"token": token, "expirationTimestamp": format_time(ends)}}

    def _service_account(self, cluster: str, namespace: str, name: str) -> Object:
        found = self._reader.get(cluster, "", "serviceaccounts", namespace, name)
        if found is None:
            raise errors.NotFound(GroupResource("", "serviceaccounts"), name)
        return found

    def _find_bound(self, cluster: str, namespace: str, ref: Object | None) -> Bound | None:
        if ref is None:
            return None
        kind, name, wanted = ref.get("kind", ""), ref.get("name", ""), ref.get("uid", "")
        gvk = _parse_kind(ref.get("apiVersion", ""), kind)
        if gvk.group or kind not in ("Pod", "Node", "Secret"):
            raise errors.BadRequest(f"cannot bind token to object of type {gvk}")
        if kind != "Secret":
            # There are no pods and nodes here.
            raise errors.NotFound(GroupResource("", f"{kind.lower()}s"), name)
        secret = self._reader.get(cluster, "", "secrets", namespace, name)
        if secret is None:
            raise errors.NotFound(GroupResource("", "secrets"), name)
        uid = secret["metadata"]["uid"]
        if wanted and uid != wanted:
            why = (
                f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise errors.Conflict(GroupResource(gvk.group, kind), name, why)
        return Bound("secret", name, uid)


def _validate(spec: Object) -> list[FieldError]:
    path, seconds = field.FieldPath("spec").child("expirationSeconds"), spec["expirationSeconds"]
    if seconds < MIN_SECONDS:
        return [field.invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > MAX_SECONDS:
        return [field.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _parse_kind(api_version: str, kind: str) -> GroupVersionKind:
    """As Go does: a version that cannot be read counts as none."""
    try:
        return parse_group_version(api_version).with_kind(kind)
    except ValueError:
        return GroupVersion("", "").with_kind(kind)
