"""JSONPath; the expected results are those of client-go's util/jsonpath."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.registry.jsonpath import JSONPathError, parse_jsonpath

OBJECT = {
    "metadata": {"name": "n"},
    "spec": {
        "i": 3,
        "s": "xy",
        "n": None,
        "l": [1, "a", None, {"k": "v"}],
        "ll": [[1, 2], [3]],
        "o": {"a.b": "dot", "z": 1},
        "ports": [{"name": "a", "p": 1}, {"p": 2}, {"name": "b", "p": 3, "f": 2.5, "t": True}],
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.i", [3]),
        ("$.spec.i", [3]),
        ("@.spec.i", [3]),
        (".spec.n", [None]),
        (".spec.missing", []),
        (".spec.missing.x", []),
        (".spec.s.x", []),
        (".spec.n.x", []),
        (".spec.l[0]", [1]),
        (".spec.l[-1].k", ["v"]),
        (".spec.l[-2]", [None]),
        (".spec.l[*]", [1, "a", None, {"k": "v"}]),
        (".spec.l[:]", [1, "a", None, {"k": "v"}]),
        (".spec.l[1:3]", ["a", None]),
        (".spec.l[:2]", [1, "a"]),
        (".spec.l[-1:]", [{"k": "v"}]),
        (".spec.l[:-3]", [1]),
        (".spec.l[::2]", [1, None]),
        (".spec.l[0:0]", []),
        (".spec.n[0]", []),
        (".spec.ll[0][1]", [2]),
        (".spec.ll[*][0]", [1, 3]),
        (".spec.ll[*][1:1]", []),
        (".spec.o.a\\.b", ["dot"]),
        (".spec.o['a\\.b']", ["dot"]),
        (".spec.o['a.b']", []),
        (".spec.o['z']", [1]),
        (".spec.o.*", ["dot", 1]),
        (".spec.s.*", [120, 121]),
        (".spec.i.*", []),
        (".spec['i','s']", [3, "xy"]),
        (".spec.ports[0, 2].name", ["a", "b"]),
        (".spec.ports[*].name", ["a", "b"]),
        ('.spec.ports[?(@.name=="b")].p', [3]),
        (".spec.ports[?( @.name == 'b' )].p", [3]),
        (".spec.ports[?(@['name']==\"a\")].p", [1]),
        (".spec.ports[?(@.p>1)].p", [2, 3]),
        (".spec.ports[?(@.p>=3)].p", [3]),
        (".spec.ports[?(@.p<2)].p", [1]),
        (".spec.ports[?(@.p<=2)].p", [1, 2]),
        (".spec.ports[?(@.p!=1)].p", [2, 3]),
        (".spec.ports[?(@.f>1.5)].p", [3]),
        (".spec.ports[?(@.t==true)].p", [3]),
        (".spec.ports[?(@.p==@.p)].p", [1, 2, 3]),
        (".spec.ports[?(@.p==@.nope)].p", []),
        (".spec.ports[?(@.f)].p", [3]),
        ('.spec.ports[?(@.name=="v)")].p', []),
        ('.spec.ports[?(@.name=="v\\")")].p', []),
        ("..name", ["n", "a", "b"]),
        ("..ports[0].p", [1]),
        (".spec.i 'q'", ["q"]),
        (".spec.i 'q\\'\\n'", ["q'\n"]),
        (".spec.i 1.5", [1.5]),
        (".spec.i -1", [-1]),
        (".spec.i false", [False]),
        (".spec.i}{.spec.s", [3]),
        (".", []),
    ],
)
def test_paths_select_what_they_select_in_kubernetes(path: str, found: list[Any]) -> None:
    assert parse_jsonpath(path).find(OBJECT) == found


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".spec.l[9]", "array index out of bounds: index 9, length 4"),
        (".spec.l[-9]", "array index out of bounds: index -5, length 4"),
        (".spec.l[0:9]", "array index out of bounds: index 0, length 4"),
        (".spec.l[3:1]", "starting index 3 is greater than ending index 1"),
        (".spec.l[::0]", "step must be > 0"),
        (".spec.i[0]", "not an array or slice"),
        (".spec.i[?(@.x)]", "not an array or slice and cannot be filtered"),
        (".spec.ports[?(@.f>1)].p", "incompatible types for comparison"),
        ('.spec.ports[?(@.p=="1")].p', "incompatible types for comparison"),
        (".spec.ports[?(@.p==true)].p", "incompatible types for comparison"),
        (".spec.ports[?(@.t>true)].p", "invalid type for comparison"),
        (".spec.ports[?(@==@)].p", "invalid type for comparison"),
        (".spec.ports[?(@.p=1)].p", "unrecognized filter operator ="),
        (".spec.ports[?(@.*==1)].p", "can only compare one element at a time"),
        ("spec.i", "unrecognized identifier spec"),
    ],
)
def test_paths_that_do_not_suit_the_object_are_errors(path: str, message: str) -> None:
    with pytest.raises(JSONPathError) as caught:
        parse_jsonpath(path).find(OBJECT)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".spec[", "unterminated array"),
        (".spec.l[\n]", "unterminated array"),
        (".spec.l[a]", "invalid array index a"),
        (".spec.l[-]", "invalid array index -"),
        (".spec.l[?(@.k]", "unterminated filter"),
        (".spec.l[?(@.k\n)]", "unterminated filter"),
        ('.spec.l[?(@.k=="v")', "unclosed array expect ]"),
        ("....x", "invalid multiple recursive descent"),
        (".spec.i\n", "unclosed action"),
        (".spec.i\\", "unclosed action"),
        (".spec.i\t", "unrecognized character"),
        ("(.spec.i)", "unrecognized character"),
        (".spec.i 1.2.3", "cannot parse number 1.2.3"),
        (".spec.i 'q", "unterminated quoted string"),
        (".spec.i 'q\\z'", "unquote string error invalid syntax"),
        ("[?(" * 10_000 + "@" + ")]" * 10_000, "unterminated filter"),
    ],
)
def test_wrong_paths_are_not_parsed(path: str, message: str) -> None:
    with pytest.raises(JSONPathError, match=message):
        parse_jsonpath(path)


@given(st.text(alphabet=".[]?()@$'\"*:,a1-=<>!\\ {}", max_size=25))
def test_any_text_is_a_path_or_an_error(text: str) -> None:
    with contextlib.suppress(JSONPathError):
        parse_jsonpath(text).find(OBJECT)
