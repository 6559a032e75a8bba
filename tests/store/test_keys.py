"""Keys, their bytes, and the ranges that scopes are."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kcp.store import EmbeddedStore, InvalidCommit, ObjectKey, Put, ResourceKey, Revision, Scope, TooLarge
from kcp.store.check import find_problems
from kcp.store.keys import MAX_TAIL_BYTES, after_prefix, decode_tail, encode_tail, scope_prefix
from kcp.store.layout import pack_resource_name, unpack_resource_name
from tests.store.objects import CONFIGMAPS, EVERYTHING, SECRETS, create, key, take, text_of, value

if TYPE_CHECKING:
    from pathlib import Path

# Letters around the separator in the order of bytes, and one from each length of UTF-8.
ALPHABET = "-./0aé€𝄞\x00\x7f"

parts = st.text(ALPHABET.replace("/", ""), max_size=6)
named = st.text(ALPHABET.replace("/", ""), min_size=1, max_size=6)
any_text = st.text(st.characters(), max_size=6) | st.text(ALPHABET, max_size=6)
resources = st.sampled_from([CONFIGMAPS, SECRETS])
keys = st.builds(ObjectKey, resources, named, parts, named)
any_keys = st.builds(ObjectKey, resources, any_text, any_text, any_text)
scopes = st.builds(Scope, st.none() | resources, st.none() | named, st.none() | parts)


@given(keys)
def test_a_key_is_read_back_from_its_bytes(object_key: ObjectKey) -> None:
    assert decode_tail(object_key.resource, encode_tail(object_key)) == object_key


@given(any_keys)
@example(ObjectKey(CONFIGMAPS, "a", "\ud800", "b"))
def test_any_text_is_a_key_or_is_refused(object_key: ObjectKey) -> None:
    try:
        tail = encode_tail(object_key)
    except InvalidCommit:
        separators = "".join(object_key[1:]).count("/")
        assert separators or not object_key.cluster or not object_key.name or not is_unicode(object_key)
    else:
        assert decode_tail(object_key.resource, tail) == object_key


def is_unicode(object_key: ObjectKey) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in "".join(object_key[1:]))


@given(keys, keys)
@example(key("c", namespace="b", cluster="a"), key("b/c", namespace="", cluster="a"))
@example(key("b", namespace="a", cluster=""), key("b", namespace="", cluster="a"))
def test_different_keys_never_share_a_tail(one: ObjectKey, other: ObjectKey) -> None:
    assume(one[1:] != other[1:])
    with contextlib.suppress(InvalidCommit):
        assert encode_tail(one) != encode_tail(other)


@given(st.lists(keys, min_size=2, max_size=20))
def test_keys_sort_as_kubernetes_sorts_their_joined_parts(found: list[ObjectKey]) -> None:
    assert sorted(found, key=encode_tail) == sorted(found, key=lambda object_key: "/".join(object_key[1:]))


@given(scopes, keys)
def test_a_scope_contains_what_lies_in_its_range(scope: Scope, object_key: ObjectKey) -> None:
    prefix = scope_prefix(scope)
    tail = encode_tail(object_key)
    behind = after_prefix(prefix)
    in_range = prefix <= tail and (not behind or tail < behind)
    same_resource = scope.resource in (None, object_key.resource)
    if scope.cluster is None:
        # No prefix can say it: the range is everything, and the namespace is looked at.
        assert in_range
        assert scope.contains(object_key) == (same_resource and scope.namespace in (None, object_key.namespace))
    else:
        assert scope.contains(object_key) == (same_resource and in_range)


@given(scopes)
def test_a_scope_contains_the_keys_made_from_it(scope: Scope) -> None:
    inside = ObjectKey(
        scope.resource or CONFIGMAPS,
        scope.cluster if scope.cluster is not None else "a",
        scope.namespace if scope.namespace is not None else "b",
        "c",
    )
    assert scope.contains(inside)
    assert EVERYTHING.contains(inside)
    assert not Scope(scope.resource, f"{inside.cluster}x").contains(inside)
    assert not Scope(namespace=f"{inside.namespace}x").contains(inside)


@given(st.binary(max_size=4), st.binary(max_size=6))
@example(b"\xff\xff", b"\xff\xff\xff")
@example(b"a\xff", b"b")
def test_the_end_of_a_prefix_is_behind_all_that_start_with_it_and_nothing_else(prefix: bytes, other: bytes) -> None:
    behind = after_prefix(prefix)
    assert (prefix <= other and (not behind or other < behind)) == other.startswith(prefix)


@pytest.mark.parametrize("length", [MAX_TAIL_BYTES - 1, MAX_TAIL_BYTES])
def test_the_longest_tail_fits(length: int) -> None:
    assert len(encode_tail(key("n" * (length - len("root/default/"))))) == length
    assert len(encode_tail(key("n", cluster="c" * (length - len("/default/n"))))) == length


@pytest.mark.parametrize("letter", ["n", "é"])
def test_a_tail_is_measured_in_bytes(letter: str) -> None:
    fitting = (MAX_TAIL_BYTES - len("root/default/")) // len(letter.encode())
    encode_tail(key(letter * fitting))
    with pytest.raises(TooLarge):
        encode_tail(key(letter * (fitting + 1)))


resource_parts = st.text("-./0a_\x00\x7f", max_size=3) | st.text(max_size=3)
resource_keys = st.builds(ResourceKey, resource_parts, resource_parts, resource_parts)


@given(resource_keys, resource_keys)
@example(ResourceKey("a", "b", "c"), ResourceKey("a/b", "c", ""))
@example(ResourceKey("", "a", ""), ResourceKey("a", "", ""))
def test_resources_are_read_back_from_their_names_and_never_share_one(one: ResourceKey, other: ResourceKey) -> None:
    names: list[bytes | None] = []
    for resource in (one, other):
        try:
            name = pack_resource_name(resource)
        except InvalidCommit:
            names.append(None)
        else:
            assert unpack_resource_name(name) == resource
            names.append(name)
    assert one == other or names[0] != names[1] or names == [None, None]


async def test_the_longest_keys_can_be_stored_watched_and_counted(tmp_path: Path) -> None:
    """LMDB's limit of 511 bytes holds for every table that a key takes part in."""
    resource = ResourceKey("g" * 300, "r" * 100, "i" * 78)
    longest = [
        key("n", namespace="", cluster="c" * (MAX_TAIL_BYTES - 3), resource=resource),
        key("n", namespace="s" * (MAX_TAIL_BYTES - 4), cluster="c", resource=resource),
        key("n" * (MAX_TAIL_BYTES - 3), namespace="", cluster="c", resource=resource),
    ]
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        revision = await store.commit([Put(object_key, value()) for object_key in longest])
        assert all(store.get(object_key) for object_key in longest)
        for object_key in longest:
            scope = Scope(*object_key[:3])
            assert [record.key for record in store.range(scope).records()] == [object_key]
            assert [record.key for record in store.range(scope, revision=revision).records()] == [object_key]
            with store.watch(scope, Revision(0)) as watcher:
                assert [event.key for event in (await watcher.next()).events] == [object_key]
            assert store.counts(object_key.cluster)[resource] >= 1


async def test_more_resources_than_are_remembered_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcp.store.engine._REMEMBERED_RESOURCES", 3)
    resources = [ResourceKey("g", f"r{number}", "i" * number) for number in range(10)]
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        with store.watch(EVERYTHING, Revision(0)) as live:
            for resource in resources:
                await create(store, "a", str(resource), resource=resource)
            assert [event.key.resource for event in await take(live, 10)] == resources
        with store.watch(EVERYTHING, Revision(0)) as late:
            assert [event.key.resource for event in await take(late, 10)] == resources
        for resource in reversed(resources):
            assert text_of(store.get(key("a", resource=resource))) == str(resource)
            assert store.count(Scope(resource)) == 1
        assert [record.key.resource for record in store.range(EVERYTHING).records()] == resources
        assert store.counts("root") == dict.fromkeys(resources, 1)
        assert list(find_problems(store._engine)) == []


async def test_a_resource_whose_number_looks_like_the_separator_is_like_any_other(tmp_path: Path) -> None:
    resources = [ResourceKey("g", f"r{number}") for number in range(1, 50)]
    looks_alike = resources[ord("/") - 1]
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await store.commit([Put(key("a", resource=resource), value()) for resource in resources])
        with store._engine.view() as view:
            assert view.txn.get(pack_resource_name(looks_alike), db=store._engine.env.resources) == b"\0\0\0/"
        await store.commit([Put(key("a", cluster="other", namespace="x", resource=looks_alike), value())])
        for scope, expected in [
            (Scope(looks_alike), 2),
            (Scope(looks_alike, "root"), 1),
            (Scope(looks_alike, "root", "default"), 1),
            (Scope(looks_alike, None, "default"), 1),
            (Scope(looks_alike, None, "root"), 0),
            (Scope(looks_alike, None, ""), 0),
        ]:
            assert store.count(scope) == len(store.range(scope).pairs) == expected
            assert all(scope.contains(record.key) for record in store.range(scope).records())
            with store.watch(scope, Revision(0)) as watcher:
                assert len((await watcher.next(timeout=0)).events) == expected
            assert len(store.range(scope, revision=Revision(1)).pairs) == (expected + 1) // 2
        assert store.counts("root")[looks_alike] == 1
        assert store.counts("other") == {looks_alike: 1}


TOO_LONG = "x" * 5000


@pytest.mark.parametrize(
    "scope",
    [
        Scope(CONFIGMAPS, "root/default"),
        Scope(CONFIGMAPS, "root/default", ""),
        Scope(CONFIGMAPS, "root", "default/"),
        Scope(CONFIGMAPS, "/root"),
        Scope(CONFIGMAPS, ""),
        Scope(CONFIGMAPS, "", ""),
        Scope(CONFIGMAPS, "", "root"),
        Scope(CONFIGMAPS, TOO_LONG),
        Scope(CONFIGMAPS, "root", TOO_LONG),
        Scope(CONFIGMAPS, None, TOO_LONG),
        Scope(CONFIGMAPS, None, "default/"),
        Scope(CONFIGMAPS, "\ud800"),
        Scope(CONFIGMAPS, "root", "\ud800"),
        Scope(CONFIGMAPS, None, "\ud800"),
        Scope(CONFIGMAPS, "root/" + "\0" * 7),
    ],
    ids=lambda scope: ascii(f"{scope.cluster}|{scope.namespace}")[:30],
)
async def test_a_scope_that_no_key_can_be_in_is_empty(tmp_path: Path, scope: Scope) -> None:
    """Names come from addresses that clients make up: they must not lead to what another name stands for."""
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        # The trail of the next revision has a byte that looks like the separator.
        await store._writer.submit(lambda group: group.advance(Revision(ord("/") - 1)))
        await store.commit([Put(key(f"n{number}"), value()) for number in range(100)])
        revision = await store.commit([Put(key("n0"), value())])
        assert store.range(scope).pairs == []
        assert store.range(scope, revision=Revision(revision - 1)).pairs == []
        assert store.count(scope) == 0
        with store.watch(scope, Revision(0)) as watcher:
            assert (await watcher.next(timeout=0)).events == []


@pytest.mark.parametrize("cluster", ["", "root/default", "/", "\ud800", TOO_LONG], ids=ascii)
async def test_a_cluster_that_cannot_be_counts_nothing(tmp_path: Path, cluster: str) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await create(store, "a")
        assert store.counts(cluster) == {}


@pytest.mark.parametrize(
    "object_key",
    [
        key("default/a", namespace="", cluster="root"),
        key("a", namespace="", cluster="root/default"),
        key("", namespace="default/a"),
        key("\ud800"),
        key(TOO_LONG),
        key("a", cluster=TOO_LONG),
        key("a", resource=ResourceKey("", "never")),
        key("a", resource=ResourceKey("", "configmaps", "identity1")),
    ],
    ids=lambda object_key: ascii(str(object_key))[:50],
)
async def test_a_key_that_is_not_there_is_not_found(tmp_path: Path, object_key: ObjectKey) -> None:
    async with await EmbeddedStore.open(tmp_path / "store") as store:
        await create(store, "a")
        assert store.get(object_key) is None
