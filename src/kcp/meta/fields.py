"""Field selectors: their text form, whether an object's fields match, and renaming or refusing the fields they name.

Errors carry the exact words of apimachinery's fields/selector.go. Nothing here may know which fields a kind offers:
whoever knows passes that to `Selector.transform`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kcp.meta.labels import Operator, SelectorSyntaxError

# Takes a field and a value and returns what they are called inside; raises to refuse them; two empty texts drop them.
Transform: TypeAlias = Callable[[str, str], tuple[str, str]]

_ESCAPE_OR_COMMA: Final = re.compile(r"\\.?|,", re.DOTALL)
_OPERATOR: Final = re.compile(r"!=|==?")
_ESCAPED: Final = str.maketrans({"\\": r"\\", ",": r"\,", "=": r"\="})
_ESCAPE_OR_SPECIAL: Final = re.compile(r"\\.?|[,=]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one field: the operator is EQUALS or NOT_EQUALS, and an absent field counts as empty."""

    field: str
    operator: Operator
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{escape_value(self.value)}"


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that all have to match; without requirements it matches everything.

    The text form keeps the order in which the terms were sorted as they were written, where `a==z` stands before `a=b`.
    That order means nothing, so selectors compare as sets of requirements.
    """

    requirements: tuple[Requirement, ...] = field(default=(), compare=False)
    _distinct: frozenset[Requirement] = field(init=False, repr=False)
    _tests: tuple[tuple[str, str, bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_distinct", frozenset(self.requirements))
        tests = tuple((term.field, term.value, term.operator is not Operator.NOT_EQUALS) for term in self.requirements)
        object.__setattr__(self, "_tests", tests)

    @property
    def is_empty(self) -> bool:
        """Whether it restricts nothing."""
        return not self.requirements

    def matches(self, fields: Mapping[str, str]) -> bool:
        # Lists and watches ask this for every object: all() would double the time.
        for name, value, wanted in self._tests:  # noqa: SIM110
            if (fields.get(name, "") == value) is not wanted:
                return False
        return True

    def requires_exact_match(self, field: str) -> str | None:
        """The value that the field must have, or None where it is free."""
        for term in self.requirements:
            if term.field == field and term.operator is not Operator.NOT_EQUALS:
                return term.value
        return None

    def transform(self, convert: Transform) -> "Selector":
        """The selector with every field and value converted; whatever the conversion raises passes through."""
        kept: list[Requirement] = []
        for term in self.requirements:
            name, value = convert(term.field, term.value)
            if name or value:
                kept.append(Requirement(name, term.operator, value))
        return Selector(tuple(kept))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_EVERYTHING: Final = Selector()


def everything() -> Selector:
    return _EVERYTHING


def parse(text: str) -> Selector:
    """The selector that a text such as ``metadata.name=a,status.phase!=Failed`` means, or a SelectorSyntaxError."""
    requirements: list[Requirement] = []
    # Sorted before they are read: of several faulty terms the error names the first in this order.
    for term in sorted(_split_terms(text)):
        if not term:
            continue
        found = _OPERATOR.search(term)
        if found is None:
            raise SelectorSyntaxError(f"invalid selector: '{text}'; can't understand '{term}'")
        name, value = term[: found.start()], unescape_value(term[found.end() :])
        operator = Operator.NOT_EQUALS if found[0] == "!=" else Operator.EQUALS
        if name or value:  # upstream drops `=` and `!=`, as every transformation does
            requirements.append(Requirement(name, operator, value))
    return Selector(tuple(requirements))


def escape_value(value: str) -> str:
    """The value as it has to be written in a field selector."""
    return value.translate(_ESCAPED)


def unescape_value(text: str) -> str:
    """The value that a text in a field selector stands for, or a SelectorSyntaxError."""
    return _ESCAPE_OR_SPECIAL.sub(_unescape, text)


def _unescape(found: re.Match[str]) -> str:
    match found[0]:
        case "\\\\" | "\\," | "\\=":
            return found[0][1]
        case "," | "=":
            # Upstream prints the number of the character.
            raise SelectorSyntaxError(f"invalid field selector: unescaped character in value: {ord(found[0])}")
        case _:
            raise SelectorSyntaxError(f"invalid field selector: invalid escape sequence: {found[0]}")


def _split_terms(text: str) -> list[str]:
    """The text cut at every comma that no backslash protects; backslashes stay where they are."""
    terms: list[str] = []
    start = 0
    for found in _ESCAPE_OR_COMMA.finditer(text):
        if found[0] == ",":
            terms.append(text[start : found.start()])
            start = found.end()
    return [*terms, text[start:]]
