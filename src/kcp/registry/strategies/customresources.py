"""Custom resources: the rules of one version of a definition, read from its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcp.meta import field
from kcp.meta.field import FieldPath
from kcp.meta.gotext import quote
from kcp.meta.gvk import GroupVersionKind
from kcp.meta.validation import check_qualified_name
from kcp.meta.wellknown import FINALIZER_FOREGROUND, FINALIZER_KUBERNETES, FINALIZER_ORPHAN
from kcp.registry.strategies.crd_metadata import EMBEDDED_METADATA, decode_object_meta
from kcp.registry.strategies.crd_scale import ScalePaths, show_value
from kcp.registry.strategies.crd_versions import find_version
from kcp.registry.strategy import Strategy
from kcp.schema.structural import compile as compile_schema

if TYPE_CHECKING:
    from kcp.meta.codec import Object
    from kcp.meta.field import FieldError
    from kcp.registry.strategy import WriteContext
    from kcp.schema.structural import RuleEvaluator, Structural

_STANDARD_FINALIZERS: Final = frozenset({FINALIZER_ORPHAN, FINALIZER_FOREGROUND, FINALIZER_KUBERNETES})
_META: Final = ("apiVersion", "kind", "metadata")


def make_strategy(crd: Object, version: str, rules: RuleEvaluator | None = None) -> CustomResourceStrategy:
    """The rules of one version of a definition. Expensive: callers keep it as long as the definition is the same.

    `rules` evaluates the CEL rules of the version's schema.
    """
    return CustomResourceStrategy(crd, version, rules)


class CustomResourceStrategy(Strategy):
    """What one version of a definition says about its objects."""

    allow_unconditional_update = False
    generation = True

    def __init__(self, crd: Object, version: str, rules: RuleEvaluator | None) -> None:
        spec, settings = crd["spec"], find_version(crd, version)
        self.gvk = GroupVersionKind(spec["group"], version, spec["names"]["kind"])
        self.api_version = self.gvk.api_version
        self.namespaced: bool = spec["scope"] == "Namespaced"
        self.schema: Object = (settings.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
        """The openAPIV3Schema, which server-side apply merges by."""

        self.structural: Structural = compile_schema(self.schema, EMBEDDED_METADATA)
        self.rules = rules
        subresources: Object = settings.get("subresources") or {}
        self.has_status = subresources.get("status") is not None
        scale = subresources.get("scale")
        self.scale = ScalePaths(scale) if scale is not None else None
        self.reset_fields: tuple[tuple[str, ...], ...] = (("status",),) if self.has_status else ()
        paths = [each["jsonPath"].removeprefix(".") for each in settings.get("selectableFields") or ()]
        self._selectable = [(path, path.split(".")) for path in paths]
        self.field_labels = tuple(paths)
        self._status = CustomResourceStatusStrategy(self) if self.has_status else None

    def decode(self, obj: Object, unknown: list[str] | None = None) -> Object:
        """A new object without what the schema does not specify; some values are shared with `obj`.

        Appends to `unknown` what strict decoding says of the fields that were dropped. Raises ValueError in Go's words
        if metadata, the object's or an embedded resource's, has the wrong form. An object of another kind is left as
        it is: validation refuses it.
        """
        complaints: list[str] = []
        has_metadata = "metadata" in obj
        metadata = decode_object_meta(obj["metadata"], complaints) if has_metadata else {}
        if unknown is not None and complaints:
            unknown += [text.replace('"', '"metadata.', 1) for text in complaints]
        is_ours = obj.get("kind") == self.gvk.kind and (obj.get("apiVersion") or "").startswith(f"{self.gvk.group}/")
        content = self.structural.prune(obj, unknown) if is_ours else dict(obj)
        decoded: Object = {name: obj[name] for name in ("apiVersion", "kind") if name in obj}
        if has_metadata:
            decoded["metadata"] = metadata
        for name in _META:
            content.pop(name, None)
        decoded.update(content)
        return decoded

    def default(self, obj: Object) -> None:
        self.structural.default(obj)

    def prepare_for_create(self, obj: Object, context: WriteContext) -> None:
        if self.has_status:
            obj.pop("status", None)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        if not self.has_status:
            return
        if "status" in old:
            obj["status"] = old["status"]
        else:
            obj.pop("status", None)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return self._validate_type(obj) or self._validate(obj, None)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        return self._validate_type(obj) or self._validate(obj, old)

    def _validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        structural = self.structural
        problems = structural.validate_values(obj, old)
        if self.scale is not None:
            problems += self.scale.validate_spec(obj) + self.scale.validate_status(obj)
        problems += structural.validate_embedded(obj)
        problems += structural.validate_lists(obj, old)
        return problems + structural.validate_rules(obj, old, problems, self.rules)

    def _validate_type(self, obj: Object) -> list[FieldError]:
        problems: list[FieldError] = []
        for name, expected in (("kind", self.gvk.kind), ("apiVersion", self.api_version)):
            given = obj.get(name) or ""
            if given != expected:
                problems.append(field.invalid(FieldPath(name), given, f"must be {expected}"))
        return problems

    def warnings_on_create(self, obj: Object, context: WriteContext) -> list[str]:
        return _warn_of_finalizers(obj["metadata"].get("finalizers") or ())

    def warnings_on_update(self, obj: Object, old: Object, context: WriteContext) -> list[str]:
        before = old["metadata"].get("finalizers") or ()
        forgiven = [] if self.rules is None else self.rules.warnings(obj)
        added = [name for name in obj["metadata"].get("finalizers") or () if name not in before]
        return forgiven + _warn_of_finalizers(added)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return {name: _select(obj, steps) for name, steps in self._selectable}

    def subresource(self, name: str) -> Strategy | None:
        return self._status if name == "status" else None

    def spec_of(self, obj: Object) -> object:
        """Everything but metadata counts."""
        return {name: value for name, value in obj.items() if name != "metadata"}

    def scale_of(self, obj: Object) -> Object:
        """The Scale of an object whose definition has the scale subresource. Raises InternalError without replicas."""
        assert self.scale is not None
        return self.scale.read(obj)

    def apply_scale(self, obj: Object, scale: Object) -> None:
        """Set the replicas of an object, in place."""
        assert self.scale is not None
        self.scale.write(obj, scale)

    def convert(self, obj: Object) -> Object:
        """An object of another version of this definition as one of this version: strategy `None` renames it."""
        return {**obj, "apiVersion": self.api_version}


class CustomResourceStatusStrategy(Strategy):
    """Writes to the `status` of an object: nothing else of it changes."""

    allow_unconditional_update = False
    reset_fields: tuple[tuple[str, ...], ...] = (("spec",),)

    def __init__(self, main: CustomResourceStrategy) -> None:
        self._main = main

    def default(self, obj: Object) -> None:
        self._main.default(obj)

    def prepare_for_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        has_status, status = "status" in obj, obj.get("status")
        managed_fields = obj["metadata"].get("managedFields")
        obj.clear()
        obj.update(old)
        metadata = obj["metadata"] = dict(old["metadata"])
        if managed_fields:
            metadata["managedFields"] = managed_fields
        else:
            metadata.pop("managedFields", None)
        if has_status:
            obj["status"] = status
        else:
            obj.pop("status", None)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldError]:
        main = self._main
        problems = main._validate_type(obj)
        if problems:
            return problems
        problems = main.structural.validate_status(obj, old)
        if main.scale is not None:
            problems += main.scale.validate_status(obj)
        problems += main.structural.validate_lists(obj, old)
        return problems + main.structural.validate_rules(obj, old, problems, main.rules)

    def warnings_on_update(self, obj: Object, old: Object, context: WriteContext) -> list[str]:
        return self._main.warnings_on_update(obj, old, context)

    def selectable_fields(self, obj: Object) -> dict[str, str]:
        return self._main.selectable_fields(obj)


def _select(obj: Object, steps: list[str]) -> str:
    value: object = obj
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return "" if value is None else show_value(value)


def _warn_of_finalizers(finalizers: list[str] | tuple[str, ...]) -> list[str]:
    warnings: list[str] = []
    for name in sorted(set(finalizers)):
        prefix = f"metadata.finalizers: {quote(name)}: "
        warnings += [prefix + why for why in check_qualified_name(name)]
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            warnings.append(
                f"{prefix}prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other "
                "finalizer writers"
            )
    return warnings
