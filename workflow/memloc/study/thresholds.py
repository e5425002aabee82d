"""Limits that more than one part of memloc judges by.

A module of its own: what only reads a limit must not re-run when something else changes.
"""

MEMORISED = 0.95  # a model that knows a smaller share of its noisy examples memorised them in part
