"""Columns of a task's table. Planning imports this module: no pandas."""

from collections.abc import Iterable

# All columns of a retrieved or perturbed table but the texts.
RESERVED = ("split", "index", "original_label", "label", "noisy", "__row__")


def text_names(columns: Iterable[str]) -> list[str]:
    """Those of a table's columns that hold texts, in order."""
    return [name for name in columns if name not in RESERVED]
