import contextlib
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.meta import codec
from kcp.meta.codec import DecodeError, dumps, dumps_yaml, find_duplicate_fields, loads, loads_yaml, loads_yaml_all

LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text()
# Whole floats beyond this come back from YAML as the integer with the same shortest digits, which is another number.
FLOATS = st.floats(-(2**53), 2**53)
JSON = st.recursive(
    LEAVES | FLOATS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
WORDS = st.sampled_from(("y", "no", "null", "~", "", "1", "1.5", "0x1", "<<", "=", "12:30", "2001-01-01", "---", "..."))
MARKS = st.sampled_from((*"-?:#[]{},'\"\\|>", "&a", "*a", "!a", "%a", "@a", "`a", "a: b", "a #b", "- a", "? a", "😀"))
SPACES = st.sampled_from(("a\n", "a\n\n", "\na", "a\nb", "a\n b", "a \nb", "\n", "\n\n", " \n", "a\r\nb", " a", "a "))
OTHERS = st.sampled_from(
    ("a\n---\nb", "\t", "a\tb", "\x00", "\x7f", "\x85", "\u2028", "\ufeff", "a" * 200, "a b " * 50)
)
TRICKY_TEXTS = WORDS | MARKS | SPACES | OTHERS
TRICKY = st.recursive(
    TRICKY_TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TRICKY_TEXTS, inner, max_size=3),
    max_leaves=8,
)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


# --- JSON


@settings(deadline=None)
@given(JSON)
def test_json_round_trip(value: Any) -> None:  # noqa: ANN401
    assert loads(dumps(value)) == value
    assert loads(dumps(value).decode()) == value


def test_json_is_compact_and_keeps_the_order_of_keys() -> None:
    assert dumps({"b": [1, 2.5, None], "a": "é"}) == '{"b":[1,2.5,null],"a":"é"}'.encode()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview], ids=lambda kind: kind.__name__)
def test_json_may_come_in_any_kind_of_bytes(kind: Any) -> None:  # noqa: ANN401
    assert loads(kind(b'{"a": 1}')) == {"a": 1}
    with pytest.raises(DecodeError, match="unexpected end of JSON input"):
        loads(kind(b"{"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(b"", "unexpected end of JSON input", id="nothing"),
        pytest.param(b'{"kind": "ConfigMap", ', "unexpected end of JSON input", id="cut-off"),
        pytest.param(b"not json", "invalid character 'o' in literal null (expecting 'u')", id="text"),
        pytest.param(b'{"a": 1,}', "invalid character '}' looking for beginning of object key string", id="comma"),
        pytest.param(b'"\xff"', "not valid UTF-8", id="bad-utf-8"),
        pytest.param(b'"\\ud800"', "surrogate", id="lone-surrogate-escape"),
        pytest.param("\ud800", "surrogate", id="lone-surrogate"),
        pytest.param(b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value", id="bom"),
        pytest.param(b'"\x00"', r"invalid character '\x00' in string literal", id="nul"),
        pytest.param(b"NaN", "invalid character 'N' looking for beginning of value", id="nan"),
        pytest.param(b"1e999", "infinity", id="too-large"),
    ],
)
def test_what_is_not_json_is_refused_in_words_for_the_user(text: bytes | str, complaint: str) -> None:
    with pytest.raises(DecodeError) as caught:
        loads(text)
    assert complaint in str(caught.value)


def test_of_a_repeated_key_the_last_wins() -> None:
    assert loads('{"a": 1, "a": 2}') == {"a": 2}
    assert find_duplicate_fields('{"a": 1, "a": 2}') == ["a"]
    assert find_duplicate_fields(b'{"a": 1}') == []
    with pytest.raises(DecodeError):
        find_duplicate_fields(nested(100_000))


def test_the_depth_limit_is_what_can_be_written_again() -> None:
    deepest = loads(nested(codec.MAX_DEPTH))
    assert dumps(deepest) == nested(codec.MAX_DEPTH).encode()
    assert loads_yaml(dumps_yaml(deepest)) == deepest
    for depth in (codec.MAX_DEPTH + 1, 1024, 1025, 100_000):
        with pytest.raises(DecodeError):
            loads(nested(depth))


def test_broad_objects_are_not_deep() -> None:
    broad = [{"a": [number]} for number in range(1000)]
    assert loads(dumps(broad)) == broad


@settings(deadline=None)
@given(st.binary() | st.text())
def test_decoding_json_never_fails_in_another_way(text: bytes | str) -> None:
    with contextlib.suppress(DecodeError):
        dumps(loads(text))


# --- YAML


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", None, id="nothing"),
        pytest.param("# only a comment", None, id="comment"),
        pytest.param("a: 1\nb: [x, {c: z}]\n", {"a": 1, "b": ["x", {"c": "z"}]}, id="usual"),
        pytest.param("a: yes\nb: 'yes'\nc: \"no\"", {"a": True, "b": "yes", "c": "no"}, id="quotes-make-text"),
        pytest.param("a: 1.0\nb: 1e3\nc: 0.5", {"a": 1, "b": 1000, "c": 0.5}, id="whole-floats-become-integers"),
        pytest.param("a: 2001-01-01T00:00:00Z", {"a": "2001-01-01T00:00:00Z"}, id="times-stay-text"),
        pytest.param("1: a\ntrue: b\n1.5: c\n.inf: d", {"1": "a", "true": "b", "1.5": "c", ".inf": "d"}, id="keys"),
        pytest.param("y: 1", {"true": 1}, id="y-is-true-even-as-a-key"),
        pytest.param("a: |\n  x\n   y\nb: >-\n  x\n  y\n", {"a": "x\n y\n", "b": "x y"}, id="blocks"),
        pytest.param("a: !!str 1\nb: !!int '1'\nc: !mine 1", {"a": "1", "b": 1, "c": "1"}, id="tags"),
        pytest.param("a: !!set {x}\nb: !!seq []", {"a": {"x": None}, "b": []}, id="tags-of-collections-are-ignored"),
        pytest.param("a: &x [1]\nb: *x\n", {"a": [1], "b": [1]}, id="alias"),
        pytest.param("a: &x k\n*x : 1\n", {"a": "k", "k": 1}, id="alias-as-key"),
        pytest.param("&x a: 1\nb: *x\n", {"a": 1, "b": "a"}, id="key-with-anchor"),
        pytest.param("- &x 1\n- &x 2\n- *x\n", [1, 2, 2], id="anchor-used-again"),
        pytest.param("- &x [&x 1, *x]\n- *x\n", [[1, 1], 1], id="anchor-used-again-inside"),
        pytest.param("a: 1\n---\nb: [", {"a": 1}, id="only-the-first-document"),
        pytest.param("a: 1\na: 2\n", {"a": 2}, id="the-last-of-repeated-keys"),
        pytest.param("\ufeffa: 1", {"a": 1}, id="bom"),
        pytest.param("a:\t1", {"a": 1}, id="tab-between"),
        pytest.param('"\\0": "\\x41\\u00e9"', {"\0": "Aé"}, id="escapes"),
        pytest.param('{"a": "\\ud83d\\ude00"}', {"a": "😀"}, id="json-with-a-surrogate-pair"),
        pytest.param("{a: b}", {"a": "b"}, id="flow-that-is-no-json"),
        pytest.param(" [1, 2]", [1, 2], id="json-list"),
    ],
)
def test_yaml_means_what_it_means_to_kubernetes(text: str, value: Any) -> None:  # noqa: ANN401
    assert loads_yaml(text) == value
    assert loads_yaml(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("<<: {a: 1}\nb: 2", {"a": 1, "b": 2}, id="inline"),
        pytest.param("x: &x {a: 1}\nz: {<<: *x, b: 2}", {"x": {"a": 1}, "z": {"a": 1, "b": 2}}, id="alias"),
        pytest.param("<<: {a: 1}\na: 2", {"a": 2}, id="a-later-key-wins"),
        pytest.param("a: 2\n<<: {a: 1}", {"a": 1}, id="a-later-merge-wins"),
        pytest.param("<<: [{a: 1, b: 1}, {a: 2, c: 2}]", {"a": 1, "b": 1, "c": 2}, id="the-first-of-a-list-wins"),
        pytest.param("'<<': 1", {"<<": 1}, id="quoted-is-a-key"),
        pytest.param("a: <<", {"a": "<<"}, id="as-a-value-it-is-text"),
        pytest.param(
            "a: {<<: &x [{b: 1}]}\nc: *x", {"a": {"b": 1}, "c": [{"b": 1}]}, id="the-list-is-a-list-elsewhere"
        ),
    ],
)
def test_merge_keys(text: str, value: Any) -> None:  # noqa: ANN401
    assert loads_yaml(text) == value


def test_merged_values_are_not_shared() -> None:
    value = loads_yaml("a: &x {k: [1]}\nb: {<<: *x}\nc: {<<: [*x]}")
    value["b"]["k"].append(2)
    assert value == {"a": {"k": [1]}, "b": {"k": [1, 2]}, "c": {"k": [1]}}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[", "yaml: line 1: did not find expected node content"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a: 1\n b: 2", "yaml: line 2: mapping values are not allowed in this context"),
        ("\ta: 1", "yaml: found character that cannot start any token"),
        ("a: @b", "yaml: found character that cannot start any token"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("&a [*a]", "yaml: anchor 'a' value contains itself"),
        ("a: &x {b: 1, <<: *x}", "yaml: anchor 'x' value contains itself"),
        ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
        ("<<: [1]", "yaml: map merge requires map or sequence of maps as the value"),
        ("<<: [[{}]]", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: .inf", "json: unsupported value: +Inf"),
        ("a: .nan", "json: unsupported value: NaN"),
        ("a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("\n{{ .Values.name }}: 1", "yaml: line 2: invalid map key: a list or mapping cannot be a key"),
        ("x: &x []\n*x : 1", "yaml: line 2: invalid map key: a list or mapping cannot be a key"),
        ("~: 1", "unsupported map key of type: null; put it in quotes"),
        ("%YAML 2.0\n---\na", "yaml: found incompatible YAML document"),
        ('"\\ud800"', "yaml: found invalid Unicode character escape code"),
    ],
    ids=lambda case: repr(case)[:30],
)
def test_wrong_yaml_is_refused_in_the_words_of_kubernetes(text: str, complaint: str) -> None:
    with pytest.raises(DecodeError) as caught:
        loads_yaml(text)
    assert str(caught.value) == complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(b"a: \xff", "yaml: invalid leading UTF-8 octet", id="bad-utf-8"),
        pytest.param(b"a: \x00", "yaml: control characters are not allowed", id="nul"),
        pytest.param("a: \ud800", "half of a surrogate pair", id="lone-surrogate"),
    ],
)
def test_what_is_no_text_is_refused(text: bytes | str, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        loads_yaml(text)


# --- YAML: repeated keys


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("a: 1\nb: 2\na: 3", ['line 3: key "a" already set in map'], id="one"),
        pytest.param(
            "a: 1\na:\n  b: 1\n  b: 2",
            ['line 4: key "b" already set in map', 'line 3: key "a" already set in map'],
            id="nested",
        ),
        pytest.param("1: a\n1: b", ["line 2: key 1 already set in map"], id="number"),
        pytest.param("yes: a\non: b", ["line 2: key true already set in map"], id="boolean"),
        pytest.param("1.5: a\n1.50: b", ["line 2: key 1.5 already set in map"], id="float"),
        pytest.param("a: 1\n<<: {a: 2}", ['line 2: key "a" already set in map'], id="merge"),
        pytest.param("x: &x\n  a: 1\ny:\n  a: 2\n  <<: *x", ['line 2: key "a" already set in map'], id="alias"),
        pytest.param('{"a": 1, "a": 2}', ['line 1: key "a" already set in map'], id="json"),
    ],
)
def test_strict_reading_reports_all_repeated_keys(text: str, lines: list[str]) -> None:
    with pytest.raises(DecodeError) as caught:
        loads_yaml(text, strict=True)
    assert str(caught.value) == "\n  ".join(["yaml: unmarshal errors:", *lines])
    loads_yaml(text)


@pytest.mark.parametrize(
    "text",
    ["a: 1\nb: {a: 1}", '1: a\n"1": b\n1.0: c', "<<: {a: 1}\nb: 2", '{"a":1}', '{"a": {"b": "\\u003c"}}', "[{}, {}]"],
    ids=repr,
)
def test_strict_reading_accepts_the_rest(text: str) -> None:
    assert loads_yaml(text, strict=True) == loads_yaml(text)


# --- YAML: several documents


def test_a_stream_of_documents() -> None:
    text = "a: 1\n---\n# nothing\n---\n- &x 1\n- *x\n...\n---\nb: 2\n---\n"
    assert loads_yaml_all(text) == [{"a": 1}, None, [1, 1], {"b": 2}, None]
    assert loads_yaml_all("") == []
    with pytest.raises(DecodeError, match="unknown anchor"):
        loads_yaml_all("&x a\n---\n*x")
    with pytest.raises(DecodeError, match="already set in map"):
        loads_yaml_all("a: 1\n---\na: 1\na: 2", strict=True)


# --- YAML: hostile input


def laughs() -> str:
    lines = ['a0: &a0 ["lol", "lol", "lol", "lol", "lol", "lol", "lol", "lol", "lol"]']
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    return "\n".join(lines)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("[" * 100_000, "exceeded max depth", id="open-lists"),
        pytest.param("[" * 100_000 + "]" * 100_000, "exceeded max depth", id="lists"),
        pytest.param("{a: " * 100_000, "exceeded max depth", id="open-mappings"),
        pytest.param("- " * 100_000, "exceeded max depth", id="dashes"),
        pytest.param("? " * 100_000, "invalid map key", id="question-marks"),
        pytest.param("".join(" " * n + "a:\n" for n in range(1000)), "exceeded max depth", id="indents"),
        pytest.param(
            "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 400)),
            "exceeded max depth",
            id="by-alias",
        ),
        pytest.param(laughs(), "excessive aliasing", id="billion-laughs"),
        pytest.param(
            "a0: &a0 {k: 1}\n"
            + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}\n" for n in range(1, 100)),
            "excessive aliasing",
            id="merge-bomb",
        ),
        pytest.param(
            f"a: &a {'x' * 1_000_000}\nb: [{'*a,' * 100_000}]", "excessive aliasing", id="long-text-many-times"
        ),
        pytest.param(f"%TAG !x! {'x' * 1_000_000}\n---\n[{'!x!y z,' * 10_000}]", "tag is longer", id="long-tag-prefix"),
        pytest.param(f"%TAG !x! {'x' * 1_000_000}\n---\n[{'!x!y [],' * 10_000}]", "tag is longer", id="on-lists"),
    ],
)
def test_bombs_are_defused(text: str, complaint: str) -> None:
    with pytest.raises(DecodeError, match=complaint):
        loads_yaml(text)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "scalar",
    [
        "x" * 3_000_000,
        "9" * 3_000_000,
        "0x" + "f" * 3_000_000,
        "1." + "9" * 3_000_000,
        ".5" + "_5" * 1_000_000,
        "1" + "_" * 3_000_000,
    ],
    ids=lambda scalar: scalar[:4],
)
def test_huge_scalars_cost_no_more_than_their_length(scalar: str) -> None:
    assert dumps(loads_yaml(f"a: {scalar}"))


def test_too_many_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_YAML_NODES", 1000)
    with pytest.raises(DecodeError, match="more than 1000 nodes"):
        loads_yaml("[" + "[]," * 1000 + "]")


def test_without_libyaml_the_slow_parser_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_Loader", yaml.SafeLoader)
    monkeypatch.setattr(codec, "_Dumper", yaml.SafeDumper)
    value = {"a": [1, {"b": "yes"}], "c": "x\ny\n"}
    assert loads_yaml(dumps_yaml(value)) == value
    for text in (laughs(), "[" * 5000, b"a: \xff", "\ta: 1", "a: \x00", "a: [", "%YAML 2.0\n---\na"):
        with pytest.raises(DecodeError, match=r"^yaml: "):
            loads_yaml(text)


@settings(deadline=None)
@given(st.binary() | st.text() | st.text("ab1:-?[]{},&*!|>'\"%#@`<~ \n\t\\."))
def test_decoding_yaml_never_fails_in_another_way(text: bytes | str) -> None:
    for strict in (False, True):
        with contextlib.suppress(DecodeError):
            dumps(loads_yaml(text, strict=strict))
        with contextlib.suppress(DecodeError):
            dumps(loads_yaml_all(text, strict=strict))


# --- YAML: writing


@settings(deadline=None)
@given(JSON | TRICKY)
def test_yaml_round_trip(value: Any) -> None:  # noqa: ANN401
    assert loads_yaml(dumps_yaml(value), strict=True) == value


@settings(deadline=None)
@given(TRICKY)
def test_other_yaml_parsers_read_the_same_text(value: Any) -> None:  # noqa: ANN401
    assert yaml.safe_load(dumps_yaml(value)) == value


def test_yaml_is_written_for_people() -> None:
    value = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "data": {"script": "one\ntwo\n", "answer": "yes", "version": "1.10", "long": "word " * 30 + "end"},
        "list": [{"a": 1, "b": [True, None]}, [], {}, 1.5],
        "n": "",
    }
    assert dumps_yaml(value) == (
        "kind: ConfigMap\n"
        "apiVersion: v1\n"
        "data:\n"
        "  script: |\n"
        "    one\n"
        "    two\n"
        '  answer: "yes"\n'
        '  version: "1.10"\n'
        f"  long: {'word ' * 30}end\n"
        "list:\n"
        "- a: 1\n"
        "  b:\n"
        "  - true\n"
        "  - null\n"
        "- []\n"
        "- {}\n"
        "- 1.5\n"
        '"n": ""\n'
    )
