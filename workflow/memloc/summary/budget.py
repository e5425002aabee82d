"""Tables of the budget: results/budget.tsv before the run, and predicted against actual after."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.budget import budget
from memloc.budget import finished as actual
from memloc.budget.model import CostModel, Job
from memloc.budget.sizes import Sizes
from memloc.machine.gpus import local_gpu
from memloc.store.tables import read_tsv, write_tsv

Plain = tuple[str, dict[str, str], list, list[int], int, int]


def write_budget(
    output: str | Path,
    plan: Sequence[Plain],
    config: Mapping[str, Any],
    tasks: Mapping[str, Any],
    folders: Mapping[str, str],
    patterns: Mapping[str, tuple[str, Sequence[str]]],
    gpus: Sequence[int],
    device: str | None,
) -> budget.Budget:
    """Write the budget of a plan (budget.COLUMNS), calibrated with the jobs that have finished.

    `plan`: see `planning.plain`; `folders`: where results and resources lie; `patterns`: where
    benchmarks lie, see `actual.finished_jobs`; `device`: on which it runs, if that is known.
    """
    jobs = [
        Job(rule, wildcards, tuple(map(tuple, outputs)), tuple(needs), gpu, threads)
        for rule, wildcards, outputs, needs, gpu, threads in plan
    ]
    # A machine without a GPU may be a cluster's front end, so that only a GPU is taken as such.
    model = CostModel(
        Sizes(config, tasks, **folders, in_files=lambda name: tasks[name].get("in_files")),
        device,
        actual.finished_jobs(patterns),
        local=local_gpu() is not None,
    )
    found = budget.make_budget(jobs, model, gpus)
    write_tsv(pd.DataFrame(budget.table(found)), output, budget.COLUMNS)
    return found


def write_actual(
    output: str | Path,
    predicted: str | Path,
    patterns: Mapping[str, tuple[str, Sequence[str]]],
) -> None:
    """Write predicted against actual hours per stage and model (actual.COLUMNS).

    `predicted`: a budget.tsv; `patterns`: where benchmarks lie, see `actual.finished_jobs`.
    """
    rows = read_tsv(predicted, budget.COLUMNS).to_dict("records")
    table = actual.compare(rows, actual.finished_jobs(patterns, at_most=None))
    write_tsv(pd.DataFrame(table, columns=actual.COLUMNS), output, actual.COLUMNS)
