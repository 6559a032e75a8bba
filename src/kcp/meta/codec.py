"""JSON and YAML in and out; the one door to orjson and to PyYAML.

Must not know what an object means, and must not trust what it reads: whatever the input, decoding ends soon, with a
value that `dumps` can write or with a DecodeError.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import orjson
import yaml

from kcp.meta import json_duplicates, json_syntax
from kcp.meta.yaml_scalars import ScalarError, needs_quotes
from kcp.meta.yaml_tree import TreeBuilder, TreeError

Object: TypeAlias = dict[str, Any]
Text: TypeAlias = bytes | bytearray | memoryview | str

# How deep lists and objects may nest, in JSON and in YAML. orjson reads 1024 levels but writes only 254; one limit for
# both directions means that nothing is ever stored that cannot be sent. The deepest real objects stay under 100.
MAX_DEPTH: Final = 254
# How many keys and values one YAML document may have, those added by aliases included: it takes a few microseconds to
# make one. Three megabytes of dense manifests, the most a request may carry, have some 400,000.
MAX_YAML_NODES: Final = 500_000

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_MAX_TAG_LENGTH: Final = 1000
_NO_FOLDING: Final = 1 << 30  # the emitter's line width: a long line stays one line


class DecodeError(ValueError):
    """The text is not what it claims to be. The message is for the user who sent it, worded as Kubernetes words it."""


def loads(text: Text) -> Any:  # noqa: ANN401 - a JSON document may be any value, here and below
    """Read one JSON document; of a repeated key the last one wins. Raises DecodeError."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise DecodeError(json_syntax.explain(_as_bytes(text)) or str(error)) from None
    if len(text) > 2 * MAX_DEPTH:  # what is shorter has too few brackets to be too deep
        _check_depth(value)
    return value


def loads_own(text: bytes) -> Any:  # noqa: ANN401
    """Read JSON that `dumps` wrote: it needs no checks."""
    return orjson.loads(text)


def dumps(value: Any) -> bytes:  # noqa: ANN401
    """Write compact JSON, keys in the order they have."""
    return orjson.dumps(value)


def dumps_pretty(value: Any) -> bytes:  # noqa: ANN401
    """JSON for people: indented by two, with a line end."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"


def sort_keys(value: Any) -> Any:  # noqa: ANN401
    """A copy with the keys of all objects in order, as Kubernetes writes YAML."""
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def loads_yaml(text: Text, *, strict: bool = False) -> Any:  # noqa: ANN401
    """Read the first document of a YAML (or JSON) text as sigs.k8s.io/yaml does; None if there is none.

    Of a repeated key the last one wins; if `strict`, repeated keys are errors. Raises DecodeError.
    """
    raw = _as_bytes(text)
    if raw.lstrip()[:1] in (b"{", b"["):
        # Most that comes labelled as YAML is JSON (every server-side apply does): a hundred times faster.
        value = _loads_json_as_yaml(raw, strict=strict)
        if value is not None:
            return value
    return next(_documents(raw, strict=strict), None)


def loads_yaml_all(text: Text, *, strict: bool = False) -> list[Any]:
    """Read every document of a YAML stream; an empty one (such as after a last `---`) is None. Raises DecodeError."""
    return list(_documents(_as_bytes(text), strict=strict))


def dumps_yaml(value: Any) -> str:  # noqa: ANN401
    """Write block-style YAML for people to read, keys in the order they have, quotes only where they are needed."""
    text: str = yaml.emit(_events(value), Dumper=_Dumper, width=_NO_FOLDING, allow_unicode=True)
    return text


def find_duplicate_fields(text: Text) -> list[str]:
    """The paths of repeated keys in a JSON text, such as `data.k`, for strict field validation. Raises DecodeError."""
    loads(text)
    return json_duplicates.find_duplicate_fields(_as_bytes(text))


def _check_depth(value: Any) -> None:  # noqa: ANN401
    """Refuse what could not be sent again. A trial run of dumps knows sooner than counting brackets."""
    try:
        orjson.dumps(value)
    except TypeError:
        raise DecodeError(f"exceeded max depth of {MAX_DEPTH}") from None


def _as_bytes(text: Text) -> bytes:
    if not isinstance(text, str):
        return bytes(text)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DecodeError("the text is not valid Unicode: it has half of a surrogate pair") from None


def _loads_json_as_yaml(raw: bytes, *, strict: bool) -> Any:  # noqa: ANN401
    """The value if this is JSON to which YAML adds nothing; None leaves the matter, and the error, to YAML."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    _check_depth(value)
    # Written again without change it has no repeated keys; usual for Python's clients, but Go's escape more.
    if strict and orjson.dumps(value) != raw and json_duplicates.has_duplicate_fields(raw):
        return None
    return value


def _documents(raw: bytes, *, strict: bool) -> Iterator[Any]:
    """Drive the parser event by event, so that it never runs ahead of the limits the builder checks.

    That matters: libyaml itself survives any nesting, but takes time quadratic in its depth.
    """
    builder = TreeBuilder(strict=strict, max_depth=MAX_DEPTH, max_nodes=MAX_YAML_NODES)
    try:
        for event in yaml.parse(raw, Loader=_Loader):
            if isinstance(event, yaml.DocumentEndEvent):
                yield builder.end_document()
            else:
                _build(builder, event)
    except (TreeError, ScalarError) as error:
        raise DecodeError(str(error)) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise DecodeError(_explain_yaml(error)) from None


def _build(builder: TreeBuilder, event: yaml.Event) -> None:
    line = event.start_mark.line if event.start_mark is not None else 0
    if isinstance(event, yaml.ScalarEvent):
        _check_tag(event.tag)
        builder.scalar(event.value, event.tag, event.anchor, plain=event.implicit[0], line=line)
    elif isinstance(event, yaml.CollectionEndEvent):
        builder.close()
    elif isinstance(event, yaml.CollectionStartEvent):
        _check_tag(event.tag)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        (builder.open_mapping if is_mapping else builder.open_sequence)(event.anchor, line)
    elif isinstance(event, yaml.AliasEvent):
        builder.alias(event.anchor or "", line)
    elif isinstance(event, yaml.DocumentStartEvent):
        builder.start_document()


def _check_tag(tag: str | None) -> None:
    # A %TAG directive may give a huge prefix a short name, and each use of the name makes libyaml copy the prefix.
    if tag is not None and len(tag) > _MAX_TAG_LENGTH:
        raise TreeError(f"yaml: tag is longer than {_MAX_TAG_LENGTH} characters")


def _explain_yaml(error: Exception) -> str:
    """The YAML library's message; its line numbers are one too low for all but scanner errors, and 0 is not shown."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"yaml: {getattr(error, 'reason', error)}"  # a character that is none, or not allowed
    line = 0
    if error.problem_mark is not None and error.problem_mark.line:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark is not None:
        line = error.context_mark.line
    return f"yaml: {f'line {line}: ' if line else ''}{error.problem}"


def _events(value: Any) -> Iterator[yaml.Event]:  # noqa: ANN401
    """What to emit, from a stack of what is left to do, so that depth costs no recursion."""
    yield yaml.StreamStartEvent()
    yield yaml.DocumentStartEvent(explicit=False)
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, yaml.Event):
            yield item
        elif isinstance(item, dict):
            yield yaml.MappingStartEvent(None, None, implicit=True, flow_style=not item)
            todo.append(yaml.MappingEndEvent())
            for key, child in reversed(item.items()):
                todo += (child, key)
        elif isinstance(item, list | tuple):
            yield yaml.SequenceStartEvent(None, None, implicit=True, flow_style=not item)
            todo.append(yaml.SequenceEndEvent())
            todo += reversed(item)
        else:
            yield _scalar_event(item)
    yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _scalar_event(value: Any) -> yaml.ScalarEvent:  # noqa: ANN401
    if not isinstance(value, str):
        return yaml.ScalarEvent(None, None, (True, True), "null" if value is None else dumps(value).decode())
    lines = value.split("\n")
    style = "|" if len(lines) > 1 else None
    if needs_quotes(value) or not all(line.isprintable() for line in lines):
        style = '"'
    return yaml.ScalarEvent(None, None, (style is None, True), value, style=style)
