"""Values: what is packed is read back, and what was not packed never reaches a reader."""

from __future__ import annotations

import copy
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kcp.meta import codec
from kcp.store import InvalidCommit, pack, pack_object
from kcp.store.value import (
    DELETING,
    FINALIZERS,
    Record,
    bodies_of,
    body_of,
    check_value,
    is_usable,
    labels_of,
    pack_labels,
    revision_of,
    stamp,
    unstamp,
)
from tests.store.objects import key

if TYPE_CHECKING:
    from kcp.meta.codec import Object

HEADER = struct.Struct(">BBIIQII")

revisions = st.integers(1, 2**64 - 1) | st.sampled_from([1, 9, 10, 99, 100, 2**63, 2**64 - 1])
flags = st.integers(0, 255)
schemas = st.integers(0, 2**64 - 1)
label_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02"), max_size=5)
labels_ = st.dictionaries(label_texts, label_texts, max_size=4)
uids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5)
owners_ = st.lists(uids, max_size=3)
bodies = st.binary(max_size=40)


@st.composite
def packed(draw: st.DrawFn) -> bytes:
    body = draw(bodies)
    splice = draw(st.integers(0, max(len(body) - 1, 0)))
    return pack(
        body,
        splice=splice,
        labels=draw(labels_),
        owners=draw(owners_),
        flags=draw(flags),
        schema=draw(schemas),
    )


def read_everything(value: bytes, revision: int) -> None:
    """All that a reader may ask of a value that a commit let through."""
    stored = stamp(value, revision)
    record = Record(key("a"), stored)
    assert record.revision == revision_of(stored) == revision
    assert record.value == unstamp(stored) == value
    assert record.body == body_of(stored) == bodies_of([(b"", stored)])[0]
    assert isinstance(record.labels, dict)
    assert isinstance(record.owners, list)
    assert 0 <= record.flags <= 255
    assert record.schema >= 0
    assert record == Record(key("a"), stored)
    assert labels_of(stored) == b"" or labels_of(stored)[:1] == labels_of(stored)[-1:] == b"\x01"


@given(bodies, labels_, owners_, flags, schemas, revisions)
def test_what_was_packed_is_read_back(
    body: bytes, labels: dict[str, str], owners: list[str], flag: int, schema: int, revision: int
) -> None:
    value = pack(body, labels=labels, owners=owners, flags=flag, schema=schema)
    check_value(value)
    read_everything(value, revision)
    record = Record(key("a"), stamp(value, revision))
    assert (record.body, record.labels, record.owners) == (body, labels, owners)
    assert (record.flags, record.schema) == (flag, schema)


@given(bodies, labels_, owners_, revisions, st.data())
def test_the_revision_is_written_in_at_the_splice_point(
    body: bytes, labels: dict[str, str], owners: list[str], revision: int, data: st.DataObject
) -> None:
    assume(len(body) > 1)
    splice = data.draw(st.integers(1, len(body) - 1))
    value = pack(body, splice=splice, labels=labels, owners=owners)
    check_value(value)
    read_everything(value, revision)
    stored = stamp(value, revision)
    assert body_of(stored) == body[:splice] + b'"resourceVersion":"%d",' % revision + body[splice:]
    assert Record(key("a"), stored).labels == labels
    assert Record(key("a"), stored).owners == owners


@given(packed(), revisions, revisions)
def test_a_value_can_be_stamped_again_and_again(value: bytes, one: int, other: int) -> None:
    assert unstamp(stamp(unstamp(stamp(value, one)), other)) == value
    assert stamp(unstamp(stamp(value, one)), other) == stamp(value, other)


# -- objects ------------------------------------------------------------------

leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8)
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
tricky = st.sampled_from(["kind", "apiVersion", "metadata", "resourceVersion", '"metadata":{', "}", '"', "\\", "\x01"])


@st.composite
def objects(draw: st.DrawFn) -> Object:
    metadata = draw(st.dictionaries(st.text(max_size=5) | tricky, json_values, max_size=3))
    for name in ("labels", "ownerReferences", "deletionTimestamp", "finalizers"):
        metadata.pop(name, None)
    metadata["name"] = draw(st.text(max_size=8) | tricky)
    if draw(st.booleans()):
        metadata["labels"] = draw(st.none() | labels_)
    if draw(st.booleans()):
        metadata["ownerReferences"] = draw(st.none() | st.lists(st.fixed_dictionaries({"uid": uids}), max_size=3))
    if draw(st.booleans()):
        metadata["deletionTimestamp"] = draw(st.sampled_from([None, "", "2024-01-01T00:00:00Z"]))
    if draw(st.booleans()):
        metadata["finalizers"] = draw(st.sampled_from([None, [], ["example.io/keep"]]))
    if draw(st.booleans()):
        metadata["resourceVersion"] = draw(st.sampled_from(["", "17", None]))
    fields = list(draw(st.dictionaries(st.text(max_size=5) | tricky, json_values, max_size=4)).items())
    return dict(draw(st.permutations([*fields, ("metadata", metadata)]))) | {"metadata": metadata}


@given(objects(), revisions, schemas)
def test_an_object_is_read_back_with_its_resource_version(obj: Object, revision: int, schema: int) -> None:
    before = copy.deepcopy(obj)
    value = pack_object(obj, schema=schema)
    assert obj == before
    check_value(value)
    read_everything(value, revision)
    record = Record(key("a"), stamp(value, revision))
    expected: dict[str, Any] = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
    assert codec.loads(record.body) == expected
    assert next(iter(codec.loads(record.body)["metadata"])) == "resourceVersion"


@given(objects())
def test_the_header_of_an_object_says_what_its_metadata_says(obj: Object) -> None:
    record = Record(key("a"), stamp(pack_object(obj), 1))
    metadata = obj["metadata"]
    assert record.labels == (metadata.get("labels") or {})
    assert record.owners == [owner["uid"] for owner in metadata.get("ownerReferences") or ()]
    assert bool(record.flags & DELETING) == bool(metadata.get("deletionTimestamp"))
    assert bool(record.flags & FINALIZERS) == bool(metadata.get("finalizers"))


def test_an_object_without_metadata_of_its_own_is_refused() -> None:
    with pytest.raises(InvalidCommit):
        pack_object({"kind": "ConfigMap", "metadata": {}})
    with pytest.raises(InvalidCommit):
        pack_object({"kind": "ConfigMap", "metadata": {"resourceVersion": "7"}})


@given(labels_, label_texts, label_texts)
@example({"a": "b", "c": "d"}, "a", "b")
@example({"aa": "b"}, "a", "b")
@example({"a": "bb"}, "a", "b")
@example({"b": "a"}, "a", "b")
@example({"": ""}, "", "")
def test_a_label_is_found_by_one_search(labels: dict[str, str], name: str, wanted: str) -> None:
    stored = stamp(pack(b"{}", labels=labels), 7)
    needle = f"\x01{name}\x02{wanted}\x01".encode()
    assert (needle in labels_of(stored)) == (labels.get(name) == wanted)
    assert (f"\x01{name}\x02".encode() in labels_of(stored)) == (name in labels)


@given(st.dictionaries(st.text("ab\x01\x02", max_size=4), st.text("ab\x01\x02", max_size=4), min_size=1, max_size=3))
def test_labels_are_read_back_or_refused(labels: dict[str, str]) -> None:
    has_separator = any(letter in text for pair in labels.items() for text in pair for letter in "\x01\x02")
    try:
        pack_labels(labels)
    except InvalidCommit:
        assert has_separator
    else:
        assert not has_separator
        assert Record(key("a"), stamp(pack(b"", labels=labels), 1)).labels == labels


@given(st.lists(st.text("ab\x01\x02", max_size=3), min_size=1, max_size=3))
@example(["a\x01b"])
@example([""])
def test_owners_are_read_back_or_refused(owners: list[str]) -> None:
    """A uid in an owner reference is any text that a client sends."""
    try:
        value = pack(b"{}", owners=owners)
    except InvalidCommit:
        return
    assert Record(key("a"), stamp(value, 1)).owners == owners


# -- what is not a value ------------------------------------------------------


@given(packed())
def test_what_pack_makes_is_accepted(value: bytes) -> None:
    assert is_usable(value)


@given(packed(), st.data())
def test_a_value_cut_short_is_refused_or_harmless(value: bytes, data: st.DataObject) -> None:
    cut = value[: data.draw(st.integers(0, len(value) - 1))]
    check_refused_or_harmless(cut)


@given(packed(), revisions)
def test_a_flipped_bit_in_the_header_is_refused_or_harmless(value: bytes, revision: int) -> None:
    for position in range(HEADER.size * 8):
        flipped = bytearray(value)
        flipped[position // 8] ^= 1 << position % 8
        check_refused_or_harmless(bytes(flipped), revision)


@given(
    st.tuples(
        st.just(1), flags, st.integers(0, 90), st.integers(0, 90), schemas, st.integers(0, 40), st.integers(0, 40)
    ),
    st.binary(max_size=60) | packed(),
)
@example((1, 0, 34 + 4, 0, 0, 0, 4), b"\xff\xff\xff\xff")
@example((1, 0, 34 + 4, 0, 0, 4, 0), b"\xff\xff\xff\xff")
@example((1, 0, 34 + 4, 0, 0, 4, 0), b"\x01aa\x01")
@example((1, 0, 34 + 7, 0, 0, 7, 0), b"\x01a\x02b\x02c\x01")
@example((1, 0, 34 + 5, 0, 0, 4, 1), b"\x01a\x02\x01a")
@example((1, 0, 34 + 1, 0, 0, 1, 0), b"\x01")
def test_a_made_up_header_is_refused_or_harmless(header: tuple[int, ...], rest: bytes) -> None:
    check_refused_or_harmless(HEADER.pack(*header) + rest)


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_or_harmless(value: bytes) -> None:
    check_refused_or_harmless(value)
    check_refused_or_harmless(b"\x01" + value)


def check_refused_or_harmless(value: bytes, revision: int = 7) -> None:
    if is_usable(value):
        read_everything(value, revision)
