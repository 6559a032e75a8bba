"""Label selectors: their text form, their matchLabels/matchExpressions form, and whether a set of labels matches.

Errors carry the exact words of apimachinery's labels/selector.go. Nothing here may know where labels are stored, nor
turn an error into a Status.
"""

import json
import re
from collections import deque
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import Final, TypeVar

from kcp.meta.gotext import quote
from kcp.meta.validation import check_label_value, check_qualified_name

_T = TypeVar("_T")


class SelectorSyntaxError(ValueError):
    """A label or field selector that cannot be understood; its text is what Kubernetes answers."""


class Operator(StrEnum):
    """How a requirement relates its key to its values, in the words and the order of apimachinery."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


# How an operator is written between a key and its values; the operators without values are not here.
_SYMBOLS: Final = {
    Operator.IN: " in ",
    Operator.NOT_IN: " notin ",
    Operator.EQUALS: "=",
    Operator.DOUBLE_EQUALS: "==",
    Operator.NOT_EQUALS: "!=",
    Operator.GREATER_THAN: ">",
    Operator.LESS_THAN: "<",
}
_BY_SYMBOL: Final = {symbol.strip(): operator for operator, symbol in _SYMBOLS.items()}
_BY_EXPRESSION: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}
_SETS: Final = (Operator.IN, Operator.NOT_IN)
_EXACT: Final = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)

_INT64: Final = range(-(2**63), 2**63)
# Zeros in front may go on without end, so they are kept away from int(), which refuses very long texts.
_INTEGER: Final = re.compile(r"([+-]?)0*([0-9]{1,19})")

# A zero byte ends a token and vanishes with it; where a token should begin, it ends the whole selector.
_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n\0]+)\0?")
_PUNCTUATION: Final = frozenset(("==", "!=", *"=!(),<>"))
_END: Final = ""

_JSON_TYPES: Final[Mapping[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
}


class _IntegerTexts:
    """The texts of the integers in a range, as a container: what `n>5` and `n<5` ask of a label's value."""

    __slots__ = ("_integers",)

    def __init__(self, integers: range) -> None:
        self._integers = integers

    def __contains__(self, text: object) -> bool:
        number = _parse_int64(text) if isinstance(text, str) else None
        # Asked for anything but an int, a range would compare its members one by one.
        return number is not None and number in self._integers


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. Not checked here: `make_requirement` does that.

    Every operator asks whether the label's value, None where the label is absent, is one of ``members``, and matches
    when the answer is the ``wanted`` one:

        app in (a,b)      members {a, b}               wanted True     an absent label does not match
        app notin (a,b)   members {a, b}               wanted False    an absent label matches
        app               members {None}               wanted False
        !app              members {None}               wanted True
        n>5               members "6", "7", "007"...   wanted True     neither "x" nor an absent label matches
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    members: Container[str | None] = field(init=False, repr=False, compare=False)
    wanted: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The text form shows values sorted and their order means nothing, so equal requirements compare equal.
        object.__setattr__(self, "values", tuple(sorted(self.values)))
        members, wanted = _compile(self.operator, self.values)
        object.__setattr__(self, "members", members)
        object.__setattr__(self, "wanted", wanted)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return (labels.get(self.key) in self.members) is self.wanted

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(self.values)
        return f"{self.key}{_SYMBOLS[self.operator]}" + (f"({values})" if self.operator in _SETS else values)


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that all have to match, ordered by key; without requirements it matches everything.

    ``selectable`` is false only for `nothing()`, which matches no labels at all.
    """

    requirements: tuple[Requirement, ...] = ()
    selectable: bool = True
    _tests: tuple[tuple[str, Container[str | None], bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Requirements on the same key stay in the order they were given.
        object.__setattr__(self, "requirements", tuple(sorted(self.requirements, key=attrgetter("key"))))
        tests = tuple((requirement.key, requirement.members, requirement.wanted) for requirement in self.requirements)
        unsatisfiable = (("", frozenset[str](), True),)
        object.__setattr__(self, "_tests", tests if self.selectable else unsatisfiable)

    @property
    def is_empty(self) -> bool:
        """Whether it restricts nothing."""
        return self.selectable and not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        # Lists and watches ask this for every object: all() or a call for each requirement would double the time.
        for key, members, wanted in self._tests:  # noqa: SIM110
            if (labels.get(key) in members) is not wanted:
                return False
        return True

    def requires_exact_match(self, label: str) -> str | None:
        """The one value the label must have, or None; only the first requirement on the label is asked."""
        for requirement in self.requirements:
            if requirement.key == label:
                is_exact = requirement.operator in _EXACT and len(requirement.values) == 1
                return requirement.values[0] if is_exact else None
        return None

    def add(self, *requirements: Requirement) -> "Selector":
        return Selector((*self.requirements, *requirements)) if self.selectable else self

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_EVERYTHING: Final = Selector()
_NOTHING: Final = Selector(selectable=False)


def everything() -> Selector:
    return _EVERYTHING


def nothing() -> Selector:
    return _NOTHING


def make_requirement(key: str, operator: Operator, values: Sequence[str] | None = None) -> Requirement:
    """A checked requirement, or a SelectorSyntaxError naming everything that is wrong with it."""
    errors = _invalid("key", quote(key), check_qualified_name(key))
    errors += _check_arity(operator, values)
    for index, value in enumerate(values or ()):
        errors += _invalid(f"values[{index}][{key}]", quote(value), check_label_value(value))
    if errors:
        distinct = list(dict.fromkeys(errors))
        raise SelectorSyntaxError(distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]")
    return Requirement(key, operator, tuple(values or ()))


def from_label_selector(label_selector: Mapping[str, object] | None) -> Selector:
    """The selector that a LabelSelector object means: none at all selects nothing, an empty one everything."""
    if label_selector is None:
        return nothing()
    match_labels = _expect(dict, label_selector.get("matchLabels"), "matchLabels")
    expressions = _expect(list, label_selector.get("matchExpressions"), "matchExpressions")
    requirements = [
        make_requirement(key, Operator.EQUALS, [_expect(str, value, f"matchLabels.{key}")])
        for key, value in sorted(match_labels.items())
    ]
    for index, expression in enumerate(expressions):
        path = f"matchExpressions[{index}]"
        requirements.append(_from_expression(_expect(dict, expression, path), path))
    return Selector(tuple(requirements))


def parse(text: str) -> Selector:
    """The selector that a text such as ``app in (a,b),!x,y!=z,n>5`` means, or a SelectorSyntaxError."""
    tokens = _scan(text)
    if tokens[0] != _END and not _starts_requirement(tokens[0]):
        raise SelectorSyntaxError(f"found '{tokens[0]}', expected: !, identifier, or 'end of string'")
    requirements: list[Requirement] = []
    while tokens[0] != _END:
        try:
            requirements.append(_parse_requirement(tokens))
        except SelectorSyntaxError as error:
            raise SelectorSyntaxError(f"unable to parse requirement: {error}") from None
        token = tokens.popleft()
        if token == _END:
            break
        if token != ",":
            raise SelectorSyntaxError(f"found '{token}', expected: ',' or 'end of string'")
        if not _starts_requirement(tokens[0]):
            raise SelectorSyntaxError(f"found '{tokens[0]}', expected: identifier after ','")
    return Selector(tuple(requirements))


def _scan(text: str) -> deque[str]:
    """The text cut into punctuation and identifiers, and `_END` behind them."""
    tokens: deque[str] = deque()
    end = 0
    while found := _TOKEN.match(text, end):
        tokens.append(found[1])
        end = found.end()
    tokens.append(_END)
    return tokens


def _is_identifier(token: str) -> bool:
    """Keys and values, `in` and `notin` among them: only where an operator has to stand do these two mean one."""
    return token != _END and token not in _PUNCTUATION


def _starts_requirement(token: str) -> bool:
    return token == "!" or _is_identifier(token)


def _parse_requirement(tokens: deque[str]) -> Requirement:
    is_negated = tokens[0] == "!"
    if is_negated:
        tokens.popleft()
    key = tokens.popleft()
    if not _is_identifier(key):
        raise SelectorSyntaxError(f"found '{key}', expected: identifier")
    # The parser has no path to report, and upstream prints that as it stands.
    for error in _invalid("<nil>", quote(key), check_qualified_name(key)):
        raise SelectorSyntaxError(error)
    if is_negated:
        return Requirement(key, Operator.DOES_NOT_EXIST)
    if tokens[0] in (_END, ","):
        return Requirement(key, Operator.EXISTS)
    symbol = tokens.popleft()
    operator = _BY_SYMBOL.get(symbol)
    if operator is None:
        raise SelectorSyntaxError(f"found '{symbol}', expected: {', '.join(_SYMBOLS)}")
    values = _parse_value_set(tokens) if operator in _SETS else {_parse_exact_value(tokens)}
    return make_requirement(key, operator, sorted(values))


def _parse_exact_value(tokens: deque[str]) -> str:
    if tokens[0] in (_END, ","):
        return ""
    value = tokens.popleft()
    if not _is_identifier(value):
        raise SelectorSyntaxError(f"found '{value}', expected: identifier")
    return value


def _parse_value_set(tokens: deque[str]) -> set[str]:
    opening = tokens.popleft()
    if opening != "(":
        raise SelectorSyntaxError(f"found '{opening}' expected: '('")
    if tokens[0] == ")":
        tokens.popleft()
        return {""}
    if tokens[0] != "," and not _is_identifier(tokens[0]):
        raise SelectorSyntaxError(f"found '{tokens[0]}', expected: ',', ')' or identifier")
    values: set[str] = set()
    while tokens[0] != ")":
        values.update(_parse_value_or_comma(tokens, is_first=not values))
    tokens.popleft()
    return values


def _parse_value_or_comma(tokens: deque[str], *, is_first: bool) -> Sequence[str]:
    """The values that the next token adds: a comma adds the empty value where nothing stands before or after it."""
    token = tokens.popleft()
    if token == ",":
        return ("",) if is_first or tokens[0] in (",", ")") else ()
    if not _is_identifier(token):
        raise SelectorSyntaxError(f"found '{token}', expected: ',', or identifier")
    if tokens[0] not in (",", ")"):
        raise SelectorSyntaxError(f"found '{tokens[0]}', expected: ',' or ')'")
    return (token,)


def _from_expression(expression: Mapping[str, object], path: str) -> Requirement:
    key = _expect(str, expression.get("key"), f"{path}.key")
    name = _expect(str, expression.get("operator"), f"{path}.operator")
    values = _expect(list, expression.get("values"), f"{path}.values")
    operator = _BY_EXPRESSION.get(name)
    if operator is None:
        raise SelectorSyntaxError(f"{quote(name)} is not a valid label selector operator")
    texts = [_expect(str, value, f"{path}.values[{index}]") for index, value in enumerate(values)]
    return make_requirement(key, operator, texts or None)


def _expect(kind: type[_T], value: object, path: str) -> _T:
    """The value if it is of the kind; absent and null stand for empty, as they do when Go decodes an object."""
    if value is None:
        return kind()
    if not isinstance(value, kind):
        found = _JSON_TYPES.get(type(value), type(value).__name__)
        wanted = f'{path} in body must be of type {_JSON_TYPES[kind]}: "{found}"'
        raise SelectorSyntaxError(f'{path}: Invalid value: "{found}": {wanted}')
    return value


def _compile(operator: Operator, values: tuple[str, ...]) -> tuple[Container[str | None], bool]:
    match operator:
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            return frozenset((None,)), operator is Operator.DOES_NOT_EXIST
        case Operator.GREATER_THAN | Operator.LESS_THAN:
            bound = _parse_int64(values[0]) if len(values) == 1 else None
            if bound is None:
                return frozenset[str](), True
            is_above = operator is Operator.GREATER_THAN
            return _IntegerTexts(range(bound + 1, _INT64.stop) if is_above else range(_INT64.start, bound)), True
        case _:
            return frozenset(values), operator not in (Operator.NOT_IN, Operator.NOT_EQUALS)


def _check_arity(operator: Operator, values: Sequence[str] | None) -> list[str]:
    """Whether the operator can take these values: how many, and integers where it compares them."""
    count = len(values or ())
    match operator:
        case Operator.GREATER_THAN | Operator.LESS_THAN:
            return _check_integers(values)
        case Operator.IN | Operator.NOT_IN:
            is_valid, rule = count > 0, "for 'in', 'notin' operators, values set can't be empty"
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            is_valid, rule = count == 0, "values set must be empty for exists and does not exist"
        case _:
            is_valid, rule = count == 1, "exact-match compatibility requires one single value"
    return [] if is_valid else _invalid("values", _to_json(values), [rule])


def _check_integers(values: Sequence[str] | None) -> list[str]:
    errors: list[str] = []
    if len(values or ()) != 1:
        errors += _invalid("values", _to_json(values), ["for 'Gt', 'Lt' operators, exactly one value is required"])
    for index, value in enumerate(values or ()):
        if _parse_int64(value) is None:
            rule = "for 'Gt', 'Lt' operators, the value must be an integer"
            errors += _invalid(f"values[{index}]", quote(value), [rule])
    return errors


def _invalid(path: str, shown: str, problems: Sequence[str]) -> list[str]:
    """A field error that joins the problems, or nothing where there are none."""
    return [f"{path}: Invalid value: {shown}: {'; '.join(problems)}"] if problems else []


def _to_json(values: Sequence[str] | None) -> str:
    """JSON as Go writes it: absent is null, and what could end a script or a line of one is escaped."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _parse_int64(text: str) -> int | None:
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    number = int(found[1] + found[2])
    return number if number in _INT64 else None
