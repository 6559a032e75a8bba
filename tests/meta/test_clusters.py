import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.meta.clusters import (
    ROOT,
    WILDCARD,
    WorkspacePath,
    base36,
    is_cluster_name,
    make_cluster_name,
    make_home_cluster_name,
    parse_path,
)

WORDS = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")


@pytest.mark.parametrize(
    "text",
    [
        "root",
        "root:org:team",
        "2k3abcd5e6f7g8h9:team",
        "user:alice",
        "user:alice:sub",
        "system",
        "system:admin",
        "system:foo:bar",
        "f",
        "foo:0",
        "foo:0bar",
        "foo:bar-bar",
        "a" * 63,
    ],
)
def test_valid_paths(text: str) -> None:
    assert parse_path(text) == WorkspacePath(text)
    assert str(parse_path(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "root:",
        ":root",
        "root::foo",
        "root:föö",
        "foo:bar_bar",
        "foo/bar",
        "foo:bar-",
        "foo:-bar",
        "Foo",
        "root\n",
        "root:*",
        "**",
        "a" * 64,
    ],
)
def test_invalid_paths(text: str) -> None:
    assert not WorkspacePath(text).is_valid
    with pytest.raises(ValueError, match=r"^invalid cluster: "):
        parse_path(text)


def test_the_wildcard_is_no_workspace() -> None:
    assert parse_path("*") is WILDCARD
    assert not WILDCARD.is_valid
    assert WILDCARD.cluster_name is None
    assert not is_cluster_name("*")


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("root", True),
        ("2k3abcd5e6f7g8h9", True),
        ("system:admin", True),
        ("system:bound-crds", True),
        ("a", False),
        ("", False),
        ("-a", False),
        ("a-", False),
        ("root:org", False),
        ("system:", False),
        ("system:../x", False),
        ("a" * 63, True),
        ("a" * 64, False),
        ("root\n", False),
    ],
)
def test_cluster_names(text: str, valid: bool) -> None:
    assert is_cluster_name(text) is valid


@pytest.mark.parametrize(
    ("text", "parent", "last", "name"),
    [
        pytest.param("root", None, "root", "root", id="root"),
        pytest.param("root:org", "root", "org", None, id="child"),
        pytest.param("root:org:team", "root:org", "team", None, id="grandchild"),
        pytest.param("system:admin", None, "system:admin", "system:admin", id="system"),
        pytest.param("2k3abc", None, "2k3abc", "2k3abc", id="cluster"),
    ],
)
def test_taking_a_path_apart(text: str, parent: str | None, last: str, name: str | None) -> None:
    path = WorkspacePath(text)
    assert path.split() == (None if parent is None else WorkspacePath(parent), last)
    assert path.parent == (None if parent is None else WorkspacePath(parent))
    assert path.last == last
    assert path.cluster_name == name


def test_words_of_a_path() -> None:
    assert WorkspacePath("root:org:team").words() == ("root", "org", "team")
    assert WorkspacePath("system:bound-crds").words() == ("system:bound-crds",)


def test_prefixes_end_at_colons() -> None:
    path = WorkspacePath("root:org")
    assert path.has_prefix(path)
    assert path.has_prefix(WorkspacePath("root"))
    assert not path.has_prefix(WorkspacePath("root:or"))
    assert not WorkspacePath("root").has_prefix(path)


@settings(deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=5).filter(lambda words: words[0] != "system"), WORDS)
def test_join_is_undone_by_split(words: list[str], name: str) -> None:
    path = WorkspacePath(":".join(words))
    joined = path.join(name)
    assert joined.is_valid
    assert joined.split() == (path, name)
    assert joined.words() == (*words, name)
    assert joined.has_prefix(path)
    assert WorkspacePath("").join(name) == WorkspacePath(name)


@pytest.mark.parametrize(
    ("user", "expected"), [("alice", "v1u4alow0iv9"), ("bob", "2okdry95y5lkv"), ("user172", "0f9mt7goyif7")]
)
def test_home_clusters_are_those_of_kcp(user: str, expected: str) -> None:
    assert make_home_cluster_name(user) == expected


@settings(deadline=None)
@given(st.binary(min_size=32, max_size=32))
def test_new_names_are_valid(random_bytes: bytes) -> None:
    name = make_cluster_name(random_bytes)
    assert len(name) == 16
    assert name.isalnum()
    assert is_cluster_name(name)
    assert WorkspacePath(name).cluster_name == name


@settings(deadline=None)
@given(st.binary(max_size=20))
def test_base36_loses_nothing(data: bytes) -> None:
    text = base36(data)
    zeros = len(data) - len(data.lstrip(b"\0"))
    assert text.startswith("0" * zeros)
    assert int(text or "0", 36) == int.from_bytes(data)


def test_root_is_a_cluster_name() -> None:
    assert is_cluster_name(ROOT)
