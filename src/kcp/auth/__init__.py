"""Who is asking, and may they. Knows users, tokens, certificates and RBAC; knows nothing of HTTP or of the store."""
