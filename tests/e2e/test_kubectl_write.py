"""kubectl writes: create, apply in both ways, diff, edit, patch, label, wait and delete."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.kubectl_command import Kubectl

MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: lamp
data:
  colour: red
  watts: "40"
"""


def data_of(kubectl: Kubectl, name: str = "lamp") -> dict[str, str]:
    return dict(kubectl.get("cm", name).get("data") or {})


def test_create_makes_each_kind(kubectl: Kubectl) -> None:
    namespace = f"{kubectl.namespace}-more"
    assert kubectl("create", "ns", namespace) == f"namespace/{namespace} created\n"
    assert kubectl("create", "cm", "c", "--from-literal=k=v") == "configmap/c created\n"
    assert kubectl("create", "secret", "generic", "s", "--from-literal=k=v") == "secret/s created\n"
    assert kubectl("create", "sa", "robot") == "serviceaccount/robot created\n"
    role = kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    assert role == "role.rbac.authorization.k8s.io/reader created\n"
    binding = kubectl(
        "create", "rolebinding", "readers", "--role=reader", f"--serviceaccount={kubectl.namespace}:robot"
    )
    assert binding == "rolebinding.rbac.authorization.k8s.io/readers created\n"
    assert kubectl("create", "quota", "few", "--hard=secrets=3") == "resourcequota/few created\n"
    assert base64.b64decode(kubectl.get("secret", "s")["data"]["k"]) == b"v"
    assert kubectl.get("role", "reader")["rules"][0]["verbs"] == ["get", "list"]


def test_create_refuses_what_is_there_or_invalid(kubectl: Kubectl) -> None:
    kubectl("create", "cm", "lamp")
    assert (
        kubectl.fails("create", "cm", "lamp") == 'error: failed to create configmap: configmaps "lamp" already exists\n'
    )
    complaint = kubectl.fails("create", "-f", "-", stdin=MANIFEST.replace("lamp", "LAMP"))
    assert complaint.startswith(
        'The ConfigMap "LAMP" is invalid: metadata.name: Invalid value: "LAMP": a lowercase RFC'
    )
    strict = kubectl.fails("create", "-f", "-", stdin=MANIFEST + "colour: blue\n")
    assert 'unknown field "colour"' in strict


def test_create_with_a_generated_name(kubectl: Kubectl) -> None:
    named = kubectl("create", "-f", "-", "-o", "name", stdin=MANIFEST.replace("name: lamp", "generateName: lamp-"))
    assert named.startswith("configmap/lamp-")
    assert len(named.strip()) == len("configmap/lamp-") + 5


def test_dry_run_changes_nothing(kubectl: Kubectl) -> None:
    assert kubectl("create", "cm", "x", "--dry-run=server") == "configmap/x created (server dry run)\n"
    assert kubectl("get", "cm", "x", "--ignore-not-found") == ""


def test_apply_client_side(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=MANIFEST) == "configmap/lamp created\n"
    assert kubectl("apply", "-f", "-", stdin=MANIFEST) == "configmap/lamp unchanged\n"
    kubectl("patch", "cm", "lamp", "-p", '{"data":{"by-hand":"yes"}}')
    changed = MANIFEST.replace("red", "blue").replace('  watts: "40"\n', "")
    assert kubectl("apply", "-f", "-", stdin=changed) == "configmap/lamp configured\n"
    assert data_of(kubectl) == {"colour": "blue", "by-hand": "yes"}
    last = json.loads(kubectl("apply", "view-last-applied", "cm", "lamp", "-o", "json"))
    assert last["data"] == {"colour": "blue"}


def test_apply_several_documents_and_prune(kubectl: Kubectl, tmp_path: Path) -> None:
    for name in ("one", "two"):
        text = MANIFEST.replace("name: lamp", f"name: {name}\n  labels: {{set: lamps}}")
        (tmp_path / f"{name}.yaml").write_text(text)
    assert kubectl("apply", "-f", str(tmp_path)) == "configmap/one created\nconfigmap/two created\n"
    (tmp_path / "two.yaml").unlink()
    kept = ["apply", "-f", str(tmp_path), "--prune", "-l", "set=lamps", "--prune-allowlist=core/v1/ConfigMap"]
    assert kubectl(*kept) == "configmap/one unchanged\nconfigmap/two pruned\n"


def test_apply_server_side_owns_fields_and_conflicts(kubectl: Kubectl) -> None:
    assert kubectl("apply", "--server-side", "-f", "-", stdin=MANIFEST) == "configmap/lamp serverside-applied\n"
    other = ["apply", "--server-side", "--field-manager=other", "-f", "-"]
    complaint = kubectl.fails(*other, stdin=MANIFEST.replace("red", "blue"))
    assert complaint.startswith(
        'error: Apply failed with 1 conflict: conflict with "kubectl": .data.colour\n'
        "Please review the fields above--they currently have other managers."
    )
    assert data_of(kubectl)["colour"] == "red"
    kubectl(*other, "--force-conflicts", stdin=MANIFEST.replace("red", "blue"))
    assert data_of(kubectl)["colour"] == "blue"
    managers = yaml.safe_load(kubectl("get", "cm", "lamp", "-o", "yaml", "--show-managed-fields"))["metadata"]
    fields = {each["manager"]: each["fieldsV1"]["f:data"] for each in managers["managedFields"]}
    assert fields["kubectl"] == {"f:watts": {}}
    assert set(fields["other"]) == {"f:colour", "f:watts"}


def test_apply_server_side_takes_over_from_client_side(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    kubectl("apply", "--server-side", "-f", "-", stdin=MANIFEST.replace('  watts: "40"\n', ""))
    assert data_of(kubectl) == {"colour": "red"}


def test_diff_tells_by_its_exit_code(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=MANIFEST)
    same = kubectl.run("diff", "-f", "-", stdin=MANIFEST)
    assert (same.code, same.out) == (0, "")
    changed = kubectl.run("diff", "-f", "-", stdin=MANIFEST.replace("red", "blue"))
    assert changed.code == 1
    assert "-  colour: red\n+  colour: blue\n" in changed.out
    new = kubectl.run("diff", "--server-side", "-f", "-", stdin=MANIFEST.replace("lamp", "torch"))
    assert (new.code, "+  colour: red" in new.out) == (1, True)
    assert data_of(kubectl)["colour"] == "red"
    assert kubectl("get", "cm", "torch", "--ignore-not-found") == ""


def editor(directory: Path, script: str) -> str:
    program = directory / "editor.sh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_edit_through_an_editor(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", stdin=MANIFEST)
    editing = kubectl.having(KUBE_EDITOR=editor(tmp_path, 'sed -i "s/colour: red/colour: green/" "$1"'))
    assert editing("edit", "cm", "lamp") == "configmap/lamp edited\n"
    assert data_of(kubectl)["colour"] == "green"
    assert kubectl.having(KUBE_EDITOR=editor(tmp_path, "true")).run("edit", "cm", "lamp").err == (
        "Edit cancelled, no changes made.\n"
    )


def test_edit_of_something_invalid_is_refused(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", stdin=MANIFEST)
    # The second time the editor sees the complaint as a comment, and leaves all as it is.
    script = f'grep "^# " "$1" > {tmp_path}/seen; sed -i "s/  colour: red/  \\"bad key!\\": red/" "$1"'
    environment = {"KUBE_EDITOR": editor(tmp_path, script), "TMPDIR": str(tmp_path)}
    output = kubectl.having(**environment).run("edit", "cm", "lamp")
    assert output.code == 1
    assert 'error: configmaps "lamp" is invalid' in output.err
    assert '# * data[bad key!]: Invalid value: "bad key!": ' in (tmp_path / "seen").read_text()
    assert data_of(kubectl)["colour"] == "red"


@pytest.mark.parametrize(
    ("kind", "patch", "expected"),
    [
        (
            "json",
            '[{"op":"replace","path":"/data/colour","value":"x"},{"op":"remove","path":"/data/watts"}]',
            {"colour": "x"},
        ),
        ("merge", '{"data":{"colour":"x","watts":null}}', {"colour": "x"}),
        ("strategic", '{"data":{"$patch":"replace","only":"this"}}', {"only": "this"}),
    ],
    ids=["json", "merge", "strategic"],
)
def test_patch_of_each_kind(kubectl: Kubectl, kind: str, patch: str, expected: dict[str, str]) -> None:
    kubectl("create", "-f", "-", stdin=MANIFEST)
    assert kubectl("patch", "cm", "lamp", f"--type={kind}", "-p", patch) == "configmap/lamp patched\n"
    assert data_of(kubectl) == expected
    assert kubectl("patch", "cm", "lamp", "--type=merge", "-p", "{}") == "configmap/lamp patched (no change)\n"


def test_a_json_patch_whose_test_fails_is_refused(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=MANIFEST)
    patch = '[{"op":"test","path":"/data/colour","value":"blue"}]'
    complaint = kubectl.fails("patch", "cm", "lamp", "--type=json", "-p", patch)
    assert complaint == "The request is invalid: the server rejected our request due to an error in our request\n"


def test_label_and_annotate(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=MANIFEST)
    assert kubectl("label", "cm", "lamp", "room=hall") == "configmap/lamp labeled\n"
    assert "already has a value (hall), and --overwrite is false" in kubectl.fails("label", "cm", "lamp", "room=attic")
    kubectl("label", "cm", "lamp", "room=attic", "--overwrite")
    assert kubectl("annotate", "cm", "lamp", "note=broken") == "configmap/lamp annotated\n"
    metadata = kubectl.get("cm", "lamp")["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"room": "attic"}, {"note": "broken"})
    assert kubectl("label", "cm", "lamp", "room-") == "configmap/lamp unlabeled\n"
    assert "labels" not in kubectl.get("cm", "lamp")["metadata"]
    assert "invalid label value" in kubectl.fails("label", "cm", "lamp", "room=not a label")


def test_replace_needs_the_present_version(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=MANIFEST)
    old = json.dumps(kubectl.get("cm", "lamp"))
    assert kubectl("replace", "-f", "-", stdin=MANIFEST.replace("red", "blue")) == "configmap/lamp replaced\n"
    assert "the object has been modified" in kubectl.fails("replace", "-f", "-", stdin=old)


def test_wait_for_a_value_and_for_an_end(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=MANIFEST)
    with kubectl.running("wait", "cm/lamp", "--for=jsonpath={.data.colour}=blue", "--timeout=20s") as waiting:
        kubectl("patch", "cm", "lamp", "-p", '{"data":{"colour":"blue"}}')
        assert waiting.line() == "configmap/lamp condition met"
    with kubectl.running("wait", "cm/lamp", "--for=delete", "--timeout=20s", "-v=6") as waiting:
        while "watch=true" not in waiting.line():  # of an object that is gone before it looks, it says nothing
            pass
        kubectl("delete", "cm", "lamp")
        while (said := waiting.line()) != "configmap/lamp condition met":
            assert "GET" in said or said.startswith("I"), said
    kubectl("create", "-f", "-", stdin=MANIFEST)
    complaint = kubectl.fails("wait", "cm/lamp", "--for=delete", "--timeout=1s")
    assert complaint.endswith("error: timed out waiting for the condition on configmaps/lamp\n")


def test_wait_for_a_namespace_to_go_with_all_that_is_in_it(kubectl: Kubectl) -> None:
    namespace = f"{kubectl.namespace}-going"
    kubectl("create", "ns", namespace)
    kubectl.within(namespace)("create", "-f", "-", stdin=MANIFEST)
    assert kubectl("delete", "ns", namespace, "--timeout=20s") == f'namespace "{namespace}" deleted\n'
    assert "not found" in kubectl.fails("get", "ns", namespace)
    kubectl("create", "ns", namespace)
    assert kubectl.within(namespace)("get", "cm", "lamp", "--ignore-not-found") == ""


def test_delete_in_several_ways(kubectl: Kubectl) -> None:
    for name in ("one", "two", "three", "four"):
        kubectl(
            "create", "-f", "-", stdin=MANIFEST.replace("name: lamp", f"name: {name}\n  labels: {{number: {name}}}")
        )
    assert kubectl("delete", "cm", "one") == 'configmap "one" deleted\n'
    assert kubectl("delete", "cm", "-l", "number=two") == 'configmap "two" deleted\n'
    assert kubectl("delete", "cm", "three", "--now", "--wait=false") == 'configmap "three" deleted\n'
    assert kubectl("delete", "cm", "--all") == 'configmap "four" deleted\n'
    assert kubectl.fails("delete", "cm", "one") == 'Error from server (NotFound): configmaps "one" not found\n'
    assert kubectl.run("delete", "cm", "one", "--ignore-not-found").code == 0


def test_delete_waits_for_finalizers(kubectl: Kubectl) -> None:
    held = MANIFEST.replace("name: lamp", "name: lamp\n  finalizers: [example.com/hold]")
    kubectl("create", "-f", "-", stdin=held)
    with kubectl.running("delete", "cm", "lamp", "--timeout=20s") as deleting:
        assert deleting.line() == 'configmap "lamp" deleted'
        assert "deletionTimestamp" in kubectl.get("cm", "lamp")["metadata"]
    kubectl("patch", "cm", "lamp", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("wait", "cm/lamp", "--for=delete", "--timeout=20s")
    assert kubectl("get", "cm", "lamp", "--ignore-not-found") == ""


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_delete_cascades(kubectl: Kubectl, cascade: str) -> None:
    kubectl("create", "cm", "owner")
    uid = kubectl.get("cm", "owner")["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "ownerReferences": [reference]}}
    kubectl("create", "-f", "-", stdin=json.dumps(owned))
    kubectl("delete", "cm", "owner", f"--cascade={cascade}", "--timeout=20s")
    if cascade == "orphan":
        assert "ownerReferences" not in kubectl.get("cm", "owned")["metadata"]
    else:
        kubectl("wait", "cm/owned", "--for=delete", "--timeout=20s")
        assert kubectl("get", "cm", "owned", "--ignore-not-found") == ""


def test_a_quota_refuses_what_is_too_much(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "one", "--hard=count/configmaps=1")
    kubectl("wait", "quota/one", "--for=jsonpath={.status.used.count/configmaps}=0", "--timeout=20s")
    kubectl("create", "cm", "first")
    complaint = kubectl.fails("create", "cm", "second")
    assert complaint == (
        'error: failed to create configmap: configmaps "second" is forbidden: exceeded quota: one, '
        "requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1\n"
    )
