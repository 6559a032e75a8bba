"""Mutating and validating webhook configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from kcp.meta.field import FieldPath, duplicate, invalid, not_supported, required
from kcp.meta.validation import check_dns1035_label, check_dns1123_subdomain
from kcp.registry.gostruct import named
from kcp.registry.strategies import go_url
from kcp.registry.strategies.admission_rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    default_rules,
    default_selectors,
    validate_match_conditions,
    validate_rule,
)
from kcp.registry.strategies.expressions import CompileExpression, trust_expression
from kcp.registry.strategies.kind import BuiltinStrategy, Step
from kcp.registry.strategies.selectors import validate_label_selector

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import WriteContext

_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_URL_FORM: Final = "; desired format: https://host[/path]"
_PORT_RANGE: Final = "port is not valid: must be between 1 and 65535, inclusive"


class _Allowances(NamedTuple):
    """What may stay because it was stored before it was checked."""

    match_conditions: bool = False
    side_effects: bool = False
    review_versions: bool = False
    repeated_names: bool = False
    selector_values: bool = False

    @classmethod
    def of(cls, hooks: list[Object], old: list[Object]) -> _Allowances:
        names = [hook.get("name", "") for hook in old]
        return cls(
            match_conditions=_match_conditions(hooks) == _match_conditions(old),
            side_effects=any(hook.get("sideEffects") not in _NO_SIDE_EFFECTS for hook in old),
            review_versions=any(
                hook.get("admissionReviewVersions") and not _names_known_version(hook["admissionReviewVersions"])
                for hook in old
            ),
            repeated_names=len(set(names)) < len(names),
            selector_values=any(
                validate_label_selector(hook.get(field), FieldPath())
                for hook in old
                for field in ("namespaceSelector", "objectSelector")
            ),
        )


class WebhookConfigurationStrategy(BuiltinStrategy):
    """Both kinds; `mutating` adds the reinvocation policy."""

    namespaced = False
    allow_unconditional_update = False
    generation = True
    kube_finalizers = False
    update_steps = (Step.METADATA, Step.TRANSITION)
    mutating: ClassVar[bool] = False

    def __init__(self, compile_expression: CompileExpression = trust_expression) -> None:
        self._compile = compile_expression

    def default(self, obj: Object) -> None:
        for hook in obj.get("webhooks") or ():
            if hook.get("failurePolicy") is None:
                hook["failurePolicy"] = "Fail"
            default_selectors(hook)
            if hook.get("timeoutSeconds") is None:
                hook["timeoutSeconds"] = 10
            if self.mutating and hook.get("reinvocationPolicy") is None:
                hook["reinvocationPolicy"] = "Never"
            default_rules(hook.get("rules"))
            service = (hook.get("clientConfig") or {}).get("service")
            if service is not None and service.get("port") is None:
                service["port"] = 443

    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return self._validate(obj.get("webhooks") or [], _Allowances())

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        hooks = obj.get("webhooks") or []
        return self._validate(hooks, _Allowances.of(hooks, old.get("webhooks") or []))

    def spec_of(self, obj: Object) -> object:
        return obj.get("webhooks")

    def _validate(self, hooks: list[Object], allowances: _Allowances) -> list[FieldError]:
        errors: list[FieldError] = []
        seen: set[str] = set()
        for position, hook in enumerate(hooks):
            path, name = FieldPath("webhooks").index(position), hook.get("name", "")
            errors += _validate_qualified_name(name, path.child("name"))
            errors += self._validate_hook(hook, path, allowances)
            errors += _validate_review_versions(hook, path.child("admissionReviewVersions"), allowances)
            if name in seen and not allowances.repeated_names:
                errors.append(duplicate(path.child("name"), name))
            seen |= {name} if name else set()
        return errors

    def _validate_hook(self, hook: Object, path: FieldPath, allowances: _Allowances) -> list[FieldError]:
        errors: list[FieldError] = []
        for position, rule in enumerate(hook.get("rules") or ()):
            errors += validate_rule(rule, path.child("rules").index(position))
        errors += _validate_choice(hook, "failurePolicy", FAILURE_POLICIES, path)
        errors += _validate_choice(hook, "matchPolicy", MATCH_POLICIES, path)
        classes = _SIDE_EFFECTS if allowances.side_effects else _NO_SIDE_EFFECTS
        if hook.get("sideEffects") is None:
            errors.append(required(path.child("sideEffects"), f"must specify one of {', '.join(classes)}"))
        errors += _validate_choice(hook, "sideEffects", classes, path)
        seconds = hook.get("timeoutSeconds")
        if seconds is not None and not 1 <= seconds <= 30:
            why = "the timeout value must be between 1 and 30 seconds"
            errors.append(invalid(path.child("timeoutSeconds"), seconds, why))
        for field in ("namespaceSelector", "objectSelector"):
            errors += validate_label_selector(
                hook.get(field), path.child(field), allow_invalid_values=allowances.selector_values
            )
        if self.mutating:
            errors += _validate_choice(hook, "reinvocationPolicy", REINVOCATION_POLICIES, path)
        errors += _validate_client_config(hook.get("clientConfig") or {}, path.child("clientConfig"))
        if not allowances.match_conditions:
            conditions, where = hook.get("matchConditions") or (), path.child("matchConditions")
            errors += validate_match_conditions(conditions, where, self._compile, has_params=False)
        return errors


class MutatingWebhookConfigurationStrategy(WebhookConfigurationStrategy):
    mutating = True


def validate_webhook_url(url: str, path: FieldPath) -> list[FieldError]:
    try:
        found = go_url.parse(url)
    except go_url.URLError as error:
        return [required(path, f"url must be a valid URL: {error}{_URL_FORM}")]
    errors: list[FieldError] = []
    if found.scheme != "https":
        errors.append(invalid(path, found.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"))
    if not found.host:
        errors.append(invalid(path, found.host, f"host must be specified{_URL_FORM}"))
    if found.user is not None:
        errors.append(invalid(path, found.user, "user information is not permitted in the URL"))
    if found.fragment:
        errors.append(invalid(path, found.fragment, "fragments are not permitted in the URL"))
    if found.query:
        errors.append(invalid(path, found.query, "query parameters are not permitted in the URL"))
    return errors


def validate_webhook_service(service: Object, path: FieldPath) -> list[FieldError]:
    """A reference to a service. Upstream confuses its name with its namespace, and clients see that."""
    errors: list[FieldError] = []
    if not service.get("namespace"):
        errors.append(required(path.child("name")))
    if not service.get("name"):
        errors.append(required(path.child("namespace")))
    port = service.get("port", 0)
    if not 1 <= port <= 65535:
        errors.append(invalid(path.child("port"), port, _PORT_RANGE))
    return errors + _validate_url_path(service.get("path") or "", path.child("path"))


def _validate_url_path(url_path: str, path: FieldPath) -> list[FieldError]:
    if url_path in ("", "/"):
        return []
    if url_path == "//":
        return [invalid(path, url_path, "segment[0] may not be empty")]
    errors = [] if url_path.startswith("/") else [invalid(path, url_path, "must start with a '/'")]
    for position, segment in enumerate(url_path[1:].removesuffix("/").split("/")):
        if not segment:
            errors.append(invalid(path, url_path, f"segment[{position}] may not be empty"))
            continue
        whys = check_dns1123_subdomain(segment)
        errors += [invalid(path, url_path, f"segment[{position}]: {why}") for why in whys]
    return errors


def _validate_client_config(config: Object, path: FieldPath) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if url is not None:
        return validate_webhook_url(url, path.child("url"))
    return validate_webhook_service(service or {}, path.child("service"))


def _validate_qualified_name(name: str, path: FieldPath) -> list[FieldError]:
    if not name:
        return [required(path)]
    if whys := check_dns1123_subdomain(name):
        return [invalid(path, name, ",".join(whys))]
    if name.count(".") < 2:
        return [invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _validate_choice(hook: Object, field: str, choices: tuple[str, ...], path: FieldPath) -> list[FieldError]:
    chosen = hook.get(field)
    return [] if chosen is None or chosen in choices else [not_supported(path.child(field), named(chosen), choices)]


def _validate_review_versions(hook: Object, path: FieldPath, allowances: _Allowances) -> list[FieldError]:
    versions = hook.get("admissionReviewVersions") or []
    if not versions:
        return [required(path, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")]
    errors: list[FieldError] = []
    for position, version in enumerate(versions):
        if version in versions[:position]:
            errors.append(invalid(path.index(position), version, "duplicate version"))
            continue
        errors += [invalid(path.index(position), version, why) for why in check_dns1035_label(version)]
    if not allowances.review_versions and not _names_known_version(versions):
        errors.append(invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))
    return errors


def _names_known_version(versions: list[str]) -> bool:
    return any(version in _REVIEW_VERSIONS for version in versions)


def _match_conditions(hooks: list[Object]) -> list[list[Object]]:
    return [hook.get("matchConditions") or [] for hook in hooks]
