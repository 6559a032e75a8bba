"""A Kubernetes-style control plane for anything, multi-tenant to the core.

Each package is one room of the house drawn in docs/architecture.md; its docstring says what belongs in it.
"""

__version__ = "0.1.0"
