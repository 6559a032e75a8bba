"""How the versions of a custom resource are converted to each other."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

from kcp.meta import field
from kcp.meta.validation import check_dns1035_label
from kcp.registry.strategies.webhookconfigurations import validate_webhook_service, validate_webhook_url

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath

_STRATEGIES: Final = ("None", "Webhook")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_NOT_WEBHOOK: Final = "should not be set when strategy is not set to Webhook"


def validate_conversion(
    conversion: Object | None, path: FieldPath, *, known_version: bool, allow_invalid_ca_bundle: bool
) -> list[FieldError]:
    """`known_version` insists on a review version that this server speaks."""
    if conversion is None:
        return []
    strategy = conversion.get("strategy") or ""
    webhook: Object = conversion.get("webhook") or {}
    config, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    errors: list[FieldError] = []
    if not strategy:
        errors.append(field.required(path.child("strategy")))
    elif strategy not in _STRATEGIES:
        errors.append(field.not_supported(path.child("strategy"), strategy, _STRATEGIES))
    config_path, versions_path = path.child("webhookClientConfig"), path.child("conversionReviewVersions")
    if strategy != "Webhook":
        if config is not None:
            errors.append(field.forbidden(config_path, _NOT_WEBHOOK))
        if versions:
            errors.append(field.forbidden(versions_path, _NOT_WEBHOOK))
        return errors
    if config is None:
        errors.append(field.required(config_path, "required when strategy is set to Webhook"))
    else:
        errors += _validate_client_config(config, config_path, allow_invalid_ca_bundle)
    return errors + _validate_review_versions(versions, versions_path, known_version)


def has_known_review_version(versions: list[str]) -> bool:
    return any(version in _REVIEW_VERSIONS for version in versions)


def is_valid_ca_bundle(encoded: str) -> bool:
    """Whether there is a certificate in it, by its form."""
    try:
        pem = base64.b64decode(encoded)
        return any(base64.b64decode(b"".join(body.split())) for body in _CERTIFICATE.findall(pem))
    except binascii.Error:
        return False


def _validate_client_config(config: Object, path: FieldPath, allow_invalid_ca_bundle: bool) -> list[FieldError]:
    url, service, ca_bundle = config.get("url"), config.get("service"), config.get("caBundle")
    if (url is None) == (service is None):
        errors = [field.required(path, "exactly one of url or service is required")]
    elif url is not None:
        errors = validate_webhook_url(url, path.child("url"))
    else:
        errors = validate_webhook_service(service or {}, path.child("service"))
    if ca_bundle and not allow_invalid_ca_bundle and not is_valid_ca_bundle(ca_bundle):
        why = "unable to load root certificates: unable to parse bytes as PEM block"
        errors.append(field.invalid(path.child("caBundle"), ca_bundle, why))
    return errors


def _validate_review_versions(versions: list[str], path: FieldPath, known_version: bool) -> list[FieldError]:
    if not versions:
        return [field.required(path)]
    errors: list[FieldError] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(field.invalid(path.index(index), version, "duplicate version"))
            continue
        errors += [field.invalid(path.index(index), version, why) for why in check_dns1035_label(version)]
    if known_version and not has_known_review_version(versions):
        errors.append(field.invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))
    return errors
