"""Schemas: what objects of a kind look like, how they are decoded, pruned, defaulted, validated and published.

Must not do I/O and must not know which kinds exist; their tables and schemas are handed in.
"""
