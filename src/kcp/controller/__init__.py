"""The one worker loop: change feed, queue, reconcile, back-off, checkpoint, leadership.

The room does not know what any kind means, and does not touch the store: `kcp.registry.changes` is its source.
"""
