"""Make src/kcp/apis/data/zz_columns.json: the columns of the Tables of the built-in resources.

    python scripts/gen_columns.py --kubernetes <git directory> --tag v1.35.0 --facts <directory of facts>

The facts (resource -> name, type, format and priority of each column) lack the descriptions, which the printers in
Kubernetes' sources have: as text, or by the name of a documented field.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gen_data import write_data

PRINTERS = "pkg/printers/internalversion/printers.go"
# Which variable of the printers has a resource's columns.
VARIABLES = {
    "certificatesigningrequests": "certificateSigningRequestColumnDefinitions",
    "clusterrolebindings": "clusterRoleBindingsColumnDefinitions",
    "configmaps": "configMapColumnDefinitions",
    "events": "eventColumnDefinitions",
    "leases": "leaseColumnDefinitions",
    "mutatingadmissionpolicies": "mutatingAdmissionPolicy",
    "mutatingadmissionpolicybindings": "mutatingAdmissionPolicyBinding",
    "mutatingwebhookconfigurations": "mutatingWebhookColumnDefinitions",
    "namespaces": "namespaceColumnDefinitions",
    "resourcequotas": "resourceQuotaColumnDefinitions",
    "rolebindings": "roleBindingsColumnDefinitions",
    "secrets": "secretColumnDefinitions",
    "serviceaccounts": "serviceAccountColumnDefinitions",
    "validatingadmissionpolicies": "validatingAdmissionPolicy",
    "validatingadmissionpolicybindings": "validatingAdmissionPolicyBinding",
    "validatingwebhookconfigurations": "validatingWebhookColumnDefinitions",
}
# What the printers call the packages whose documentation they quote.
PACKAGES = {
    "metav1": "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1",
    "apiv1": "staging/src/k8s.io/api/core/v1",
    "rbacv1beta1": "staging/src/k8s.io/api/rbac/v1beta1",
    "certificatesv1beta1": "staging/src/k8s.io/api/certificates/v1beta1",
    "coordinationv1": "staging/src/k8s.io/api/coordination/v1",
}
STRUCTS_OF_FIELDS = {"InvolvedObject": "ObjectReference"}
DOCUMENTED = re.compile(r'(\w+)\.(\w+)\{\}(?:\.(\w+))?\.SwaggerDoc\(\)\["(\w+)"\]')

Read = Callable[[str], str]  # a file of the sources, by its path


def read_columns(printers: str, variable: str, read: Read) -> list[dict[str, Any]]:
    """The columns that a variable of the printers lists."""
    body = re.search(rf"\t{variable} := \[\]metav1.TableColumnDefinition\{{\n(.*?)\n\t\}}", printers, re.DOTALL)
    assert body is not None, variable
    return [_parse_column(line, read) for line in body[1].splitlines()]


def _parse_column(line: str, read: Read) -> dict[str, Any]:
    texts = {key: json.loads(value) for key, value in re.findall(r'(\w+): ("(?:[^"\\]|\\.)*")', line)}
    documented = DOCUMENTED.search(line)
    priority = re.search(r"Priority: (\d+)", line)
    return {
        "name": texts["Name"],
        "type": texts["Type"],
        "format": texts.get("Format", ""),
        "description": texts["Description"] if documented is None else describe(*documented.groups(), read=read),
        "priority": int(priority[1]) if priority else 0,
    }


def describe(package: str, struct: str, through: str | None, field: str, *, read: Read) -> str:
    """The documentation of a field, as the server publishes it."""
    struct = STRUCTS_OF_FIELDS[through] if through else struct
    source = read(f"{PACKAGES[package]}/types_swagger_doc_generated.go")
    body = re.search(rf"var map_{struct} = map\[string\]string\{{\n(.*?)\n\}}", source, re.DOTALL)
    assert body is not None, struct
    texts = dict(re.findall(r'"(\w*)":\s+("(?:[^"\\]|\\.)*"),', body[1]))
    text: str = json.loads(texts[field])
    return text


def check_facts(columns: dict[str, list[dict[str, Any]]], facts: dict[str, list[dict[str, Any]]]) -> None:
    """Two sources must agree on what both know."""
    for resource, listed in columns.items():
        known = [{key: value for key, value in column.items() if key != "description"} for column in listed]
        assert known == facts.get(resource, known), resource


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", required=True)
    parser.add_argument("--tag", required=True)
    parser.add_argument("--facts", type=Path, required=True)
    arguments = parser.parse_args()

    def read(path: str) -> str:
        command = ["git", "-C", arguments.kubernetes, "show", f"{arguments.tag}:{path}"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    printers = read(PRINTERS)
    columns = {resource: read_columns(printers, variable, read) for resource, variable in VARIABLES.items()}
    check_facts(columns, json.loads((arguments.facts / "table-columns.json").read_text()))
    write_data("zz_columns.json", "scripts/gen_columns.py", arguments.tag, {"columns": columns})


if __name__ == "__main__":
    main()
