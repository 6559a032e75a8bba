"""The resources that every logical cluster has from the start."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Final

from kcp.apis import builtin, openapi
from kcp.apis.typed import typed_for
from kcp.meta.gvk import GroupKind
from kcp.patch.field_set import FieldSet
from kcp.patch.merge_schema import MergeSchema
from kcp.registry.crd_rules import check_rules
from kcp.registry.policy_expressions import compile_expression
from kcp.registry.resource import Resource, Subresource
from kcp.registry.strategies.builtin import make_builtin
from kcp.registry.strategies.customresourcedefinitions import CustomResourceDefinitionStrategy
from kcp.registry.strategies.events import to_core_event, to_new_event
from kcp.registry.strategy import Strategy
from kcp.registry.tables import convertor_for
from kcp.store import ResourceKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kcp.meta.gvk import GroupVersionKind, GroupVersionResource

STRATEGIES: Final[dict[tuple[str, str], Strategy]] = {
    **make_builtin(compile_expression),
    ("apiextensions.k8s.io", "customresourcedefinitions"): CustomResourceDefinitionStrategy(check_rules),
}


@cache
def builtin_resources() -> Mapping[GroupVersionResource, Resource]:
    return {entry.gvr: _make(entry) for entry in builtin.RESOURCES}


@cache
def known_kinds() -> frozenset[str]:
    """`apiVersion/kind` of everything built in, to tell a wrong kind from an unknown one."""
    return frozenset(f"{entry.gvk.api_version}/{entry.gvk.kind}" for entry in builtin.RESOURCES)


def _make(entry: builtin.Resource) -> Resource:
    group, resource = entry.gvr.group, entry.gvr.resource
    strategy = STRATEGIES.get((group, resource)) or Strategy()
    convert = group == "events.k8s.io"
    prefix = f'{{"kind":"{entry.gvk.kind}","apiVersion":"{entry.gvk.api_version}",'.encode()
    return Resource(
        gvr=entry.gvr,
        gvk=entry.gvk,
        list_kind=entry.list_kind,
        singular=entry.singular,
        namespaced=entry.namespaced,
        verbs=frozenset(entry.verbs),
        key=ResourceKey("", "events") if convert else ResourceKey(group, resource),
        strategy=strategy,
        decode=typed_for(entry.gvk).decode,
        convertor=convertor_for(group, resource),
        schema_of=partial(merge_schema, entry.gvk),
        short_names=entry.short_names,
        categories=entry.categories,
        subresources={name: _subresource(strategy, sub) for name, sub in entry.subresources.items()},
        reset_fields=reset_fields(strategy),
        from_storage=to_new_event if convert else None,
        to_storage=to_core_event if convert else None,
        can_protobuf=True,
        storage_version_hash=entry.storage_version_hash,
        body_prefix=prefix,
        invalid_kind=GroupKind("", "Event") if convert else None,
    )


def _subresource(strategy: Strategy, entry: builtin.Subresource) -> Subresource:
    rules = strategy.subresource(entry.name)
    return Subresource(
        name=entry.name,
        gvk=entry.gvk,
        verbs=frozenset(entry.verbs),
        strategy=rules,
        reset_fields=None if rules is None else reset_fields(rules),
    )


def reset_fields(strategy: Strategy) -> FieldSet | None:
    paths = getattr(strategy, "reset_fields", ())
    return FieldSet.of(*paths) if paths else None


@cache
def merge_schema(gvk: GroupVersionKind) -> MergeSchema:
    schema = openapi.schema(gvk)
    assert schema is not None, f"{gvk} has no schema"
    return MergeSchema.from_openapi(schema, openapi.definitions())
