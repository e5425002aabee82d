"""Where single noisy examples sit: the smallest window whose swap reverts each.

The paper names it as a limitation that it has no evidence about individual examples; the tables of
swapped windows hold such evidence. A window reverts an example if theta_M2 with the window swapped
no longer predicts its perturbed label. The smallest of all windows that revert an example is the
one of fewest consecutive layers; of several, the one that starts first. Where no window reverts an
example, the tables say "none". An example whose perturbed label theta_M2 doesn't predict has
nothing to revert: the tables list it as not memorised, and no share counts it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memloc.errors import MemlocError
from memloc.store.tables import read_parquet, read_tsv, write_tsv
from memloc.windows import Window, all_windows, window_of

NONE = "none"
RUN_COLUMNS = [
    "index",
    "memorised",
    "length",
    "start",
    "single_layers",
    "share",
    "windows",
    "n_layers",
]
COLUMNS = {
    "examples": ["task", "model", "seed", *RUN_COLUMNS],
    "example_shares": [
        "task", "model", "kind", "value", "share", "sd", "n_seeds", "n_examples", "n_unmemorised",
    ],
    "example_ranks": [
        "task", "index", "difficulty", "share", "n_runs", "n_memorised", "n_never",
    ],
}  # fmt: skip


def locate(examples: pd.DataFrame, memorised: pd.DataFrame) -> pd.DataFrame:
    """A row per noisy example of one run, from its swap_examples and swap_memorised tables.

    length and start: of the smallest window that reverts it ("none" if none does); single_layers:
    layers that revert it alone, as "2,5"; share: of all windows that revert it; windows: which do,
    see `windows_in`. Examples that aren't memorised have "none" and no share.
    """
    known = memorised.set_index("index")["memorised"]
    if set(known.index) != set(examples["index"]):
        raise MemlocError("the tables of swapped and of memorised examples differ in examples")
    windows = by_length(window_of(name) for name in examples.columns if name != "index")
    reverts = ~examples[[f"{start}-{end}" for start, end in windows]].to_numpy(bool)
    has = known.loc[examples["index"]].to_numpy(bool)
    reverts &= has[:, None]
    n_layers = max(end for _, end in windows)
    first = [windows[i] if any_ else None for i, any_ in zip(reverts.argmax(1), reverts.any(1),
                                                             strict=True)]  # fmt: skip
    singles = [",".join(str(s) for (s, e), hit in zip(windows, row, strict=True) if hit and s == e)
               for row in reverts]  # fmt: skip
    return pd.DataFrame(
        {
            "index": examples["index"],
            "memorised": has,
            "length": [str(w[1] - w[0] + 1) if w else NONE for w in first],
            "start": [str(w[0]) if w else NONE for w in first],
            "single_layers": [found or NONE for found in singles],
            "share": np.where(has, reverts.mean(1), np.nan),
            "windows": [_bits(row) for row in reverts],
            "n_layers": n_layers,
        }
    )[RUN_COLUMNS]


def by_length(windows: Iterable[Window]) -> list[Window]:
    """Windows in the order of their bits in the column windows: by length, then by start."""
    return sorted(windows, key=lambda window: (window[1] - window[0], window[0]))


def _bits(reverting: np.ndarray) -> str:
    """Windows as a number in hex, the first window its lowest bit; none is "0x0"."""
    return hex(sum(1 << int(i) for i in np.flatnonzero(reverting)))


def windows_in(bits: str, n_layers: int) -> list[Window]:
    """The windows that a value of the column windows stands for."""
    every, number = by_length(all_windows(n_layers)), int(bits, 16)
    return [window for i, window in enumerate(every) if number >> i & 1]


def shares(examples: pd.DataFrame) -> pd.DataFrame:
    """Frame example_shares: shares of the memorised noisy examples of each task and model.

    Of kind "length", the share whose smallest window has `value` layers ("none": no window reverts
    them); of kind "layer", the share that layer `value` reverts alone. Shares are means over seeds
    beside their standard deviations; n_examples and n_unmemorised are sums over seeds.
    """
    rows = []
    for (task, model), part in examples.groupby(["task", "model"], sort=False):
        n_layers = int(part["n_layers"].max())
        ours = part[part["memorised"]]
        counts = {"n_examples": len(ours), "n_unmemorised": len(part) - len(ours)}
        seeds = [seed for _, seed in ours.groupby("seed")]
        numbers = [str(n) for n in range(1, n_layers + 1)]
        for kind, values in (("length", [*numbers, NONE]), ("layer", numbers)):
            for value in values:
                of_seeds = [_share(seed, kind, value) for seed in seeds]
                spread = np.std(of_seeds, ddof=1) if len(of_seeds) > 1 else np.nan
                mean = np.mean(of_seeds) if of_seeds else np.nan
                row = (task, model, kind, value, mean, spread, len(of_seeds))
                rows.append(dict(zip(COLUMNS["example_shares"], row, strict=False)) | counts)
    return pd.DataFrame(rows, columns=COLUMNS["example_shares"])


def _share(seed: pd.DataFrame, kind: str, value: str) -> float:
    """Share of one seed's memorised examples."""
    if kind == "length":
        return float((seed["length"] == value).mean())
    return float(seed["single_layers"].str.split(",").map(lambda found: value in found).mean())


def ranks(examples: pd.DataFrame) -> pd.DataFrame:
    """Frame example_ranks: each task's examples over models and seeds, hardest to revert first.

    difficulty: the smallest window's length as a share of the layers, averaged over the runs that
    memorised the example; a run in which no window reverts it counts as one layer more than there
    are. Of examples with equal difficulty, the one that the smaller share of windows reverts comes
    first. Examples that no run memorised are left out.
    """
    ours = examples[examples["memorised"]]
    length = pd.to_numeric(ours["length"], errors="coerce")
    never = length.isna()
    ours = ours.assign(
        difficulty=length.fillna(ours["n_layers"] + 1) / ours["n_layers"], n_never=never.astype(int)
    )
    keys = ["task", "index"]
    found = ours.groupby(keys, sort=False).agg(
        difficulty=("difficulty", "mean"), share=("share", "mean"), n_memorised=("share", "size"),
        n_never=("n_never", "sum"),
    )  # fmt: skip
    runs = examples.groupby(keys, sort=False).size().rename("n_runs")
    order = ["task", "difficulty", "share", "index"]
    found = found.join(runs).reset_index()
    found = found.sort_values(order, ascending=[True, False, True, True], ignore_index=True)
    return found[COLUMNS["example_ranks"]]


def write_locations(examples: str | Path, memorised: str | Path, output: str | Path) -> None:
    """Write a run's examples.tsv from the two tables of its swapping job."""
    found = locate(read_parquet(examples), read_parquet(memorised))
    write_tsv(found, output, RUN_COLUMNS)


def read_locations(path: str | Path) -> pd.DataFrame:
    """A table of examples, of a run or of all, with lengths and layers as the words they are."""
    frame = read_tsv(path, RUN_COLUMNS)
    words = ["length", "start", "single_layers"]
    return frame.assign(**{name: frame[name].astype(str) for name in words})


def summarise_locations(
    paths: Iterable[str | Path], runs: Iterable[Mapping[str, Any]], outputs: Mapping[str, str]
) -> None:
    """Write examples, example_shares and example_ranks from the tables of all runs, in order."""
    names = ("task", "model", "seed")
    frames = [
        read_locations(path).assign(**{name: run[name] for name in names})
        for path, run in zip(paths, runs, strict=True)
    ]
    examples = pd.concat(frames, ignore_index=True)
    made = {
        "examples": examples, "example_shares": shares(examples), "example_ranks": ranks(examples),
    }  # fmt: skip
    for name, path in outputs.items():
        write_tsv(made[name], path, COLUMNS[name])
