"""Changing objects: JSON patch, merge patch, strategic merge patch, managed fields and server-side apply.

The room holds pure functions from objects to objects. It knows shapes of types (`merge_schema`), never what a kind
means, and does no I/O. Failures are raised as the Status that kube-apiserver would send.
"""
