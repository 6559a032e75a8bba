"""A structural schema, compiled: what a custom resource's objects go through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from kcp.meta import field
from kcp.meta.field import FieldErrorType, FieldPath
from kcp.schema.structural.checks import compile_check
from kcp.schema.structural.correlation import Correlation
from kcp.schema.structural.defaulting import compile_defaulter
from kcp.schema.structural.listtypes import compile_list_types, compile_suspicion
from kcp.schema.structural.nodes import RULES, Node, make_node
from kcp.schema.structural.objectmeta import coerce, has_embedded, validate_embedded
from kcp.schema.structural.pruning import compile_pruner
from kcp.schema.structural.results import make_field_errors
from kcp.schema.structural.values import ValueSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.schema.structural.objectmeta import MetadataRules

_ROOT: Final = FieldPath()
# Errors after which CEL rules cannot be asked: what they would see is not what they were compiled for.
_BLOCKING: Final = frozenset(
    {
        FieldErrorType.NOT_SUPPORTED,
        FieldErrorType.REQUIRED,
        FieldErrorType.TOO_LONG,
        FieldErrorType.TOO_MANY,
        FieldErrorType.TYPE_INVALID,
    }
)
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


class RuleEvaluator(Protocol):
    """Evaluates the x-kubernetes-validations of a schema."""

    def __call__(self, obj: Object, old: Object | None) -> list[FieldError]: ...

    def warnings(self, obj: Object) -> list[str]:
        """What was wrong with an object, but forgiven because it was so before, when it was asked about last."""


class Structural:
    """All that a schema does to objects. `rules` read and judge the metadata of embedded resources."""

    def __init__(self, schema: Object, rules: MetadataRules | None = None) -> None:
        self.schema = schema
        self.root = make_node(schema)
        self.has_rules = _has_rules(self.root)
        self.values = ValueSchema(schema)
        self._rules = rules if has_embedded(self.root) else None
        _prune_defaults(self.root)
        self._prune = compile_pruner(self.root, is_root=True)
        self._default = compile_defaulter(self.root)
        self._accepts = compile_check(self.values)
        self._validate_lists = compile_list_types(self.root)
        self._may_repeat = compile_suspicion(self.root) or bool
        status = self.values.properties.get("status")
        self._status = None if status is None else (status, compile_check(status), self.root.properties["status"])

    def prune(self, obj: Object, unknown: list[str] | None = None) -> Object:
        """A new object of what the schema specifies; values below may be shared. Type and metadata stay.

        Appends to `unknown` what strict decoding says of each field that was dropped. Raises CoerceError if an
        embedded resource has metadata of the wrong form.
        """
        paths: list[str] = []
        pruned: Object = self._prune(obj, (), paths)
        if self._rules is not None:
            embedded: list[str] = []
            coerce(pruned, self.root, _ROOT, self._rules, embedded)
            paths = sorted(paths) + sorted(embedded)
        elif paths:
            paths.sort()
        if unknown is not None:
            unknown += [f'unknown field "{path}"' for path in paths]
        return pruned

    def default(self, obj: Object) -> None:
        """Fill in defaults, in place."""
        if self._default is not None:
            self._default(obj)

    def validate(
        self, obj: Object, old: Object | None = None, *, rules: RuleEvaluator | None = None
    ) -> list[FieldError]:
        """Everything wrong with an object; with an old one, unless it was wrong before and did not change."""
        errors = self.validate_values(obj, old)
        errors += self.validate_embedded(obj)
        errors += self.validate_lists(obj, old)
        return errors + self.validate_rules(obj, old, errors, rules)

    def validate_values(self, obj: Object, old: Object | None = None) -> list[FieldError]:
        """Types, bounds and everything else that a schema says of values."""
        if self._accepts(obj):
            return []
        correlation = None if old is None else Correlation(obj, old, self.root)
        return make_field_errors(self.values.validate(obj, "", correlation).errors, _ROOT)

    def validate_status(self, obj: Object, old: Object) -> list[FieldError]:
        """The values of the status only; its paths in messages start at the status, as in Kubernetes."""
        if self._status is None or "status" not in obj:
            return []
        values, accepts, node = self._status
        status = obj["status"]
        if accepts(status):
            return []
        correlation = Correlation(status, old.get("status"), node)
        return make_field_errors(values.validate(status, "", correlation).errors, _ROOT.child("status"))

    def validate_embedded(self, obj: Object) -> list[FieldError]:
        """The types and metadata of embedded resources."""
        return [] if self._rules is None else validate_embedded(obj, self.root, _ROOT, self._rules)

    def validate_lists(self, obj: Object, old: Object | None = None) -> list[FieldError]:
        """Lists that are sets or maps. If any was wrong before, all may be."""
        if self._validate_lists is None or not self._may_repeat(obj):
            return []
        errors = self._validate_lists(obj, _ROOT)
        return [] if errors and old is not None and self._validate_lists(old, _ROOT) else errors

    def validate_rules(
        self, obj: Object, old: Object | None, errors: Sequence[FieldError], rules: RuleEvaluator | None
    ) -> list[FieldError]:
        """CEL rules, unless the errors found before make it pointless to ask them."""
        if not self.has_rules:
            return []
        if any(error.type in _BLOCKING for error in errors):
            return [field.invalid(_ROOT, None, _NOT_CHECKED)]
        return [] if rules is None else rules(obj, old)


def compile(schema: Object, rules: MetadataRules | None = None) -> Structural:
    """Compile an openAPIV3Schema. Raises StructuralError if it cannot be structural; callers cache the result."""
    return Structural(schema, rules)


def _has_rules(node: Node) -> bool:
    children = (*node.properties.values(), node.additional, node.items)
    return bool(node.schema.get(RULES)) or any(child is not None and _has_rules(child) for child in children)


def _prune_defaults(node: Node) -> None:
    """Old definitions may have defaults that the schema does not specify."""
    if node.default.__class__ in (dict, list):
        unknown: list[str] = []
        pruned = compile_pruner(node, is_root=node.embedded)(node.default, (), unknown)
        node.default = pruned if unknown else node.default
    for child in (*node.properties.values(), node.additional, node.items):
        if child is not None:
            _prune_defaults(child)
