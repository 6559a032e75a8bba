"""The messages of etcd's v3 gRPC API that this room speaks, written as one table and made into classes at import.

The only module that imports protobuf. It knows shapes and field numbers (facts of etcd's `rpc.proto` and `kv.proto`),
not what a call means: no connection, no retry and no layout of keys belongs here.

Each class below is a row of the table. `@message` reads its annotations and field numbers and puts protobuf's own class
in its place, so a type checker sees the row and the program runs the C implementation:

    kv = KeyValue(key=b"a", value=b"1")        any subset of the fields, by name; the others are zero or empty
    kv.SerializeToString()                     b"\\n\\x01a*\\x011"
    TxnRequest(compare=[Compare(key=b"a")])    messages nest and repeat

Fields that nobody here sets or reads are left out: protobuf skips what it does not know.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import DecodeError as DecodeError  # what FromString raises

if TYPE_CHECKING:
    from typing import Self

# Not protobuf's default pool: another etcd library in the same process may have registered the same names there.
_POOL = descriptor_pool.DescriptorPool()

# Enums are declared as int: on the wire a small int64 and an enum are the same.
_SCALARS = {
    bytes: FieldDescriptorProto.TYPE_BYTES,
    str: FieldDescriptorProto.TYPE_STRING,
    bool: FieldDescriptorProto.TYPE_BOOL,
    int: FieldDescriptorProto.TYPE_INT64,
}


class _Field(NamedTuple):
    number: int
    oneof: str
    unsigned: bool


def field(number: int, *, oneof: str = "", unsigned: bool = False) -> Any:  # noqa: ANN401 - a default, whatever the type
    """The number of a field, the oneof it belongs to, and whether its int is a uint64 instead of an int64."""
    return _Field(number, oneof, unsigned)


class Message:
    """What every class of this module can do, as the type checker sees it."""

    if TYPE_CHECKING:

        def SerializeToString(self) -> bytes: ...
        @classmethod
        def FromString(cls, encoded: bytes) -> Self: ...
        def HasField(self, field_name: str) -> bool: ...
        def WhichOneof(self, oneof_group: str) -> str | None: ...
        def ByteSize(self) -> int: ...


MessageT = TypeVar("MessageT", bound=Message)


@dataclass_transform(kw_only_default=True)
def message(row: type[MessageT]) -> type[MessageT]:
    """Make protobuf's class for a row of the table."""
    file = FileDescriptorProto(name=f"{row.__name__}.proto", package="etcdserverpb", syntax="proto3")
    descriptor = file.message_type.add(name=row.__name__)
    for name, annotation in get_type_hints(row).items():
        _add_field(file, descriptor, name, annotation=annotation, spec=vars(row)[name])
    _POOL.AddSerializedFile(file.SerializeToString())
    made: Any = message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{file.package}.{row.__name__}"))
    return made  # type: ignore[no-any-return]


def _add_field(
    file: FileDescriptorProto, descriptor: DescriptorProto, name: str, *, annotation: type, spec: _Field
) -> None:
    proto = descriptor.field.add(name=name, number=spec.number, label=FieldDescriptorProto.LABEL_OPTIONAL)
    if get_origin(annotation) is MutableSequence:
        proto.label = FieldDescriptorProto.LABEL_REPEATED
        (annotation,) = get_args(annotation)
    if annotation in _SCALARS:
        proto.type = FieldDescriptorProto.TYPE_UINT64 if spec.unsigned else _SCALARS[annotation]
    else:
        referred: Any = annotation  # an earlier row, which by now is protobuf's class
        proto.type = FieldDescriptorProto.TYPE_MESSAGE
        proto.type_name = f".{referred.DESCRIPTOR.full_name}"
        if referred.DESCRIPTOR.file.name not in file.dependency:
            file.dependency.append(referred.DESCRIPTOR.file.name)
    if spec.oneof:
        groups = [group.name for group in descriptor.oneof_decl]
        if spec.oneof not in groups:
            groups.append(spec.oneof)
            descriptor.oneof_decl.add(name=spec.oneof)
        proto.oneof_index = groups.index(spec.oneof)


class EventType(IntEnum):
    PUT = 0
    DELETE = 1


class CompareTarget(IntEnum):
    VERSION = 0
    CREATE = 1
    MOD = 2
    VALUE = 3


@message
class ResponseHeader(Message):
    cluster_id: int = field(1, unsigned=True)
    member_id: int = field(2, unsigned=True)
    revision: int = field(3)
    raft_term: int = field(4, unsigned=True)


@message
class KeyValue(Message):
    key: bytes = field(1)
    create_revision: int = field(2)
    mod_revision: int = field(3)
    version: int = field(4)
    value: bytes = field(5)
    lease: int = field(6)


@message
class Event(Message):
    type: int = field(1)  # EventType
    kv: KeyValue = field(2)
    prev_kv: KeyValue = field(3)


@message
class RangeRequest(Message):
    key: bytes = field(1)
    range_end: bytes = field(2)
    limit: int = field(3)
    revision: int = field(4)
    serializable: bool = field(7)
    keys_only: bool = field(8)
    count_only: bool = field(9)


@message
class RangeResponse(Message):
    header: ResponseHeader = field(1)
    kvs: MutableSequence[KeyValue] = field(2)
    more: bool = field(3)
    count: int = field(4)


@message
class PutRequest(Message):
    key: bytes = field(1)
    value: bytes = field(2)
    lease: int = field(3)
    prev_kv: bool = field(4)


@message
class PutResponse(Message):
    header: ResponseHeader = field(1)
    prev_kv: KeyValue = field(2)


@message
class DeleteRangeRequest(Message):
    key: bytes = field(1)
    range_end: bytes = field(2)
    prev_kv: bool = field(3)


@message
class DeleteRangeResponse(Message):
    header: ResponseHeader = field(1)
    deleted: int = field(2)
    prev_kvs: MutableSequence[KeyValue] = field(3)


@message
class Compare(Message):
    target: int = field(2)  # CompareTarget
    key: bytes = field(3)
    version: int = field(4, oneof="target_union")
    create_revision: int = field(5, oneof="target_union")
    mod_revision: int = field(6, oneof="target_union")
    value: bytes = field(7, oneof="target_union")
    range_end: bytes = field(64)


@message
class RequestOp(Message):
    request_range: RangeRequest = field(1, oneof="request")
    request_put: PutRequest = field(2, oneof="request")
    request_delete_range: DeleteRangeRequest = field(3, oneof="request")


@message
class ResponseOp(Message):
    response_range: RangeResponse = field(1, oneof="response")
    response_put: PutResponse = field(2, oneof="response")
    response_delete_range: DeleteRangeResponse = field(3, oneof="response")


@message
class TxnRequest(Message):
    compare: MutableSequence[Compare] = field(1)
    success: MutableSequence[RequestOp] = field(2)
    failure: MutableSequence[RequestOp] = field(3)


@message
class TxnResponse(Message):
    header: ResponseHeader = field(1)
    succeeded: bool = field(2)
    responses: MutableSequence[ResponseOp] = field(3)


@message
class CompactionRequest(Message):
    revision: int = field(1)
    physical: bool = field(2)


@message
class CompactionResponse(Message):
    header: ResponseHeader = field(1)


@message
class WatchCreateRequest(Message):
    key: bytes = field(1)
    range_end: bytes = field(2)
    start_revision: int = field(3)
    progress_notify: bool = field(4)
    prev_kv: bool = field(6)
    fragment: bool = field(8)


@message
class WatchProgressRequest(Message):
    pass


@message
class WatchRequest(Message):
    create_request: WatchCreateRequest = field(1, oneof="request_union")
    progress_request: WatchProgressRequest = field(3, oneof="request_union")


@message
class WatchResponse(Message):
    header: ResponseHeader = field(1)
    watch_id: int = field(2)
    created: bool = field(3)
    canceled: bool = field(4)
    compact_revision: int = field(5)
    cancel_reason: str = field(6)
    fragment: bool = field(7)
    events: MutableSequence[Event] = field(11)


@message
class StatusRequest(Message):
    pass


@message
class StatusResponse(Message):
    header: ResponseHeader = field(1)
    version: str = field(2)
    dbSize: int = field(3)
    leader: int = field(4, unsigned=True)
    raftIndex: int = field(5, unsigned=True)
    raftTerm: int = field(6, unsigned=True)
    raftAppliedIndex: int = field(7, unsigned=True)
    errors: MutableSequence[str] = field(8)
    dbSizeInUse: int = field(9)
    isLearner: bool = field(10)


@message
class Member(Message):
    ID: int = field(1, unsigned=True)
    name: str = field(2)
    peerURLs: MutableSequence[str] = field(3)
    clientURLs: MutableSequence[str] = field(4)
    isLearner: bool = field(5)


@message
class MemberListRequest(Message):
    linearizable: bool = field(1)


@message
class MemberListResponse(Message):
    header: ResponseHeader = field(1)
    members: MutableSequence[Member] = field(2)


@message
class AuthenticateRequest(Message):
    name: str = field(1)
    password: str = field(2)


@message
class AuthenticateResponse(Message):
    header: ResponseHeader = field(1)
    token: str = field(2)
