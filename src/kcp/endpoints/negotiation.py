"""Which format an answer takes: the client's Accept header against what an endpoint can give."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kcp.meta import errors

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
OBJECT_TYPES = (JSON, YAML, PROTOBUF)
WATCH_TYPES = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
_CONVERT = frozenset({"as", "g", "v"})
TRANSFORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


class MediaType(NamedTuple):
    """The chosen format. `transform` is what the object is shown as, empty for itself."""

    name: str  # one of the media types above
    transform: str = ""
    transform_version: str = ""  # v1 or v1beta1


class Clause(NamedTuple):
    type: str
    subtype: str
    parameters: dict[str, str]
    quality: float


PLAIN_JSON = MediaType(JSON)


@lru_cache(maxsize=512)
def negotiate(accept: str, *, collection: bool = False, custom: bool = False, transforms: bool = True) -> MediaType:
    """Raises NotAcceptable. Built-in kinds are first met by a router with words of its own, as in kube-apiserver."""
    if not accept:
        return PLAIN_JSON
    clauses = parse_accept(accept)
    if not custom and not _router_accepts(accept):
        available = OBJECT_TYPES + (WATCH_TYPES if collection else ())
        raise errors.NotAcceptable(
            f"406: Not Acceptable\n\nAvailable representations: {', '.join(available)}", details={}
        )
    for clause in clauses:
        for offered in OBJECT_TYPES:
            kind, _, subtype = offered.partition("/")
            if clause.type not in (kind, "*") or clause.subtype not in (subtype, "*"):
                continue
            chosen = _with_parameters(offered, clause.parameters, transforms=transforms)
            if chosen is not None:
                return chosen
    raise not_acceptable()


def not_acceptable() -> errors.NotAcceptable:
    return errors.NotAcceptable(f"only the following media types are accepted: {', '.join(OBJECT_TYPES)}")


def _router_accepts(accept: str) -> bool:
    for part in accept.split(","):
        name = part.partition(";")[0].strip()
        if name == "*/*" or name in OBJECT_TYPES:
            return True
    return False


def _with_parameters(offered: str, parameters: dict[str, str], *, transforms: bool) -> MediaType | None:
    stream = parameters.get("stream", "")
    if stream and (stream != "watch" or offered == YAML):
        return None
    if _CONVERT.isdisjoint(parameters):
        return MediaType(offered)
    wanted = parameters.get("as", "")
    group, version = parameters.get("g", ""), parameters.get("v", "")
    if not transforms or wanted not in TRANSFORMS or group != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    if wanted == "Table" and offered == PROTOBUF:
        return None
    return MediaType(offered, wanted, version)


@lru_cache(maxsize=512)
def parse_accept(accept: str) -> tuple[Clause, ...]:
    """Clauses in the order of preference: by quality, then the more specific first, then as written."""
    clauses = []
    for part in accept.split(","):
        pieces = [piece.strip() for piece in part.split(";")]
        kind, _, subtype = pieces[0].partition("/")
        if not subtype:
            if kind != "*":
                continue
            subtype = "*"
        parameters: dict[str, str] = {}
        quality = 1.0
        for piece in pieces[1:]:
            name, _, value = piece.partition("=")
            if name.strip() == "q":
                quality = _quality(value)
            else:
                parameters[name.strip()] = value.strip()
        clauses.append(Clause(kind.strip(), subtype.strip(), parameters, quality))
    clauses.sort(key=lambda clause: (-clause.quality, clause.type == "*", clause.subtype == "*"))
    return tuple(clauses)


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


@lru_cache(maxsize=256)
def parse_content_type(header: str) -> str:
    """The media type of a body without its parameters; empty for none."""
    return header.partition(";")[0].strip().lower()
