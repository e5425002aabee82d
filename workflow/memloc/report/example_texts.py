"""Single examples on the page: their text and labels in words."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd


def words_of(example: Mapping[str, Any] | pd.Series, names: Sequence[str]) -> list[Any]:
    """Text, true label and trained label; `names`: the columns of text."""
    true = example["original_label"]
    text = " | ".join(str(example[name]) for name in names)
    return [text, "unknown" if pd.isna(true) else true, example["label"]]


def beginning(text: str, longest: int) -> str:
    """A text, cut to so many characters."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"
