"""list: options, selectors, versions, pages and the tokens between them."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kcp.meta import errors
from kcp.meta.fake_clock import FakeClock
from kcp.registry.listing import ListOptions, check_options, make_continue, parse_continue, parse_version
from kcp.store import (
    Delete,
    EmbeddedStore,
    FutureRevision,
    ObjectKey,
    Put,
    ResourceKey,
    Revision,
    Scope,
    Unavailable,
    pack_object,
)
from tests.registry.verbs import (
    CLUSTER,
    CLUSTER_ROLES,
    CONFIGMAPS,
    NAMESPACES,
    OTHER,
    SECRETS,
    WIDGETS,
    Verbs,
    bodies_of,
    crd,
    names_of,
)

if TYPE_CHECKING:
    from kcp.registry.listing import Listing
    from kcp.store import Store

KEY = ResourceKey("", "configmaps")


async def put(store: Store, name: str, namespace: str = "default", cluster: str = CLUSTER, **labels: str) -> None:
    metadata = {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
    value = pack_object({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})
    await store.commit([Put(ObjectKey(KEY, cluster, namespace, name), value)])


# -- options ------------------------------------------------------------------


def complaints(**options: Any) -> str:  # noqa: ANN401 - ListOptions'
    try:
        check_options(ListOptions(**options))
    except errors.Invalid as error:
        return error.message.removeprefix("ListOptions.meta.k8s.io ").removeprefix('"" is invalid: ')
    return ""


UNLESS = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
CONTINUED = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"
REQUIRES = "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
FOR_LIST = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, ""),
        ({"resource_version": "5", "resource_version_match": "Exact"}, ""),
        ({"resource_version": "0", "resource_version_match": "NotOlderThan"}, ""),
        ({"resource_version_match": "Exact"}, UNLESS),
        (
            {"resource_version": "0", "resource_version_match": "Exact"},
            'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        ({"resource_version": "5", "resource_version_match": "Exact", "continue_token": "x"}, CONTINUED),
        (
            {"resource_version": "5", "resource_version_match": "Maybe"},
            'resourceVersionMatch: Unsupported value: "Maybe": supported values: "Exact", "NotOlderThan", ""',
        ),
        ({"send_initial_events": True}, FOR_LIST),
        ({"send_initial_events": False, "resource_version_match": "Exact"}, f"[{UNLESS}, {FOR_LIST}]"),
        ({"watch": True}, ""),
        ({"watch": True, "resource_version": "5"}, ""),
        (
            {"watch": True, "resource_version_match": "NotOlderThan"},
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
            "provided",
        ),
        ({"watch": True, "send_initial_events": True, "resource_version_match": "NotOlderThan"}, ""),
        ({"watch": True, "send_initial_events": True}, REQUIRES),
        (
            {"watch": True, "send_initial_events": False, "resource_version_match": "Exact"},
            f'[{REQUIRES}, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]',
        ),
        (
            {
                "watch": True,
                "send_initial_events": True,
                "resource_version_match": "NotOlderThan",
                "continue_token": "x",
            },
            CONTINUED,
        ),
    ],
    ids=str,
)
def test_which_options_go_together(options: dict[str, Any], complaint: str) -> None:
    assert complaints(**options) == complaint


@pytest.mark.parametrize(("text", "number"), [("", 0), ("0", 0), ("17", 17)])
def test_versions_are_numbers(text: str, number: int) -> None:
    assert parse_version(text) == number


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", "٣", "1" * 21])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(errors.BadRequest, match=r"^invalid resource version: resourceVersion: Invalid value: "):
        parse_version(text)


@pytest.mark.parametrize(
    ("gvr", "options", "message"),
    [
        (CONFIGMAPS, {"label_selector": "a=("}, "unable to parse requirement|found '\\('"),
        (CONFIGMAPS, {"field_selector": "nonsense"}, "invalid selector"),
        (
            CONFIGMAPS,
            {"field_selector": "data.k=v"},
            '"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (SECRETS, {"field_selector": "data.k=v"}, "^field label not supported: data.k$"),
        (WIDGETS, {"field_selector": "spec.k=v"}, "^field label not supported: spec.k$"),
    ],
)
async def test_selectors_that_cannot_be_used(verbs: Verbs, gvr: Any, options: dict[str, str], message: str) -> None:  # noqa: ANN401
    await verbs.define(crd())
    with pytest.raises(errors.BadRequest, match=message):
        await verbs.list(gvr, **options)


# -- scopes and selectors -----------------------------------------------------


async def test_a_selector_has_so_many_terms_and_no_more(verbs: Verbs) -> None:
    terms = ",".join(f"a{number}!=x" for number in range(129))
    with pytest.raises(errors.BadRequest, match="129 terms together; at most 128"):
        await verbs.list(CONFIGMAPS, label_selector=terms)


async def test_a_list_stays_in_its_scope(verbs: Verbs) -> None:
    for cluster in (CLUSTER, OTHER):
        for namespace in ("default", "default-2", "other"):
            await put(verbs.store, f"in-{namespace}", namespace, cluster)
    assert await verbs.list_names(CONFIGMAPS) == ["in-default"]
    assert await verbs.list_names(CONFIGMAPS, None) == ["in-default-2", "in-default", "in-other"], "as etcd sorts"
    everywhere = await verbs.list(CONFIGMAPS, None, None)
    assert [record.key.cluster for record in everywhere.page.records()] == [OTHER] * 3 + [CLUSTER] * 3
    assert len((await verbs.list(CONFIGMAPS, "other", None)).page.records()) == 2
    assert await verbs.list_names(CONFIGMAPS, "none") == []
    assert await verbs.list_names(CONFIGMAPS, None, cluster="root") == []


async def test_lists_are_selected_by_labels_and_fields(verbs: Verbs) -> None:
    await put(verbs.store, "a", app="web")
    await put(verbs.store, "b", app="db")
    await put(verbs.store, "a", "other", app="web")
    assert await verbs.list_names(CONFIGMAPS, label_selector="app=web") == ["a"]
    assert await verbs.list_names(CONFIGMAPS, None, field_selector="metadata.namespace=other") == ["a"]
    assert await verbs.list_names(CONFIGMAPS, None, field_selector="metadata.name!=a") == ["b"]
    assert await verbs.list_names(CLUSTER_ROLES, "", field_selector="metadata.namespace=x") == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"field_selector": "metadata.name=a"}, ["a"]),
        ({"field_selector": "metadata.name=c"}, []),
        ({"field_selector": "metadata.name=a", "label_selector": "app=web"}, ["a"]),
        ({"field_selector": "metadata.name=a", "label_selector": "app=db"}, []),
        ({"field_selector": "metadata.name=a,metadata.namespace=other"}, []),
        ({"field_selector": "metadata.name=x/a"}, []),
        ({"field_selector": "metadata.name=" + "a" * 300}, []),
        ({"field_selector": "metadata.name="}, []),
        ({"field_selector": "metadata.name=a", "limit": 1}, ["a"]),
    ],
    ids=str,
)
async def test_a_selector_for_one_name_is_a_look_up(verbs: Verbs, options: dict[str, Any], expected: list[str]) -> None:
    await put(verbs.store, "a", app="web")
    await put(verbs.store, "b", app="web")
    found = await verbs.list(CONFIGMAPS, **options)
    assert names_of(found) == expected
    assert found.metadata() == {"resourceVersion": str(verbs.store.revision)}
    assert [body["metadata"]["name"] for body in bodies_of(found)] == expected
    assert await verbs.list_names(CONFIGMAPS, None, **options) == expected, (
        "and without a namespace a list like any other"
    )


# -- versions -----------------------------------------------------------------


async def test_an_exact_version_is_the_past(verbs: Verbs) -> None:
    await put(verbs.store, "a")
    then = verbs.store.revision
    await put(verbs.store, "b")
    exact = {"resource_version": str(then), "resource_version_match": "Exact"}
    found = await verbs.list(CONFIGMAPS, **exact)
    assert (names_of(found), found.revision) == (["a"], then)
    assert await verbs.list_names(CONFIGMAPS, **exact, field_selector="metadata.name=b") == []


@pytest.mark.parametrize("match", ["", "NotOlderThan"], ids=["any match", "not older"])
async def test_an_older_version_is_answered_with_the_present(verbs: Verbs, match: str) -> None:
    await put(verbs.store, "a")
    then = str(verbs.store.revision)
    await put(verbs.store, "b")
    assert await verbs.list_names(CONFIGMAPS, resource_version=then, resource_version_match=match) == ["a", "b"]


async def test_with_a_limit_a_version_is_exact_unless_said_otherwise(verbs: Verbs) -> None:
    await put(verbs.store, "a")
    then = str(verbs.store.revision)
    await put(verbs.store, "b")
    assert await verbs.list_names(CONFIGMAPS, resource_version=then, limit=5) == ["a"]
    newer = {"resource_version": then, "resource_version_match": "NotOlderThan"}
    assert await verbs.list_names(CONFIGMAPS, **newer, limit=5) == ["a", "b"]


async def test_any_version_is_not_cut(verbs: Verbs) -> None:
    for name in "abc":
        await put(verbs.store, name)
    found = await verbs.list(CONFIGMAPS, limit=1, resource_version="0")
    assert (names_of(found), found.continue_token) == (["a", "b", "c"], "")


async def test_a_version_to_come_is_a_timeout(verbs: Verbs) -> None:
    with pytest.raises(errors.Timeout, match=r"Too large resource version: 1000, current: 1$") as caught:
        await verbs.list(CONFIGMAPS, resource_version="1000")
    assert caught.value.retry_after_seconds == 1


async def test_a_version_that_another_server_wrote_is_waited_for(verbs: Verbs) -> None:
    async def sync() -> Revision:
        await put(verbs.store, "theirs")
        return verbs.store.revision

    cast("Any", verbs.racing).sync = sync
    assert await verbs.list_names(CONFIGMAPS, resource_version=str(verbs.store.revision + 1)) == ["theirs"]


async def test_a_forgotten_version_has_expired(verbs: Verbs) -> None:
    await put(verbs.store, "a")
    await put(verbs.store, "b")
    await verbs.store.compact(verbs.store.revision)
    with pytest.raises(errors.Expired, match=r"^The resourceVersion for the provided list is too old.$"):
        await verbs.list(CONFIGMAPS, resource_version="1", resource_version_match="Exact")


@pytest.mark.parametrize("continued", [False, True], ids=["first page", "later page"])
async def test_a_store_that_cannot_answer_is_told(verbs: Verbs, continued: bool) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Unavailable("no etcd") if not continued else FutureRevision(9, 1)

    cast("Any", verbs.racing).range = fail
    token = make_continue(9, ObjectKey(KEY, CLUSTER, "default", "a")) if continued else ""
    with pytest.raises(errors.Timeout if continued else errors.ServiceUnavailable):
        await verbs.list(CONFIGMAPS, continue_token=token)


# -- pages --------------------------------------------------------------------


async def test_pages_tell_how_much_is_left(verbs: Verbs) -> None:
    for name in "abcde":
        await put(verbs.store, name, x="y")
    first = await verbs.list(CONFIGMAPS, limit=2)
    assert first.metadata() == {
        "resourceVersion": str(verbs.store.revision),
        "continue": first.continue_token,
        "remainingItemCount": 3,
    }
    second = await verbs.list(CONFIGMAPS, limit=2, continue_token=first.continue_token)
    assert (names_of(second), second.remaining) == (["c", "d"], 1)
    last = await verbs.list(CONFIGMAPS, limit=2, continue_token=second.continue_token)
    assert (names_of(last), last.metadata()) == (["e"], {"resourceVersion": str(verbs.store.revision)})
    selected = await verbs.list(CONFIGMAPS, limit=2, label_selector="x=y")
    assert "remainingItemCount" not in selected.metadata(), "nobody has counted"
    assert selected.continue_token


async def test_a_token_that_expired_comes_with_one_that_works(verbs: Verbs) -> None:
    for name in "abc":
        await put(verbs.store, name)
    first = await verbs.list(CONFIGMAPS, limit=1)
    await put(verbs.store, "bb")
    await put(verbs.store, "aa")
    await verbs.store.compact(verbs.store.revision)
    with pytest.raises(errors.Expired, match="continue parameter is too old to display a consistent list") as caught:
        await verbs.list(CONFIGMAPS, limit=1, continue_token=first.continue_token)
    token = caught.value.metadata["continue"]
    rest = await verbs.list(CONFIGMAPS, continue_token=token)
    assert (names_of(rest), rest.revision) == (["aa", "b", "bb", "c"], verbs.store.revision)


async def test_a_token_excludes_a_version(verbs: Verbs) -> None:
    await put(verbs.store, "a")
    await put(verbs.store, "b")
    token = (await verbs.list(CONFIGMAPS, limit=1)).continue_token
    for refused in ("1", "abc"):
        with pytest.raises(
            errors.BadRequest, match=r"^specifying resource version is not allowed when using continue$"
        ):
            await verbs.list(CONFIGMAPS, continue_token=token, resource_version=refused)
    assert await verbs.list_names(CONFIGMAPS, continue_token=token, resource_version="0") == ["b"]


WRITES = st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from([CLUSTER, OTHER]), st.sampled_from("abcdefgh"))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    before=st.lists(WRITES, max_size=14),
    between=st.lists(WRITES, max_size=12),
    limit=st.integers(1, 4),
    wildcard=st.booleans(),
    selector=st.sampled_from(["", "odd=yes", "odd!=yes"]),
)
def test_pages_show_one_revision_whatever_is_written_between(
    before: list[tuple[str, str, str]],
    between: list[tuple[str, str, str]],
    limit: int,
    wildcard: bool,
    selector: str,
) -> None:
    asyncio.run(check_pages(before, between, limit, None if wildcard else CLUSTER, selector))


async def write(store: Store, change: tuple[str, str, str]) -> None:
    verb, cluster, name = change
    if verb == "put":
        await put(store, name, "default", cluster, **({"odd": "yes"} if ord(name) % 2 else {}))
    else:
        await store.commit([Delete(ObjectKey(KEY, cluster, "default", name))])


async def check_pages(
    before: list[tuple[str, str, str]],
    between: list[tuple[str, str, str]],
    limit: int,
    cluster: str | None,
    selector: str,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with await EmbeddedStore.open(Path(folder) / "store") as store:
            verbs = Verbs(store, FakeClock())
            for change in before:
                await write(store, change)
            whole = await verbs.list(CONFIGMAPS, None, cluster, label_selector=selector)
            page = await verbs.list(CONFIGMAPS, None, cluster, label_selector=selector, limit=limit)
            found: list[bytes] = page.page.bodies()
            remaining = iter(between)
            while page.continue_token:
                for meanwhile in itertools.islice(remaining, 2):
                    await write(store, meanwhile)
                assert len(page.page.pairs) == limit
                page = await verbs.list(
                    CONFIGMAPS, None, cluster, label_selector=selector, limit=limit, continue_token=page.continue_token
                )
                assert page.revision == whole.revision
                found += page.page.bodies()
            assert found == whole.page.bodies()


# -- tokens -------------------------------------------------------------------


def token_of(content: object) -> str:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def made_up(**changes: Any) -> str:  # noqa: ANN401 - parts of a token
    return token_of({"v": "meta.k8s.io/v1", "rv": 5, "start": f"{CLUSTER}/default/a\0"} | changes)


SCOPE = Scope(KEY, CLUSTER, "default")


def test_tokens_are_read_as_they_were_made() -> None:
    after = ObjectKey(KEY, CLUSTER, "default", "a")
    assert parse_continue(make_continue(5, after), SCOPE) == (5, after, 0)
    assert parse_continue(make_continue(5, after, 7), SCOPE) == (5, after, 7)
    assert parse_continue(make_continue(-1, after), SCOPE) == (-1, after, 0)
    cluster_scoped = ObjectKey(ResourceKey("", "namespaces"), CLUSTER, "", "a")
    assert parse_continue(make_continue(5, cluster_scoped), Scope(cluster_scoped.resource, CLUSTER)) == (
        5,
        cluster_scoped,
        0,
    )
    assert parse_continue(made_up(start="default/a\0"), SCOPE) == (5, after, 0), "as kube-apiserver writes it"


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("!!!", "illegal base64 data at input byte 0"),
        ("YWJj=", "illegal base64 data at input byte 4"),
        ("abcde", "illegal base64 data at input byte 4"),
        (token_of(b"{"), "unexpected end of JSON input"),
        (token_of([]), "server does not recognize this encoded version "),
        (made_up(v="v2"), "server does not recognize this encoded version v2"),
        (made_up(rv=0), "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
        (made_up(rv="5"), "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
        (made_up(start=""), "encoded start key empty (version meta.k8s.io/v1)"),
        (made_up(start=7), "encoded start key empty (version meta.k8s.io/v1)"),
        (made_up(start="a"), "encoded start key is not one of this server"),
        (made_up(start=f"{CLUSTER}/default/../x"), "encoded start key is not one of this server"),
        (made_up(start="/default/a"), "encoded start key is not one of this server"),
        (made_up(start=f"{CLUSTER}/default/\0"), "encoded start key is not one of this server"),
        (made_up(start=f"{OTHER}/default/a"), "encoded start key is not in this logical cluster"),
        (made_up(start=f"{CLUSTER}/kube-system/a"), "encoded start key is not in this namespace"),
    ],
)
def test_forged_tokens_are_refused(token: str, message: str) -> None:
    with pytest.raises(errors.BadRequest) as caught:
        parse_continue(token, SCOPE)
    assert caught.value.message == f"invalid continue token: continue key is not valid: {message}"


async def in_two_clusters(folder: Path) -> tuple[Store, Verbs]:
    store = await EmbeddedStore.open(folder / "store")
    for cluster in (CLUSTER, OTHER, "root", "root:team2"):
        for namespace in ("default", "default-2", "a"):
            for name in "ab":
                await put(store, name, namespace, cluster)
    return store, Verbs(store, FakeClock())


PARTS = st.sampled_from(["", ".", "..", "a", "default", "default-2", CLUSTER, OTHER, "\0", "\ufffd", "~", "root"])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(start=st.lists(PARTS, max_size=4).map("/".join) | st.text(max_size=8), rv=st.integers(-2, 40) | st.integers())
@example(start=f"{CLUSTER}/default/" + "a" * 600, rv=-1)
@example(start=f"{CLUSTER}/default/\ud800", rv=-1)
def test_no_token_leads_out_of_the_scope(start: str, rv: int) -> None:
    asyncio.run(check_scope(start, rv))


async def check_scope(start: str, rv: int) -> None:
    token = made_up(start=start, rv=rv)
    with tempfile.TemporaryDirectory() as folder:
        store, verbs = await in_two_clusters(Path(folder))
        async with cast("EmbeddedStore", store):
            for namespace in ("default", None):
                try:
                    found = await verbs.list(CONFIGMAPS, namespace, continue_token=token)
                except (errors.BadRequest, errors.Expired, errors.RequestEntityTooLarge, errors.Timeout):
                    continue
                keys = [record.key for record in found.page.records()]
                assert all(key.cluster == CLUSTER and namespace in (None, key.namespace) for key in keys)


async def test_a_wildcard_token_goes_on_over_all_clusters(verbs: Verbs) -> None:
    for cluster in (OTHER, CLUSTER):
        await put(verbs.store, "a", cluster=cluster)
    first = await verbs.list(CONFIGMAPS, None, None, limit=1)
    assert [record.key.cluster for record in first.page.records()] == [OTHER]
    with pytest.raises(errors.BadRequest, match="not in this logical cluster"):
        await verbs.list(CONFIGMAPS, None, CLUSTER, continue_token=first.continue_token)
    rest: Listing = await verbs.list(CONFIGMAPS, None, None, continue_token=first.continue_token)
    assert [record.key.cluster for record in rest.page.records()] == [CLUSTER]


async def test_cluster_scoped_lists_go_on_too(verbs: Verbs) -> None:
    for name in "abc":
        await verbs.create(NAMESPACES, name)
    first = await verbs.list(NAMESPACES, "", limit=2)
    rest = await verbs.list(NAMESPACES, "", continue_token=first.continue_token)
    assert names_of(first) + names_of(rest) == ["a", "b", "c", "default"]


async def test_what_remains_is_counted_at_the_revision_of_the_list(verbs: Verbs) -> None:
    for name in "abcde":
        await put(verbs.store, name)
    page = await verbs.list(CONFIGMAPS, limit=1)
    left = [page.remaining]
    while page.continue_token:
        await put(verbs.store, f"f{len(left)}")
        page = await verbs.list(CONFIGMAPS, limit=1, continue_token=page.continue_token)
        left.append(page.remaining)
    assert left == [4, 3, 2, 1, None]


@pytest.mark.parametrize("left", ["3", None, -5, 1, 1.5], ids=repr)
async def test_what_a_forged_token_says_is_left_does_not_matter(verbs: Verbs, left: object) -> None:
    for name in "abcde":
        await put(verbs.store, name)
    token = made_up(rv=int(verbs.store.revision), left=left)
    assert (await verbs.list(CONFIGMAPS, limit=1, continue_token=token)).remaining == 3
