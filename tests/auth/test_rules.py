"""Policy rules: matching, covering, printing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.auth.rules import FULL_AUTHORITY, compile_rule, covers, describe_missing, find_missing
from tests.auth.cluster_objects import allow, allow_urls

if TYPE_CHECKING:
    from kcp.meta.codec import Object


@pytest.mark.parametrize(
    ("rule", "question", "allowed"),
    [
        pytest.param(allow("get", "configmaps"), ("get", "", "configmaps", ""), True, id="exact"),
        pytest.param(allow("get", "configmaps"), ("list", "", "configmaps", ""), False, id="other verb"),
        pytest.param(allow("get", "configmaps"), ("get", "apps", "configmaps", ""), False, id="other group"),
        pytest.param(allow("get", "configmaps"), ("get", "", "secrets", ""), False, id="other resource"),
        pytest.param(allow("*", "*", groups="*"), ("any", "any", "any", "sub"), True, id="everything"),
        pytest.param(allow("get", "pods"), ("get", "", "pods", "log"), False, id="resource is not its subresource"),
        pytest.param(allow("get", "pods/log"), ("get", "", "pods", "log"), True, id="subresource"),
        pytest.param(allow("get", "pods/log"), ("get", "", "pods", ""), False, id="subresource is not its resource"),
        pytest.param(allow("get", "*/scale"), ("get", "", "things", "scale"), True, id="subresource of all"),
        pytest.param(allow("get", "*/scale"), ("get", "", "things", "status"), False, id="other subresource of all"),
        pytest.param(allow("get", "*/scale"), ("get", "", "things", ""), False, id="not the resource itself"),
        pytest.param(allow("get", "pods/*"), ("get", "", "pods", "log"), False, id="star as subresource is no pattern"),
        pytest.param({"verbs": ["get"]}, ("get", "", "pods", ""), False, id="rule without resources"),
    ],
)
def test_a_rule_allows_what_it_names(rule: Object, question: tuple[str, str, str, str], allowed: bool) -> None:
    assert compile_rule(rule).allows_resource(*question) is allowed


@pytest.mark.parametrize(
    ("urls", "path", "allowed"),
    [
        pytest.param("/metrics", "/metrics", True, id="exact"),
        pytest.param("/metrics", "/metrics/x", False, id="below"),
        pytest.param("/healthz/*", "/healthz/etcd", True, id="star"),
        pytest.param("/healthz/*", "/healthz", False, id="star wants the slash"),
        pytest.param("/health*", "/healthz", True, id="star within a word"),
        pytest.param("/a**", "/ab", True, id="several stars"),
        pytest.param("/*/x", "/a/x", False, id="star in the middle is no pattern"),
        pytest.param("*", "/any", True, id="all"),
    ],
)
def test_a_rule_allows_paths(urls: str, path: str, allowed: bool) -> None:
    rule = compile_rule(allow_urls("get", urls))
    assert rule.allows_path("get", path) is allowed
    assert not rule.allows_path("post", path)


@pytest.mark.parametrize(
    ("owner", "servant", "covered"),
    [
        pytest.param([allow("get list", "a b")], [allow("get", "a")], True, id="part"),
        pytest.param([allow("get", "a"), allow("list", "a")], [allow("get list", "a")], True, id="together"),
        pytest.param([allow("get", "a")], [allow("get list", "a")], False, id="one verb too many"),
        pytest.param([allow("get", "a")], [allow("get", "a", names="x")], True, id="one name of all"),
        pytest.param([allow("get", "a", names="x")], [allow("get", "a")], False, id="all of one name"),
        pytest.param([allow("get", "a", names="x y")], [allow("get", "a", names="y")], True, id="one name of two"),
        pytest.param([allow("get", "a", names="x")], [allow("get", "a", names="y")], False, id="another name"),
        pytest.param([allow("*", "*", groups="*")], [allow("get", "a b/c", groups="g h")], True, id="all"),
        pytest.param([allow("get", "*/scale")], [allow("get", "a/scale")], True, id="subresource of all"),
        pytest.param([allow("get", "*/scale")], [allow("get", "scale")], False, id="not a subresource"),
        pytest.param([allow("get", "a")], [allow("get", "*")], False, id="star is more than one"),
        pytest.param([allow_urls("get", "/a/*")], [allow_urls("get", "/a/b /a/*")], True, id="urls"),
        pytest.param([allow_urls("get", "/a")], [allow_urls("get", "/a/*")], False, id="url with a star"),
        pytest.param([], [{"verbs": ["get"]}], True, id="a rule that allows nothing"),
        pytest.param([], [], True, id="no rules"),
    ],
)
def test_rules_cover_others(owner: list[Object], servant: list[Object], covered: bool) -> None:
    assert covers(owner, servant) is covered


def test_missing_permissions_are_described_as_kubernetes_does() -> None:
    missing = find_missing(
        [allow("get", "a")],
        [allow("get list watch", "a"), allow("get", "b", names="x y"), allow_urls("get put", "/z"), allow("get", "b")],
    )
    assert describe_missing(missing) == "\n".join(
        [
            '{APIGroups:[""], Resources:["a"], Verbs:["list" "watch"]}',
            '{APIGroups:[""], Resources:["b"], ResourceNames:["x"], Verbs:["get"]}',
            '{APIGroups:[""], Resources:["b"], ResourceNames:["y"], Verbs:["get"]}',
            '{APIGroups:[""], Resources:["b"], Verbs:["get"]}',
            '{NonResourceURLs:["/z"], Verbs:["get"]}',
            '{NonResourceURLs:["/z"], Verbs:["put"]}',
        ]
    )


def test_a_huge_rule_is_not_taken_apart() -> None:
    words = " ".join(f"w{number}" for number in range(300))
    huge = allow(words, words, groups=words)
    assert find_missing([allow("get", "a")], [huge]) == [huge]
    assert describe_missing([huge]).startswith('{APIGroups:["w0" "w1"')
    assert covers([allow("*", "*", groups="*")], [huge])


WORDS = st.lists(st.sampled_from(["*", "a", "b", "a/x", "*/x"]), min_size=1, max_size=3, unique=True)
RULES = st.lists(
    st.builds(
        lambda verbs, groups, resources, names: {
            "verbs": verbs,
            "apiGroups": groups,
            "resources": resources,
            "resourceNames": names,
        },
        WORDS,
        WORDS,
        WORDS,
        st.lists(st.sampled_from(["n", "m"]), max_size=2, unique=True),
    ),
    max_size=3,
)


@given(RULES, RULES)
def test_who_covers_a_rule_may_do_what_it_allows(owner: list[Object], servant: list[Object]) -> None:
    if not covers(owner, servant):
        return
    for verb in ("a", "z"):
        for resource, subresource in (("a", ""), ("a", "x"), ("z", "x"), ("z", "")):
            for name in ("n", "o"):
                given = _allows(servant, verb, resource, subresource, name)
                assert not given or _allows(owner, verb, resource, subresource, name)


@given(RULES)
def test_full_authority_covers_everything_and_rules_cover_themselves(rules: list[Object]) -> None:
    assert covers(FULL_AUTHORITY, rules)
    assert covers(rules, rules)


def _allows(rules: list[Object], verb: str, resource: str, subresource: str, name: str) -> bool:
    return any(
        rule.allows_resource(verb, "a", resource, subresource) and (not rule.names or name in rule.names)
        for rule in map(compile_rule, rules)
    )
