"""Decoding of built-in kinds: what Go's decoder would keep of a JSON object, and what its encoder would write again.

    table.py    the Go types, as data
    decode.py   the fast road: types compiled into closures; it only notices that something is wrong
    explain.py  the slow road: walks the object as Go does and finds the words for what is wrong
    base64.py   Go's base64, with its error positions

Must not know which kinds exist: `kcp.apis.typed` hands in the table.
"""

from kcp.schema.typed.decode import Typed
from kcp.schema.typed.explain import UnmarshalError
from kcp.schema.typed.table import Field, GoType, TypeTable

__all__ = ["Field", "GoType", "TypeTable", "Typed", "UnmarshalError"]
