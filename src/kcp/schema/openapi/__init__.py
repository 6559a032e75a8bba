"""OpenAPI documents of what a logical cluster serves: v3, one for each group version with an index, and v2.

    resources.py   what is published of a resource, and of a custom kind
    operations.py  paths and operations, named as Kubernetes names them
    custom.py      the published schema of a custom kind
    v3.py, v2.py   the documents
    gnostic.py     v2 in protobuf

Must not know which kinds exist: callers hand in resources and definitions (`kcp.apis.openapi` has those built in).
"""

from kcp.schema.openapi.gnostic import to_protobuf
from kcp.schema.openapi.resources import CustomKind, PublishedResource, PublishedSubresource
from kcp.schema.openapi.v2 import build_v2
from kcp.schema.openapi.v3 import build_v3, build_v3_index, v3_path

__all__ = [
    "CustomKind",
    "PublishedResource",
    "PublishedSubresource",
    "build_v2",
    "build_v3",
    "build_v3_index",
    "to_protobuf",
    "v3_path",
]
