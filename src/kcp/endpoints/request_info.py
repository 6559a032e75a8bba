"""What an address and a method ask for, in the words of the API: parsed once per request."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# What may stand behind /api/v1/namespaces/<name>/ and still be the namespace itself.
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})


class RequestInfo(NamedTuple):
    """`is_resource` is false for discovery, health and everything else that is only a path.

    A collection has no name. `verb` is `get` where a `list` or `watch` may be meant: the query decides that later.
    """

    is_resource: bool
    verb: str
    path: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    parts: tuple[str, ...] = ()
    watch_prefix: bool = False


UNKNOWN = RequestInfo(False, "", "")  # of a request that has not been looked at yet


class ClusterPath(NamedTuple):
    """`/clusters/<cluster>/<rest>`; without the prefix the cluster is None."""

    cluster: str | None
    path: str


def split_cluster(path: str) -> ClusterPath:
    """Take the logical cluster off the front. `/clusters` alone is an ordinary path."""
    if not path.startswith("/clusters/"):
        return ClusterPath(None, path)
    cluster, slash, rest = path[10:].partition("/")
    return ClusterPath(cluster, "/" + rest if slash else "/")


@lru_cache(maxsize=4096)
def parse(method: str, path: str) -> RequestInfo:
    """Follows apiserver's RequestInfoFactory."""
    verb = _VERBS.get(method, method.lower())
    parts = tuple(path.strip("/").split("/"))
    plain = RequestInfo(False, method.lower(), path, parts=parts)
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return plain
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    else:
        group, version, rest = parts[1], parts[2], parts[3:]
        if not rest:
            return plain
    watch_prefix = False
    if rest[0] == "watch":
        if len(rest) < 2:
            return plain
        watch_prefix, rest = True, rest[1:]
    return _parse_resource(RequestInfo(True, verb, path, group, version, parts=parts, watch_prefix=watch_prefix), rest)


def _parse_resource(info: RequestInfo, rest: tuple[str, ...]) -> RequestInfo:
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    verb = info.verb
    if info.watch_prefix:
        verb = "watch"
    elif not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return info._replace(
        verb=verb,
        resource=rest[0],
        namespace=namespace,
        name=name,
        subresource=subresource,
        parts=rest,
    )
