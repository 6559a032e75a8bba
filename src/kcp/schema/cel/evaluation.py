"""Asking custom resources whether they keep the rules of their schema."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kcp.meta import field
from kcp.meta.field import OMIT_VALUE, FieldPath
from kcp.meta.gotext import quote
from kcp.schema.cel.bounded import EXCEEDED
from kcp.schema.cel.declarations import declare
from kcp.schema.cel.engine import EvaluationError, activate
from kcp.schema.cel.escaping import escape
from kcp.schema.cel.rules import OLD_SELF, SELF, compile_rules
from kcp.schema.cel.views import compile_selection, compile_view
from kcp.schema.structural.correlation import Correlation
from kcp.schema.structural.nodes import make_node

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.schema.cel.declarations import Declaration
    from kcp.schema.cel.engine import Activation
    from kcp.schema.cel.rules import Rule
    from kcp.schema.cel.views import View
    from kcp.schema.structural.nodes import Node

_NO_OVERLOAD: Final = "no such overload"
_MAX_MESSAGE_BYTES: Final = 5 * 1024


class OutOfBudget(Exception):
    """A rule was stopped; no further ones are asked."""


class SchemaRules:
    """The rules of a whole schema. Compiled when first asked: most definitions are never written to."""

    def __init__(self, schema: Object) -> None:
        self._root = make_node(schema)
        self._compiled: _NodeRules | None = None
        self._is_compiled = False
        self._forgiven: tuple[Object | None, list[str]] = (None, [])

    def __call__(self, obj: Object, old: Object | None) -> list[FieldError]:
        """What is wrong with an object; with an old one, unless it was wrong before and did not change."""
        if not self._is_compiled:
            declaration = declare(self._root, is_resource=True)
            self._compiled = _compile_node(self._root, declaration, is_resource=True)
            self._is_compiled = True
        if self._compiled is None:
            return []
        session = _Session()
        correlation = None if old is None else Correlation(obj, old, self._root)
        with suppress(OutOfBudget):
            session.ask(self._compiled, obj, "", _History(correlation, None))
        self._forgiven = (obj, session.warnings)
        return session.errors

    def warnings(self, obj: Object) -> list[str]:
        """What was wrong with this object, but forgiven, when it was asked about last."""
        asked, warnings = self._forgiven
        return list(warnings) if asked is obj else []


class _NodeRules:
    """The rules of a node and of what is below; only what leads to rules is there."""

    __slots__ = ("additional", "items", "node", "properties", "rules", "uses_old_self", "view")

    def __init__(self, node: Node, declaration: Declaration | None, *, is_resource: bool) -> None:
        self.node = node
        self.rules: list[Rule] = []
        if declaration is not None:
            self.rules = compile_rules(node, declaration)
        self.uses_old_self = any(rule.uses_old_self for rule in self.rules)
        self.view = self._compile_view(is_resource=is_resource) if self.rules else None
        self.properties: dict[str, _NodeRules] = {}
        self.items: _NodeRules | None = None
        self.additional: _NodeRules | None = None

    def _compile_view(self, *, is_resource: bool) -> View | None:
        """The engine converts an object with everything in it, so it gets only the fields that rules look at."""
        programs = [program for rule in self.rules for program in (rule.program, rule.message_program) if program]
        is_whole = any({SELF, OLD_SELF} & program.whole for program in programs)
        if is_whole or self.node.type != "object":
            return compile_view(self.node, is_resource=is_resource)
        fields = {name for program in programs for variable, name in program.selected if variable in (SELF, OLD_SELF)}
        return compile_selection(self.node, frozenset(fields), is_resource=is_resource)


def _compile_node(node: Node, declaration: Declaration | None, *, is_resource: bool) -> _NodeRules | None:
    compiled = _NodeRules(node, declaration, is_resource=is_resource)
    element = None if declaration is None else declaration.element
    if node.items is not None:
        compiled.items = _compile_node(node.items, element, is_resource=node.items.embedded)
    if node.additional is not None:
        compiled.additional = _compile_node(node.additional, element, is_resource=node.additional.embedded)
    for name, child in node.properties.items():
        identifier = escape(name)
        if identifier is not None:
            declared = None if declaration is None else declaration.fields.get(identifier)
        else:  # the rules of a field are asked even if no other rule can name it
            declared = declare(child, is_resource=child.embedded)
        below = None if declared is None else _compile_node(child, declared, is_resource=child.embedded)
        if below is not None:
            compiled.properties[name] = below
    has_any = compiled.rules or compiled.properties or compiled.items is not None or compiled.additional is not None
    return compiled if has_any else None


class _History:
    """What a value was before.

    `current` is None where that cannot be told; then `nearest`, the last value around it of which it could, decides
    whether errors are forgiven.
    """

    __slots__ = ("current", "is_forgiving", "nearest")

    def __init__(self, current: Correlation | None, nearest: Correlation | None, *, is_forgiving: bool = True) -> None:
        self.current = current
        self.nearest = nearest
        self.is_forgiving = is_forgiving

    @property
    def old(self) -> Any:  # noqa: ANN401 - any JSON value
        return None if self.current is None else self.current.old

    def key(self, name: str) -> _History:
        if self.current is None:
            return self
        # Both sides were converted to one version, so the type has no history of its own.
        is_type = self.nearest is None and name in ("apiVersion", "kind")
        return _History(self.current.key(name), self.current, is_forgiving=not is_type)

    def index(self, position: int) -> _History:
        return self if self.current is None else _History(self.current.index(position), self.current)

    def forgives(self) -> bool:
        if not self.is_forgiving:
            return False
        decisive = self.nearest if self.current is None else self.current
        return decisive is not None and decisive.is_same()


class _Session:
    """One object being asked."""

    __slots__ = ("errors", "warnings")

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []

    def ask(self, compiled: _NodeRules, value: Any, path: str, history: _History) -> None:  # noqa: ANN401
        if value is None:
            return
        if compiled.rules:
            self._ask_rules(compiled, value, path, history)
        if value.__class__ is list and compiled.items is not None:
            for index, item in enumerate(value):
                self.ask(compiled.items, item, f"{path}[{index}]", history.index(index))
        elif value.__class__ is dict:
            if compiled.additional is not None:
                for name, item in value.items():
                    self.ask(compiled.additional, item, f"{path}[{name}]", history.key(name))
            for name, below in compiled.properties.items():
                if name in value:
                    self.ask(below, value[name], f"{path}.{name}" if path else name, history.key(name))

    def _ask_rules(self, compiled: _NodeRules, value: Any, path: str, history: _History) -> None:  # noqa: ANN401
        view = compiled.view
        seen = value if view is None else view(value)
        plain = optional = None
        old = history.old if compiled.uses_old_self else None
        for rule in compiled.rules:
            if rule.uses_old_self and old is None and not rule.is_optional:
                continue
            if rule.uses_old_self and rule.is_optional:
                if optional is None:
                    before = [] if old is None else [old if view is None else view(old)]
                    optional = activate({SELF: seen, OLD_SELF: before})
                activation = optional
            else:
                if plain is None:
                    values = {SELF: seen}
                    if old is not None:
                        values[OLD_SELF] = old if view is None else view(old)
                    plain = activate(values)
                activation = plain
            self._ask_rule(rule, activation, value, _Place(path, compiled.node.type, history))

    def _ask_rule(self, rule: Rule, activation: Activation, value: Any, place: _Place) -> None:  # noqa: ANN401
        if rule.program is None:
            if rule.error:
                self.errors.append(place.failure(f"rule compile error: {rule.error}"))
            return
        try:
            if rule.program.evaluate(activation) is True:
                return
        except EvaluationError as error:
            self._explain(rule, str(error), place)
            return
        where = FieldPath(place.path).child(rule.field_path) if rule.field_path else FieldPath(place.path)
        try:
            detail = _evaluate_message(rule, activation) or rule.message
        except OutOfBudget as stopped:
            self._add(rule, field.invalid(where, place.kind, str(stopped)), place)
            raise
        bad_value = OMIT_VALUE if place.kind in ("object", "array") else value
        self._add(rule, _make_error(rule, where, bad_value, detail), place)

    def _explain(self, rule: Rule, why: str, place: _Place) -> None:
        if why.startswith(EXCEEDED):
            stopped = "no further validation rules will be run due to call cost exceeds limit for rule"
            self.errors.append(place.failure(f"'{why}': {stopped}: {rule.shown}"))
            raise OutOfBudget
        if why.startswith(_NO_OVERLOAD):
            text = (
                f"'{why}': call arguments did not match a supported operator, function or macro signature for rule: "
                f"{rule.shown}"
            )
        else:
            text = f"{why} evaluating rule: {rule.shown}"
        self.errors.append(place.failure(text))

    def _add(self, rule: Rule, error: FieldError, place: _Place) -> None:
        if not rule.uses_old_self and place.history.forgives():
            self.warnings.append(str(error))
        else:
            self.errors.append(error)


class _Place:
    """Where a value is, of which type it is, and what it was before."""

    __slots__ = ("history", "kind", "path")

    def __init__(self, path: str, kind: str, history: _History) -> None:
        self.path = path
        self.kind = kind
        self.history = history

    def failure(self, text: str) -> FieldError:
        """A rule could not be asked. Kubernetes shows the type then, not the value."""
        return field.invalid(FieldPath(self.path), self.kind, text)


def _evaluate_message(rule: Rule, activation: Activation) -> str:
    """What the rule's own expression says; nothing if that is of no use."""
    if rule.message_program is None:
        return ""
    try:
        message = str(rule.message_program.evaluate(activation)).strip()
    except EvaluationError as error:
        if str(error).startswith(EXCEEDED):
            expression = rule.message_program.expression
            raise OutOfBudget(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: "
                f"{quote(expression)}"
            ) from None
        return ""
    return "" if "\n" in message or len(message.encode()) > _MAX_MESSAGE_BYTES else message


def _make_error(rule: Rule, path: FieldPath, bad_value: Any, detail: str) -> FieldError:  # noqa: ANN401
    match rule.settings.get("reason"):
        case "FieldValueForbidden":
            return field.forbidden(path, detail)
        case "FieldValueRequired":
            return field.required(path, detail)
        case "FieldValueDuplicate":
            return field.duplicate(path, bad_value)
        case _:
            return field.invalid(path, bad_value, detail)
