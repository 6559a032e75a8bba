"""Make src/kcp/apis/data/zz_resources.json (discovery of what is built in) and zz_openapi_schemas.json.

    python scripts/gen_resources.py --version v1.35.0 --facts <directory of facts>

The facts are one version's folder of discovery and OpenAPI documents.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from gen_data import read_served, write_data

REFERENCE = "#/components/schemas/"
# Schemas that documents need besides those of the served kinds.
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
EXTRA = (
    *(META + name for name in ("APIResourceList", "DeleteOptions", "Patch")),
    *(META + name for name in ("Status", "WatchEvent", "ObjectMeta", "ListMeta")),
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.api.autoscaling.v1.Scale",
)


def trim(schemas: dict[str, Any], roots: list[str]) -> dict[str, Any]:
    """What the roots refer to, and what that refers to."""
    kept: dict[str, Any] = {}
    waiting = [name for name in roots if name in schemas]
    while waiting:
        name = waiting.pop()
        if name not in kept:
            kept[name] = schemas[name]
            waiting += references_in(schemas[name])
    return dict(sorted(kept.items()))


def references_in(node: object) -> list[str]:
    if isinstance(node, list):
        return [name for item in node for name in references_in(item)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"].removeprefix(REFERENCE)] if isinstance(node.get("$ref"), str) else []
    return own + [name for item in node.values() for name in references_in(item)]


def kinds_of(schema: dict[str, Any]) -> set[tuple[str, str]]:
    marks = schema.get("x-kubernetes-group-version-kind", [])
    return {(f"{mark['group']}/{mark['version']}".lstrip("/"), mark["kind"]) for mark in marks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--facts", required=True, type=Path)
    arguments = parser.parse_args()
    served = read_served(arguments.facts)
    wanted = {
        (group_version, resource["kind"] + suffix)
        for group_version, resources in served.items()
        for resource in resources
        for suffix in ("", "List")
    }
    schemas: dict[str, Any] = {}
    for group_version in (*served, "autoscaling/v2"):
        stem = f"core_{group_version}" if "/" not in group_version else group_version.replace("/", "_")
        document = json.loads((arguments.facts / f"{stem}.json").read_text())
        schemas |= document["components"]["schemas"]
    roots = [name for name, schema in schemas.items() if kinds_of(schema) & wanted]
    write_data("zz_resources.json", "scripts/gen_resources.py", arguments.version, {"groupVersions": served})
    content = {"schemas": trim(schemas, [*roots, *EXTRA])}
    write_data("zz_openapi_schemas.json", "scripts/gen_resources.py", arguments.version, content)


if __name__ == "__main__":
    main()
