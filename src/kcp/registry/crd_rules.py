"""CEL rules in the schemas of definitions: what is wrong with them, and how they are evaluated.

A definition whose rules could take too long is refused: each rule has a limit, and so have all rules of a schema
together, with the size of the largest object that fits into a request where the schema sets no bounds
(apiextensions/validation/validation.go and cel_validation.go).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kcp.meta import codec
from kcp.meta.field import forbidden, internal, invalid
from kcp.registry.gostruct import GoStruct
from kcp.schema.cel.cost import estimate_cost
from kcp.schema.cel.declarations import MAX_REQUEST_BYTES, declare
from kcp.schema.cel.escaping import escape
from kcp.schema.cel.estimates import MAX_UINT64
from kcp.schema.cel.evaluation import SchemaRules
from kcp.schema.cel.rules import compile_rules
from kcp.schema.structural.nodes import RULES, make_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError, FieldPath
    from kcp.schema.cel.declarations import Declaration
    from kcp.schema.cel.engine import Program
    from kcp.schema.cel.rules import Rule
    from kcp.schema.structural.nodes import Node

MAX_RULE_COST: Final = 10_000_000
MAX_SCHEMA_COST: Final = 100_000_000
_HINT: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
_MOST_SHOWN: Final = 4
_MUCH: Final = 100.0  # times over the limit, from where on it does not matter how much
_LITTLE: Final = 1.5
_CACHED_SCHEMAS: Final = 512
_RULE: Final = (
    ("rule", "Rule", ""),
    ("message", "Message", ""),
    ("messageExpression", "MessageExpression", ""),
    ("reason", "Reason", None),
    ("fieldPath", "FieldPath", ""),
    ("optionalOldSelf", "OptionalOldSelf", None),
)


def make_schema_rules(schema: Object) -> SchemaRules:
    """The evaluator for a schema; logical clusters with the same definition share it."""
    return _schema_rules(codec.dumps(schema))


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _schema_rules(text: bytes) -> SchemaRules:
    return SchemaRules(codec.loads(text))


def check_rules(schema: Object, path: FieldPath, unchanged: bool) -> list[FieldError]:
    """What is wrong with the rules of a schema. Rules of a schema that did not change may be as costly as they are."""
    checker = _Checker(path, limits_rules=not unchanged)
    checker.check(make_node(schema), path, _Place())
    return checker.errors + checker.total_errors()


@dataclass(frozen=True, slots=True)
class _Place:
    """What the schemas around one say about it."""

    declaration: Declaration | None = None
    """Declared by a schema around it that has rules; None if there is none, or if it cannot be named there."""

    in_scope: bool = False
    is_root: bool = True
    count: int | None = 1
    """How many values there can be in one object; None if nothing limits that."""

    uncorrelatable: FieldPath | None = None
    """The outermost list whose items cannot be told from one another."""


@dataclass(slots=True)
class _Checker:
    path: FieldPath
    limits_rules: bool
    errors: list[FieldError] = field(default_factory=list)
    total: int = 0
    expensive: list[tuple[int, FieldPath]] = field(default_factory=list)

    def check(self, node: Node, path: FieldPath, place: _Place) -> None:
        if node.schema.get(RULES) and not place.in_scope:
            place = replace(place, in_scope=True)
        if place.in_scope and place.declaration is None:
            place = replace(place, declaration=declare(node, is_resource=place.is_root or node.embedded))
        for child, where, inner in _children(node, path, place):
            self.check(child, where, inner)
        if not node.schema.get(RULES):
            return
        where = path.child(RULES)
        if place.declaration is None:
            why = "unable to convert structural schema to CEL declarations"
            problem = f"internal error: failed to construct type information for {RULES} rules: {why}"
            self.errors.append(internal(where, ValueError(problem)))
            return
        for index, rule in enumerate(compile_rules(node, place.declaration)):
            self._check_rule(rule, where.index(index), place, place.declaration)

    def _check_rule(self, rule: Rule, path: FieldPath, place: _Place, declaration: Declaration) -> None:
        cost = _cost_of(rule.program, declaration)
        count = MAX_REQUEST_BYTES // (declaration.min_size + 1) if place.count is None else place.count
        self._observe(path.child("rule"), "estimated rule cost", min(cost * count, MAX_UINT64))
        if rule.error:
            self.errors.append(invalid(path.child("rule"), _show(rule), rule.error))
        where = path.child("messageExpression")
        if rule.message_error:
            self.errors.append(invalid(where, _show(rule), rule.message_error))
        elif rule.message_program is not None:
            self._observe(where, "estimated messageExpression cost", _cost_of(rule.message_program, declaration))
        given = rule.settings.get("optionalOldSelf")
        if rule.uses_old_self:
            if place.uncorrelatable is not None:
                why = (
                    f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelatable}"
                )
                self.errors.append(invalid(path.child("rule"), rule.settings["rule"], why))
        elif given is not None:
            why = "may not be set if oldSelf is not used in rule"
            self.errors.append(invalid(path.child("optionalOldSelf"), given, why))

    def _observe(self, path: FieldPath, name: str, cost: int) -> None:
        if self.limits_rules and cost > MAX_RULE_COST:
            self.errors.append(forbidden(path, _explain(name, cost, MAX_RULE_COST)))
        self.total = min(self.total + cost, MAX_UINT64)
        if cost >= MAX_SCHEMA_COST // 100:
            self.expensive.append((cost, path))

    def total_errors(self) -> list[FieldError]:
        if self.total <= MAX_SCHEMA_COST:
            return []
        why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        most = sorted(self.expensive, key=lambda each: -each[0])[:_MOST_SHOWN]
        name = f"{RULES} estimated rule cost total for entire OpenAPIv3 schema"
        whole = forbidden(self.path, _explain(name, self.total, MAX_SCHEMA_COST))
        return [*(forbidden(path, why) for _, path in most), whole]


def _children(node: Node, path: FieldPath, place: _Place) -> Iterator[tuple[Node, FieldPath, _Place]]:
    declared = place.declaration
    element = None if declared is None else declared.element
    inner = replace(place, is_root=False, count=_multiply(place.count, node))
    if node.additional is not None:
        yield node.additional, path.child("additionalProperties"), replace(inner, declaration=element)
    for name, child in node.properties.items():
        identifier = escape(name)
        known = None if declared is None or identifier is None else declared.fields.get(identifier)
        yield child, path.child("properties").key(name), replace(inner, declaration=known)
    if node.items is not None:
        if node.list_type != "map" and inner.uncorrelatable is None:
            inner = replace(inner, uncorrelatable=path)
        yield node.items, path.child("items"), replace(inner, declaration=element)


def _multiply(count: int | None, node: Node) -> int | None:
    """How many values there can be one level down."""
    if node.type == "array":
        most = node.schema.get("maxItems")
    elif node.type == "object" and node.has_additional:
        most = node.schema.get("maxProperties")
    else:
        most = 1
    return None if count is None or most is None else min(count * max(most, 0), MAX_UINT64)


def _cost_of(program: Program | None, declaration: Declaration) -> int:
    return 0 if program is None else estimate_cost(program.checked, declaration)


def _show(rule: Rule) -> GoStruct:
    return GoStruct.of(rule.settings, _RULE)


def _explain(name: str, cost: int, limit: int) -> str:
    times = cost / limit
    if times > _MUCH:
        factor = "more than 100x"
    elif times < _LITTLE:
        factor = f"{times:f}x"
    else:
        factor = f"{times:.1f}x"
    return f"{name} exceeds budget by factor of {factor} {_HINT}"
