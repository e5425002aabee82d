"""How much of the variance of M-CoG is due to the task, to its noise and to the model seed.

The M-CoGs of single runs of one technique and model are taken as a mean plus random effects of the
task, of the data seed within the task, of the model seed within the task, and a rest. Data seeds
and model seeds are crossed: each model seed (head, order, dropout) is run on each draw of noise.
The variances are REML estimates of a mixed model (statsmodels), which are never below 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from statsmodels.regression.mixed_linear_model import MixedLM

from memloc.budget.words import number_of
from memloc.localise.found import nothing_found
from memloc.localise.weights import centre_of_gravity
from memloc.store.files import read_json
from memloc.store.tables import COLUMNS as TABLES
from memloc.store.tables import read_tsv, write_tsv
from memloc.study.data_seeds import further_seed, task_of
from memloc.study.techniques import TECHNIQUES, Technique, with_options
from memloc.summary.runs import Run, grouped, read_runs, tables_of
from memloc.summary.training import summarise_training

COLUMNS = [
    "technique", "model", "component", "variance", "sd", "share", "n_levels", "df", "n_runs",
    "n_left_out", "note",
]  # fmt: skip
TASK, DATA_SEED, MODEL_SEED, RESIDUAL = "task", "data_seed", "model_seed", "residual"
# A factor's effects in the mixed model, whose groups are the tasks.
EFFECTS = {TASK: "1", DATA_SEED: "0 + C(data_seed)", MODEL_SEED: "0 + C(model_seed)"}
LEVELS = {
    TASK: "it takes two tasks", DATA_SEED: "it takes two data seeds of a task",
    MODEL_SEED: "it takes two model seeds of a task",
}  # fmt: skip
TOO_FEW = "too few runs to tell the parts apart"
BOUNDS = (1e-4, 1e4)  # of a standard deviation as a multiple of the residual one
STARTS = (0.3, 1, 3, 10, 30)
ROUNDING = 1e-9  # of numbers that are all alike
FEW = 5  # degrees of freedom below which an estimate is called rough


def centres(runs: Iterable[Run], techniques: Mapping[str, Technique] = TECHNIQUES) -> pd.DataFrame:
    """M-CoG of each run: frame technique, model, task, data_seed, model_seed, mcog.

    data_seed is "first" for a task under the study's own. M-CoG is nan where a run's weights are
    undefined or all 0, and where the technique found nothing in its task, data seed and model.
    """
    rows = []
    for (name, model, technique), seeds in grouped(runs).items():
        found = techniques[technique]
        went = {seed: run.outcome for seed, run in seeds.items()}
        nothing = nothing_found(found, tables_of(seeds), went)
        further = further_seed(name)
        key = {"technique": technique, "model": model, "task": task_of(name)}
        key |= {"data_seed": "first" if further is None else str(further)}
        for seed, run in seeds.items():
            centre = centre_of_gravity(found.weights(run.frame)["weight"])
            rows.append(key | {"model_seed": str(seed), "mcog": np.nan if nothing else centre})
    return pd.DataFrame(rows)


def freedom(runs: pd.DataFrame) -> dict[str, int]:
    """Degrees of freedom of each factor, and of the rest, in a frame of runs."""
    tasks = runs.groupby(TASK)
    found = {TASK: tasks.ngroups - 1}
    found |= {name: int((tasks[name].nunique() - 1).sum()) for name in (DATA_SEED, MODEL_SEED)}
    return found | {RESIDUAL: len(runs) - 1 - sum(found.values())}


def reml(runs: pd.DataFrame, factors: Sequence[str]) -> dict[str, float]:
    """REML variances of the M-CoG by factor, and the residual one; nan where the fit fails.

    The restricted likelihood is statsmodels' own; its `fit` breaks off where a variance is 0, which
    is common with few levels, so that scipy looks for the maximum within bounds, and without
    gradients, which vanish there.
    """
    spread = float(runs["mcog"].std())
    alike = np.ptp(runs["mcog"]) <= ROUNDING * max(1.0, runs["mcog"].abs().max())
    if not factors or alike:
        return dict.fromkeys(factors, 0.0) | {RESIDUAL: 0.0 if alike else spread**2}
    effects = {name: EFFECTS[name] for name in factors}
    scaled = runs.assign(mcog=runs["mcog"] / spread)
    model = MixedLM.from_formula("mcog ~ 1", scaled, groups=TASK, vc_formula=effects)
    model.cov_pen = None  # which only `fit` would set
    count = len(factors)
    # from several starts, and anew from the best end: a search can get stuck at a variance of 0
    ends = [_searched(model, np.full(count, start)) for start in STARTS]
    best = _searched(model, min(ends, key=lambda end: end.fun).x)
    found = best.x
    if not best.success or np.max(found) > 0.99 * BOUNDS[1]:  # next to no rest: no maximum
        return dict.fromkeys([*factors, RESIDUAL], np.nan)
    none, ratios = np.zeros((0, 0)), found**2  # there are no other random effects
    fixed, _ = model.get_fe_params(none, ratios)
    rest = float(model.get_scale(fixed, none, ratios)) * spread**2
    named = zip(model.exog_vc.names, ratios, strict=True)
    return {name: float(ratio) * rest for name, ratio in named} | {RESIDUAL: rest}


def _searched(model: Any, start: np.ndarray) -> Any:
    """The most likely roots of variances, as multiples of the residual one, near a start."""
    return minimize(
        lambda roots: -model.loglike(roots),
        start,
        bounds=[BOUNDS] * len(start),
        method="Nelder-Mead",
        options={"xatol": 1e-6, "fatol": 1e-9, "maxiter": 2000},
    )


def parts(runs: pd.DataFrame) -> tuple[dict[str, float], dict[str, str]]:
    """Variance by component, and why one is missing or what it holds besides: (variances, notes).

    `runs`: task, data_seed, model_seed, mcog, one row per run. With one level of a seed, the other
    seed's effects are those of single runs: its variance holds the rest, which has no row's own.
    """
    free = freedom(runs)
    factors = [name for name in EFFECTS if free[name] > 0]
    notes = {name: LEVELS[name] for name in EFFECTS if name not in factors}
    last = factors[-1] if factors else None
    if free[RESIDUAL] > 0:
        return reml(runs, factors), notes
    if last is None or len(runs.groupby([*{TASK, last}])) < len(runs):
        return {}, dict.fromkeys([*EFFECTS, RESIDUAL], TOO_FEW) | notes
    found = reml(runs, factors[:-1])
    found[last] = found.pop(RESIDUAL)
    said = {last: "holds what else differs between runs", RESIDUAL: f"counted with {last}"}
    return found, notes | said


def components(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of variance.tsv of one technique and model, without these: component to note.

    `runs`: task, data_seed, model_seed, mcog; runs without an M-CoG are counted and left out.
    """
    kept = runs.dropna(subset="mcog")
    found, notes = parts(kept)
    free, total = freedom(kept), sum(found.values())
    rows = []
    for name in (*EFFECTS, RESIDUAL):
        variance = found.get(name, np.nan)
        note, df = notes.get(name, ""), max(0, free[name])
        if name in found and np.isnan(variance):
            note = "the fit did not converge"
        elif name in found and df < FEW:
            rough = f"rough: {number_of(df, 'degree')} of freedom"
            note = f"{note}; {rough}" if note else rough
        rows.append(
            {"component": name, "variance": variance, "sd": np.sqrt(variance),
             "share": variance / total if total > 0 else np.nan,
             "n_levels": len(kept) if name == RESIDUAL else kept[name].nunique(), "df": df,
             "n_runs": len(kept), "n_left_out": len(runs) - len(kept), "note": note}
        )  # fmt: skip
    return rows


def write_variance(
    tables: Iterable[str | Path],
    runs: Iterable[Mapping[str, Any]],
    histories: Iterable[str | Path],
    records: Iterable[str | Path],
    trainings: Sequence[Mapping[str, Any]],
    output: str | Path,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    techniques: Mapping[str, Technique] = TECHNIQUES,
) -> None:
    """Write summary/variance.tsv from the runs' tables (see `read_runs`) under every data seed.

    `histories` and `records` are those of theta_M2 of `trainings`, which say how far these went.
    """
    techniques = with_options(techniques, options or {})
    went = summarise_training(
        [read_tsv(path, TABLES["history"]) for path in histories],
        [read_json(path) for path in records],
        trainings,
    )
    frame = centres(read_runs(tables, runs, went, None, techniques), techniques)
    rows = [
        {"technique": technique, "model": model, **row}
        for (technique, model), part in frame.groupby(["technique", "model"], sort=False)
        for row in components(part)
    ]
    write_tsv(pd.DataFrame(rows), output, COLUMNS)
