"""The steps that create and update share: admission, rules and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcp.admission.attributes import Attributes, Operation
from kcp.meta import codec, errors
from kcp.meta.field import FieldPath
from kcp.store.value import body_of, pack_object, stamp

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.request import WriteRequest
    from kcp.registry.resource import Resource
    from kcp.registry.strategy import Strategy
    from kcp.store import Revision

METADATA = FieldPath().child("metadata")


def make_attributes(
    resource: Resource, request: WriteRequest, operation: Operation, obj: Object | None, old: Object | None
) -> Attributes:
    is_namespace = resource.gvr.resource == "namespaces" and not resource.gvr.group
    name = request.name or (((obj or {}).get("metadata") or {}).get("name") or "")
    return Attributes(
        operation=operation,
        cluster=request.cluster,
        gvr=resource.gvr,
        gvk=resource.gvk,
        namespace=name if is_namespace else request.namespace,
        name=name,
        user=request.user,
        obj=obj,
        old_obj=old,
        subresource=request.subresource,
        options=request.options,
        dry_run=request.dry_run,
        warnings=request.warnings,
    )


def strategy_for(resource: Resource, subresource: str) -> Strategy:
    if not subresource:
        return resource.strategy
    strategy = resource.subresources[subresource].strategy
    if strategy is None:
        raise errors.InternalError(f"{resource.gvr} has no rules for {subresource}")
    return strategy


def raise_invalid(resource: Resource, obj: Object, problems: list[FieldError]) -> None:
    if not problems:
        return
    kind = resource.invalid_kind or resource.group_kind
    if resource.custom:  # it may be of the wrong kind, which is then among the problems
        kind = kind._replace(kind=obj.get("kind") or kind.kind)
    raise errors.Invalid(kind, obj["metadata"].get("name", ""), problems)


SENT_DUPLICATES = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)
ADMITTED_DUPLICATES = (
    ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups owner "
    "references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
    "duplicate UID(s) observed: {}"
)


def drop_duplicate_owners(metadata: Object, warnings: list[str], warning: str) -> None:
    """The same reference twice is once too often, but no reason to refuse."""
    references = metadata.get("ownerReferences")
    if not references or len(references) < 2:
        return
    # By their bytes: comparing each with all before it keeps everyone waiting for seconds when there are thousands.
    kept: dict[bytes, Object] = {}
    twice: list[str] = []
    for reference in references:
        identity = codec.dumps(sorted(reference.items()))
        if identity in kept:
            twice.append(reference.get("uid", ""))
        else:
            kept[identity] = reference
    if twice:
        metadata["ownerReferences"] = list(kept.values())
        warnings.append(warning.format(", ".join(twice)))


def is_same(one: object, other: object) -> bool:
    """Whether two JSON values are equal: to Python true is 1, to a client it is not."""
    return one == other and (codec.dumps(one) == codec.dumps(other) or _has_same_booleans(one, other))


def _has_same_booleans(one: Any, other: Any) -> bool:  # noqa: ANN401 - any JSON values that Python finds equal
    match one:
        case dict():
            return all(_has_same_booleans(value, other[name]) for name, value in one.items())
        case list():
            return all(map(_has_same_booleans, one, other))
    return isinstance(one, bool) is isinstance(other, bool)


def encode(resource: Resource, obj: Object) -> bytes:
    """The value that the store keeps."""
    return pack_object(obj if resource.to_storage is None else resource.to_storage(obj))


def stored_body(value: bytes, revision: Revision) -> bytes:
    """What a reader of this value gets, now that it has a revision."""
    return body_of(stamp(value, revision))
