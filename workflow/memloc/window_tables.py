"""What windows did to predictions, as tables: a row per window, and a column per window."""

from collections.abc import Sequence

import pandas as pd
import torch

from memloc.encoding import Examples
from memloc.windows import Window, window_name


def window_table(
    windows: Sequence[Window], kept: torch.Tensor, noisy: torch.Tensor, n_layers: int
) -> pd.DataFrame:
    """A row per window from kept (examples, windows), whether the trained label was predicted.

    noisy_error_normalised is nan unless the window of all layers is there and has an error.
    """
    errors = ~kept
    frame = pd.DataFrame(windows, columns=["start", "end"])
    frame["noisy_error"] = errors[noisy].double().mean(0).numpy()
    frame["clean_error"] = errors[~noisy].double().mean(0).numpy()
    frame["n_noisy"], frame["n_clean"] = int(noisy.sum()), int((~noisy).sum())
    whole = frame.loc[(frame["start"] == 1) & (frame["end"] == n_layers), "noisy_error"]
    ceiling = whole.iloc[0] if len(whole) and whole.iloc[0] > 0 else float("nan")
    frame["noisy_error_normalised"] = frame["noisy_error"] / ceiling
    return frame


def per_example(windows: Sequence[Window], kept: torch.Tensor, examples: Examples) -> pd.DataFrame:
    """index, then per window whether the perturbed label was still predicted; noisy rows only."""
    noisy = examples.noisy
    table = {"index": examples.index[noisy].numpy()}
    for column, window in enumerate(windows):
        table[window_name(window)] = kept[noisy][:, column].numpy()
    return pd.DataFrame(table).sort_values("index", ignore_index=True)
