"""The name rules: what each accepts, and the exact sentences with which it refuses."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcp.meta.validation import (
    check_config_map_key,
    check_dns1035_label,
    check_dns1123_label,
    check_dns1123_subdomain,
    check_label_value,
    check_path_segment_name,
    check_qualified_name,
)

Check = Callable[[str], list[str]]

KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
CONFIG_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)

ACCEPTED: dict[Check, list[str]] = {
    check_qualified_name: [
        "simple",
        "1-num",
        "Upper_Case.OK",
        "example.com/Upper_Case",
        "1.2.3.4/5678",
        "a" * 63,
        "a" * 253 + "/" + "b" * 63,
    ],
    check_label_value: ["", "a", "A.b_c-d", "12345", "v" * 63],
    check_dns1123_label: ["a", "0", "a--1--b", "123-abc", "a" * 63],
    check_dns1123_subdomain: ["a", "0.1", "a-1.b--2.c", "a" * 253, "a." * 126 + "a"],
    check_dns1035_label: ["a", "a1", "a--1", "a" * 63],
    check_config_map_key: ["a", ".hidden", "a..b", "THIS_is-OK.17", "-", "k" * 253],
    check_path_segment_name: ["", "a", "...", ".a", "..a", "sha256:AB@cd", "Iñtërnâtiôn", "a b\n"],
}

REFUSED: list[tuple[str, Check, str, list[str]]] = [
    ("key empty", check_qualified_name, "", ["name part must be non-empty", f"name part {KEY_RULE}"]),
    ("key with two slashes", check_qualified_name, "a/b/c", [
        f"a valid label key {KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
    ]),
    ("key without prefix", check_qualified_name, "/a", ["prefix part must be non-empty"]),
    ("key without name", check_qualified_name, "a.b/", ["name part must be non-empty", f"name part {KEY_RULE}"]),
    ("key with neither", check_qualified_name, "/", [
        "prefix part must be non-empty",
        "name part must be non-empty",
        f"name part {KEY_RULE}",
    ]),
    ("key prefix upper case", check_qualified_name, "Example.com/a", [f"prefix part {SUBDOMAIN_RULE}"]),
    ("key prefix too long", check_qualified_name, "a" * 254 + "/a", ["prefix part must be no more than 253 bytes"]),
    ("key prefix all wrong", check_qualified_name, "A" * 254 + "/a", [
        "prefix part must be no more than 253 bytes",
        f"prefix part {SUBDOMAIN_RULE}",
    ]),
    ("key name too long", check_qualified_name, "a" * 64, ["name part must be no more than 63 bytes"]),
    ("key ends with dash", check_qualified_name, "a-", [f"name part {KEY_RULE}"]),
    ("key ends with newline", check_qualified_name, "a\n", [f"name part {KEY_RULE}"]),
    ("key counts bytes", check_qualified_name, "é" * 32, [
        "name part must be no more than 63 bytes",
        f"name part {KEY_RULE}",
    ]),
    ("value too long", check_label_value, "v" * 64, ["must be no more than 63 bytes"]),
    ("value counts bytes", check_label_value, "é" * 32, ["must be no more than 63 bytes", VALUE_RULE]),
    ("value short but not ASCII", check_label_value, "rā", [VALUE_RULE]),
    ("value of foreign digits", check_label_value, "٣", [VALUE_RULE]),
    ("value ends with newline", check_label_value, "a\n", [VALUE_RULE]),
    ("value of half a surrogate pair", check_label_value, "\ud800", [VALUE_RULE]),
    ("label empty", check_dns1123_label, "", [LABEL_RULE]),
    ("label with dots", check_dns1123_label, "a.b", ["must not contain dots"]),
    ("label of a dot", check_dns1123_label, ".", [LABEL_RULE]),
    ("label upper case", check_dns1123_label, "aB", [LABEL_RULE]),
    ("label too long", check_dns1123_label, "a" * 64, ["must be no more than 63 characters"]),
    ("label too long with dots", check_dns1123_label, "a." * 32 + "a", [
        "must be no more than 63 characters",
        "must not contain dots",
    ]),
    ("subdomain empty", check_dns1123_subdomain, "", [SUBDOMAIN_RULE]),
    ("subdomain with two dots", check_dns1123_subdomain, "a..b", [SUBDOMAIN_RULE]),
    ("subdomain with underscore", check_dns1123_subdomain, "a_b", [SUBDOMAIN_RULE]),
    ("subdomain ends with newline", check_dns1123_subdomain, "a\n", [SUBDOMAIN_RULE]),
    ("subdomain all wrong", check_dns1123_subdomain, "A" * 254, [
        "must be no more than 253 characters",
        SUBDOMAIN_RULE,
    ]),
    ("1035 starts with digit", check_dns1035_label, "1a", [DNS1035_RULE]),
    ("1035 with dots", check_dns1035_label, "a.b", [DNS1035_RULE]),
    ("1035 all wrong", check_dns1035_label, "0" * 64, ["must be no more than 63 characters", DNS1035_RULE]),
    ("config key empty", check_config_map_key, "", [CONFIG_KEY_RULE]),
    ("config key of a dot", check_config_map_key, ".", ["must not be '.'"]),
    ("config key of two dots", check_config_map_key, "..", ["must not be '..'"]),
    ("config key climbs", check_config_map_key, "..a", ["must not start with '..'"]),
    ("config key all wrong", check_config_map_key, "../" + "a" * 251, [
        "must be no more than 253 characters",
        CONFIG_KEY_RULE,
        "must not start with '..'",
    ]),
    ("segment of a dot", check_path_segment_name, ".", ["may not be '.'"]),
    ("segment of two dots", check_path_segment_name, "..", ["may not be '..'"]),
    ("segment with slash", check_path_segment_name, "../a", ["may not contain '/'"]),
    ("segment with both", check_path_segment_name, "%/%", ["may not contain '/'", "may not contain '%'"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "value"),
    [
        pytest.param(check, value, id=f"{check.__name__}-{value[:12]}")
        for check, values in ACCEPTED.items()
        for value in values
    ],
)
def test_valid_names_have_no_problems(check: Check, value: str) -> None:
    assert check(value) == []


@pytest.mark.parametrize(
    ("check", "value", "problems"),
    [pytest.param(check, value, problems, id=name) for name, check, value, problems in REFUSED],
)
def test_invalid_names_are_refused_in_the_words_of_kubernetes(check: Check, value: str, problems: list[str]) -> None:
    assert check(value) == problems


@pytest.mark.parametrize("check", ACCEPTED, ids=lambda check: check.__name__)
def test_hostile_length_is_still_checked_in_linear_time(check: Check) -> None:
    # A pattern that tries every split of its input would not come back from this one.
    check("a.a-" * 250_000 + "!")


@given(st.text())
def test_checks_never_raise(value: str) -> None:
    for check in ACCEPTED:
        assert all(check(value)), "a problem is a sentence"


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True))
def test_a_dns_label_satisfies_every_wider_rule(value: str) -> None:
    assert check_dns1123_label(value) == []
    wider = (check_dns1123_subdomain, check_label_value, check_qualified_name, check_path_segment_name)
    assert [check(value) for check in wider] == [[]] * len(wider)
    assert (check_dns1035_label(value) == []) is value[0].isalpha()
