"""The server's own controllers, one in a file, all of one shape; `all.py` lists them.

Each is level-triggered and safe to run twice. They do not import each other, nor the store: they read and write through
the registry. Loop, retries, checkpoints and logging come from `kcp.controller`.
"""
