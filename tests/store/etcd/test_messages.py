"""The message table against itself, against known bytes, and against what a real etcd sends."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.json_format import MessageToDict

from kcp.store.etcd import messages
from kcp.store.etcd.channel import Channel, Credentials, Method
from kcp.store.etcd.client import make_delete, make_get, make_put, make_revision_compare
from kcp.store.etcd.options import EtcdOptions, parse_endpoint

if TYPE_CHECKING:
    from tests.store.etcd.etcd_server import EtcdServer


def make_txn(prefix: bytes) -> messages.TxnRequest:
    return messages.TxnRequest(
        compare=[make_revision_compare(prefix + b"a", 0)],
        success=[make_put(prefix + b"a", b"1"), make_get(prefix, prefix + b"\xff"), make_delete(prefix + b"b")],
        failure=[make_get(prefix + b"a")],
    )


def test_messages_survive_a_round_trip() -> None:
    txn = make_txn(b"/p/")
    assert messages.TxnRequest.FromString(txn.SerializeToString()) == txn
    assert txn.success[0].WhichOneof("request") == "request_put"
    assert txn.success[0].request_put.value == b"1"


@pytest.mark.parametrize(
    ("message", "encoded"),
    [
        pytest.param(messages.KeyValue(key=b"a", value=b"1"), "0a0161 2a0131", id="bytes"),
        pytest.param(
            messages.Compare(key=b"a", target=2, mod_revision=0), "1002 1a0161 3000", id="zero-in-a-oneof-is-sent"
        ),
        pytest.param(messages.Compare(range_end=b"z"), "8204017a", id="field-64"),
        pytest.param(messages.ResponseHeader(member_id=2**64 - 1), "10ffffffffffffffffff01", id="uint64"),
        pytest.param(messages.RangeRequest(revision=-1), "20ffffffffffffffffff01", id="negative-int64"),
        pytest.param(
            messages.WatchRequest(progress_request=messages.WatchProgressRequest()),
            "1a00",
            id="empty-message-in-a-oneof",
        ),
        pytest.param(
            messages.WatchResponse(fragment=True, events=[messages.Event(type=messages.EventType.DELETE)]),
            "3801 5a020801",
            id="repeated",
        ),
    ],
)
def test_known_bytes(message: messages.Message, encoded: str) -> None:
    assert message.SerializeToString() == bytes.fromhex(encoded)


def test_fields_of_a_newer_etcd_are_skipped() -> None:
    newer = messages.StatusResponse(version="3.6.0").SerializeToString() + bytes.fromhex("5a03332e36")
    assert messages.StatusResponse.FromString(newer).version == "3.6.0"


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(ValueError, match="no_such_field"):
        messages.KeyValue(no_such_field=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("grpc_path", "http_path", "response_type"),
    [
        pytest.param("KV/Txn", "kv/txn", messages.TxnResponse, id="txn"),
        pytest.param("KV/Range", "kv/range", messages.RangeResponse, id="range"),
        pytest.param("Maintenance/Status", "maintenance/status", messages.StatusResponse, id="status"),
        pytest.param("Cluster/MemberList", "cluster/member/list", messages.MemberListResponse, id="members"),
    ],
)
async def test_etcd_means_the_same_by_its_bytes_as_by_its_json(
    etcd: EtcdServer,
    etcd_prefix: bytes,
    grpc_path: str,
    http_path: str,
    response_type: type[messages.Message],
) -> None:
    """etcd serves the same API as JSON with field names: what we decode by number must be what it calls by name."""
    requests: dict[str, messages.Message] = {
        "KV/Txn": make_txn(etcd_prefix),
        "KV/Range": messages.RangeRequest(key=etcd_prefix, range_end=b"\0", limit=1),
    }
    request = requests.get(grpc_path, messages.StatusRequest())
    await send_bytes(etcd, "KV/Txn", make_txn(etcd_prefix).SerializeToString())  # so that later compares fail alike

    raw = await send_bytes(etcd, grpc_path, request.SerializeToString())
    decoded: Any = response_type.FromString(raw)

    assert decoded.SerializeToString() == raw
    assert decoded.header.member_id > 0
    by_number = MessageToDict(decoded, preserving_proto_field_name=True)
    by_name = post_json(etcd, http_path, request)
    known = {name: field for name, field in by_name.items() if name in by_number}  # a newer etcd may say more
    assert without_clocks(by_number) == without_clocks(known)


async def send_bytes(etcd: EtcdServer, path: str, request: bytes) -> bytes:
    options = EtcdOptions((etcd.endpoint,))
    channel = Channel(parse_endpoint(etcd.endpoint, tls=False), options, Credentials(options))
    await channel.connect(10)
    try:
        method: Method[Any, Any] = Method(f"/etcdserverpb.{path}", Octets, Octets)
        octets: Octets = await channel.send(method, Octets(request), timeout=10)
        return octets.octets
    finally:
        await channel.aclose()


class Octets:
    """A message that is not looked into."""

    def __init__(self, octets: bytes) -> None:
        self.octets = octets

    def SerializeToString(self) -> bytes:
        return self.octets

    @classmethod
    def FromString(cls, octets: bytes) -> Octets:
        return cls(octets)


def post_json(etcd: EtcdServer, path: str, message: Any) -> dict[str, Any]:  # noqa: ANN401 - protobuf's class
    body = MessageToDict(message)
    for compare in body.get("compare", []):
        compare["target"] = "MOD"  # etcd's JSON wants the enum's name, and for us it is a number
    request = urllib.request.Request(f"{etcd.endpoint}/v3/{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as response:
        fields: dict[str, Any] = json.load(response)
        return fields


def without_clocks(fields: Any) -> Any:  # noqa: ANN401 - JSON
    """Leaves out what two calls in a row need not agree on."""
    if isinstance(fields, dict):
        moving = ("raftIndex", "raftAppliedIndex", "dbSize", "dbSizeInUse", "revision")
        return {name: without_clocks(value) for name, value in fields.items() if name not in moving}
    return [without_clocks(value) for value in fields] if isinstance(fields, list) else fields
