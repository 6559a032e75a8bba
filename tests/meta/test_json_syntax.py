import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcp.meta import json_syntax

END = "unexpected end of JSON input"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", END),
        ("{", END),
        ("[1", END),
        ('"abc', END),
        ('{"kind": "ConfigMap", ', END),
        ("not", "invalid character 'o' in literal null (expecting 'u')"),
        ("tRue", "invalid character 'R' in literal true (expecting 'r')"),
        ("fals", "invalid character ' ' in literal false (expecting 'e')"),
        ("garbage", "invalid character 'g' looking for beginning of value"),
        ("'a'", r"invalid character '\'' looking for beginning of value"),
        ("\ufeff{}", "invalid character 'ï' looking for beginning of value"),
        ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a": 1 "b"}', "invalid character '\"' after object key:value pair"),
        ('{"a": 1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1}", "invalid character '}' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
        ('"a\nb"', r"invalid character '\n' in string literal"),
        (r'"\x"', "invalid character 'x' in string escape code"),
        (r'"\u12g4"', r"invalid character 'g' in \u hexadecimal character escape"),
        ('"\\', "invalid character ' ' in string escape code"),
        ("-", "invalid character ' ' in numeric literal"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("01", "invalid character '1' after top-level value"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+", "invalid character ' ' in exponent of numeric literal"),
    ],
    ids=repr,
)
def test_faults_are_named_as_go_names_them(text: str, sentence: str) -> None:
    assert json_syntax.explain(text.encode()) == sentence


@pytest.mark.parametrize(
    "text", [' {"a": [1, -0.5e+3, "\\u00e9\\n", {}, []], "b": null} ', "[[[]]]", '"\ud7ff"', "1e999"], ids=repr
)
def test_json_has_no_fault(text: str) -> None:
    assert json_syntax.explain(text.encode()) == ""


def test_long_texts_are_not_walked() -> None:
    assert json_syntax.explain(b"[" * 65536) == END
    assert json_syntax.explain(b"[" * 65537) == ""


@settings(deadline=None)
@given(st.binary() | st.text('{}[]:,"\\ntrue0.e-u ').map(str.encode))
def test_it_always_comes_to_an_end(text: bytes) -> None:
    assert isinstance(json_syntax.explain(text), str)
