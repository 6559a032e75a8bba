"""Kubernetes' rules for names, label keys and label values, each as a function from a text to what is wrong with it.

An empty list means valid. The sentences are part of the wire format: they must not be reworded, and nothing here may
decide which rule a field follows or how a failure is reported.
"""

import re

_LABEL_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_LABEL_KEY})?"
_DNS1123_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS1123_SUBDOMAIN = rf"{_DNS1123_LABEL}(\.{_DNS1123_LABEL})*"
_DNS1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_CONFIG_MAP_KEY = "[-._a-zA-Z0-9]+"

# Only ever used with fullmatch: Go's `$` is the very end of the text, Python's also accepts a newline before it.
_LABEL_KEY_PATTERN = re.compile(_LABEL_KEY)
_LABEL_VALUE_PATTERN = re.compile(_LABEL_VALUE)
_DNS1123_LABEL_PATTERN = re.compile(_DNS1123_LABEL)
_DNS1123_SUBDOMAIN_PATTERN = re.compile(_DNS1123_SUBDOMAIN)
_DNS1035_LABEL_PATTERN = re.compile(_DNS1035_LABEL)
_CONFIG_MAP_KEY_PATTERN = re.compile(_CONFIG_MAP_KEY)

_MAX_LABEL = 63
_MAX_SUBDOMAIN = 253


def _pattern_message(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_KEY_MESSAGE = _pattern_message(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _LABEL_KEY,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_MESSAGE = _pattern_message(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_DNS1123_LABEL_MESSAGE = _pattern_message(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _DNS1123_LABEL,
    "my-name",
    "123-abc",
)
_DNS1123_SUBDOMAIN_MESSAGE = _pattern_message(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _DNS1123_SUBDOMAIN,
    "example.com",
)
_DNS1035_LABEL_MESSAGE = _pattern_message(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _DNS1035_LABEL,
    "my-name",
    "abc-123",
)
_CONFIG_MAP_KEY_MESSAGE = _pattern_message(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_MAP_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def check_qualified_name(value: str) -> list[str]:
    """Label keys, annotation keys, finalizers: a name, after an optional DNS subdomain and a slash."""
    slashes = value.count("/")
    if slashes > 1:
        example = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_LABEL_KEY_MESSAGE}{example}"]
    prefix, _, name = value.rpartition("/")
    problems = _check_key_prefix(prefix) if slashes else []
    if not name:
        problems.append("name part must be non-empty")
    elif _is_longer(name, _MAX_LABEL):
        problems.append(f"name part {_too_many_bytes(_MAX_LABEL)}")
    if not _LABEL_KEY_PATTERN.fullmatch(name):
        problems.append(f"name part {_LABEL_KEY_MESSAGE}")
    return problems


def check_label_value(value: str) -> list[str]:
    problems = [_too_many_bytes(_MAX_LABEL)] if _is_longer(value, _MAX_LABEL) else []
    if not _LABEL_VALUE_PATTERN.fullmatch(value):
        problems.append(_LABEL_VALUE_MESSAGE)
    return problems


def check_dns1123_label(value: str) -> list[str]:
    problems = [_too_many_characters(_MAX_LABEL)] if _is_longer(value, _MAX_LABEL) else []
    if _DNS1123_LABEL_PATTERN.fullmatch(value):
        return problems
    is_subdomain = _DNS1123_SUBDOMAIN_PATTERN.fullmatch(value)
    return [*problems, "must not contain dots" if is_subdomain else _DNS1123_LABEL_MESSAGE]


def check_dns1123_subdomain(value: str) -> list[str]:
    problems = [_too_many_characters(_MAX_SUBDOMAIN)] if _is_longer(value, _MAX_SUBDOMAIN) else []
    if not _DNS1123_SUBDOMAIN_PATTERN.fullmatch(value):
        problems.append(_DNS1123_SUBDOMAIN_MESSAGE)
    return problems


def check_dns1035_label(value: str) -> list[str]:
    problems = [_too_many_characters(_MAX_LABEL)] if _is_longer(value, _MAX_LABEL) else []
    if not _DNS1035_LABEL_PATTERN.fullmatch(value):
        problems.append(_DNS1035_LABEL_MESSAGE)
    return problems


def check_config_map_key(value: str) -> list[str]:
    """Keys of ConfigMaps and Secrets: they become file names, so nothing that climbs out of a directory."""
    problems = [_too_many_characters(_MAX_SUBDOMAIN)] if _is_longer(value, _MAX_SUBDOMAIN) else []
    if not _CONFIG_MAP_KEY_PATTERN.fullmatch(value):
        problems.append(_CONFIG_MAP_KEY_MESSAGE)
    if value in (".", ".."):
        problems.append(f"must not be '{value}'")
    elif value.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def check_path_segment_name(value: str) -> list[str]:
    """What every object name obeys, whatever else its kind asks: it can be one segment of a request path."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{refused}'" for refused in ("/", "%") if refused in value]


def _check_key_prefix(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = [f"prefix part {_too_many_bytes(_MAX_SUBDOMAIN)}"] if _is_longer(prefix, _MAX_SUBDOMAIN) else []
    if not _DNS1123_SUBDOMAIN_PATTERN.fullmatch(prefix):
        problems.append(f"prefix part {_DNS1123_SUBDOMAIN_MESSAGE}")
    return problems


def _is_longer(value: str, limit: int) -> bool:
    """Whether the text has more bytes than the limit: Go's `len` counts bytes, Python's characters."""
    if len(value) > limit or value.isascii():
        return len(value) > limit
    return len(value.encode("utf-8", "surrogatepass")) > limit


def _too_many_bytes(limit: int) -> str:
    """The wording of apimachinery's api/validate/content, which owns label keys and values."""
    return f"must be no more than {limit} bytes"


def _too_many_characters(limit: int) -> str:
    """The wording of apimachinery's util/validation, which owns the other names; it counts bytes as well."""
    return f"must be no more than {limit} characters"
