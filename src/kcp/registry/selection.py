"""Label and field selectors compiled to questions about stored bytes, so that neither lists nor watches parse JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcp.meta import codec, labels
from kcp.store.value import body_of, labels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kcp.meta import fields
    from kcp.registry.resource import Resource

    Test = Callable[[bytes], bool]

_METADATA_FIELDS = {"metadata.name", "metadata.namespace"}


class Selection:
    """Which stored objects a request wants. `accept` is None when it wants all of them."""

    def __init__(self, resource: Resource, label: labels.Selector, field: fields.Selector) -> None:
        self.label = label
        self.field = field
        tests: list[Test] = []
        if not label.is_empty:
            tests.append(_label_test(label))
        if not field.is_empty:
            tests.append(_field_test(resource, field))
        self.accept: Test | None = None if not tests else tests[0] if len(tests) == 1 else _both(*tests)
        self.contains = max((_needed(each) for each in label.requirements), key=len, default=b"")
        """Bytes that are in whatever `accept` takes: a quick look before a thorough one."""

    @property
    def name(self) -> str | None:
        """The one name that can match, if the field selector asks for one."""
        return self.field.requires_exact_match("metadata.name")


def _both(first: Test, second: Test) -> Test:
    return lambda stored: first(stored) and second(stored)


def _label_test(selector: labels.Selector) -> Test:
    tests = [_requirement_test(requirement) for requirement in selector.requirements]
    if len(tests) == 1:
        test = tests[0]
        return lambda stored: test(labels_of(stored))

    def accept(stored: bytes) -> bool:
        packed = labels_of(stored)
        return all(test(packed) for test in tests)

    return accept


def _needed(requirement: labels.Requirement) -> bytes:
    """What must stand in the packed labels for this to match; nothing if it may match where the label is absent."""
    key = b"\x01" + requirement.key.encode() + b"\x02"
    match requirement.operator:
        case labels.Operator.EQUALS | labels.Operator.DOUBLE_EQUALS | labels.Operator.IN:
            return key + requirement.values[0].encode() + b"\x01" if len(requirement.values) == 1 else key
        case labels.Operator.EXISTS | labels.Operator.GREATER_THAN | labels.Operator.LESS_THAN:
            return key
    return b""


def _requirement_test(requirement: labels.Requirement) -> Test:
    """A question about packed labels: `\\x01key\\x02value\\x01…`"""
    key = b"\x01" + requirement.key.encode() + b"\x02"
    match requirement.operator:
        case labels.Operator.EXISTS:
            return lambda packed: key in packed
        case labels.Operator.DOES_NOT_EXIST:
            return lambda packed: key not in packed
        case labels.Operator.EQUALS | labels.Operator.DOUBLE_EQUALS:
            pair = key + requirement.values[0].encode() + b"\x01"
            return lambda packed: pair in packed
        case labels.Operator.IN:
            return _one_of(key, requirement.values)
        case labels.Operator.NOT_EQUALS | labels.Operator.NOT_IN:
            is_one_of = _one_of(key, requirement.values)
            return lambda packed: not is_one_of(packed)
        case _:
            return lambda packed: requirement.matches(_unpack(packed))


def _one_of(key: bytes, values: Iterable[str]) -> Test:
    """Whether the label is there with one of the values: one look, however many of them a client sends."""
    wanted = frozenset(value.encode() for value in values)

    def test(packed: bytes) -> bool:
        start = packed.find(key) + len(key)
        return start >= len(key) and packed[start : packed.index(b"\x01", start)] in wanted

    return test


def _unpack(packed: bytes) -> dict[str, str]:
    pairs = packed[1:-1]
    return dict(pair.split("\x02") for pair in pairs.decode().split("\x01")) if pairs else {}


def _field_test(resource: Resource, selector: fields.Selector) -> Test:
    strategy = resource.strategy

    def accept(stored: bytes) -> bool:
        obj = codec.loads(body_of(stored))
        if resource.from_storage is not None:
            obj = resource.from_storage(obj)
        metadata = obj["metadata"]
        values = {"metadata.name": metadata.get("name", ""), "metadata.namespace": metadata.get("namespace", "")}
        values.update(strategy.selectable_fields(obj))
        return selector.matches(values)

    return accept


def unsupported_field(resource: Resource, selector: fields.Selector) -> str | None:
    """The first field that this kind cannot be selected by."""
    known = resource.strategy.field_labels
    for requirement in selector.requirements:
        name = requirement.field
        # Kinds with a list of their own leave it out where there is none; the others take it, and find nothing.
        if name == "metadata.namespace" and not resource.namespaced and (resource.custom or known):
            return name
        if name not in _METADATA_FIELDS and name not in known:
            return name
    return None
