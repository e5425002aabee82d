"""Limits that more than one part of memloc judges by.

A module of its own: what only reads a limit must not re-run when something else changes.
"""

# A run that predicts fewer of its noisy labels has memorised in part only: where it memorises is
# less certain, and what it never learnt counts as an error of every window.
MEMORISED_SHARE = 0.95
