"""The store of several servers: a client for etcd's API, and the mirror of it that reads and watches are served from.

Nothing outside imports more than `store.py`, `restore.py` and `options.py`.
"""
