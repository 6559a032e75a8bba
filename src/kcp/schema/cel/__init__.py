"""CEL as Kubernetes speaks it: compile once, evaluate often. Knows no kinds and does no I/O."""
