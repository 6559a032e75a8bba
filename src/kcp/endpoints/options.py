"""Query parameters as options, with the checks and the words of apimachinery."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from kcp.meta import errors, field
from kcp.meta.field import FieldPath
from kcp.meta.gotext import quote
from kcp.meta.gvk import GroupKind
from kcp.registry.listing import ListOptions

if TYPE_CHECKING:
    from kcp.endpoints.request import Request
    from kcp.meta.codec import Object

MAX_MANAGER_BYTES = 128
FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")


def parse_integer(text: str) -> int:
    """Raises BadRequest in Go's words."""
    sign = text[:1] in ("+", "-")
    digits = text[1:] if sign else text
    if not (digits.isascii() and digits.isdigit()):
        raise errors.BadRequest(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    value = int(text) if len(digits) < 20 else 1 << 70
    if not -(1 << 63) <= value < 1 << 63:
        raise errors.BadRequest(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return value


def list_options(request: Request) -> ListOptions:
    if not request.query_string:
        return _NO_OPTIONS
    limit = request.parameter("limit")
    timeout = request.parameter("timeoutSeconds")
    return ListOptions(
        label_selector=request.parameter("labelSelector"),
        field_selector=request.parameter("fieldSelector"),
        limit=max(parse_integer(limit), 0) if limit else 0,
        continue_token=request.parameter("continue"),
        resource_version=request.parameter("resourceVersion"),
        resource_version_match=request.parameter("resourceVersionMatch"),
        watch=request.flag("watch") or request.info.watch_prefix,
        send_initial_events=request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None,
        allow_bookmarks=request.flag("allowWatchBookmarks"),
        timeout_seconds=parse_integer(timeout) if timeout else None,
    )


_NO_OPTIONS = ListOptions()


class WriteOptions:
    """CreateOptions, UpdateOptions or PatchOptions; `kind` names them in errors."""

    __slots__ = ("dry_run", "field_validation", "force", "manager", "shown")

    def __init__(self, request: Request, kind: str) -> None:
        self.dry_run = False
        self.field_validation = ""
        self.force: bool | None = None
        manager = ""
        # To admission a patch is an update.
        shown = "UpdateOptions" if kind == "PatchOptions" else kind
        self.shown: Object = {"kind": shown, "apiVersion": "meta.k8s.io/v1"}
        if request.query_string or kind == "PatchOptions":
            manager = request.parameter("fieldManager")
            self.field_validation = request.parameter("fieldValidation")
            if "force" in request.query:
                self.force = request.flag("force")
            self._check(request, kind, manager)
        self.manager = manager or manager_of(request.headers.get(b"user-agent", b""))

    def _check(self, request: Request, kind: str, manager: str) -> None:
        dry_run = request.query.get("dryRun", [])
        problems: list[field.FieldError] = []
        if kind == "PatchOptions":
            problems += self._check_patch(request, manager)
        problems += check_manager(manager)
        problems += check_dry_run(dry_run)
        if self.field_validation not in FIELD_VALIDATION:
            path = FieldPath().child("fieldValidation")
            problems.append(field.not_supported(path, self.field_validation, FIELD_VALIDATION))
        if problems:
            raise errors.Invalid(GroupKind("meta.k8s.io", kind), "", problems)
        self.dry_run = bool(dry_run)
        if dry_run:
            self.shown["dryRun"] = dry_run
        if manager:
            self.shown["fieldManager"] = manager
        if self.field_validation:
            self.shown["fieldValidation"] = self.field_validation

    def _check_patch(self, request: Request, manager: str) -> list[field.FieldError]:
        content_type = request.headers.get(b"content-type", b"")
        if b"apply-patch" in content_type:
            if not manager:
                return [field.required(FieldPath().child("fieldManager"), "is required for apply patch")]
        elif self.force is not None:
            return [field.forbidden(FieldPath().child("force"), "may not be specified for non-apply patch")]
        return []


def check_dry_run(values: list[str]) -> list[field.FieldError]:
    path = FieldPath().child("dryRun")
    if any(value != "All" for value in values):
        return [field.not_supported(path, values, ("All",))]
    return []


def check_manager(manager: str) -> list[field.FieldError]:
    path = FieldPath().child("fieldManager")
    if len(manager.encode()) > MAX_MANAGER_BYTES:
        return [field.too_long(path, MAX_MANAGER_BYTES)]
    for position, character in enumerate(manager):
        if not character.isprintable():
            why = f"invalid character U+{ord(character):04X} (at position {position})"
            return [field.invalid(path, manager, why)]
    return []


@lru_cache(maxsize=1024)
def manager_of(user_agent: bytes) -> str:
    """What a client that names no field manager is called: its user agent up to the slash."""
    name = user_agent.partition(b"/")[0].decode("utf-8", "replace")
    printable = "".join(character for character in name if character.isprintable())
    return printable.encode()[:MAX_MANAGER_BYTES].decode("utf-8", "ignore") or "unknown"
