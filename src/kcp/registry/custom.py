"""Resources made of CustomResourceDefinitions."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from kcp.apis.system_crds import system_crds
from kcp.meta import codec
from kcp.meta.gvk import GroupVersionKind, GroupVersionResource
from kcp.patch.field_set import FieldSet
from kcp.patch.merge_schema import MergeSchema
from kcp.registry.crd_rules import make_schema_rules
from kcp.registry.resource import Resource, ScaleAccess, Subresource
from kcp.registry.strategies.crd_versions import deprecation_warning, storage_version, storage_version_hash
from kcp.registry.strategies.customresources import make_strategy
from kcp.registry.tables import custom_convertor
from kcp.store import ResourceKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kcp.meta.codec import Object
    from kcp.registry.resource import Decode
    from kcp.registry.strategies.customresources import CustomResourceStrategy

VERBS: Final = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
_BELOW: Final = frozenset({"get", "patch", "update"})
_SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_MAYBE_WHOLE_FLOAT: Final = re.compile(rb"\.0[],}]|[0-9]e[+-]?[0-9]")
_WHOLE_FROM, _WHOLE_BELOW = -(2.0**63), 2.0**64  # what the codec writes without a fraction or an exponent
_ESTABLISHED: Final = "Established"


def compile_definition(crd: Object) -> dict[str, Resource]:
    """What an established definition serves, by version; nothing if its names are not accepted."""
    if not _is_established(crd):
        return {}
    served: dict[str, Resource] = {}
    for version in crd["spec"]["versions"]:
        if version.get("served"):
            served[version["name"]] = _make(crd, version, served)
    return served


def _is_established(crd: Object) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] == _ESTABLISHED and each["status"] == "True" for each in conditions)


@cache
def system_resources() -> Mapping[GroupVersionResource, Resource]:
    """This project's own kinds."""
    made = [_make(crd, version, {}) for crd in system_crds() for version in crd["spec"]["versions"]]
    return {resource.gvr: resource for resource in made}


def _make(crd: Object, version: Object, siblings: Mapping[str, Resource]) -> Resource:
    spec = crd["spec"]
    group, name = spec["group"], version["name"]
    names = (crd.get("status") or {}).get("acceptedNames") or spec["names"]
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    strategy = make_strategy(crd, name, make_schema_rules(schema) if schema else None)
    gvk = GroupVersionKind(group, name, names["kind"])
    stored_as = storage_version(crd)
    return Resource(
        gvr=GroupVersionResource(group, name, names["plural"]),
        gvk=gvk,
        list_kind=names.get("listKind") or f"{names['kind']}List",
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        verbs=VERBS,
        key=ResourceKey(group, names["plural"]),
        strategy=strategy,
        decode=_with_whole_numbers(strategy.decode),
        convertor=custom_convertor(version.get("additionalPrinterColumns") or []),
        schema_of=_schema_of(strategy),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=_subresources(gvk, version, strategy),
        reset_fields=_reset_fields(strategy),
        from_storage=strategy.convert if needs_conversion(crd) else None,
        to_storage=None if stored_as == name else _converter(group, stored_as),
        convert=_make_convert(group, siblings),
        custom=True,
        storage_version_hash=storage_version_hash(crd),
        deprecation=deprecation_warning(crd, name),
    )


def needs_conversion(crd: Object) -> bool:
    """With one version, what is stored is what is served."""
    return len(crd["spec"]["versions"]) > 1


def _converter(group: str, version: str) -> Callable[[Object], Object]:
    api_version = f"{group}/{version}"
    return lambda obj: {**obj, "apiVersion": api_version}


def _make_convert(
    group: str, siblings: Mapping[str, Resource]
) -> Callable[[Object, str], tuple[Object, MergeSchema] | None]:
    """How managers that wrote in other versions are understood; of a version that is gone nothing is."""

    def convert(obj: Object, api_version: str) -> tuple[Object, MergeSchema] | None:
        found = siblings.get(api_version.rpartition("/")[2])
        if found is None or not api_version.startswith(f"{group}/"):
            return None
        return {**obj, "apiVersion": api_version}, found.schema_of()

    return convert


def _with_whole_numbers(decode: Decode) -> Decode:
    """Go writes a number without a fraction as an integer, however it was sent: 1e3 is 1000."""

    def decode_whole(obj: Object, unknown: list[str] | None = None) -> Object:
        if _MAYBE_WHOLE_FLOAT.search(codec.dumps(obj)):
            obj = _whole(obj)
        return decode(obj, unknown)

    return decode_whole


def _whole(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    match value:
        case dict():
            return {name: _whole(item) for name, item in value.items()}
        case list():
            return [_whole(item) for item in value]
        case float() if value.is_integer() and _WHOLE_FROM <= value < _WHOLE_BELOW:
            return int(value)
    return value


def _schema_of(strategy: CustomResourceStrategy) -> Callable[[], MergeSchema]:
    @lru_cache(maxsize=1)
    def build() -> MergeSchema:
        return MergeSchema.from_openapi(strategy.schema, {}, custom=True)

    return build


def _reset_fields(strategy: object) -> FieldSet | None:
    paths = getattr(strategy, "reset_fields", ())
    return FieldSet.of(*paths) if paths else None


def _subresources(gvk: GroupVersionKind, version: Object, strategy: CustomResourceStrategy) -> dict[str, Subresource]:
    asked = version.get("subresources") or {}
    found = {}
    if asked.get("status") is not None:
        rules = strategy.subresource("status")
        found["status"] = Subresource("status", gvk, _BELOW, rules, _reset_fields(rules))
    if asked.get("scale") is not None:
        access = ScaleAccess(strategy.scale_of, strategy.apply_scale)
        found["scale"] = Subresource("scale", _SCALE, _BELOW, scale=access)
    return found
