"""How often the page would claim something of studies in which there is nothing to find.

Studies of some tasks x models are drawn in which the claim is false; models of one task resemble
each other (correlation .85, the paper's figure for retraining). Printed is the share of studies in
which the page's own rule claims it nevertheless, beside the share in which a p that takes all
task x model rows as independent does. Also: how often the intervals hold the truth, and what
agreement between models comes from pooling techniques that differ in level alone. In the part
"pointing", techniques know nothing of where memorisation was forced, and each prefers some layers.

    PYTHONPATH=workflow python benchmarks/null_claims.py [--studies 1000]
        [--parts depth partial lean pointing probes coverage level]
"""

import argparse
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from memloc.control.scores import WEIGHTS, Scored, hits, own_pairs
from memloc.localise import centre
from memloc.localise.found import noise_unseen
from memloc.localise.probes.weights import THETA_M2
from memloc.study.control import automatic_pairs, pair_name
from memloc.summary.centres import MIXED, leanings
from memloc.summary.pointing import ABOVE, claimed, interval
from memloc.summary.spearman import FEW, NONE, correlate
from memloc.windows import all_windows, window_name

DESIGNS = ((12, 4), (12, 1), (7, 4), (5, 1), (4, 1), (3, 1))
ALIKE = 0.85  # correlation of the models of one task
LAYERS, NOISY, SEEDS = 6, 60, 3
LEVEL_SPREAD = 2.0  # of techniques' mean M-CoG, in standard deviations over tasks


def draws(rng: np.random.Generator, tasks: int, models: int) -> np.ndarray:
    """Normal values (models, tasks) that the models of a task share to the degree of ALIKE."""
    shared, own = rng.normal(size=(1, tasks)), rng.normal(size=(models, tasks))
    return np.sqrt(ALIKE) * shared + np.sqrt(1 - ALIKE) * own


def as_pairs(x: np.ndarray, y: np.ndarray, **held: np.ndarray) -> pd.DataFrame:
    models, tasks = x.shape
    strata, names = (part.ravel() for part in np.indices((models, tasks)))
    frame = pd.DataFrame({"stratum": strata, "task": names, "x": x.ravel(), "y": y.ravel()})
    return frame.assign(**{name: values[names] for name, values in held.items()})


def depth(rng: np.random.Generator, tasks: int, models: int) -> tuple[bool, bool]:
    """Depth goes with generalisation (headline, Table 2, Figures 8 and 9): ours, and pooled p."""
    pairs = as_pairs(draws(rng, tasks, models), draws(rng, tasks, models))
    found = correlate(pairs, int(rng.integers(2**32)))
    return found["claim"] not in (NONE, FEW), stats.spearmanr(pairs["x"], pairs["y"]).pvalue < 0.05


def partial(rng: np.random.Generator, tasks: int, models: int) -> tuple[bool, bool]:
    """The same with classes and balance held fixed, where both quantities follow these alone."""
    classes, balance = rng.choice([2, 2, 2, 5, 6, 7, 8], size=tasks), rng.random(tasks)
    follows = 0.5 * (classes - 4) + balance
    pairs = as_pairs(
        draws(rng, tasks, models) + follows, draws(rng, tasks, models) + follows,
        classes=classes, balance=balance,
    )  # fmt: skip
    found = correlate(pairs, int(rng.integers(2**32)), ("classes", "balance"))
    return found["claim"] not in (NONE, FEW), stats.spearmanr(pairs["x"], pairs["y"]).pvalue < 0.05


def reverting(rng: np.random.Generator, wanted: np.ndarray, spread: float) -> np.ndarray:
    """Whether each window reverts each example: it must hold two layers, drawn about `wanted`."""
    held = np.rint(wanted[:, None] + rng.normal(scale=spread, size=(len(wanted), 2)))
    held = np.clip(held, 1, LAYERS)
    return np.array([((held >= s) & (held <= e)).all(axis=1) for s, e in all_windows(LAYERS)]).T


def lean(rng: np.random.Generator, tasks: int, models: int) -> tuple[bool, bool]:
    """Memorisation leans on some task, where all lie at the middle: ours, and a fixed margin."""
    windows, middle, rows = all_windows(LAYERS), (LAYERS + 1) / 2, []
    parts = centre.window_parts(windows, LAYERS)
    for task in range(tasks):
        where = rng.normal(scale=np.sqrt(ALIKE), size=NOISY)  # of an example, in all models
        for model in range(models):
            own = where + rng.normal(scale=np.sqrt(1 - ALIKE), size=NOISY)
            seeds = [
                reverting(rng, middle + own + rng.normal(scale=0.1), 1.0) for _ in range(SEEDS)
            ]
            totals = [reverts.sum(axis=0) @ parts for reverts in seeds]
            error = centre.example_error(
                {s: kept_table(reverts, windows) for s, reverts in enumerate(seeds)},
                dict.fromkeys(range(SEEDS), 1.0),
            )
            whole = sum(totals)
            sd = float(np.std([moment / mass for mass, moment in totals], ddof=1))
            spread = centre.spread_of(error, NOISY, sd, SEEDS)
            side = centre.leaning(whole[1] / whole[0], LAYERS, spread, tasks)
            away = (whole[1] / whole[0] - middle) / (LAYERS - 1)
            rows.append((task, model, "swapping", whole[1] / whole[0], side, spread.basis, away))
    names = ["task", "model", "technique", "mcog", "leans", "resampled", "away"]
    frame = pd.DataFrame(rows, columns=names).assign(found="yes")
    same = frame["away"].groupby(frame["task"]).agg(lambda a: (a > 0.02).all() or (a < -0.02).all())
    return not set(leanings(frame)) <= {centre.OPEN, MIXED}, bool(same.any())


def kept_table(reverts: np.ndarray, windows: Sequence[tuple[int, int]]) -> pd.DataFrame:
    frame = pd.DataFrame(~reverts, columns=[window_name(window) for window in windows])
    return frame.assign(index=range(len(frame)))


def pointing(rng: np.random.Generator, tasks: int, models: int) -> tuple[bool, bool]:
    """One of four techniques is above chance: ours, and a t test of control models against 2 / L.

    A technique prefers layers of its own wherever memorisation was forced, a task does so too.
    """
    layers, scored = 12, []
    pairs = [pair_name(pair) for pair in automatic_pairs(layers)]
    for technique in range(4):
        liked = rng.normal(size=layers)
        for task in range(tasks):
            shared = liked + np.sqrt(ALIKE) * rng.normal(size=layers)
            for model, pair in product(range(models), pairs):
                key = dict(task=task, model=model, role="test", technique=technique, scores=WEIGHTS)
                own = shared + np.sqrt(1 - ALIKE) * rng.normal(size=layers)
                scored.append(Scored(key, pair, own))
    found = hits(scored)
    found = found[found["k"] == 1]
    table = claimed(found, ["technique", "scores"], int(rng.integers(2**32)))
    of_all = table[table["model"] == table["model"].iloc[0]]
    groups = own_pairs(found).groupby("technique")["accuracy"]
    pooled = [stats.ttest_1samp(a, 2 / layers, alternative="greater").pvalue for _, a in groups]
    return bool((of_all["claim"] == ABOVE).any()), min(pooled) < 0.05


def pointing_covered(rng: np.random.Generator, tasks: int, models: int, rate: float) -> bool:
    """Whether the interval of accuracy@1 over tasks holds the truth; tasks differ by a beta law."""
    own = rng.beta(3 * rate, 3 * (1 - rate), size=tasks)
    low, high = interval(rng.binomial(3 * models, own) / (3 * models))
    return low <= rate <= high


def probes_at_chance(rng: np.random.Generator) -> tuple[bool, bool]:
    """Whether probes that learnt nothing count as having found noise; and by a fixed .05 of F1.

    Gains over random labels are 0 but for the noise of a test part, alike in neighbouring layers.
    """
    shared, own = rng.normal(size=(SEEDS, 5, 1)), rng.normal(size=(SEEDS, 5, LAYERS))
    gains = 0.1 * (shared + own)
    seeds, _, layers = (part.ravel() for part in np.indices(gains.shape))
    frame = pd.DataFrame({"layer": layers + 1, "f1": 0.2 + gains.ravel(), "f1_random": 0.2})
    frame = frame.assign(kind="noise", examples="all", source=THETA_M2)
    ours = not noise_unseen({s: frame[seeds == s] for s in range(SEEDS)})
    return ours, bool(gains.mean(axis=(0, 1)).max() > 0.05)


def covered(rng: np.random.Generator, tasks: int, models: int, rho: float) -> bool:
    """Whether the interval of a study holds the truth; `rho`: of one model's normal draws."""
    x = draws(rng, tasks, models)
    y = rho * x + np.sqrt(1 - rho**2) * draws(rng, tasks, models)
    found = correlate(as_pairs(x, y), int(rng.integers(2**32)))
    return bool(found["ci_low"] <= 6 / np.pi * np.arcsin(rho / 2) <= found["ci_high"])


def level_alone(rng: np.random.Generator, techniques: int = 4) -> tuple[float, float]:
    """Agreement of two models that share nothing but the techniques' levels: within, and pooled."""
    levels = rng.normal(scale=LEVEL_SPREAD, size=(techniques, 1))
    pairs = as_pairs(*(levels + rng.normal(size=(techniques, 12)) for _ in range(2)))
    found = correlate(pairs, 0)
    return found["rho"], found["rho_pooled"]


Study = Callable[[np.random.Generator, int, int], tuple[bool, bool]]
CLAIMS: dict[str, Study] = {"depth": depth, "partial": partial, "lean": lean, "pointing": pointing}


def shares(name: str, rng: np.random.Generator, studies: int, draw: Callable) -> None:
    """Print the mean of what `draw` gives of each study."""
    found = np.mean([draw(rng) for _ in range(studies)], axis=0)
    print(f"{name:<40}", *(f"{value:.3f}" for value in np.atleast_1d(found)), flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--parts", nargs="*", default=[*CLAIMS, "probes", "coverage", "level"])
    options = parser.parse_args(arguments)
    print("false claims of our rule, and of the naive one; coverage; agreement within, and pooled")
    for name in [name for name in CLAIMS if name in options.parts]:
        for size in DESIGNS:
            study = CLAIMS[name]
            title = f"{name}, {size[0]} x {size[1]}"
            rng = np.random.default_rng(size)
            shares(title, rng, options.studies, lambda r, f=study, s=size: f(r, *s))
    rng = np.random.default_rng(1)
    if "probes" in options.parts:
        shares("probes at chance, one subject", rng, options.studies, probes_at_chance)
    if "coverage" in options.parts:
        for tasks, models, rho in product((12, 6), (4, 1), (0.0, 0.5, 0.8)):
            title = f"coverage, {tasks} x {models}, rho {rho}"
            shares(title, rng, options.studies,
                   lambda r, given=(tasks, models, rho): covered(r, *given))  # fmt: skip
        for tasks, models, rate in product((12, 6), (4, 1), (1 / 6, 0.6, 0.95)):
            title = f"coverage of accuracy@1, {tasks} x {models}, {rate:.2f}"
            shares(title, rng, options.studies,
                   lambda r, given=(tasks, models, rate): pointing_covered(r, *given))  # fmt: skip
    if "level" in options.parts:
        shares("two models, techniques' levels alone", rng, options.studies, level_alone)


if __name__ == "__main__":
    main()
