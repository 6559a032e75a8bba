"""list: pages that all show one revision."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kcp import store
from kcp.meta import codec, errors, field, fields, labels
from kcp.meta.field import FieldPath
from kcp.meta.gvk import GroupKind
from kcp.registry.errors import too_large_version, translate
from kcp.registry.selection import Selection, unsupported_field
from kcp.store import ObjectKey, Revision, Scope

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.registry.registry import Registry
    from kcp.registry.resource import Resource

_CONTINUE_VERSION = "meta.k8s.io/v1"
_EXPIRED_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_EXPIRED_VERSION = "The resourceVersion for the provided list is too old."
# Of a byte that is no character, encoding/json shows the byte; the decoder of bodies shows it as a character.
_GO_BYTE = re.compile(r"'\\u00([89a-f][0-9a-f])'")
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9_-]")
MAX_TERMS = 128  # each is asked of each object, on a loop that all tenants share; people write five
_LIST_OPTIONS = GroupKind("meta.k8s.io", "ListOptions")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """As the client sent them, the numbers parsed."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    watch: bool = False
    send_initial_events: bool | None = None
    allow_bookmarks: bool = False
    timeout_seconds: int | None = None


class Listing(NamedTuple):
    """One page. `pairs` are the store's, so that bytes go out as they are."""

    page: store.Page
    revision: Revision
    continue_token: str
    remaining: int | None

    def metadata(self) -> Object:
        found: Object = {"resourceVersion": str(self.revision)}
        if self.continue_token:
            found["continue"] = self.continue_token
        if self.remaining is not None:
            found["remainingItemCount"] = self.remaining
        return found


def make_selection(resource: Resource, options: ListOptions) -> Selection:
    """Raises BadRequest for selectors that cannot be read or name a field that cannot be selected by."""
    try:
        label = labels.parse(options.label_selector) if options.label_selector else labels.everything()
        by_field = fields.parse(options.field_selector) if options.field_selector else fields.everything()
    except ValueError as error:
        raise errors.BadRequest(str(error)) from error
    terms = len(label.requirements) + len(by_field.requirements)
    if terms > MAX_TERMS:
        raise errors.BadRequest(f"the selectors have {terms} terms together; at most {MAX_TERMS} are allowed")
    unknown = unsupported_field(resource, by_field)
    if unknown is not None:
        raise errors.BadRequest(_explain_field(resource, unknown))
    return Selection(resource, label, by_field)


def _explain_field(resource: Resource, name: str) -> str:
    if resource.custom:
        return f"field label not supported: {name}"
    if resource.strategy.field_labels:
        return f"field label not supported: {name}"
    return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def check_options(options: ListOptions) -> None:
    """The rules on which options go together; raises Invalid of kind ListOptions."""
    problems = _check_watch(options) if options.watch or options.send_initial_events is not None else []
    if not problems and not options.watch and options.send_initial_events is None:
        problems = _check_match(options)
    if problems:
        raise errors.Invalid(_LIST_OPTIONS, "", problems)


def _check_match(options: ListOptions) -> list[field.FieldError]:
    path = FieldPath().child("resourceVersionMatch")
    match = options.resource_version_match
    if not match:
        return []
    problems = []
    if not options.resource_version:
        problems.append(field.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if options.continue_token:
        problems.append(field.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    if match not in ("Exact", "NotOlderThan"):
        problems.append(field.not_supported(path, match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and options.resource_version == "0":
        problems.append(field.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return problems


def _check_watch(options: ListOptions) -> list[field.FieldError]:
    path = FieldPath().child("resourceVersionMatch")
    match = options.resource_version_match
    if not options.watch:
        initial = FieldPath().child("sendInitialEvents")
        return [*_check_match(options), field.forbidden(initial, "sendInitialEvents is forbidden for list")]
    problems = []
    if options.send_initial_events is None:
        if match:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            problems.append(field.forbidden(path, why))
        return problems
    if match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        problems.append(field.forbidden(path, why))
    if match and match != "NotOlderThan":
        problems.append(field.not_supported(path, match, ("NotOlderThan",)))
    if options.continue_token:
        problems.append(field.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    return problems


def parse_version(text: str) -> int:
    """A resource version as a number, 0 for none. Raises BadRequest."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > 20:
        path = FieldPath().child("resourceVersion")
        problem = field.invalid(path, text, f'strconv.ParseUint: parsing "{text}": invalid syntax')
        raise errors.BadRequest(f"invalid resource version: {problem}")
    return int(text)


async def list_page(
    registry: Registry, resource: Resource, cluster: str | None, namespace: str | None, options: ListOptions
) -> Listing:
    """`cluster` None is all of them; `namespace` None is all of them."""
    check_options(options)
    selection = make_selection(resource, options)
    scope = Scope(resource.key, cluster, namespace)
    if options.continue_token:
        return _list_rest(registry, resource, scope, options, selection)
    version = parse_version(options.resource_version)
    if version and version > registry.store.revision:
        await registry.store.sync()
        if version > registry.store.revision:
            raise too_large_version(version, registry.store.revision)
    elif options.resource_version != "0":
        await registry.store.sync()
    # A limit has always meant the exact version, unless the client says otherwise (storage.ValidateListOptions).
    is_exact = options.resource_version_match == "Exact" or (not options.resource_version_match and options.limit > 0)
    at = Revision(version) if version and is_exact else None
    if at is None and selection.name is not None and namespace is not None and cluster is not None:
        return _list_one(registry, scope, selection)
    try:
        # Any version will do: Kubernetes then answers from its cache, which does not cut lists.
        limit = 0 if options.resource_version == "0" else options.limit
        page = registry.store.range(
            scope, limit=limit, revision=at, accept=selection.accept, contains=selection.contains
        )
    except store.Compacted:
        raise errors.Expired(_EXPIRED_VERSION) from None
    except store.StoreError as error:
        raise translate(error, resource.group_resource, "") from error
    return _finish(registry, scope, selection, page)


def _list_one(registry: Registry, scope: Scope, selection: Selection) -> Listing:
    """A selector for one name is a look-up."""
    assert scope.resource is not None
    name = selection.name or ""
    key = ObjectKey(scope.resource, scope.cluster or "", scope.namespace or "", name)
    record = registry.store.get(key) if name and "/" not in name and len(name) < 256 else None
    revision = registry.store.revision
    if record is None or (selection.accept is not None and not selection.accept(record.stored)):
        return Listing(store.Page(revision, [], None, {}), revision, "", None)
    prefix = b"\x00\x00\x00\x00"
    tail = f"{key.cluster}/{key.namespace}/{key.name}".encode()
    page = store.Page(revision, [(prefix + tail, record.stored)], None, {prefix: scope.resource})
    return Listing(page, revision, "", None)


def _list_rest(
    registry: Registry, resource: Resource, scope: Scope, options: ListOptions, selection: Selection
) -> Listing:
    revision, after, expected = parse_continue(options.continue_token, scope)
    if options.resource_version not in ("", "0"):
        raise errors.BadRequest("specifying resource version is not allowed when using continue")
    try:
        page = registry.store.range(
            scope,
            after=after,
            limit=0 if options.resource_version == "0" else options.limit,
            revision=Revision(revision) if revision > 0 else None,
            accept=selection.accept,
            contains=selection.contains,
        )
    except store.Compacted:
        token = make_continue(-1, after)
        raise errors.Expired(_EXPIRED_CONTINUE, continue_token=token) from None
    except store.StoreError as error:
        raise translate(error, resource.group_resource, "") from error
    return _finish(registry, scope, selection, page, expected if revision > 0 else 0)


def _finish(registry: Registry, scope: Scope, selection: Selection, page: store.Page, expected: int = 0) -> Listing:
    """`expected` is how many objects there were from this page on, if a page before it has counted them."""
    after = page.next_after
    if after is None:
        return Listing(page, page.revision, "", None)
    remaining = 0
    if selection.accept is None:
        remaining = max(expected - len(page.pairs), 0) or registry.store.count(scope, after=after)
    return Listing(page, page.revision, make_continue(page.revision, after, remaining), remaining or None)


class Continue(NamedTuple):
    """Where a list goes on."""

    revision: int
    """Negative: as it is now."""

    after: ObjectKey
    remaining: int = 0
    """How many objects were left at that revision; 0 if nobody has counted them."""


def make_continue(revision: int, after: ObjectKey, remaining: int = 0) -> str:
    """Kubernetes' own form, which its clients pass on untouched, and how much is left: later on, only the present
    can be counted."""
    start = f"{after.cluster}/{after.namespace}/{after.name}\0"
    token: Object = {"v": _CONTINUE_VERSION, "rv": revision, "start": start}
    if remaining:
        token["left"] = remaining
    return base64.urlsafe_b64encode(codec.dumps(token)).rstrip(b"=").decode()


def parse_continue(token: str, scope: Scope) -> Continue:
    """Raises BadRequest for anything we did not make; a token never leads out of the scope it is used in."""
    strange = _NOT_BASE64.search(token)
    # Python reads over what is no base64; Go says where it begins, or where a rest of one character stands.
    if strange is not None or len(token) % 4 == 1:
        position = strange.start() if strange else len(token) - 1
        raise _invalid_continue(f"illegal base64 data at input byte {position}")
    text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    try:
        found = codec.loads(text)
    except ValueError as error:
        raise _invalid_continue(_GO_BYTE.sub(r"'\\x\1'", str(error))) from error
    if not isinstance(found, dict) or found.get("v") != _CONTINUE_VERSION:
        version = found.get("v", "") if isinstance(found, dict) else ""
        raise _invalid_continue(f"server does not recognize this encoded version {version}")
    revision, start = found.get("rv", 0), found.get("start")
    if not isinstance(revision, int) or isinstance(revision, bool) or revision == 0:
        raise _invalid_continue("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise _invalid_continue("encoded start key empty (version meta.k8s.io/v1)")
    left = found.get("left", 0)
    return Continue(revision, _start_key(start, scope), left if isinstance(left, int) else 0)


def _start_key(start: str, scope: Scope) -> ObjectKey:
    assert scope.resource is not None
    parts = start.removesuffix("\0").split("/")
    if len(parts) == 2:  # made by a Kubernetes server: it has no cluster part
        parts = [scope.cluster or "", *parts]
    if len(parts) != 3 or not parts[2] or not parts[0]:
        raise _invalid_continue("encoded start key is not one of this server")
    cluster, namespace, name = parts
    if scope.cluster is not None and cluster != scope.cluster:
        raise _invalid_continue("encoded start key is not in this logical cluster")
    if scope.namespace is not None and namespace != scope.namespace:
        raise _invalid_continue("encoded start key is not in this namespace")
    return ObjectKey(scope.resource, cluster, namespace, name)


def _invalid_continue(why: str) -> errors.BadRequest:
    return errors.BadRequest(f"invalid continue token: continue key is not valid: {why}")
