"""Validating admission policies: their validations, audit annotations and status, and what their bindings do."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from kcp.meta.field import FieldPath, duplicate, invalid, not_supported, required
from kcp.meta.validation import check_qualified_name
from kcp.registry.gostruct import GoStruct, named
from kcp.registry.metadata import reset_object_meta_for_status
from kcp.registry.strategies.admissionpolicies import SPEC, AdmissionPolicyBindingStrategy, AdmissionPolicyStrategy
from kcp.registry.strategies.conditions import validate_conditions
from kcp.registry.strategies.expressions import CompileExpression, ExpressionKind, trust_expression
from kcp.registry.strategies.kind import Step, keep

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import Strategy, WriteContext

_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_MAX_AUDIT_ANNOTATIONS: Final = 20
_MAX_VALUE_EXPRESSION: Final = 5 << 10
_AUDIT_ANNOTATION: Final = (("key", "Key", ""), ("valueExpression", "ValueExpression", ""))


class ValidatingAdmissionPolicyStrategy(AdmissionPolicyStrategy):
    reset_fields: ClassVar[tuple[tuple[str, ...], ...]] = (("status",),)

    def __init__(self, compile_expression: CompileExpression = trust_expression) -> None:
        super().__init__(compile_expression)
        self._status = StatusStrategy(compile_expression) if type(self) is ValidatingAdmissionPolicyStrategy else None

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        obj["status"] = {}

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        keep(obj, old, "status")

    def validate_spec(self, obj: Object, *, ignore_match_conditions: bool) -> list[FieldError]:
        errors = super().validate_spec(obj, ignore_match_conditions=ignore_match_conditions)
        spec = obj.get("spec", {})
        validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or []
        if not validations and not annotations:
            why = "validations or auditAnnotations must contain at least one item"
            return [*errors, required(SPEC.child("validations"), why), required(SPEC.child("auditAnnotations"), why)]
        for position, validation in enumerate(validations):
            errors += self._validate_validation(validation, spec, SPEC.child("validations").index(position))
        return errors + self._validate_audit_annotations(annotations, spec, obj["metadata"].get("name", ""))

    def subresource(self, name: str) -> Strategy | None:
        return self._status if name == "status" else None

    def _validate_validation(self, validation: Object, spec: Object, path: FieldPath) -> list[FieldError]:
        expression, message = validation.get("expression", ""), validation.get("message", "")
        message_expression, reason = validation.get("messageExpression", ""), validation.get("reason")
        if expression.strip():
            where = path.child("expression")
            errors = self.compile(expression, ExpressionKind.VALIDATION, spec, where, expression)
        else:
            errors = [required(path.child("expression"), "expression is not specified")]
        where = path.child("messageExpression")
        if message_expression.strip():
            errors += self.compile(message_expression, ExpressionKind.MESSAGE, spec, where, message_expression)
        elif message_expression:
            errors.append(invalid(where, message_expression, "must be non-empty if specified"))
        if message and not message.strip():
            errors.append(invalid(path.child("message"), message, "must be non-empty if specified"))
        elif "\n" in message.strip() or "\r" in message.strip():
            errors.append(invalid(path.child("message"), message, "must not contain line breaks"))
        if reason is not None and reason not in _REASONS:
            errors.append(not_supported(path.child("reason"), named(reason), _REASONS))
        return errors

    def _validate_audit_annotations(self, annotations: list[Object], spec: Object, name: str) -> list[FieldError]:
        errors: list[FieldError] = []
        root = SPEC.child("auditAnnotations")
        if len(annotations) > _MAX_AUDIT_ANNOTATIONS:
            shown = GoStruct.list_of([GoStruct.of(each, _AUDIT_ANNOTATION) for each in annotations])
            errors.append(invalid(root, shown, f"must not have more than {_MAX_AUDIT_ANNOTATIONS} auditAnnotations"))
        keys: set[str] = set()
        for position, annotation in enumerate(annotations):
            path, key = root.index(position), annotation.get("key", "")
            if name:
                full = f"{name}/{key}"
                errors += [invalid(path.child("key"), full, why) for why in check_qualified_name(full)]
            else:
                errors.append(invalid(path.child("key"), key, "requires metadata.name be non-empty"))
            errors += self._validate_value_expression(annotation, spec, path.child("valueExpression"))
            if key in keys:
                errors.append(duplicate(path.child("key"), key))
            keys.add(key)
        return errors

    def _validate_value_expression(self, annotation: Object, spec: Object, path: FieldPath) -> list[FieldError]:
        written = annotation.get("valueExpression", "")
        text = written.strip()
        if not text:
            return [required(path, "valueExpression is not specified")]
        if len(text.encode("utf-8", "surrogatepass")) > _MAX_VALUE_EXPRESSION:
            return [required(path, f"must not exceed {_MAX_VALUE_EXPRESSION} bytes in length")]
        return self.compile(text, ExpressionKind.AUDIT_ANNOTATION, spec, path, written)


class StatusStrategy(ValidatingAdmissionPolicyStrategy):
    reset_fields = (("spec",), ("metadata",))
    update_steps = (Step.TRANSITION,)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        keep(obj, old, "spec")
        reset_object_meta_for_status(obj["metadata"], old["metadata"])

    def validate_transition(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        status, root = obj.get("status", {}), FieldPath("status")
        errors: list[FieldError] = []
        warnings = (status.get("typeChecking") or {}).get("expressionWarnings") or ()
        for position, warning in enumerate(warnings):
            path = root.child("typeChecking", "expressionWarnings").index(position)
            if not warning.get("warning"):
                errors.append(required(path.child("warning")))
            if not warning.get("fieldRef", "").strip():
                errors.append(required(path.child("fieldRef")))
        return errors + validate_conditions(status.get("conditions") or (), root.child("conditions"))


class ValidatingAdmissionPolicyBindingStrategy(AdmissionPolicyBindingStrategy):
    def validate_content(self, obj: Object, context: WriteContext) -> list[FieldError]:
        actions, path = obj.get("spec", {}).get("validationActions") or [], SPEC.child("validationActions")
        errors = super().validate_content(obj, context)
        for position, action in enumerate(actions):
            if action not in _ACTIONS:
                errors.append(not_supported(path.index(position), named(action), _ACTIONS))
            if action in actions[:position]:
                errors.append(duplicate(path.index(position), named(action)))
        if "Deny" in actions and "Warn" in actions:
            why = (
                "must not contain both Deny and Warn (repeating the same validation failure information in the API "
                "response and headers serves no purpose)"
            )
            errors.append(invalid(path, actions, why))
        if not actions:
            errors.append(required(path, "at least one validation action is required"))
        return errors
