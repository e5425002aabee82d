"""The tables of all runs: one seed's table of one technique each, and how its training went."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.errors import MemlocError
from memloc.localise.found import Outcome
from memloc.store.tables import read_parquet, read_tsv
from memloc.study.techniques import TECHNIQUES, Technique, known


@dataclass(frozen=True)
class Run:
    """One seed's table of one technique for one task and model.

    examples: of windows, whether each noisy example kept its perturbed label; outcome: how far the
    model's training went.
    """

    technique: str
    task: str
    model: str
    seed: int
    frame: pd.DataFrame
    examples: pd.DataFrame | None = None
    outcome: Outcome = field(default_factory=Outcome)


Seeds = dict[int, Run]
Groups = dict[tuple[str, str, str], Seeds]  # by task, model, technique; by seed


def tables_of(seeds: Seeds) -> dict[int, pd.DataFrame]:
    """The seeds' tables."""
    return {seed: run.frame for seed, run in seeds.items()}


def outcomes(training: pd.DataFrame) -> dict[tuple[str, str, int], Outcome]:
    """How far training went by task, model and seed, from training.tsv."""
    frame = training[training["labels"] == "perturbed"]
    return {
        (row.task, row.model, row.seed): Outcome(row.noisy_accuracy, row.memorised_epoch != "none")
        for row in frame.itertuples()
    }


def read_runs(
    paths: Iterable[str | Path],
    runs: Iterable[Mapping[str, Any]],
    training: pd.DataFrame,
    examples: Iterable[str | Path] | None = (),
    techniques: Mapping[str, Technique] = TECHNIQUES,
) -> list[Run]:
    """Runs from their files: `runs` says technique, task, model, seed of each path, in order.

    `examples`: the tables per example of those among them that are of windows, in the same order,
    or None to do without; `training`: training.tsv.
    """
    went, runs, found = outcomes(training), list(runs), []
    named = [known(run["technique"], techniques) for run in runs]
    of_windows = [i for i, technique in enumerate(named) if technique.windows]
    kept = {} if examples is None else dict(zip(of_windows, examples, strict=True))
    for i, (path, run, technique) in enumerate(zip(paths, runs, named, strict=True)):
        frame = read_tsv(path, technique.columns)
        of = run["task"], run["model"], run["seed"]
        if of not in went:
            raise MemlocError(f"{path}: training.tsv lacks its run {of}: make that table again")
        table = read_parquet(kept[i]) if i in kept else None
        found.append(Run(technique.name, *of, frame, table, went[of]))
    return found


def grouped(runs: Iterable[Run]) -> Groups:
    """Runs by what they are of, in order of appearance; MemlocError for two of one seed."""
    groups: Groups = {}
    for run in runs:
        seeds = groups.setdefault((run.task, run.model, run.technique), {})
        if run.seed in seeds:
            raise MemlocError(
                f"{run.task}/{run.model}: two {run.technique} tables of seed {run.seed}."
            )
        seeds[run.seed] = run
    return groups
