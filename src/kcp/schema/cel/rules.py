"""The x-kubernetes-validations of one schema, compiled (apiextensions-apiserver/pkg/apiserver/schema/cel)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from kcp.schema.cel import types
from kcp.schema.cel.declarations import cel_type
from kcp.schema.cel.engine import CompileError, Environment
from kcp.schema.cel.unordered import rewrite
from kcp.schema.structural.fieldpaths import FieldPathError, find_field
from kcp.schema.structural.nodes import RULES

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.schema.cel.declarations import Declaration
    from kcp.schema.cel.engine import Program
    from kcp.schema.structural.nodes import Node

SELF: Final = "self"
OLD_SELF: Final = "oldSelf"
# Upstream makes up a new name each time, so that nobody depends on it.
_TYPE_NAME: Final = "selfType"


class Rule:
    """A rule as far as it could be compiled: what failed has an error and no program."""

    __slots__ = (
        "error",
        "field_path",
        "is_optional",
        "message_error",
        "message_program",
        "program",
        "settings",
        "uses_old_self",
    )

    def __init__(self, settings: Object, node: Node, environment: Environment) -> None:
        self.settings = settings
        self.is_optional = bool(settings.get("optionalOldSelf"))
        self.uses_old_self = False
        self.program: Program | None = None
        self.message_program: Program | None = None
        self.error = ""
        self.message_error = ""
        self.field_path = ""
        self._compile(environment)
        if settings.get("fieldPath"):
            self.field_path = _normalize(settings["fieldPath"], node)

    def _compile(self, environment: Environment) -> None:
        text, message = self.settings.get("rule") or "", self.settings.get("messageExpression") or ""
        if not text.strip():
            return
        try:
            program = environment.compile(text)
        except CompileError as error:
            self.error = f"compilation failed: {error}"
            return
        if program.result_type != types.BOOL:
            self.error = "cel expression must evaluate to a bool"
            return
        if program.unusable:
            self.uses_old_self = OLD_SELF in program.identifiers
            self.error = f"program instantiation failed: {program.unusable}"
            return
        self.program = program
        self.uses_old_self = OLD_SELF in program.identifiers
        if not message:
            return
        try:
            program = environment.compile(message)
        except CompileError as error:
            self.message_error = f"messageExpression compilation failed: {error}"
            return
        if program.result_type != types.STRING:
            self.message_error = "messageExpression must evaluate to a string"
            return
        if program.unusable:
            self.message_error = f"messageExpression instantiation failed: {program.unusable}"
            return
        self.message_program = program

    @property
    def shown(self) -> str:
        """How errors refer to the rule."""
        return (self.settings.get("message") or "").strip() or (self.settings.get("rule") or "").strip()

    @property
    def message(self) -> str:
        """What is wrong with a value that breaks the rule, unless an expression says it."""
        message: str = self.settings.get("message") or ""
        return message.strip() if message else f"failed rule: {self.shown}"


def compile_rules(node: Node, declaration: Declaration) -> list[Rule]:
    """The rules of a node itself, in order. `declaration` is that of its values."""
    rules: list[Object] = node.schema.get(RULES) or []
    if not rules:
        return []
    self_type = cel_type(declaration, _TYPE_NAME)
    environments: dict[bool, Environment] = {}
    for settings in rules:
        is_optional = bool(settings.get("optionalOldSelf"))
        if is_optional not in environments:
            old_type = types.OptionalType(self_type) if is_optional else self_type
            variables = {SELF: self_type, OLD_SELF: old_type}
            environments[is_optional] = Environment(variables, rewrite=partial(rewrite, declaration=declaration))
    return [Rule(settings, node, environments[bool(settings.get("optionalOldSelf"))]) for settings in rules]


def _normalize(field_path: str, node: Node) -> str:
    try:
        return find_field(field_path, node).path.text
    except FieldPathError:
        return ""
