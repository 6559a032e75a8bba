"""HTTP in, registry calls, HTTP out: filters as one visible list, negotiation, discovery, watch framing.

Holds no rules about kinds or permissions; those are in the rooms below.
"""
