"""Windows of results computed again, and compared with their tables."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from memloc.budget.words import align
from memloc.bundle.recompute import (
    COMPUTE,
    Run,
    differences,
    made_by,
    read_windows,
    same_threads,
)
from memloc.errors import MemlocError
from memloc.store.tables import COLUMNS
from memloc.study.places import Places
from memloc.windows import Window, parse_window, window_name

SHOWN = ("noisy_error", "clean_error", "noisy_error_normalised")
# Of how many examples an error is. The other columns are counts, which nothing rounds.
COUNTS = {
    **dict.fromkeys(("noisy_error", "noisy_error_normalised"), ("n_noisy",)),
    "clean_error": ("n_clean",),
    "noise_minus_clean": ("n_noisy", "n_clean"),
    "to_original": ("n_original",),
    "validation_error": ("n_validation",),
}
# On another device, or with other versions, rounding alone may turn this share of examples.
ROUNDING = {"swap": 0.01, "retrain": 0.05}


@dataclass(frozen=True)
class Asked:
    """Which windows, and of which tables; None: any."""

    windows: str
    table: str | None = None
    task: str | None = None
    model: str | None = None
    seed: str | None = None


def compute_again(results: Path, resources: Path, asked: Asked) -> tuple[list[str], bool]:
    """Compare windows of one run with its tables: lines to read, and whether all are the same."""
    run = _run(results, resources, asked)
    names = [
        name
        for name in COMPUTE
        if (run.folder / f"{name}.tsv").exists()
        and (asked.table is None or Path(asked.table).name == f"{name}.tsv")
    ]
    if not names:
        raise MemlocError(
            f"{asked.table} can't be computed again: name swap.tsv or retrain.tsv of a run"
        )
    lines, same = [], True
    for name in names:
        told, equal = _compared(run, name, asked.windows)
        lines += told
        same &= equal
    return lines, same


def _run(results: Path, resources: Path, asked: Asked) -> Run:
    """The run that is asked for; MemlocError unless it is one alone."""
    runs = sorted(
        {path.parent for name in COMPUTE for path in results.glob(f"*/*/seed*/{name}.tsv")}
    )
    if not runs:
        raise MemlocError(f"{results}: no run in it has a swap.tsv or retrain.tsv to compare with")
    words = {place: place.relative_to(results).parts for place in runs}
    said = (asked.task, asked.model, None if asked.seed is None else f"seed{asked.seed}")
    chosen = [
        place
        for place in runs
        if (asked.table is None or Path(asked.table).parent.parts[-3:] == words[place])
        and all(want in (None, have) for want, have in zip(said, words[place], strict=True))
    ]
    if len(chosen) != 1:
        told = "several are asked for" if chosen else "none is as asked for, and there are"
        names = ", ".join("/".join(words[place]) for place in (chosen or runs)[:10])
        raise MemlocError(
            f"{results}: windows of one run can be computed at a time; {told}: {names}. Name one "
            "with --task, --model and --seed, or its table with --table"
        )
    named = dict(zip(("task", "model", "subject"), words[chosen[0]], strict=True))
    return Run(Places(str(results), str(resources)), named)


def _windows(asked: str, table: pd.DataFrame, path: Path) -> list[Window]:
    """The windows that are asked for, each once; MemlocError for one that the table lacks."""
    n_layers = int(table.index.get_level_values("end").max()) if len(table) else 0
    names = dict.fromkeys(word.strip() for word in asked.split(","))
    windows = [parse_window(name, n_layers) for name in names]
    if lacking := [window_name(window) for window in windows if window not in table.index]:
        raise MemlocError(f"{path} has no window {', '.join(lacking)}: name some that it has")
    return windows


def _compared(run: Run, name: str, asked: str) -> tuple[list[str], bool]:
    """One table's windows beside the same computed again."""
    path = run.folder / f"{name}.tsv"
    table = read_windows(path)
    windows = _windows(asked, table, path)
    made = made_by(run, name, windows[0])
    same_threads(made)
    with tempfile.TemporaryDirectory(prefix="memloc-") as scratch:
        again = COMPUTE[name](run, windows, made, Path(scratch))
    others = list(differences(made))
    rows, same = compared_rows(name, windows, table, again, exactly=not others)
    head = ["window", "number", "in the table", "again", "difference", "n"]
    verdict = "NOT THE SAME" if not same else "within rounding" if others else "the same"
    title = f"{'/'.join(run.folder.parts[-3:])}/{name}.tsv: {verdict}{''.join(others)}"
    return [title, *align([head, *rows], (0, 1)), ""], same


def compared_rows(
    name: str, windows: list[Window], table: pd.DataFrame, again: pd.DataFrame, exactly: bool
) -> tuple[list[list[str]], bool]:
    """A row of texts for each number to be shown, and whether all numbers are the same.

    Every column is compared, and those beside SHOWN are shown where they differ. Counts must be
    equal. Unless `exactly`, errors may differ by rounding, of as many examples as were counted
    again: the table's own counts are among what is to be verified.
    """
    rows, same = [], True
    for window, column in _cells(windows):
        was, now = table.loc[window, column], again.loc[window, column]
        counted = [int(again.loc[window, count]) for count in COUNTS.get(column, ())]
        equal = was == now or (was != was and now != now)
        most = 0.0 if exactly else sum(rounding(name, n) for n in counted)
        same &= equal or abs(now - was) <= most * (1 + 1e-9)  # 11/12 - 10/12 is above 1/12
        if not equal or column in SHOWN:
            rows.append([window_name(window), column, f"{was:.6g}", f"{now:.6g}",
                         "0" if equal else f"{now - was:+.6g}",
                         "+".join(map(str, counted))])  # fmt: skip
    return rows, bool(same)


def _cells(windows: list[Window]) -> Iterator[tuple[Window, str]]:
    columns = [name for name in COLUMNS["windows"] if name not in ("start", "end")]
    ordered = [*SHOWN, *(name for name in columns if name not in SHOWN)]
    return ((window, column) for window in windows for column in ordered)


def rounding(name: str, n: int) -> float:
    """By how much rounding alone may move an error of n examples: by one of them at least; but not
    where there is one alone, since then anything would pass."""
    return max(1, ROUNDING[name] * n) / n if n > 1 else 0.0
