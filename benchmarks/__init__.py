"""Measurements of kcp: they print tables and never judge, so that a slow machine fails no build.

A figure means little by itself, because machines differ and are shared. So each benchmark measures, in the same run,
what the machine gives to the simplest program of its kind, and the table shows the ratio.
"""
