"""CertificateSigningRequests: who asks is written by the server, what was asked never changes, approval is apart."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from kcp.meta.clock import format_time
from kcp.meta.field import FieldPath, duplicate, forbidden, invalid, not_supported, required, too_long
from kcp.meta.gotext import quote
from kcp.meta.validation import check_dns1123_label, check_dns1123_subdomain, check_path_segment_name
from kcp.registry.gostruct import named
from kcp.registry.metadata import check_path_segment_prefix
from kcp.registry.strategies.kind import BuiltinStrategy, Step, keep
from kcp.registry.strategies.pkcs10 import explain_certificates, explain_request

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import Strategy, WriteContext

APPROVED: Final = "Approved"
DENIED: Final = "Denied"
FAILED: Final = "Failed"
_DECISIONS: Final = (APPROVED, DENIED)
_FINAL: Final = (APPROVED, DENIED, FAILED)
_LEGACY_UNKNOWN: Final = "kubernetes.io/legacy-unknown"
_SPEC: Final = FieldPath("spec")
_CONDITIONS: Final = FieldPath("status.conditions")
_CERTIFICATE: Final = FieldPath("status.certificate")
_MIN_SECONDS: Final = 600
_MAX_DOMAIN: Final = 253
_MAX_SIGNER_NAME: Final = _MAX_DOMAIN + (253 + 63 + 1) + 1
_USAGES: Final = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)


class _Allowances(NamedTuple):
    """What may stay because it was stored before it was checked, or because this endpoint is the one to set it."""

    both_decisions: bool = False
    legacy_signer_name: bool = False
    duplicate_condition_types: bool = False
    empty_condition_type: bool = False
    arbitrary_certificate: bool = False
    duplicate_usages: bool = False
    unknown_usages: bool = False

    @classmethod
    def of(cls, obj: Object, old: Object) -> _Allowances:
        spec, types = old.get("spec", {}), [condition.get("type", "") for condition in _conditions(old)]
        usages, certificate = spec.get("usages") or (), _certificate(old)
        return cls(
            both_decisions=set(_DECISIONS) <= set(types),
            legacy_signer_name=spec.get("signerName") == _LEGACY_UNKNOWN,
            duplicate_condition_types=len(set(types)) < len(types),
            empty_condition_type="" in types,
            arbitrary_certificate=_certificate(obj) == certificate or bool(explain_certificates(certificate)),
            duplicate_usages=len(set(usages)) < len(usages),
            unknown_usages=not set(usages) <= set(_USAGES),
        )


class CertificateSigningRequestStrategy(BuiltinStrategy):
    namespaced = False
    field_labels = ("spec.signerName",)
    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("spec",), ("status",))
    update_steps = (Step.METADATA, Step.TRANSITION, Step.METADATA_UPDATE)
    names_checked_again = False
    sets_approval: ClassVar[bool] = False
    sets_certificate: ClassVar[bool] = False

    def check_name(self, name: str) -> list[str]:
        return check_path_segment_name(name)

    def check_generate_name(self, name: str) -> list[str]:
        return check_path_segment_prefix(name)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        user = context.user
        asked = {name: value for name, value in obj.get("spec", {}).items() if name not in _IDENTITY}
        identity: dict[str, Any] = {
            "username": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra.items()},
        }
        obj["spec"] = asked | {name: value for name, value in identity.items() if value}
        obj["status"] = {}

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        keep(obj, old, "spec", "status")

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return _validate(obj, _Allowances())

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        errors = _validate(obj, _Allowances.of(obj, old))
        for condition_type in _FINAL:
            if len(_of_type(obj, condition_type)) < len(_of_type(old, condition_type)):
                why = f"updates may not remove a condition of type {quote(condition_type)}"
                errors.append(forbidden(_CONDITIONS, why))
        if not self.sets_approval:
            for condition_type in _DECISIONS:
                if len(_of_type(obj, condition_type)) > len(_of_type(old, condition_type)):
                    why = f"updates may not add a condition of type {quote(condition_type)}"
                    errors.append(forbidden(_CONDITIONS, why))
        if _certificate(obj) != _certificate(old):
            if not self.sets_certificate:
                errors.append(forbidden(_CERTIFICATE, "updates may not set certificate content"))
            elif _certificate(old):
                errors.append(forbidden(_CERTIFICATE, "updates may not modify existing certificate content"))
        return errors

    def validate_with_metadata(self, obj: Object, context: WriteContext) -> list[FieldError]:
        """The whole check of a new object, in which upstream has nothing to say about names."""
        return self._validate_metadata(obj["metadata"], repeat=True) + self.validate(obj, context)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {"spec.signerName": obj.get("spec", {}).get("signerName", "")}

    def subresource(self, name: str) -> Strategy | None:
        return {"status": _STATUS, "approval": _APPROVAL}.get(name)


class StatusStrategy(CertificateSigningRequestStrategy):
    """For signers: the certificate, and conditions but the decision."""

    reset_fields = (("spec",), ("status", "conditions"))
    sets_certificate = True

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        keep(obj, old, "spec")
        conditions = _copy_conditions(obj)
        for condition_type in _DECISIONS:
            before = _of_type(old, condition_type)
            places = [place for place, each in enumerate(conditions) if each.get("type") == condition_type]
            if len(places) == len(before):
                for place, condition in zip(places, before, strict=True):
                    conditions[place] = {**condition}
        _stamp(conditions, old, format_time(context.now))


class ApprovalStrategy(CertificateSigningRequestStrategy):
    """For approvers: conditions, and nothing else."""

    reset_fields = (("spec",), ("status", "certificate"))
    sets_approval = True

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        conditions = _copy_conditions(obj)
        _stamp(conditions, old, format_time(context.now))
        keep(obj, old, "spec")
        obj["status"] = {name: value for name, value in old.get("status", {}).items() if name != "conditions"}
        if conditions:
            obj["status"]["conditions"] = conditions


_IDENTITY: Final = ("username", "uid", "groups", "extra")
_STATUS: Final = StatusStrategy()
_APPROVAL: Final = ApprovalStrategy()


def validate_signer_name(name: str, path: FieldPath) -> list[FieldError]:
    """`example.com/signer-name`: a domain and a path whose dots separate DNS names."""
    if not name:
        return [required(path)]
    segments = name.split("/")
    if len(segments) != 2:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, why)]
    domain, signer = segments
    errors = [too_long(path, _MAX_DOMAIN)] if len(domain.encode()) > _MAX_DOMAIN else []
    labels = domain.split(".")
    wrong = next((label for label in labels if check_dns1123_label(label)), None)
    if wrong is not None:
        whys = check_dns1123_label(wrong)
        errors += [invalid(path, domain, f"validating label {quote(wrong)}: {why}") for why in whys]
    if len(labels) < 2:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    wrong = next((label for label in signer.split(".") if check_dns1123_subdomain(label)), None)
    if wrong is not None:
        whys = check_dns1123_subdomain(wrong)
        errors += [invalid(path, signer, f"validating label {quote(wrong)}: {why}") for why in whys]
    if len(name.encode()) > _MAX_SIGNER_NAME:
        errors.append(too_long(path, _MAX_SIGNER_NAME))
    return errors


def _validate(obj: Object, allowances: _Allowances) -> list[FieldError]:
    spec = obj.get("spec", {})
    request = spec.get("request")
    errors: list[FieldError] = []
    if why := explain_request(base64.b64decode(request or "")):
        errors.append(invalid(_SPEC.child("request"), request, why))
    errors += _validate_usages(spec.get("usages") or [], allowances)
    name, path = spec.get("signerName", ""), _SPEC.child("signerName")
    if name == _LEGACY_UNKNOWN and not allowances.legacy_signer_name:
        errors.append(invalid(path, name, "the legacy signerName is not allowed via this API version"))
    else:
        errors += validate_signer_name(name, path)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _MIN_SECONDS:
        why = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid(_SPEC.child("expirationSeconds"), seconds, why))
    errors += _validate_conditions(obj, allowances)
    if not allowances.arbitrary_certificate and (why := explain_certificates(_certificate(obj))):
        errors.append(invalid(_CERTIFICATE, "<certificate data>", why))
    return errors


def _validate_usages(usages: list[str], allowances: _Allowances) -> list[FieldError]:
    path = _SPEC.child("usages")
    errors = [] if usages else [required(path)]
    if not allowances.unknown_usages:
        unknown = [(position, usage) for position, usage in enumerate(usages) if usage not in _USAGES]
        errors += [not_supported(path.index(position), named(usage), _USAGES) for position, usage in unknown]
    if not allowances.duplicate_usages:
        repeated = [(position, usage) for position, usage in enumerate(usages) if usage in usages[:position]]
        errors += [duplicate(path.index(position), named(usage)) for position, usage in repeated]
    return errors


def _validate_conditions(obj: Object, allowances: _Allowances) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: list[str] = []
    for position, condition in enumerate(_conditions(obj)):
        path, condition_type, status = _CONDITIONS.index(position), condition.get("type", ""), condition.get("status")
        if not condition_type and not allowances.empty_condition_type:
            errors.append(required(path.child("type")))
        allowed = ("True",) if condition_type in _FINAL else ("False", "True", "Unknown")
        if not status:
            errors.append(required(path.child("status")))
        elif status not in allowed:
            errors.append(not_supported(path.child("status"), named(status), allowed))
        opposite = {APPROVED: DENIED, DENIED: APPROVED}.get(condition_type)
        if opposite in seen and not allowances.both_decisions:
            why = "Approved and Denied conditions are mutually exclusive"
            errors.append(invalid(_CONDITIONS, condition_type, why))
        if condition_type in seen and not allowances.duplicate_condition_types:
            errors.append(duplicate(path.child("type"), named(condition_type)))
        seen.append(condition_type)
    return errors


def _stamp(conditions: list[Object], old: Object, now: str) -> None:
    """Times that the client left to the server: a status that was there before keeps its time."""
    for condition in conditions:
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        if not condition.get("lastTransitionTime"):
            same = (each for each in _of_type(old, condition.get("type", "")))
            times = [each.get("lastTransitionTime") for each in same if each.get("status") == condition.get("status")]
            condition["lastTransitionTime"] = next(filter(None, times), now)


def _copy_conditions(obj: Object) -> list[Object]:
    """The conditions, now the object's own, so that changing them leaves the rest of the world alone."""
    conditions = [{**condition} for condition in _conditions(obj)]
    if conditions:
        obj["status"] = {**obj["status"], "conditions": conditions}
    return conditions


def _conditions(obj: Object) -> list[Object]:
    return obj.get("status", {}).get("conditions") or []


def _of_type(obj: Object, condition_type: str) -> list[Object]:
    return [condition for condition in _conditions(obj) if condition.get("type") == condition_type]


def _certificate(obj: Object) -> bytes:
    return base64.b64decode(obj.get("status", {}).get("certificate") or "")
