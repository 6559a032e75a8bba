"""Errors of the engine in the words of cel-go, which are what Kubernetes' clients see."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kcp.schema.cel.operands import find_operands

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kcp.schema.cel.operands import Locate

_STATUS: Final = re.compile(r"^[A-Z_]+: ")
_TRAILER: Final = re.compile(r" \[[A-Z_]+\]$")
_HEAD: Final = re.compile(r"^ERROR: <input>:(-?\d+):(-?\d+): (.*)$")
_OVERLOAD: Final = re.compile(r"^found no matching overload for '([^']*)' applied to '\((.*)\)'$", re.DOTALL)
_ALIAS: Final = re.compile(r"\bobject\.T\d+\b")
_WORD: Final = re.compile(r"(?<![\w.])[A-Z]+(?![\w.])")
_TYPES: Final = (
    ("google.protobuf.Duration", "duration"),
    ("google.protobuf.Timestamp", "timestamp"),
    ("null_type", "null"),
)
_BLOCK: Final = re.compile(r"\n(?=(?:ERROR|WARNING): <input>:)")
_UNDECLARED: Final = re.compile(r"^undeclared reference to '([^']*)\.[^.']*' \(in container ''\)$")
_BAD_TOKEN: Final = "Syntax error: token recognition error at: "
_FOLLOW_UPS: Final = ("<<nil>> parsetree",)
_TOO_DEEP: Final = "Exceeded max recursion depth"

_COMPILE: Final = (
    (
        re.compile(r"^expression of type '(.*)' cannot be the operand of a select operation$"),
        r"type '\1' does not support field selection",
    ),
    (re.compile(r"^undefined field '(.*)' not found in struct '.*'$"), r"undefined field '\1'"),
    (re.compile(r"^\w+\(\) variable name must be a simple identifier$"), "argument must be a simple name"),
    (re.compile(r"^has\(\) argument must be a field selection$"), "invalid argument to has() macro"),
    (re.compile(r"\bT%\d+"), "dyn"),
    (re.compile(r"^(expression of type '.*') cannot be the range of a compr"), r"\1 cannot be range of a compr"),
    (
        re.compile(r"^Syntax error: no viable alternative at input '\.(true|false|null)'$"),
        r"Syntax error: mismatched input '\1' expecting IDENTIFIER",
    ),
)

_EVALUATE: Final = (
    (re.compile(r'^Key not found in map : "(.*)"$', re.DOTALL), r"no such key: \1"),
    (re.compile(r"^Key not found in map : (.*)$", re.DOTALL), r"no such key: \1"),
    (re.compile(r"^divide by zero$"), "division by zero"),
    (re.compile(r"^Index error: index=(-?\d+) size=\d+$"), r"index out of bounds: \1"),
    (re.compile(r"^Index error: expected integer type, got (.*)$"), r"unsupported index type '\1' in list"),
    (re.compile(r"^Applying SELECT to non-message type$"), "no such overload"),
    (re.compile(r'^No value with name "(.*)" found in Activation$'), r"no such attribute(s): \1"),
    (re.compile(r"^Type conversion error from '(.*)' to '(.*)'$"), r"type conversion error from '\1' to '\2'"),
    (re.compile(r"^cannot convert string to (.*)$"), r"type conversion error from 'string' to '\1'"),
    (
        re.compile(r"^String to (Timestamp|Duration) conversion failed$"),
        r"type conversion error from 'string' to 'google.protobuf.\1'",
    ),
    (re.compile(r"^(?:double|int64|uint64) out of int64 range$"), "integer overflow"),
    (re.compile(r"^(?:double|int64) out of uint64 range$"), "unsigned integer overflow"),
    (
        re.compile(r"^invalid regular expression: missing (.): (.*)$", re.DOTALL),
        r"error parsing regexp: missing closing \1: `\2`",
    ),
    (re.compile(r"^invalid regular expression: (.*): (.*)$", re.DOTALL), r"error parsing regexp: \1: `\2`"),
    (re.compile(r"^flatten\(\): level must"), "level must"),
    (re.compile(r"^Iteration budget exceeded$"), "operation cancelled: actual cost limit exceeded"),
)
_NO_OVERLOAD: Final = re.compile(r"^No matching overloads found : (?:\((.*?)\)\.)?([^(]*)(?:\((.*)\))?$", re.DOTALL)
_KINDS: Final = {
    "int64": "int",
    "uint64": "uint",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}
_OF_STRINGS: Final = ("startsWith", "endsWith", "contains", "matches")
_OPERATORS: Final = ("_", "!", "-", "<", "@")


def compile_message(text: str, expression: str, names: Mapping[str, str], locate: Locate) -> str:
    """All complaints about an expression, each with its place. `names` are those of object types by the engine's."""
    text = rename(_TRAILER.sub("", _STATUS.sub("", text)), names)
    if _TOO_DEEP in text:
        return "ERROR: <input>:-1:0: max recursion depth exceeded"
    for ours, theirs in _TYPES:
        text = text.replace(ours, theirs)
    source = expression.split("\n")
    complaints: list[tuple[int, int, str]] = []
    for block in _BLOCK.split(text):
        complaint = _read_complaint(block, source)
        complaints += [] if complaint is None else _split_operands(complaint, expression, locate)
    return "\n".join(shown for _, _, shown in sorted(complaints, key=lambda complaint: complaint[:2]))


def _split_operands(complaint: tuple[int, int, str], expression: str, locate: Locate) -> list[tuple[int, int, str]]:
    row, column, shown = complaint
    lines = expression.split("\n")
    offset = sum(len(line) + 1 for line in lines[: row - 1]) + column - 1
    text = shown.partition("\n")[0].split(": ", 2)[2]
    found = []
    for place, other in find_operands(text, expression, offset, locate):
        row = expression.count("\n", 0, place) + 1
        column = place - (expression.rfind("\n", 0, place) + 1) + 1
        found.append((row, column, _show(row, column, other, lines[row - 1])))
    return found or [complaint]


def _show(row: int, column: int, complaint: str, line: str) -> str:
    return f"ERROR: <input>:{row}:{column}: {complaint}\n | {line}\n | {'.' * (column - 1)}^"


def rename(text: str, names: Mapping[str, str]) -> str:
    """Call object types by their own names again."""
    return _ALIAS.sub(lambda alias: names.get(alias[0], alias[0]), text)


def type_name(text: str, names: Mapping[str, str]) -> str:
    """The engine's `MAP<STRING, LIST<DYN>>` as cel-go prints it: `map(string, list(dyn))`."""
    plain = rename(text, names)
    return _WORD.sub(lambda word: word[0].lower(), plain.replace("<", "(").replace(">", ")"))


def _read_complaint(block: str, source: list[str]) -> tuple[int, int, str] | None:
    """One complaint with its row and column; None for what cel-go does not complain about."""
    head, _, shown_source = block.partition("\n")
    match = _HEAD.match(head)
    if match is None or match[3] in _FOLLOW_UPS or "'*error*'" in match[3]:
        return None
    row, column, complaint = int(match[1]), int(match[2]), match[3]
    line = source[row - 1] if 0 < row <= len(source) else ""
    for pattern, replacement in _COMPILE:
        complaint = pattern.sub(replacement, complaint)
    overload, undeclared = _OVERLOAD.match(complaint), _UNDECLARED.match(complaint)
    if overload is not None and _is_member_call(line, column, overload[1]):
        target, _, rest = _first_type(overload[2])
        complaint = f"found no matching overload for '{overload[1]}' applied to '{target}.({rest})'"
    elif undeclared is not None and line.startswith(undeclared[1], column - 1 - len(undeclared[1])):
        # cel-go looks at the first name only, and finds it at its beginning.
        column -= len(undeclared[1])
        complaint = f"undeclared reference to '{undeclared[1].partition('.')[0]}' (in container '')"
        shown_source = f" | {line}\n | {'.' * (column - 1)}^"
    elif complaint.startswith(_BAD_TOKEN):
        complaint = complaint.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r")
    return row, column, "\n".join(filter(None, (f"ERROR: <input>:{row}:{column}: {complaint}", shown_source)))


def _is_member_call(line: str, column: int, function: str) -> bool:
    """The place is that of the opening parenthesis; before it stands the name, and before that a dot or not."""
    before = line[: column - 1].rstrip()
    return before.endswith(function) and before[: -len(function)].rstrip().endswith(".")


def _first_type(types: str) -> tuple[str, str, str]:
    """Cut `map(string, int), string` behind the first type."""
    depth = 0
    for index, char in enumerate(types):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            return types[:index], ",", types[index + 1 :].lstrip()
    return types, "", ""


def evaluate_message(text: str) -> str:
    """Why an evaluation failed."""
    text = _TRAILER.sub("", _STATUS.sub("", text))
    for pattern, replacement in _EVALUATE:
        changed, count = pattern.subn(replacement, text)
        if count:
            return changed
    overload = _NO_OVERLOAD.match(text)
    if overload is None:
        return text
    target, function, arguments = overload[1], overload[2], overload[3]
    if function.startswith(_OPERATORS) or function in _OF_STRINGS or arguments is None:
        return "no such overload"
    if function == "size":
        return "no such overload: size"
    kinds = [kind for kind in ([target] if target else []) + arguments.split(", ") if kind]
    return f"no such overload: {function}({', '.join(_KINDS.get(kind, kind) for kind in kinds)})"
