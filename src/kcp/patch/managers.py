"""Managers of fields: the entries of metadata.managedFields, decoded and encoded.

A manager is known by its name, by whether it applies or updates, by the subresource it writes to and, if it updates, by
the version it writes. Each has a set of fields. Must not decide who owns what; `managed_fields` and `apply` do.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kcp.meta.clock import format_time, parse_time
from kcp.meta.codec import Object
from kcp.meta.gotext import marshal_json, quote
from kcp.patch.field_set import FieldSet, Node, sort_node, union

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATE_MANAGERS: Final = 10
_OLD_UPDATES: Final = "ancient-changes"
_CANONICAL_TIME_LENGTH: Final = len("2006-01-02T15:04:05Z")


class ManagerKey(NamedTuple):
    """Who manages. Appliers are the same manager in every version, so they have none here."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @classmethod
    def of(cls, manager: str, operation: str, api_version: str, subresource: str = "") -> "ManagerKey":
        return cls(manager, operation, "" if operation == APPLY else api_version, subresource)

    def encode(self) -> str:
        """The identifier that Kubernetes makes of it. It is never stored, but managers are sorted by it."""
        names = ("manager", "operation", "apiVersion", "subresource")
        fields = [f'"{name}":{marshal_json(value)}' for name, value in zip(names, self, strict=True) if value]
        return "{" + ",".join(fields) + "}"

    def describe(self) -> str:
        """The manager in a conflict: `"kubectl" with subresource "status" using apps/v1`."""
        text = quote(self.manager)
        if self.subresource:
            text += f" with subresource {quote(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class Managed(NamedTuple):
    """What a manager owns. `time` is text, as it is stored; empty if the manager has not changed anything yet."""

    fields: Node
    api_version: str
    time: str = ""


Managers = dict[ManagerKey, Managed]


def decode_managers(entries: Any) -> Managers:  # noqa: ANN401 - whatever a client sent
    """Read metadata.managedFields. Raises ValueError with the message of Kubernetes."""
    managers: Managers = {}
    if entries is None:
        return managers
    if not isinstance(entries, list):
        raise ValueError("managedFields must be a list")
    for position, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise ValueError("managedFields must be a list of objects")
        operation, api_version = entry.get("operation"), entry.get("apiVersion")
        if operation not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        if not isinstance(api_version, str) or not api_version:
            raise ValueError("apiVersion must not be empty")
        _check_fields_type(entry.get("fieldsType"), position)
        key = ManagerKey.of(_text(entry, "manager"), operation, api_version, _text(entry, "subresource"))
        fields = FieldSet.parse(entry.get("fieldsV1")).fields
        managers[key] = Managed(fields, api_version, _canonical_time(entry.get("time")))
    return managers


def encode_managers(managers: Mapping[ManagerKey, Managed]) -> list[Object]:
    """metadata.managedFields, in the order in which Kubernetes keeps it."""
    entries = [_encode(key, managed) for key, managed in managers.items()]
    if len(entries) > 1:
        entries.sort(key=_entry_order)
    return entries


def cap_update_managers(managers: Managers) -> None:
    """Throw the oldest updates together, one bucket for each version, so that the number of managers stays bounded."""
    if len(managers) <= MAX_UPDATE_MANAGERS:
        return
    updaters = [key for key in managers if key.operation == UPDATE]
    excess = len(updaters) - MAX_UPDATE_MANAGERS
    if excess <= 0:
        return
    updaters.sort(key=lambda key: (managers[key].time, key.encode()))
    first_of_version: dict[str, ManagerKey] = {}
    for key in updaters:
        managed = managers[key]
        first = first_of_version.setdefault(managed.api_version, key)
        if first is key:
            continue
        bucket = ManagerKey.of(_OLD_UPDATES, UPDATE, managed.api_version)
        if bucket not in managers:
            managers[bucket] = managers.pop(first)
        fields = union(managed.fields, managers[bucket].fields)
        del managers[key]
        managers[bucket] = managed._replace(fields=fields)
        excess -= 1
        if excess <= 0:
            return


def describe_conflicts(conflicts: Mapping[ManagerKey, Node]) -> tuple[str, list[tuple[str, str]]]:
    """The message of a conflict and its causes, each a manager and a field."""
    causes: list[tuple[str, str]] = []
    lines: list[str] = []
    for key in sorted(conflicts, key=ManagerKey.encode):
        paths = FieldSet(conflicts[key]).describe()
        causes += [(f"conflict with {key.describe()}", path) for path in paths]
        lines += [f"conflicts with {key.describe()}:", *(f"- {path}" for path in paths)]
    if len(causes) == 1:
        ((manager, path),) = causes
        return f"Apply failed with 1 conflict: {manager}: {path}", causes
    return f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines), causes


def _encode(key: ManagerKey, managed: Managed) -> Object:
    entry: Object = {"manager": key.manager} if key.manager else {}
    entry["operation"] = key.operation
    entry["apiVersion"] = managed.api_version
    if managed.time:
        entry["time"] = managed.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = sort_node(managed.fields)
    if key.subresource:
        entry["subresource"] = key.subresource
    return entry


def _entry_order(entry: Object) -> tuple[str, ...]:
    # Times are all of one form, so that they sort as text; a manager without one comes first.
    return (
        entry["operation"],
        entry.get("time", ""),
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )


def _check_fields_type(fields_type: Any, position: int) -> None:  # noqa: ANN401
    if fields_type == "FieldsV1":
        return
    if not fields_type:
        raise ValueError(f"missing fieldsType in managed fields entry {position}")
    raise ValueError(f"invalid fieldsType {quote(str(fields_type))} in managed fields entry {position}")


def _text(entry: Object, name: str) -> str:
    value = entry.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string")
    return value


def _canonical_time(time: Any) -> str:  # noqa: ANN401
    if time is None:
        return ""
    if not isinstance(time, str):
        raise ValueError("time must be a string")
    if len(time) == _CANONICAL_TIME_LENGTH and time.endswith("Z"):
        return time
    return format_time(parse_time(time))


def is_reset(entries: Any) -> bool:  # noqa: ANN401
    """Whether a client asks to forget all managers: by an empty list, or by one entry with nothing in it."""
    if not isinstance(entries, list) or len(entries) > 1:
        return False
    return all(
        isinstance(entry, dict) and not any(value is not None and value != "" for value in entry.values())
        for entry in entries
    )


def same_but_times(left: Iterable[Object], right: Iterable[Object]) -> bool:
    """Whether two lists of entries differ in their times at most."""
    return [_timeless(entry) for entry in left] == [_timeless(entry) for entry in right]


def _timeless(entry: Object) -> Object:
    return {name: value for name, value in entry.items() if name != "time"}
