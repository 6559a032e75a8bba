"""Structural schemas of custom resources: pruning, defaulting and validating objects, and checking the schemas.

What kube-apiserver spreads over apiextensions-apiserver/pkg/apiserver/schema and kube-openapi/pkg/validation. Must not
know what a CustomResourceDefinition is; it gets an openAPIV3Schema and objects.
"""

from kcp.schema.structural.nodes import StructuralError
from kcp.schema.structural.structural import RuleEvaluator, Structural, compile

__all__ = ["RuleEvaluator", "Structural", "StructuralError", "compile"]
