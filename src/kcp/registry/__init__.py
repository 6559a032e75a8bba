"""Verbs on resources: what exists in which logical cluster, and how it is created, read, changed, watched and deleted.

The only user of the store. Knows nothing of HTTP.
"""
