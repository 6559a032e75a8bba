"""The rules of each built-in kind, one file for each group of kinds. Pure: no store, no clock but the one handed in."""
