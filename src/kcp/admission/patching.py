"""JSON patches that webhooks and policies answer with; what does not apply is explained as Kubernetes does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcp.meta.codec import dumps, loads
from kcp.meta.errors import StatusError
from kcp.patch.json_patch import apply_json_patch

if TYPE_CHECKING:
    from kcp.meta.codec import Object

_MISSING: Final = "missing value"
_BAD_INDEX: Final = "invalid index referenced"


class PatchFailed(Exception):
    """The patch does not apply; the text is that of Kubernetes' patch library."""


def patch(obj: Object, operations: list[Object]) -> Object:
    """The patched object; the one that was given stays as it is. Raises PatchFailed."""
    document: Any = loads(dumps(obj))
    for operation in operations:
        before = loads(dumps(document))
        try:
            document = apply_json_patch(document, [operation])
        except StatusError:
            raise PatchFailed(explain(before, operation)) from None
    if not isinstance(document, dict):
        raise PatchFailed("json: cannot unmarshal array into Go value of type map[string]interface {}")
    return document


def explain(document: Any, operation: Object) -> str:  # noqa: ANN401 - any JSON document
    """Why an operation does not apply to the document."""
    kind, path = str(operation.get("op")), operation.get("path")
    if kind not in ("add", "remove", "replace", "move", "test", "copy"):
        return f"Unexpected kind: {kind}"
    if kind in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            return f"{kind} operation failed to decode from: missing value"
        parent, key = _find(document, source)
        if parent is None:
            return f"{kind} operation does not apply: doc is missing from path: {source}: {_MISSING}"
        why = _explain_access(parent, key)
        if why:
            return (
                f"error in move for path: '{key}': {why}"
                if kind == "move"
                else f"error in copy for from: '{source}': {why}"
            )
    if not isinstance(path, str):
        return f"{kind} operation failed to decode path: {_MISSING}"
    return _explain_target(document, kind, path)


def _explain_target(document: Any, kind: str, path: str) -> str:  # noqa: ANN401
    parent, key = _find(document, path)
    if parent is None:
        return _NO_PARENT[kind].format(path=path, quoted=f'"{path}"') + f": {_MISSING}"
    if kind == "test":
        why = _explain_index(parent, key) if isinstance(parent, list) else ""
        return f"error in test for path: '{path}': {why}" if why else f"testing value {path} failed: test failed"
    if kind == "replace":
        return f"replace operation does not apply: doc is missing key: {path}: {_MISSING}"
    if kind == "copy":
        return f"error while adding value during copy: {_explain_add(parent, key)}"
    why = _explain_access(parent, key) if kind == "remove" else _explain_add(parent, key)
    return f"error in {kind} for path: '{path}': {why}"


_NO_PARENT: Final = {
    "add": "add operation does not apply: doc is missing path: {quoted}",
    "remove": "remove operation does not apply: doc is missing path: {quoted}",
    "replace": "replace operation does not apply: doc is missing path: {path}",
    "test": "test operation does not apply: is missing path: {path}",
    "move": "move operation does not apply: doc is missing destination path: {path}",
    "copy": "copy operation does not apply: doc is missing destination path: {path}",
}


def _find(document: Any, path: str) -> tuple[Any, str]:  # noqa: ANN401
    """The list or object that holds what the path names, and the last part of the path."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
    if not parts:
        return None, ""
    for part in parts[:-1]:
        if isinstance(document, list):
            document = None if _explain_index(document, part) else document[int(part)]
        else:
            document = document.get(part) if isinstance(document, dict) else None
    return document if isinstance(document, dict | list) else None, parts[-1]


def _explain_access(parent: Any, key: str) -> str:  # noqa: ANN401
    if isinstance(parent, list):
        return _explain_index(parent, key)
    return "" if key in parent else f"Unable to remove nonexistent key: {key}: {_MISSING}"


def _explain_add(parent: Any, key: str) -> str:  # noqa: ANN401
    why = _explain_index(parent, key, extra=1)
    return f"value was not a proper array index: '{key}': {why}" if why.startswith("strconv.") else why


def _explain_index(items: list[Any], key: str, *, extra: int = 0) -> str:
    try:
        index = int(key)
    except ValueError:
        return f'strconv.Atoi: parsing "{key}": invalid syntax'
    length = len(items) + extra
    return "" if -length <= index < length else f"Unable to access invalid index: {index}: {_BAD_INDEX}"
