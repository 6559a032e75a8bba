"""The door to the CEL engine: environments that check expressions, and one runtime in which they all run.

Checking and running are apart. An `Environment` knows the types of its variables and declares every overload of every
function; the runtime knows neither: objects are maps there, and one implementation serves all overloads that look alike
(lists of different things, say). The syntax tree goes from one to the other:

    Environment({"self": ObjectType("x.Self", {"n": INT})}).compile("self.n > 1")    checked with types
    program.evaluate(activate({"self": {"n": 2}}))                                  run with plain values

An evaluation is bounded: the engine stops after 10,000 steps of comprehensions; see `loops` for what happens then.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cel_expr_python import cel  # type: ignore[import-untyped]

from kcp.schema.cel import (
    addresses,
    authorization,
    bounded,
    descriptors,
    formats,
    lists,
    loops,
    messages,
    quantities,
    regex,
    semver,
    strings,
    tree,
    types,
    unordered,
    urls,
)
from kcp.schema.cel.descriptors import time_value
from kcp.schema.cel.functions import Overload, function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kcp.schema.cel.authorization import Answer
    from kcp.schema.cel.functions import Function
    from kcp.schema.cel.tree import Rewrite
    from kcp.schema.cel.types import CelType

__all__ = ["Activation", "CompileError", "Environment", "EvaluationError", "Program", "activate", "time_value"]

_EXTENSIONS: Final = {"strings": 2, "sets": 0, "lists": 2, "optional": 2, "two-var-comprehensions": 0}
_LIBRARY: Final[tuple[Function, ...]] = (
    *lists.FUNCTIONS,
    *regex.FUNCTIONS,
    *urls.FUNCTIONS,
    *quantities.FUNCTIONS,
    *addresses.FUNCTIONS,
    *formats.FUNCTIONS,
    *semver.FUNCTIONS,
    *authorization.FUNCTIONS,
)
_RUNTIME: Final = (
    *formats.RUNTIME_FUNCTIONS,
    *bounded.RUNTIME_FUNCTIONS,
    *lists.RUNTIME_FUNCTIONS,
    *strings.RUNTIME_FUNCTIONS,
    *unordered.RUNTIME_FUNCTIONS,
)
# Numbers of different types may be compared. The runtime knows that; the checker has to be told.
_NUMBERS: Final = {types.INT: "int64", types.UINT: "uint64", types.DOUBLE: "double"}
_COMPARISONS: Final = tuple(
    function(
        operator,
        *(
            Overload(f"{name}_{_NUMBERS[left]}_{_NUMBERS[right]}", (left, right), types.BOOL, bool)
            for left in _NUMBERS
            for right in _NUMBERS
            if left != right
        ),
    )
    for operator, name in (("_<_", "less"), ("_<=_", "less_equals"), ("_>_", "greater"), ("_>=_", "greater_equals"))
)
_MAP: Final = types.MapType(types.DYN)
_CACHED_PROGRAMS: Final = 4096
_CACHED_CONFIGS: Final = 64
_ERROR: Final = cel.Type.ERROR


class CompileError(ValueError):
    """The expression is wrong; the text is what cel-go prints, places included."""


class EvaluationError(ValueError):
    """The expression could not be evaluated with these values; the text is cel-go's."""


class Activation:
    """Values of variables, converted once and shared by all programs that are evaluated with them."""

    __slots__ = ("_native", "answer", "values")

    def __init__(self, values: Mapping[str, object], answer: Answer | None = None) -> None:
        self.values = dict(values)
        self._native = _runtime().Activation(self.values)
        self.answer = answer

    @property
    def native(self) -> cel.Activation:
        return self._native


class Program:
    """An expression that is ready to be evaluated."""

    __slots__ = (
        "_is_bounded",
        "_native",
        "_serialized",
        "_uses_authorizer",
        "checked",
        "expression",
        "identifiers",
        "result_type",
        "selected",
        "unusable",
        "whole",
    )

    def __init__(
        self,
        expression: str,
        checked: cel.Expression,
        names: Mapping[str, str],
        optional: frozenset[str],
        rewrite: Rewrite | None,
    ) -> None:
        self.checked = checked.serialize()
        """The syntax tree with its types, as the engine wrote it."""

        prepared = tree.prepare(self.checked, expression, optional, rewrite)
        if prepared.complaints:
            raise CompileError(messages.rename("\n".join(prepared.complaints), names))
        self._serialized = prepared.serialized
        self._native = _runtime().deserialize(prepared.serialized)
        self.expression = expression
        self.result_type = messages.type_name(checked.return_type().name(), names)
        self.selected = prepared.selected
        self.whole = prepared.whole
        self.identifiers = prepared.identifiers
        self.unusable = prepared.unusable
        """Why it cannot be evaluated, whatever the values are; nothing if it can."""

        self._is_bounded = prepared.is_bounded
        self._uses_authorizer = any(name.partition(".")[0] == "authorizer" for name in prepared.identifiers)

    def evaluate(self, activation: Activation) -> Any:  # noqa: ANN401 - any value of the language
        """The result as plain Python. Raises EvaluationError."""
        if self._is_bounded:
            bounded.start()
        if self._uses_authorizer and activation.answer is not None:
            with authorization.answering(activation.answer):
                return self._evaluate(activation)
        return self._evaluate(activation)

    def _evaluate(self, activation: Activation) -> Any:  # noqa: ANN401
        try:
            return _evaluate(self._native, activation)
        except EvaluationError as error:
            pieces = loops.split_loop(self._serialized) if str(error) == bounded.EXCEEDED else None
            if pieces is None:
                raise
            return _evaluate_pieces(pieces, activation)


def _evaluate(native: cel.Expression, activation: Activation) -> Any:  # noqa: ANN401
    try:
        result = native.eval(activation.native)
        value = result.plain_value()
    except (RuntimeError, TypeError) as error:
        raise EvaluationError(messages.evaluate_message(str(error))) from None
    if value.__class__ is str and result.type() == _ERROR:
        raise EvaluationError(messages.evaluate_message(value))
    return value


def _evaluate_pieces(pieces: loops.Pieces, activation: Activation) -> bool:
    """As in a loop, one item for which the condition is false outweighs any number of errors."""
    items = _evaluate(_runtime().deserialize(pieces.items), activation)
    if len(items) > pieces.max_items:
        raise EvaluationError(bounded.EXCEEDED)
    condition = _runtime().deserialize(pieces.condition)
    failure: EvaluationError | None = None
    for item in items:
        try:
            if not _evaluate(condition, Activation({**activation.values, pieces.variable: time_value(item)})):
                return False
        except EvaluationError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return True


class Environment:
    """The variables that expressions may use, with their types, and more functions than the usual ones.

    The value of a variable of an optional type is given as a list: of its value, or of nothing.
    """

    def __init__(
        self,
        variables: Mapping[str, CelType],
        functions: Iterable[Function] = (),
        rewrite: Rewrite | None = None,
    ) -> None:
        self._rewrite = rewrite
        objects = [found for variable in variables.values() for found in types.objects_in(variable)]
        aliases = descriptors.name_objects(objects)
        self._names = {alias: name for name, alias in aliases.items()}
        signatures = {name: types.signature(variable, aliases) for name, variable in variables.items()}
        self._optional = frozenset(name for name in variables if isinstance(variables[name], types.OptionalType))
        self._native = cel.NewEnv(
            descriptors.make_pool(objects),
            config=_config(tuple((name, signatures[name]) for name in sorted(self._optional))),
            variables={name: cel.Type(text) for name, text in signatures.items() if name not in self._optional},
            extensions=[_declare_all((*_LIBRARY, *_COMPARISONS, *functions))],
        )
        # One expression is often in many logical clusters, and compiling takes a hundred times as long as evaluating.
        self._programs: OrderedDict[str, Program] = OrderedDict()

    def compile(self, expression: str) -> Program:
        """Raises CompileError."""
        program = self._programs.get(expression)
        if program is not None:
            self._programs.move_to_end(expression)
            return program
        try:
            checked = self._native.compile(expression)
            program = Program(expression, checked, self._names, self._optional, self._rewrite)
        except RuntimeError as error:
            text = messages.compile_message(str(error), expression, self._names, self._locate)
            raise CompileError(text) from None
        self._programs[expression] = program
        if len(self._programs) > _CACHED_PROGRAMS:
            self._programs.popitem(last=False)
        return program

    def _locate(self, expression: str) -> int | None:
        try:
            checked = self._native.compile(expression)
        except RuntimeError:
            return None
        return tree.position_of(checked.serialize())


def activate(values: Mapping[str, object], answer: Answer | None = None) -> Activation:
    """Make plain values ready for evaluation: what JSON has, values of library types, and times as `time_value`."""
    return Activation(values, answer)


@lru_cache(maxsize=_CACHED_CONFIGS)
def _config(optional: tuple[tuple[str, str], ...] = ()) -> cel.EnvConfig:
    """Variables of optional types can be declared nowhere else."""
    listed = "".join(f"- name: {name}\n  version: {version}\n" for name, version in _EXTENSIONS.items())
    declared = "".join(f'- name: {name}\n  type: "{signature}"\n' for name, signature in optional)
    variables = f"variables:\n{declared}" if optional else ""
    return cel.NewEnvConfigFromYaml(f"name: kubernetes\nextensions:\n{listed}{variables}")


@lru_cache(maxsize=1)
def _runtime() -> cel.Env:
    # The engine's two-variable macros need this one, but it does not bring it along.
    insert = function(
        "cel.@mapInsert",
        Overload("@cel_mapInsert_map_key_value", (_MAP, types.DYN, types.DYN), types.DYN, _insert),
        Overload("@cel_mapInsert_map_map", (_MAP, _MAP), types.DYN, _insert_all),
    )
    functions = [found for found in _LIBRARY if not any(one.id in tree.MAYBE for one in found.overloads)]
    return cel.NewEnv(
        descriptors.LIBRARY_POOL,
        config=_config(),
        extensions=[_implement((*functions, *_RUNTIME, insert))],
    )


def _insert(entries: dict[Any, Any], key: object, value: object) -> dict[Any, Any]:
    if key in entries:
        raise ValueError(f"insert failed: key {key} already exists")
    return {**entries, key: value}


def _insert_all(entries: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key, value in more.items():
        entries = _insert(entries, key, value)
    return entries


@lru_cache(maxsize=_CACHED_CONFIGS)
def _declare_all(functions: tuple[Function, ...]) -> cel.CelExtension:
    """All overloads, for the checker."""
    declarations: dict[str, list[cel.Overload]] = {}
    for found in functions:
        declarations.setdefault(found.name, []).extend(_overload(found, one) for one in found.overloads)
    return cel.CelExtension("kubernetes", [cel.FunctionDecl(name, listed) for name, listed in declarations.items()])


def _implement(functions: Iterable[Function]) -> cel.CelExtension:
    """Overloads that look alike at run time become one, which chooses among them."""
    groups: dict[str, dict[tuple[object, ...], list[Overload]]] = {}
    members: dict[tuple[object, ...], Function] = {}
    for found in functions:
        for one in found.overloads:
            erased = (found.member, *map(_kind, one.parameters))
            groups.setdefault(found.name, {}).setdefault(erased, []).append(one)
            members[found.name, erased] = found
    declarations = [
        cel.FunctionDecl(name, [_merge(members[name, erased], alike) for erased, alike in group.items()])
        for name, group in groups.items()
    ]
    return cel.CelExtension("kubernetes", declarations)


def _merge(found: Function, alike: list[Overload]) -> cel.Overload:
    first = alike[0]
    results = {types.signature(_erase(one.result)) for one in alike}
    implementations = {one.implementation for one in alike}
    merged = Overload(
        first.id,
        tuple(map(_erase, first.parameters)),
        _erase(first.result) if len(results) == 1 else types.DYN,
        first.implementation if len(implementations) == 1 else _choose(alike),
    )
    if merged.result == types.DYN:
        implementation = merged.implementation
        merged = replace(merged, implementation=lambda *arguments: time_value(implementation(*arguments)))
    return _overload(found, merged)


def _choose(alike: list[Overload]) -> Callable[..., Any]:
    """Library types are all the same to the runtime: look which ones they are."""

    def call(*arguments: object) -> Any:  # noqa: ANN401
        for one in alike:
            given = map(descriptors.type_of, arguments)
            pairs = zip(one.parameters, given, strict=True)
            if all(parameter not in types.LIBRARY_TYPES or parameter == found for parameter, found in pairs):
                return one.implementation(*arguments)
        raise ValueError("no such overload")

    return call


def _kind(cel_type: CelType) -> CelType:
    """What the runtime tells types apart by."""
    if isinstance(cel_type, str):
        return "message" if cel_type in types.LIBRARY_TYPES else cel_type
    return type(cel_type).__name__


def _overload(found: Function, one: Overload) -> cel.Overload:
    return cel.Overload(
        one.id,
        cel.Type(types.signature(one.result)),
        [cel.Type(types.signature(parameter)) for parameter in one.parameters],
        is_member=found.member,
        impl=one.implementation,
    )


def _erase(cel_type: CelType) -> CelType:
    if isinstance(cel_type, types.ListType):
        return types.ListType(types.DYN)
    if isinstance(cel_type, types.MapType):
        return types.MapType(types.DYN)
    return cel_type
