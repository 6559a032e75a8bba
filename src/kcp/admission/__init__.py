"""What may be written: one chain of plugins, entered once per write. Knows nothing of HTTP."""
