"""AdmissionReview: the question that a webhook is sent, and its answer."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcp.meta import codec, errors
from kcp.meta.gotext import quote
from kcp.meta.gvk import parse_group_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kcp.meta.codec import Object

_GROUP: Final = "admission.k8s.io"
_VERSIONS: Final = ("v1", "v1beta1")
_BAD_REQUEST: Final = 400


class InvalidResponse(Exception):
    """The webhook answered, but not with a review that can be used."""


class Response(NamedTuple):
    allowed: bool
    status: Object | None
    patch: bytes
    patch_type: str
    warnings: list[str]
    audit_annotations: Mapping[str, str]


def make_review(
    uid: str, request: Object, obj: Object | None, old_obj: Object | None, versions: Sequence[str]
) -> tuple[str, bytes]:
    """The first version that the webhook and we know, and the body to send. Raises InvalidResponse if there is none."""
    version = next((version for version in versions if version in _VERSIONS), None)
    if version is None:
        raise InvalidResponse(
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        )
    asked: Object = {"uid": uid}
    for field, value in request.items():
        if field == "dryRun":
            asked |= {"object": obj, "oldObject": old_obj}
        asked[field] = value
    review = {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": asked}
    return version, codec.dumps(review)


def parse_response(answer: bytes, uid: str, version: str, *, mutating: bool) -> Response:
    """Raises InvalidResponse."""
    try:
        review = codec.loads(answer)
    except codec.DecodeError as error:
        raise InvalidResponse(f"failed to call webhook: couldn't get version/kind; json parse error: {error}") from None
    response = review.get("response") if isinstance(review, dict) else None
    try:
        if not isinstance(response, dict):
            raise InvalidResponse("webhook response was absent")
        if version == "v1":
            _verify(review, response, uid, mutating=mutating)
        return _read(response, version, mutating=mutating)
    except InvalidResponse as error:
        raise InvalidResponse(f"received invalid webhook response: {error}") from None


def _verify(review: Object, response: Object, uid: str, *, mutating: bool) -> None:
    """What version v1 insists on."""
    given = response.get("uid") or ""
    if given != uid:
        raise InvalidResponse(f"expected response.uid={quote(uid)}, got {quote(str(given))}")
    api_version, kind = str(review.get("apiVersion") or ""), str(review.get("kind") or "")
    if (api_version, kind) != (f"{_GROUP}/v1", "AdmissionReview"):
        group, shown = parse_group_version(api_version) if api_version.count("/") < 2 else ("", api_version)
        raise InvalidResponse(
            f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview, got {group}/{shown}, Kind={kind}"
        )
    has_patch, patch_type = bool(response.get("patch")), response.get("patchType")
    if not mutating:
        if has_patch:
            raise InvalidResponse("validating webhook may not return response.patch")
        if patch_type is not None:
            raise InvalidResponse("validating webhook may not return response.patchType")
    elif has_patch and patch_type is None:
        raise InvalidResponse("webhook returned response.patch but not response.patchType")
    elif not has_patch and patch_type is not None:
        raise InvalidResponse("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise InvalidResponse('webhook returned invalid response.patchType of ""')


def _read(response: Object, version: str, *, mutating: bool) -> Response:
    patch = b""
    if mutating and response.get("patch"):
        try:
            patch = base64.b64decode(str(response["patch"]), validate=True)
        except binascii.Error:
            raise InvalidResponse("response.patch is not base64") from None
    annotations, warnings = response.get("auditAnnotations"), response.get("warnings")
    status = response.get("status")
    return Response(
        allowed=response.get("allowed") is True,
        status=status if isinstance(status, dict) else None,
        patch=patch,
        patch_type=str(response.get("patchType") or "") if version == "v1" else "JSONPatch",
        warnings=[str(warning) for warning in _as_list(warnings)],
        audit_annotations={str(k): str(v) for k, v in annotations.items()} if isinstance(annotations, dict) else {},
    )


def _as_list(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, list) else []


def to_status_error(webhook: str, status: Object | None) -> errors.StatusError:
    """A webhook's refusal in its own words, but always as a failure and always naming the webhook."""
    given = status or {}
    denied = f"admission webhook {quote(webhook)} denied the request"
    why = given.get("message") or given.get("reason")
    code = given.get("code")
    return errors.from_status(
        given
        | {
            "message": f"{denied}: {why}" if why else f"{denied} without explanation",
            "code": code if isinstance(code, int) and code >= _BAD_REQUEST else _BAD_REQUEST,
        }
    )
