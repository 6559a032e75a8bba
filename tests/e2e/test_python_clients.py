"""The Python clients people use: the official one, kr8s and lightkube, each through a small day's work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kr8s
import kr8s.asyncio
import kubernetes.client
import kubernetes.config
import kubernetes.dynamic
import kubernetes.watch
import lightkube
import pytest
from kr8s.asyncio.objects import ConfigMap as AsyncConfigMap
from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Namespace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.e2e.kcp_server import KcpServer


# The libraries' own types are of little use here: every field may be None.
new_client: Any = kubernetes.config.new_client_from_config
watches: Any = kubernetes.watch
dynamic_clients: Any = kubernetes.dynamic


@pytest.fixture
def official(server: KcpServer) -> Iterator[Any]:
    client = new_client(str(server.kubeconfig))
    yield client
    client.close()


@pytest.fixture
def core(official: Any) -> Any:  # noqa: ANN401
    return kubernetes.client.CoreV1Api(official)


def test_the_official_client_does_its_day(core: Any, namespace: str) -> None:  # noqa: ANN401
    metadata = kubernetes.client.V1ObjectMeta(name="lamp", labels={"room": "hall"})
    core.create_namespaced_config_map(namespace, kubernetes.client.V1ConfigMap(metadata=metadata, data={"a": "1"}))
    assert core.read_namespaced_config_map("lamp", namespace).data == {"a": "1"}
    core.patch_namespaced_config_map("lamp", namespace, {"data": {"b": "2"}})
    lamp = core.read_namespaced_config_map("lamp", namespace)
    lamp.data["c"] = "3"
    assert core.replace_namespaced_config_map("lamp", namespace, lamp).data == {"a": "1", "b": "2", "c": "3"}
    with pytest.raises(kubernetes.client.ApiException, match="Conflict") as refused:
        core.replace_namespaced_config_map("lamp", namespace, lamp)
    assert refused.value.status == 409
    found = core.list_namespaced_config_map(namespace, label_selector="room=hall")
    assert [item.metadata.name for item in found.items] == ["lamp"]
    core.delete_namespaced_config_map("lamp", namespace)
    with pytest.raises(kubernetes.client.ApiException, match="NotFound"):
        core.read_namespaced_config_map("lamp", namespace)


def test_the_official_client_pages_and_watches(core: Any, namespace: str) -> None:  # noqa: ANN401
    for number in range(5):
        core.create_namespaced_config_map(namespace, {"metadata": {"name": f"cm-{number}"}})
    first = core.list_namespaced_config_map(namespace, limit=3)
    assert first.metadata.remaining_item_count == 2
    rest = core.list_namespaced_config_map(namespace, limit=3, _continue=first.metadata._continue)
    assert [item.metadata.name for item in first.items + rest.items] == [f"cm-{number}" for number in range(5)]
    watch = watches.Watch()
    core.delete_namespaced_config_map("cm-0", namespace)
    options = {"resource_version": first.metadata.resource_version, "timeout_seconds": 10}
    for event in watch.stream(core.list_namespaced_config_map, namespace, **options):
        assert (event["type"], event["object"].metadata.name) == ("DELETED", "cm-0")
        watch.stop()


def test_the_official_dynamic_client_finds_kinds_and_applies(official: Any, namespace: str) -> None:  # noqa: ANN401
    dynamic = dynamic_clients.DynamicClient(official)
    roles = dynamic.resources.get(api_version="rbac.authorization.k8s.io/v1", kind="Role")
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": rules}
    applied = roles.server_side_apply(body=role, name="r", namespace=namespace, field_manager="test")
    assert applied.metadata.managedFields[0].operation == "Apply"
    assert roles.get(name="r", namespace=namespace).rules[0].verbs == ["get"]


@pytest.fixture
async def kr8s_api(server: KcpServer) -> AsyncIterator[Any]:
    api: Any = await kr8s.asyncio.api(kubeconfig=str(server.kubeconfig))
    yield api
    await api._session.aclose()


async def test_kr8s_does_its_day(kr8s_api: Any, namespace: str) -> None:  # noqa: ANN401

    body = {"metadata": {"name": "lamp", "namespace": namespace}, "data": {"a": "1"}}
    lamp = await AsyncConfigMap(body, api=kr8s_api)
    await lamp.create()
    assert await lamp.exists()
    await lamp.label({"room": "hall"})
    await lamp.patch({"data": {"b": "2"}})
    assert dict(lamp.data) == {"a": "1", "b": "2"}
    found = [each async for each in kr8s_api.get("configmaps", namespace=namespace, label_selector={"room": "hall"})]
    assert [each.name for each in found] == ["lamp"]
    await lamp.annotate({"note": "x"})
    await lamp.refresh()
    assert lamp.annotations["note"] == "x"
    await lamp.delete()
    await lamp.wait("delete", timeout=20)
    assert not await lamp.exists()
    assert (await kr8s_api.version())["major"] == "1"
    assert (await kr8s_api.whoami()) == "kcp-admin"


async def test_kr8s_watches(kr8s_api: Any, namespace: str) -> None:  # noqa: ANN401

    lamp = await AsyncConfigMap({"metadata": {"name": "lamp", "namespace": namespace}}, api=kr8s_api)
    await lamp.create()
    events = []
    async for kind, found in kr8s_api.watch("configmaps", namespace=namespace):
        events.append((kind, found.name))
        if len(events) == 2:
            break
        await lamp.delete()
    assert events == [("ADDED", "lamp"), ("DELETED", "lamp")]


@pytest.fixture
def light(server: KcpServer, namespace: str) -> Iterator[Any]:
    config = lightkube.KubeConfig.from_file(server.kubeconfig)
    with lightkube.Client(config, namespace=namespace, field_manager="test") as client:
        yield client


def test_lightkube_does_its_day(light: Any, namespace: str) -> None:  # noqa: ANN401
    light.create(ConfigMap(metadata=ObjectMeta(name="lamp"), data={"a": "1"}))
    assert light.get(Namespace, namespace).status.phase == "Active"
    lamp = light.get(ConfigMap, "lamp")
    assert lamp.data == {"a": "1"}
    lamp.data["b"] = "2"
    light.replace(lamp)
    with pytest.raises(ApiError, match="the object has been modified"):
        light.replace(lamp)
    light.patch(ConfigMap, "lamp", {"metadata": {"labels": {"room": "hall"}}})
    applied = ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="lamp"), data={"c": "3"})
    assert light.apply(applied, force=True).data == {"a": "1", "b": "2", "c": "3"}
    assert [each.metadata.name for each in light.list(ConfigMap, labels={"room": "hall"}, chunk_size=1)] == ["lamp"]
    light.delete(ConfigMap, "lamp")
    with pytest.raises(ApiError) as missing:
        light.get(ConfigMap, "lamp")
    assert missing.value.status.reason == "NotFound"


def test_lightkube_watches(light: Any) -> None:  # noqa: ANN401
    version = light.create(ConfigMap(metadata=ObjectMeta(name="a"))).metadata.resourceVersion
    light.create(ConfigMap(metadata=ObjectMeta(name="b")))
    events = light.watch(ConfigMap, resource_version=version)
    kind, found = next(iter(events))
    assert (kind, found.metadata.name) == ("ADDED", "b")
