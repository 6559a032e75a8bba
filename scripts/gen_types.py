"""Make src/kcp/apis/data/zz_types.json: the Go structs behind the built-in kinds, read from Kubernetes' sources.

    python scripts/gen_types.py --kubernetes <git directory> --tag v1.35.0 --facts <directory of facts>

The facts are one version's folder of discovery and OpenAPI documents. Nothing but names, numbers and tags is taken.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path
from typing import Any

from gen_data import read_served, write_data

STAGING = "staging/src/"
META = "k8s.io/apimachinery/pkg/apis/meta/v1"
# Kinds every group version knows besides its own.
META_KINDS = (
    "CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "Status",
    "PartialObjectMetadata", "PartialObjectMetadataList",
)  # fmt: skip
PACKAGES = {
    "v1": "k8s.io/api/core/v1",
    "apiextensions.k8s.io/v1": "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
    "rbac.authorization.k8s.io/v1": "k8s.io/api/rbac/v1",
}
EXTRA_KINDS = (("autoscaling/v1", "k8s.io/api/autoscaling/v1", "Scale"),)
# Types that read and write their JSON by themselves.
OPAQUE = {
    f"{META}.Time", f"{META}.MicroTime", f"{META}.Duration", f"{META}.FieldsV1",
    "k8s.io/apimachinery/pkg/api/resource.Quantity",
    "k8s.io/apimachinery/pkg/runtime.RawExtension",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString",
    *(f"{PACKAGES['apiextensions.k8s.io/v1']}.JSON{suffix}"
      for suffix in ("", "SchemaPropsOrArray", "SchemaPropsOrBool", "SchemaPropsOrStringArray")),
}  # fmt: skip
BASIC = {"string", "bool", "byte", "int", "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64", "any"}

IMPORT = re.compile(r'^\s*(?:import\s+)?(?:([\w.]+)\s+)?"([\w./-]+)"', re.MULTILINE)
STRUCT = re.compile(r"^type (\w+) struct ?\{(?:\}|\n(.*?)^\})", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^type (\w+) ((?:\[\]|map\[|\w)[^\n{]*)$", re.MULTILINE)
FIELD = re.compile(r"^\s*(?:(\w+)\s+)?([*\[\]\w.]+)(?:\s+`([^`]*)`)?\s*$")
TAG = re.compile(r'(\w+):"([^"]*)"')


class Package:
    """The type declarations of one Go package."""

    def __init__(self, path: str, sources: list[str]) -> None:
        self.path = path
        self.structs: dict[str, tuple[str, dict[str, str]]] = {}
        self.named: dict[str, tuple[str, dict[str, str]]] = {}
        for source in sources:
            text = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
            text = re.sub(r"(?m)^\s*//.*\n", "", text)
            text = re.sub(r"(`[^`\n]*`)?\s*//[^\n`]*$", r"\1", text, flags=re.MULTILINE)
            header = text.split("\ntype ", 1)[0]
            imports = {alias or target.rsplit("/", 1)[-1]: target for alias, target in IMPORT.findall(header)}
            self.structs |= {name: (body, imports) for name, body in STRUCT.findall(text)}
            self.named |= {name: (target.strip(), imports) for name, target in NAMED.findall(text)}


class Reader:
    """Follows type names from the kinds down, package by package."""

    def __init__(self, repository: str, tag: str) -> None:
        self._repository, self._tag = repository, tag
        self._packages: dict[str, Package] = {}
        self.structs: dict[str, list[list[Any]]] = {}
        self.named: dict[str, str] = {}

    def package(self, path: str) -> Package:
        if path not in self._packages:
            listed = self._git("ls-tree", "--name-only", self._tag, f"{STAGING}{path}/").splitlines()
            files = [name for name in listed if re.search(r"/(types\w*|watch|doc|nodes?|patch)\.go$", name)]
            self._packages[path] = Package(path, [self._git("show", f"{self._tag}:{name}") for name in files])
        return self._packages[path]

    def visit(self, path: str, name: str) -> None:
        full = openapi_name(f"{path}.{name}")
        if f"{path}.{name}" in OPAQUE or full in self.structs or full in self.named:
            if name.startswith("JSONSchemaPropsOr"):
                self.visit(path, "JSONSchemaProps")
            return
        package = self.package(path)
        if name in package.named:
            target, imports = package.named[name]
            self.named[full] = ""  # a type may refer to itself
            self.named[full] = self._resolve(target, path, imports)
            return
        body, imports = package.structs[name]
        fields = self.structs[full] = []
        for line in filter(str.strip, body.splitlines()):
            fields.append(self._field(line, path, imports))

    def _field(self, line: str, path: str, imports: dict[str, str]) -> list[Any]:
        match = FIELD.match(line)
        assert match, line
        go_name, go_type, raw_tags = match.groups()
        tags = dict(TAG.findall(raw_tags or ""))
        json_name, *options = tags["json"].split(",")
        number = int(tags["protobuf"].split(",")[1]) if "," in tags.get("protobuf", "") else 0
        flags = "".join(flag for flag, option in (("e", "omitempty"), ("z", "omitzero")) if option in options)
        resolved = self._resolve(go_type, path, imports)
        if go_name is None and not json_name:
            return [go_type.rsplit(".", 1)[-1], number, resolved, "i"]
        return [json_name, number, resolved, flags] if flags else [json_name, number, resolved]

    def _resolve(self, go_type: str, path: str, imports: dict[str, str]) -> str:
        if go_type.startswith("*"):
            return "*" + self._resolve(go_type[1:], path, imports)
        if go_type.startswith("[]"):
            return "[]" + self._resolve(go_type[2:], path, imports)
        if go_type.startswith("map["):
            key, value = go_type[4:].split("]", 1)
            return f"map[{self._resolve(key, path, imports)}]{self._resolve(value, path, imports)}"
        if go_type in BASIC:
            return go_type
        alias, _, name = go_type.rpartition(".")
        target = imports[alias] if alias else path
        if target == "k8s.io/apimachinery/pkg/types":
            self.named[openapi_name(f"{target}.{name}")] = "string"
        else:
            self.visit(target, name)
        return openapi_name(f"{target}.{name}")

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", self._repository, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def openapi_name(go_name: str) -> str:
    """`k8s.io/api/core/v1.Secret` as OpenAPI spells it: `io.k8s.api.core.v1.Secret`."""
    host, _, rest = go_name.partition("/")
    return ".".join([*reversed(host.split(".")), *rest.split("/")])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubernetes", required=True)
    parser.add_argument("--tag", required=True)
    parser.add_argument("--facts", required=True, type=Path)
    arguments = parser.parse_args()
    reader = Reader(arguments.kubernetes, arguments.tag)
    kinds: dict[str, str] = {}

    def add(api_version: str, path: str, kind: str) -> None:
        reader.visit(path, kind)
        kinds[f"{api_version}/{kind}"] = openapi_name(f"{path}.{kind}")

    for api_version, resources in read_served(arguments.facts).items():
        path = PACKAGES.get(api_version, "k8s.io/api/" + api_version.replace(".k8s.io", ""))
        for resource in resources:
            if "group" in resource:
                continue  # another group's kind; it is served there, or is one of EXTRA_KINDS
            add(api_version, path, resource["kind"])
            if "list" in resource["verbs"]:
                add(api_version, path, resource["kind"] + "List")
    add("authentication.k8s.io/v1", "k8s.io/api/authentication/v1", "TokenRequest")
    for extra in EXTRA_KINDS:
        add(*extra)
    for kind in META_KINDS:
        add("meta.k8s.io/v1", META, kind)
    tables = {"kinds": kinds, "named": reader.named, "structs": reader.structs}
    write_data("zz_types.json", "scripts/gen_types.py", arguments.tag, tables)


if __name__ == "__main__":
    main()
