"""Discovery: which groups, versions and resources a logical cluster serves, in the old form and in the aggregated."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kcp.endpoints import negotiation
from kcp.endpoints.respond import Response, encode, not_found_page, wants_pretty
from kcp.meta import codec
from kcp.meta.gvk import version_rank
from kcp.registry.strategies.customresources import CustomResourceStrategy

if TYPE_CHECKING:
    from kcp.endpoints.request import Request
    from kcp.meta.codec import Object
    from kcp.registry.catalogue import Catalogue
    from kcp.registry.resource import Resource, Subresource

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
MAX_DOCUMENTS: Final = 256
CORE: Final = "v1"


class Groups(NamedTuple):
    """All a cluster serves: group to version to resources, in the order discovery shows them."""

    groups: dict[str, dict[str, list[Resource]]]
    fingerprint: str


class Discovery:
    """Documents are made when asked for, and kept by the content they are made of: clusters with the same
    definitions share them."""

    def __init__(self, catalogue: Catalogue, address: str) -> None:
        self._catalogue = catalogue
        self._address = address
        self._groups: OrderedDict[Any, Groups] = OrderedDict()
        self._documents: OrderedDict[tuple[str, str], tuple[bytes, str]] = OrderedDict()

    def groups(self, cluster: str) -> Groups:
        revision = self._catalogue.custom_revision(cluster)
        key = revision and (cluster, revision)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = self._collect(cluster)
            if len(self._groups) > MAX_DOCUMENTS:
                self._groups.popitem(last=False)
        return found

    def _collect(self, cluster: str) -> Groups:
        groups: dict[str, dict[str, list[Resource]]] = {}
        for resource in self._catalogue.builtin():
            groups.setdefault(resource.gvr.group, {}).setdefault(resource.gvr.version, []).append(resource)
        custom: dict[str, dict[str, list[Resource]]] = {}
        for versions in self._catalogue.custom(cluster):
            for version, resource in versions.items():
                custom.setdefault(resource.gvr.group, {}).setdefault(version, []).append(resource)
        for group in sorted(custom):
            into = groups.setdefault(group, {})
            for version in sorted(custom[group], key=version_rank):
                into.setdefault(version, []).extend(
                    sorted(custom[group][version], key=lambda found: found.gvr.resource)
                )
        listing = codec.dumps(
            [
                [name, version, [_content(each) for each in resources]]
                for name, versions in groups.items()
                for version, resources in versions.items()
            ]
        )
        return Groups(groups, hashlib.sha256(listing).hexdigest().upper())

    def respond(self, request: Request) -> Response | None:
        """The answer to `/api`, `/apis` and what is below, or None for other paths."""
        parts = request.info.path.strip("/").split("/")
        if parts[0] == "api":
            return self._core(request, parts)
        if parts[0] == "apis":
            return self._named(request, parts)
        return None

    def _core(self, request: Request, parts: list[str]) -> Response | None:
        groups = self.groups(request.cluster)
        if len(parts) == 1:
            if (version := wants_aggregated(request)) is not None:
                return self._aggregated(request, groups, version, core=True)
            document = {
                "kind": "APIVersions",
                "versions": [CORE],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": self._address}],
            }
            return _document(request, document)
        if len(parts) == 2 and parts[1] in groups.groups[""]:
            return _document(request, resource_list("", parts[1], groups.groups[""][parts[1]]))
        return None

    def _named(self, request: Request, parts: list[str]) -> Response | None:
        groups = self.groups(request.cluster)
        if len(parts) == 1:
            if (version := wants_aggregated(request)) is not None:
                return self._aggregated(request, groups, version, core=False)
            listed = [_group(name, versions) for name, versions in groups.groups.items() if name]
            return _document(request, {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})
        versions = groups.groups.get(parts[1]) if parts[1] else None
        if versions is None:
            return not_found_page()
        if len(parts) == 2:
            return _document(request, {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1], versions)})
        if len(parts) == 3:
            if parts[2] not in versions:
                return not_found_page()
            return _document(request, resource_list(parts[1], parts[2], versions[parts[2]]))
        return None

    def _aggregated(self, request: Request, groups: Groups, version: str, *, core: bool) -> Response:
        key = (groups.fingerprint, f"{version} {core}")
        found = self._documents.get(key)
        if found is None:
            chosen = {name: versions for name, versions in groups.groups.items() if (not name) == core}
            body = codec.dumps(_aggregated_list(chosen, version))
            found = self._documents[key] = (body, hashlib.sha512(body).hexdigest().upper())
            if len(self._documents) > MAX_DOCUMENTS:
                self._documents.popitem(last=False)
        body, digest = found
        tag = f'"{digest}"'
        headers = [(b"etag", tag.encode()), (b"vary", b"Accept"), (b"cache-control", b"public")]
        if request.headers.get(b"if-none-match", b"").decode("latin-1") == tag:
            return Response(304, b"", "", headers)
        return Response(200, body, AGGREGATED.format(version), headers)


def _content(resource: Resource) -> list[Any]:
    """All that documents show of a resource. Definitions in different clusters, or at different times, may have the
    same names and mean different things."""
    below = [_subresource_entry(resource, each) for each in resource.subresources.values()]
    strategy = resource.strategy
    if not isinstance(strategy, CustomResourceStrategy):
        return [_entry(resource), below]
    return [_entry(resource), below, resource.list_kind, strategy.schema, sorted(strategy.field_labels)]


def wants_aggregated(request: Request) -> str | None:
    """v2 or v2beta1, when that is what the client prefers of what we have. Raises NotAcceptable."""
    accept = request.header(b"accept")
    if not accept:
        return None
    for clause in negotiation.parse_accept(accept):
        if clause.type not in ("application", "*") or clause.subtype not in (
            "json",
            "*",
            "yaml",
            "vnd.kubernetes.protobuf",
        ):
            continue
        wanted = clause.parameters.get("as")
        if wanted is None:
            return None
        if wanted == "APIGroupDiscoveryList" and clause.parameters.get("g") == "apidiscovery.k8s.io":
            version = clause.parameters.get("v", "")
            if version in ("v2", "v2beta1") and clause.subtype == "json":
                return version
    raise negotiation.not_acceptable()


def _document(request: Request, document: Object) -> Response:
    accept = request.header(b"accept")
    media = negotiation.negotiate(accept, transforms=False).name if accept else negotiation.JSON
    if media == negotiation.PROTOBUF:
        document = {"apiVersion": "v1", **document}  # those of the core group leave it out, which the envelope cannot
    return Response(200, encode(codec.dumps(document), media, pretty=wants_pretty(request)), media)


def _group(name: str, versions: dict[str, list[Resource]]) -> Object:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(group: str, version: str, resources: list[Resource]) -> Object:
    entries: list[Object] = []
    for resource in resources:
        entries.append(_entry(resource))
        entries += [_subresource_entry(resource, below) for below in resource.subresources.values()]
    if not resources[0].custom:
        entries.sort(key=lambda entry: entry["name"])
    group_version = f"{group}/{version}" if group else version
    document: Object = {"kind": "APIResourceList"}
    if group:
        document["apiVersion"] = "v1"
    return {**document, "groupVersion": group_version, "resources": entries}


def _entry(resource: Resource) -> Object:
    entry: Object = {
        "name": resource.gvr.resource,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.gvk.kind,
        "verbs": _ordered_verbs(resource.verbs, custom=resource.custom),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.storage_version_hash:
        entry["storageVersionHash"] = resource.storage_version_hash
    return entry


def _subresource_entry(resource: Resource, below: Subresource) -> Object:
    entry: Object = {
        "name": f"{resource.gvr.resource}/{below.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if (below.gvk.group, below.gvk.version) != (resource.gvk.group, resource.gvk.version):
        entry["group"] = below.gvk.group
        entry["version"] = below.gvk.version
    return {**entry, "kind": below.gvk.kind, "verbs": _ordered_verbs(below.verbs, custom=resource.custom)}


_CUSTOM_ORDER: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def _ordered_verbs(verbs: frozenset[str], *, custom: bool) -> list[str]:
    if not custom:
        return sorted(verbs)
    order = _CUSTOM_ORDER if "create" in verbs else ("get", "patch", "update")
    return [verb for verb in order if verb in verbs]


def _aggregated_list(groups: dict[str, dict[str, list[Resource]]], version: str) -> Object:
    items = []
    for name, versions in groups.items():
        metadata: Object = {"name": name} if name else {}
        shown = [
            {"version": each, "resources": [_aggregated_resource(r) for r in _sorted(found)], "freshness": "Current"}
            for each, found in versions.items()
        ]
        items.append({"metadata": metadata, "versions": shown})
    api_version = f"apidiscovery.k8s.io/{version}"
    return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}


def _sorted(resources: list[Resource]) -> list[Resource]:
    return resources if resources[0].custom else sorted(resources, key=lambda found: found.gvr.resource)


def _aggregated_resource(resource: Resource) -> Object:
    custom = resource.custom
    entry: Object = {
        "resource": resource.gvr.resource,
        "responseKind": _kind(resource.gvk, custom=custom),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _ordered_verbs(resource.verbs, custom=custom),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    below = [
        {
            "subresource": each.name,
            "responseKind": _kind(each.gvk, custom=custom or each.gvk.group != resource.gvk.group),
            "verbs": _ordered_verbs(each.verbs, custom=custom),
        }
        for each in sorted(resource.subresources.values(), key=lambda found: "" if custom else found.name)
    ]
    if below:
        entry["subresources"] = below
    return entry


def _kind(gvk: Any, *, custom: bool) -> Object:  # noqa: ANN401 - a GroupVersionKind
    """The group and version are left empty where they are those of the list that the entry stands in."""
    if custom:
        return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    return {"group": "", "version": "", "kind": gvk.kind}
