"""The API server under load, over TLS, as its clients see it; beside another server if there is one."""
