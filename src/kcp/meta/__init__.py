"""Words that every room shares: wire names, Status errors, group/version/kind, cluster names, selectors, time, codecs.

Nothing here does I/O, and nothing here knows a particular kind.
"""
