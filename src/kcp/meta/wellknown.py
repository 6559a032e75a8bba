"""Names on the wire that mean something to this server: groups, users, annotations, labels, finalizers.

Each is written here once and nowhere else.
"""

from __future__ import annotations

# logical clusters
ROOT_CLUSTER = "root"
ADMIN_CLUSTER = "system:admin"  # bootstrap policy and the servers' own leases
CLUSTER_ANNOTATION = "kcp.io/cluster"  # added to every object of a wildcard read
PATH_ANNOTATION = "kcp.io/path"

DOMAIN = "kcp.io"  # of names that only the system may write

# users and groups
GROUP_MASTERS = "system:masters"
GROUP_AUTHENTICATED = "system:authenticated"
GROUP_UNAUTHENTICATED = "system:unauthenticated"
GROUP_KCP_ADMIN = "system:kcp:admin"
GROUP_SERVICE_ACCOUNTS = "system:serviceaccounts"
USER_ANONYMOUS = "system:anonymous"
GROUP_MONITORING = "system:monitoring"
GROUP_WORKSPACE_BOOTSTRAPPER = "system:kcp:tenancy:workspace-bootstrapper"
GROUP_LOGICAL_CLUSTER_ADMIN = "system:kcp:logical-cluster-admin"
GROUP_EXTERNAL_LOGICAL_CLUSTER_ADMIN = "system:kcp:external-logical-cluster-admin"
GROUP_CLUSTER_PREFIX = "system:cluster:"  # of an identity that comes from that logical cluster
SERVICE_ACCOUNT_USER_PREFIX = "system:serviceaccount:"
FOREIGN_SERVICE_ACCOUNT_USER_PREFIX = "system:kcp:serviceaccount:"  # and cluster:namespace:name
EXTRA_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
EXTRA_CLUSTER_NAME = "authentication.kcp.io/cluster-name"  # where a service account lives
BINDING_USER_PREFIX = "apis.kcp.io:binding:"  # users and groups of consumers, in the RBAC of a provider

# namespaces
NAMESPACE_DEFAULT = "default"
NAMESPACE_SYSTEM = "kube-system"
NAMESPACE_PUBLIC = "kube-public"
NAMESPACE_NODE_LEASE = "kube-node-lease"
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"

# finalizers
FINALIZER_KUBERNETES = "kubernetes"  # in a namespace's spec.finalizers
FINALIZER_ORPHAN = "orphan"
FINALIZER_FOREGROUND = "foregroundDeletion"
FINALIZER_CUSTOM_RESOURCES = "customresourcecleanup.apiextensions.k8s.io"  # holds a definition while it has objects

# API groups and names of this project's own kinds
GROUP_CORE = "core.kcp.io"
LOGICAL_CLUSTER_NAME = "cluster"  # the one LogicalCluster of a logical cluster
GROUP_INTERNAL = "internal.kcp.io"  # what the servers note for themselves; never served
CONTROLLER_USER_PREFIX = "system:kcp:controller:"

# annotations
API_APPROVED_ANNOTATION = "api-approved.kubernetes.io"  # on definitions in groups of the Kubernetes community
