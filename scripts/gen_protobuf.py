"""Make src/kcp/apis/data/zz_protobuf.json: the protobuf messages of the served kinds, as one compact table.

    python scripts/gen_protobuf.py --kubernetes <git directory> --tag v1.35.0 --facts <directory of facts>

The facts (message -> [number, name, type]) tell numbers and types. The struct tags in Kubernetes' sources add what
the wire format cannot tell: the name of a field in JSON, whether it is a pointer, whether JSON omits its zero value.

A field becomes [number, JSON name, type]. The type is spelled as in Go, with one mark in front:

    [1, "name", "?string"]        a plain field, always on the wire, left out of JSON when empty
    [2, "apiGroup", "string"]     a plain field, always on the wire and in JSON
    [6, "generation", "*int64"]   a pointer, on the wire only if set
    [2, "", "core.v1.Rule"]       a struct whose fields stand among those of its parent in JSON

Types in lower case are scalars here, even if they are messages on the wire: `time`, `quantity`, `strings` and so on.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from gen_data import write_data

# Where the packages of the field list live below the checkout's staging/src, and the apiVersion of their kinds.
PACKAGES = {
    "k8s.io.api.core.v1": ("k8s.io/api/core/v1", "v1"),
    "k8s.io.api.events.v1": ("k8s.io/api/events/v1", "events.k8s.io/v1"),
    "k8s.io.api.coordination.v1": ("k8s.io/api/coordination/v1", "coordination.k8s.io/v1"),
    "k8s.io.api.rbac.v1": ("k8s.io/api/rbac/v1", "rbac.authorization.k8s.io/v1"),
    "k8s.io.api.authentication.v1": ("k8s.io/api/authentication/v1", "authentication.k8s.io/v1"),
    "k8s.io.api.authorization.v1": ("k8s.io/api/authorization/v1", "authorization.k8s.io/v1"),
    "k8s.io.api.certificates.v1": ("k8s.io/api/certificates/v1", "certificates.k8s.io/v1"),
    "k8s.io.api.admissionregistration.v1": ("k8s.io/api/admissionregistration/v1", "admissionregistration.k8s.io/v1"),
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1": (
        "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
        "apiextensions.k8s.io/v1",
    ),
    "k8s.io.apimachinery.pkg.apis.meta.v1": ("k8s.io/apimachinery/pkg/apis/meta/v1", "v1"),
    "k8s.io.apimachinery.pkg.runtime": ("k8s.io/apimachinery/pkg/runtime", ""),
    "k8s.io.apimachinery.pkg.api.resource": ("k8s.io/apimachinery/pkg/api/resource", ""),
}
META = "k8s.io.apimachinery.pkg.apis.meta.v1"
CORE = "k8s.io.api.core.v1"
CORE_KINDS = ("Namespace", "ConfigMap", "Secret", "ServiceAccount", "Event", "ResourceQuota", "LimitRange")
META_KINDS = (
    *("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "Status", "WatchEvent"),
    *("CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions"),
)
PARTIAL_KINDS = ("PartialObjectMetadata", "PartialObjectMetadataList")
SCALARS = {
    f"{META}.Time": "time",
    f"{META}.MicroTime": "microTime",
    f"{META}.FieldsV1": "fieldsV1",
    f"{META}.Verbs": "strings",
    "k8s.io.api.authentication.v1.ExtraValue": "strings",
    "k8s.io.api.authorization.v1.ExtraValue": "strings",
    "k8s.io.api.certificates.v1.ExtraValue": "strings",
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "quantity",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "rawExtension",
    "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON": "json",
}

Fields = dict[str, list[tuple[int, str, str]]]

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_TAGGED = re.compile(r"^\s+(?:\w+\s+)?(\S+)\s+`([^`]*protobuf:[^`]*)`", re.MULTILINE)
_PROTOBUF_TAG = re.compile(r'protobuf:"\w+,(\d+),')
_JSON_TAG = re.compile(r'json:"([^"]*)"')


class Tag(NamedTuple):
    """What a Go struct says of one field."""

    json_name: str  # empty for an inlined struct, "-" for one that has no name in JSON
    pointer: bool
    omit_empty: bool


def parse_tags(source: str) -> dict[str, dict[int, Tag]]:
    """The tags of every struct in a Go source text, by struct and field number."""
    return {match[1]: _parse_struct(match[2]) for match in _STRUCT.finditer(source)}


def _parse_struct(body: str) -> dict[int, Tag]:
    tags = {}
    for go_type, text in _TAGGED.findall(body):
        number, json_tag = _PROTOBUF_TAG.search(text), _JSON_TAG.search(text)
        if number is not None:
            # The unions of a JSON schema have no tag: their JSON is written by hand.
            name, *flags = json_tag[1].split(",") if json_tag is not None else ("-",)
            tags[int(number[1])] = Tag(name, go_type.startswith("*"), "omitempty" in flags or "omitzero" in flags)
    return tags


def make_table(fields: Fields, tags: dict[str, dict[int, Tag]]) -> dict[str, Any]:
    """The table of all messages that the served kinds reach; `tags` is keyed by the full message name."""
    kinds = {kind: message for kind, message in _kinds(fields)}
    messages: dict[str, list[list[object]]] = {}
    todo = list(kinds.values())
    while todo:
        message = todo.pop()
        if _short(message) in messages:
            continue
        rows = [_row(message, field, tags[message], todo) for field in sorted(fields[message])]
        messages[_short(message)] = rows
    short_kinds = {kind: _short(message) for kind, message in sorted(kinds.items())}
    return {"kinds": short_kinds, "messages": dict(sorted(messages.items()))}


def _kinds(fields: Fields) -> list[tuple[str, str]]:
    """("apiVersion/kind", message) of everything that travels on its own."""
    found = [(f"meta.k8s.io/v1/{kind}", f"{META}.{kind}") for kind in PARTIAL_KINDS]
    found += [(f"v1/{kind}", f"{META}.{kind}") for kind in META_KINDS]
    core = {name for kind in CORE_KINDS for name in (kind, f"{kind}List")}
    for message, rows in fields.items():
        package, _, name = message.rpartition(".")
        top_level = rows and tuple(rows[0][:2]) == (1, "metadata")
        if package in PACKAGES and package != META and top_level and (package != CORE or name in core):
            found.append((f"{PACKAGES[package][1]}/{name}", message))
    return [(kind, message) for kind, message in found if message in fields]


def _row(message: str, field: tuple[int, str, str], tags: dict[int, Tag], todo: list[str]) -> list[object]:
    number, _, wire_type = field
    tag = tags[number]
    prefix, element = "", wire_type
    if wire_type.startswith("[]"):
        prefix, element = "[]", wire_type[2:]
    elif wire_type.startswith("map<string,"):
        prefix, element = "map[string]", wire_type[len("map<string,") : -1]
    spelled = _spell(message, element, todo)
    if not prefix and (tag.pointer or spelled == "strings"):
        prefix = "*"
    elif not prefix and tag.omit_empty and spelled[0].islower() and "." not in spelled:
        prefix = "?"
    return [number, tag.json_name, prefix + spelled]


def _spell(message: str, element: str, todo: list[str]) -> str:
    if element in ("string", "bool", "int32", "int64", "double", "bytes"):
        return element
    element = element.removeprefix(".")
    full = element if "." in element else f"{message.rpartition('.')[0]}.{element}"
    if full in SCALARS:
        return SCALARS[full]
    todo.append(full)
    return _short(full)


def _short(message: str) -> str:
    """`k8s.io.api.core.v1.Secret` is `core.v1.Secret` here."""
    return ".".join(message.split(".")[-3:])


def read_tags(repository: str, tag: str) -> dict[str, dict[int, Tag]]:
    found: dict[str, dict[int, Tag]] = {}
    for package, (folder, _) in PACKAGES.items():
        folder = f"{tag}:staging/src/{folder}"
        for name in _git(repository, "ls-tree", "--name-only", folder).split():
            if name.endswith(".go") and not name.startswith(("zz_", "generated.")) and not name.endswith("_test.go"):
                structs = parse_tags(_git(repository, "show", f"{folder}/{name}"))
                found |= {f"{package}.{struct}": tags for struct, tags in structs.items()}
    return found


def _git(repository: str, *arguments: str) -> str:
    command = ["git", "-C", repository, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", required=True)
    parser.add_argument("--tag", required=True)
    parser.add_argument("--facts", type=Path, required=True)
    arguments = parser.parse_args()
    fields = json.loads((arguments.facts / "protobuf-fields.json").read_text())
    table = make_table(fields, read_tags(arguments.kubernetes, arguments.tag))
    write_data("zz_protobuf.json", "scripts/gen_protobuf.py", arguments.tag, table)


if __name__ == "__main__":
    main()
