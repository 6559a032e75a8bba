"""kubectl reads: discovery, every output format, watching, explaining and describing."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from tests.e2e.kcp_server import Api, KcpServer
    from tests.e2e.kubectl_command import Kubectl

AGE = r"\d+(s|m|m\d+s)"


@pytest.fixture
def fruit(kubectl: Kubectl) -> Kubectl:
    """Two config maps, of which one has labels."""
    kubectl("create", "configmap", "apple", "--from-literal=colour=red", "--from-literal=taste=sweet")
    kubectl("create", "configmap", "pear", "--from-literal=colour=green")
    kubectl("label", "configmap", "apple", "season=autumn", "tree=malus")
    return kubectl


def lines(output: str) -> list[list[str]]:
    return [line.split() for line in output.splitlines()]


def test_the_kubeconfig_has_the_contexts_of_kcp(kubectl: Kubectl, server: KcpServer) -> None:
    assert kubectl("config", "get-contexts", "-o", "name").split() == ["base", "root", "shard-base", "system:admin"]
    assert kubectl("config", "current-context").strip() == "root"
    assert kubectl("config", "view", "--minify", "-o", "jsonpath={..server}") == f"{server.url}/clusters/root"


def test_version_is_that_of_kubernetes(kubectl: Kubectl) -> None:
    version = yaml.safe_load(kubectl("version", "-o", "yaml"))["serverVersion"]
    assert (version["major"], version["minor"]) == ("1", "35")
    assert version["gitVersion"].startswith("v1.35.")
    assert re.search(r"^Server Version: v1\.35\.", kubectl("version"), re.MULTILINE)


def test_what_kubectl_remembers_of_discovery_stays_right(kubectl: Kubectl) -> None:
    """The second time kubectl asks whether its copy is still good, and the answer 304 must leave it so."""
    first = kubectl("api-versions").split()
    assert kubectl("api-versions").split() == first
    assert kubectl("api-resources", "-o", "name") == kubectl("api-resources", "-o", "name")


def test_api_versions_lists_the_groups(kubectl: Kubectl) -> None:
    versions = set(kubectl("api-versions").split())
    assert versions >= {
        "v1",
        "admissionregistration.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "authentication.k8s.io/v1",
        "authorization.k8s.io/v1",
        "certificates.k8s.io/v1",
        "coordination.k8s.io/v1",
        "events.k8s.io/v1",
        "rbac.authorization.k8s.io/v1",
    }
    assert "apps/v1" not in versions


def test_api_resources_lists_what_is_served_and_no_pods(kubectl: Kubectl) -> None:
    rows = lines(kubectl("api-resources"))
    assert rows[0] == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    assert ["configmaps", "cm", "v1", "true", "ConfigMap"] in rows
    assert ["namespaces", "ns", "v1", "false", "Namespace"] in rows
    assert ["leases", "coordination.k8s.io/v1", "true", "Lease"] in rows
    assert not {"pods", "deployments", "nodes", "services"} & {row[0] for row in rows}


def test_api_resources_can_be_narrowed(kubectl: Kubectl) -> None:
    rows = lines(kubectl("api-resources", "--api-group=rbac.authorization.k8s.io", "--namespaced=true", "--no-headers"))
    assert {row[0] for row in rows} == {"roles", "rolebindings"}
    wide = kubectl("api-resources", "-o", "wide")
    assert re.search(r"^configmaps .* create,delete,deletecollection,get,list,patch,update,watch", wide, re.MULTILINE)


def test_get_prints_a_table(fruit: Kubectl) -> None:
    rows = lines(fruit("get", "cm"))
    assert rows[0] == ["NAME", "DATA", "AGE"]
    assert [row[:2] for row in rows[1:]] == [["apple", "2"], ["pear", "1"]]
    assert re.fullmatch(AGE, rows[1][2])


def test_get_sorts_by_what_it_is_told(fruit: Kubectl) -> None:
    fruit("create", "cm", "aronia")
    rows = lines(fruit("get", "cm", "--sort-by=.metadata.creationTimestamp", "--no-headers"))
    assert {row[0] for row in rows} == {"apple", "pear", "aronia"}
    by_name = lines(fruit("get", "cm", "--sort-by={.metadata.name}", "--no-headers"))
    assert [row[0] for row in by_name] == ["apple", "aronia", "pear"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-o", "name"], "configmap/apple\nconfigmap/pear\n"),
        (["-o", "jsonpath={.items[*].metadata.name}"], "apple pear"),
        (["-o", r'jsonpath={range .items[*]}{.data.colour}{"\n"}{end}'], "red\ngreen\n"),
        (["-o", "go-template={{range .items}}{{.metadata.name}},{{end}}"], "apple,pear,"),
        (["-o", "custom-columns=N:.metadata.name,C:.data.colour"], "N       C\napple   red\npear    green\n"),
        (["-l", "season=autumn", "-o", "name"], "configmap/apple\n"),
        (["-l", "season", "-o", "name"], "configmap/apple\n"),
        (["-l", "season notin (autumn)", "-o", "name"], "configmap/pear\n"),
        (["--field-selector=metadata.name=pear", "-o", "name"], "configmap/pear\n"),
        (["--chunk-size=1", "-o", "name"], "configmap/apple\nconfigmap/pear\n"),
    ],
    ids=[
        "name",
        "jsonpath",
        "jsonpath-range",
        "go-template",
        "custom-columns",
        "label",
        "has",
        "notin",
        "field",
        "chunks",
    ],
)
def test_get_in_every_format(fruit: Kubectl, arguments: list[str], expected: str) -> None:
    assert fruit("get", "configmaps", *arguments) == expected


def test_get_as_json_and_yaml_say_the_same(fruit: Kubectl) -> None:
    from_json = json.loads(fruit("get", "cm", "apple", "-o", "json"))
    assert from_json == yaml.safe_load(fruit("get", "cm", "apple", "-o", "yaml"))
    assert list(from_json) == ["apiVersion", "data", "kind", "metadata"]
    assert from_json["data"] == {"colour": "red", "taste": "sweet"}
    assert "managedFields" not in from_json["metadata"]
    shown = json.loads(fruit("get", "cm", "apple", "-o", "json", "--show-managed-fields"))
    assert {each["manager"] for each in shown["metadata"]["managedFields"]} == {"kubectl-create", "kubectl-label"}
    assert json.loads(fruit("get", "cm", "-o", "json"))["kind"] == "List"


def test_get_with_labels_and_namespaces(fruit: Kubectl) -> None:
    assert re.search(rf"^apple +2 +{AGE} +season=autumn,tree=malus$", fruit("get", "cm", "--show-labels"), re.MULTILINE)
    assert re.search(rf"^apple +2 +{AGE} +autumn$", fruit("get", "cm", "-L", "season"), re.MULTILINE)
    everywhere = fruit.within("")("get", "cm", "-A", "-l", "season=autumn", "--no-headers")
    assert fruit.namespace in {row[0] for row in lines(everywhere)}


def test_get_wide_has_the_wide_columns(kubectl: Kubectl) -> None:
    kubectl("create", "role", "reader", "--verb=get", "--resource=configmaps")
    kubectl("create", "rolebinding", "readers", "--role=reader", "--user=ann", "--group=staff")
    assert lines(kubectl("get", "rolebindings"))[0] == ["NAME", "ROLE", "AGE"]
    rows = lines(kubectl("get", "rolebindings", "-o", "wide"))
    assert rows[0] == ["NAME", "ROLE", "AGE", "USERS", "GROUPS", "SERVICEACCOUNTS"]
    assert (rows[1][:2], rows[1][3:]) == (["readers", "Role/reader"], ["ann", "staff"])


def test_get_of_several_kinds_prints_one_table_each(fruit: Kubectl) -> None:
    fruit("create", "secret", "generic", "seed")
    output = fruit("get", "cm,secrets")
    assert re.search(r"^configmap/apple ", output, re.MULTILINE)
    assert re.search(rf"^secret/seed +Opaque +0 +{AGE}$", output, re.MULTILINE)


def test_get_of_nothing_and_of_the_unknown(kubectl: Kubectl) -> None:
    output = kubectl.run("get", "leases")
    assert (output.code, output.out) == (0, "")
    assert output.err == f"No resources found in {kubectl.namespace} namespace.\n"
    assert kubectl.fails("get", "cm", "nobody") == 'Error from server (NotFound): configmaps "nobody" not found\n'
    assert kubectl.fails("get", "pods") == 'error: the server doesn\'t have a resource type "pods"\n'
    assert kubectl("get", "cm", "nobody", "--ignore-not-found") == ""


def test_get_watch_shows_what_happens(fruit: Kubectl) -> None:
    with fruit.running("get", "cm", "-w", "--no-headers") as watching:
        assert [watching.line().split()[0] for _ in range(2)] == ["apple", "pear"]
        fruit("create", "cm", "quince", "--from-literal=taste=sour")
        assert watching.line().split()[:2] == ["quince", "1"]
        fruit("delete", "cm", "pear")
        assert watching.line().split()[:2] == ["pear", "1"]


def test_get_watch_prints_events_of_any_namespace(fruit: Kubectl) -> None:
    fruit("label", "cm", "--all", f"orchard={fruit.namespace}")
    selector = f"season,orchard={fruit.namespace}"
    everywhere = ["get", "cm", "-A", "-w", "--output-watch-events", "-l", selector, "--no-headers"]
    with fruit.within("").running(*everywhere) as watching:
        assert watching.line().split()[:3] == ["ADDED", fruit.namespace, "apple"]
        fruit("label", "cm", "pear", "season=summer")
        assert watching.line().split()[:3] == ["ADDED", fruit.namespace, "pear"]
        fruit("label", "cm", "pear", "season=spring", "--overwrite")
        assert watching.line().split()[:3] == ["MODIFIED", fruit.namespace, "pear"]
        fruit("label", "cm", "pear", "season-")
        assert watching.line().split()[:3] == ["DELETED", fruit.namespace, "pear"]


def test_get_raw_passes_through(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert json.loads(kubectl("get", "--raw", "/version"))["major"] == "1"
    names = json.loads(kubectl("get", "--raw", f"/clusters/root/api/v1/namespaces/{kubectl.namespace}"))
    assert names["metadata"]["name"] == kubectl.namespace
    assert "apiserver_request_total" in kubectl("get", "--raw", "/metrics")


def test_explain_tells_fields_and_their_types(kubectl: Kubectl) -> None:
    output = kubectl("explain", "configmap")
    assert re.search(r"^KIND: +ConfigMap\nVERSION: +v1$", output, re.MULTILINE)
    assert re.search(r"^  binaryData\t<map\[string\]string>$", output, re.MULTILINE)
    assert re.search(r"^  metadata\t<ObjectMeta>$", output, re.MULTILINE)
    field = kubectl("explain", "roles.rules.verbs")
    assert "GROUP:      rbac.authorization.k8s.io" in field
    assert "FIELD: verbs <[]string>" in field


def test_explain_recursively(kubectl: Kubectl) -> None:
    output = kubectl("explain", "rolebindings", "--recursive")
    assert re.search(r"^  roleRef\t<RoleRef> -required-\n    apiGroup\t<string> -required-$", output, re.MULTILINE)
    assert re.search(r"^  subjects\t<\[\]Subject>\n    apiGroup\t<string>$", output, re.MULTILINE)
    assert "does not exist" in kubectl.fails("explain", "configmap.nonsense")


def test_explain_from_openapi_v2(kubectl: Kubectl) -> None:
    output = kubectl("explain", "secret.type", "--output=plaintext-openapiv2")
    assert re.search(r"^FIELD: +type <string>$", output, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["cm", "apple"], "colour:\n----\nred\n"),
        (["secret", "seed"], "kernel:  4 bytes"),
        (["role", "reader"], "  configmaps  []                 []              [get]"),
        (["rolebinding", "readers"], "  User  ann   "),
        (["sa", "robot"], "Mountable secrets:   <none>"),
        (["quota", "few"], "configmaps  1     5"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_describe(fruit: Kubectl, arguments: list[str], shown: str) -> None:
    fruit("create", "secret", "generic", "seed", "--from-literal=kernel=core")
    fruit("create", "role", "reader", "--verb=get", "--resource=configmaps")
    fruit("create", "rolebinding", "readers", "--role=reader", "--user=ann")
    fruit("create", "sa", "robot")
    fruit("create", "quota", "few", "--hard=configmaps=5")
    if arguments[0] == "quota":
        fruit("delete", "cm", "pear")
        fruit("wait", "quota/few", "--for=jsonpath={.status.used.configmaps}=1", "--timeout=20s")
    output = fruit("describe", *arguments)
    assert re.match(rf"Name: +{arguments[1]}\n", output)
    assert shown in output


def test_describe_of_a_namespace_has_its_quota(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "few", "--hard=secrets=2")
    output = kubectl("describe", "ns", kubectl.namespace)
    assert re.match(rf"Name: +{kubectl.namespace}\nLabels: +kubernetes.io/metadata.name={kubectl.namespace}\n", output)
    assert "Status:       Active" in output
    assert "Resource Quotas\n  Name:     few\n" in output
    assert "No LimitRange resource." in output


def test_events_are_listed(kubectl: Kubectl, api: Api) -> None:
    kubectl("create", "cm", "apple")
    uid = kubectl.get("cm", "apple")["metadata"]["uid"]
    involved = {"kind": "ConfigMap", "namespace": kubectl.namespace, "name": "apple", "apiVersion": "v1", "uid": uid}
    event = {
        "metadata": {"name": "apple.1", "namespace": kubectl.namespace},
        "involvedObject": involved,
        "reason": "Ripened",
        "message": "it is red now",
        "type": "Normal",
        "count": 1,
        "source": {"component": "orchard"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    api.post(f"/api/v1/namespaces/{kubectl.namespace}/events", event).created()
    rows = lines(kubectl("get", "events"))
    assert rows[0] == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert rows[1][1:] == ["Normal", "Ripened", "configmap/apple", "it", "is", "red", "now"]
    assert "Ripened" in kubectl("events", "--for=configmap/apple")
    assert re.search(r"Normal  Ripened  .*  orchard  it is red now", kubectl("describe", "cm", "apple"))
