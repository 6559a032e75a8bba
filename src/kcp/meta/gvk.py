"""Names of APIs: group, version, kind and resource, and how Kubernetes spells and ranks them.

Must not know which of them exist; that is the registry's catalogue.
"""

import re
from typing import Final, NamedTuple

_KUBE_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STAGES: Final = {None: 0, "beta": 1, "alpha": 2}
_MAX_INT64: Final = 2**63 - 1

VersionRank = tuple[int, int, int, int, str]


class GroupVersion(NamedTuple):
    """`apps/v1`, or `v1` for the group without a name."""

    group: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def with_kind(self, kind: str) -> "GroupVersionKind":
        return GroupVersionKind(self.group, self.version, kind)

    def with_resource(self, resource: str) -> "GroupVersionResource":
        return GroupVersionResource(self.group, self.version, resource)


class GroupKind(NamedTuple):
    """`Deployment.apps`, or `ConfigMap`."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def with_version(self, version: str) -> "GroupVersionKind":
        return GroupVersionKind(self.group, version, self.kind)


class GroupResource(NamedTuple):
    """`deployments.apps`, or `configmaps`."""

    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource

    def with_version(self, version: str) -> "GroupVersionResource":
        return GroupVersionResource(self.group, version, self.resource)


class GroupVersionKind(NamedTuple):
    """`apps/v1, Kind=Deployment`; the slash stays when there is no group, as in Kubernetes' messages."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    @property
    def api_version(self) -> str:
        """What an object of this kind carries in its field `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


class GroupVersionResource(NamedTuple):
    """`apps/v1, Resource=deployments`."""

    group: str
    version: str
    resource: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Resource={self.resource}"

    @property
    def group_version(self) -> GroupVersion:
        return GroupVersion(self.group, self.version)

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)


def parse_group_version(text: str) -> GroupVersion:
    """Read `apps/v1` or `v1`; nothing at all gives the empty one. Raises ValueError on more than one slash."""
    if text in ("", "/"):
        return GroupVersion("", "")
    group, slash, version = text.partition("/")
    if not slash:
        return GroupVersion("", text)
    if "/" in version:
        raise ValueError(f"unexpected GroupVersion string: {text}")
    return GroupVersion(group, version)


def parse_group_resource(text: str) -> GroupResource:
    """Read `deployments.apps` or `configmaps`."""
    resource, _, group = text.partition(".")
    return GroupResource(group, resource)


def parse_group_kind(text: str) -> GroupKind:
    """Read `Deployment.apps` or `ConfigMap`."""
    kind, _, group = text.partition(".")
    return GroupKind(group, kind)


def parse_gvk(api_version: str, kind: str) -> GroupVersionKind:
    """The kind of an object from its two fields. Raises ValueError if the apiVersion has more than one slash."""
    return parse_group_version(api_version).with_kind(kind)


def version_rank(version: str) -> VersionRank:
    """Sort key that puts the version a client should prefer first.

    `sorted(["foo", "v1alpha1", "v1", "v1beta2", "v2"], key=version_rank)` is v2, v1, v1beta2, v1alpha1, foo: stable
    before beta before alpha, higher numbers first, then everything else by the alphabet.
    """
    match = _KUBE_VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, 0, version)
    major, minor = int(match[1]), int(match[3] or 0)
    if max(major, minor) > _MAX_INT64:
        return (1, 0, 0, 0, version)
    return (0, _STAGES[match[2]], -major, -minor, "")
