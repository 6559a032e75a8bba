"""Semantic versions in expressions, read and ordered as blang/semver does."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from kcp.meta.gotext import quote
from kcp.schema.cel.descriptors import parts_of, value_of
from kcp.schema.cel.functions import Overload, function, method
from kcp.schema.cel.types import BOOL, INT, SEMVER, STRING

if TYPE_CHECKING:
    from kcp.schema.cel.descriptors import Value
    from kcp.schema.cel.functions import Function

_NUMBERS: Final = ("Major", "Minor", "Patch")
_WORD: Final = re.compile("[0-9A-Za-z-]+")
_DIGITS: Final = re.compile("[0-9]+")
_MAX_UINT64: Final = 2**64 - 1
_CACHED: Final = 1024


class _Version(NamedTuple):
    """`pre` orders as the specification says: none at all is newest, numbers come before words."""

    numbers: tuple[int, int, int]
    is_release: bool
    pre: tuple[tuple[bool, int, str], ...]


@lru_cache(maxsize=_CACHED)
def parse_version(text: str) -> _Version:
    """Read `1.2.3-rc.1+build`. Raises ValueError in the library's words."""
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != len(_NUMBERS):
        raise ValueError("No Major.Minor.Patch elements found")
    patch, _, build = parts[2].partition("+")
    patch, dash, pre = patch.partition("-")
    major, minor, last = (_number(name, part) for name, part in zip(_NUMBERS, (*parts[:2], patch), strict=True))
    labels = tuple(map(_pre_release, pre.split("."))) if dash else ()
    if "+" in parts[2]:
        for part in build.split("."):
            _check_build(part)
    return _Version((major, minor, last), not labels, labels)


def _number(name: str, text: str) -> int:
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if not _DIGITS.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{name} number must not contain leading zeroes {quote(text)}")
    if int(text) > _MAX_UINT64:
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _pre_release(text: str) -> tuple[bool, int, str]:
    if not text:
        raise ValueError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return (False, int(text), "")
    if not _WORD.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in prerelease {quote(text)}")
    return (True, 0, text)


def _check_build(text: str) -> None:
    if not text:
        raise ValueError("Build meta data is empty")
    if not _WORD.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in build meta data {quote(text)}")


def normalize(text: str) -> str:
    """What Kubernetes forgives when asked to: a leading v, leading zeros, and missing numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1] in set("123456789") else "0" + stripped
    if len(parts) < len(_NUMBERS):
        if any(char in "+-" for char in parts[-1]):
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (len(_NUMBERS) - len(parts))
    return ".".join(parts)


def parse(text: str, forgiving: bool = False) -> Value:
    version = normalize(text) if forgiving else text
    parse_version(version)
    return value_of(SEMVER, version.partition("+")[0])


def is_semver(text: str, forgiving: bool = False) -> bool:
    try:
        parse(text, forgiving)
    except ValueError:
        return False
    return True


def compare(left: Value, right: Value) -> int:
    first, second = _of(left), _of(right)
    return (first > second) - (first < second)


def _of(value: Value) -> _Version:
    return parse_version(parts_of(value)[0])


_ONE: Final = (SEMVER,)
_TWO: Final = (SEMVER, SEMVER)

FUNCTIONS: Final[tuple[Function, ...]] = (
    function(
        "semver",
        Overload("string_to_semver", (STRING,), SEMVER, parse),
        Overload("string_bool_to_semver", (STRING, BOOL), SEMVER, parse),
    ),
    function(
        "isSemver",
        Overload("is_semver_string", (STRING,), BOOL, is_semver),
        Overload("is_semver_string_bool", (STRING, BOOL), BOOL, is_semver),
    ),
    method("isGreaterThan", Overload("semver_is_greater_than", _TWO, BOOL, lambda a, b: compare(a, b) > 0)),
    method("isLessThan", Overload("semver_is_less_than", _TWO, BOOL, lambda a, b: compare(a, b) < 0)),
    method("compareTo", Overload("semver_compare_to", _TWO, INT, compare)),
    method("major", Overload("semver_major", _ONE, INT, lambda value: _of(value).numbers[0])),
    method("minor", Overload("semver_minor", _ONE, INT, lambda value: _of(value).numbers[1])),
    method("patch", Overload("semver_patch", _ONE, INT, lambda value: _of(value).numbers[2])),
)
