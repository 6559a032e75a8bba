"""The embedded store, measured through its public API beside the machine it runs on."""
