"""How far a memorisation centre of gravity can move, and how sure it is.

In a table of windows every weight is a mean over windows that cover a layer together with others,
so that M-CoG can't come near layer 1 or L: the attainable range says how near. The interval of an
M-CoG comes from leaving out single noisy examples (a jackknife of the tables per example) and from
the spread over seeds. Layers are 1..L.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy import stats

from memloc.errors import MemlocError
from memloc.windows import all_windows, window_of

CONFIDENCE = 0.95
LOWER, UPPER, OPEN = "lower", "upper", "open"


def window_parts(windows: Sequence[tuple[int, int]], n_layers: int) -> np.ndarray:
    """What one reverting window adds to sum w_l and to sum l * w_l: (windows, 2), up to a factor.

    A layer's weight is the mean of its column of the matrix, whose cell is the mean over all
    windows of one length that include the layer (section 4.1).
    """
    layers = np.arange(1, n_layers + 1)
    parts = np.empty((len(windows), 2))
    for row, (start, end) in enumerate(windows):
        length = end - start + 1
        first, last = np.maximum(1, layers - length + 1), np.minimum(layers, n_layers - length + 1)
        share = np.where((layers >= start) & (layers <= end), 1 / (last - first + 1), 0.0)
        parts[row] = share.sum(), (layers * share).sum()
    return parts


@cache
def attainable(n_layers: int) -> tuple[float, float]:
    """Lowest and highest M-CoG of a table of windows in which larger windows never revert less.

    The lowest is that of a model whose first layer holds everything: exactly the windows that
    include layer 1 revert. The highest is its mirror image.
    """
    windows = all_windows(n_layers)
    mass, moment = window_parts(windows, n_layers)[[start == 1 for start, _ in windows]].sum(axis=0)
    return moment / mass, n_layers + 1 - moment / mass


def rescaled(mcog: float, low: float, high: float, n_layers: int) -> float:
    """M-CoG with its attainable range stretched to 1..L.

    It lies beyond these where larger windows undid less than smaller ones.
    """
    return 1 + (n_layers - 1) * (mcog - low) / (high - low) if high > low else mcog


def example_error(tables: Mapping[int, pd.DataFrame], wholes: Mapping[int, float]) -> float:
    """Standard error over noisy examples of the M-CoG of the seeds' mean normalised weights.

    `tables`: by seed, index and a column per window: whether an example kept its perturbed label;
    `wholes`: by seed the error of the window of all layers, which its weights are divided by.
    """
    first = next(iter(tables.values()))
    windows = [window_of(name) for name in first.columns if name != "index"]
    parts = window_parts(windows, max(end for _, end in windows))
    both = np.zeros((len(first), 2))
    for seed, table in tables.items():
        ordered = table.set_index("index")
        if set(ordered.index) != set(first["index"]):
            raise MemlocError(
                f"seed {seed}: its table per example has other noisy examples than those of the "
                "other seeds; make the tables of this task and model again"
            )
        kept = ordered.loc[first["index"], [f"{s}-{e}" for s, e in windows]].to_numpy(bool)
        both += (~kept) @ parts / wholes[seed]
    rest = both.sum(axis=0) - both
    if len(both) < 2 or not (rest[:, 0] > 0).all():
        return math.nan
    without = rest[:, 1] / rest[:, 0]
    return float(np.sqrt((len(both) - 1) * without.var()))


@dataclass(frozen=True)
class Spread:
    """Standard error of an M-CoG, its degrees of freedom, and what it rests on."""

    error: float = math.nan
    freedom: float = math.nan
    basis: str = "none"

    def margin(self, confidence: float = CONFIDENCE) -> float:
        """Half the width of the interval; nan where there is none."""
        return float(stats.t.ppf((1 + confidence) / 2, self.freedom) * self.error)


def spread_of(of_examples: float, n_examples: int, sd_seeds: float, n_seeds: int) -> Spread:
    """Both sources as one: their variances add, degrees of freedom after Satterthwaite.

    of_examples: nan where there is no table per example; sd_seeds: nan for one seed.
    """
    parts = [
        ("examples", of_examples**2, n_examples - 1),
        ("seeds", sd_seeds**2 / max(n_seeds, 1), n_seeds - 1),
    ]
    known = [(name, variance, df) for name, variance, df in parts if not math.isnan(variance)]
    if not known:
        return Spread()
    total = sum(variance for _, variance, _ in known)
    weighed = sum(variance**2 / df for _, variance, df in known)
    freedom = total**2 / weighed if weighed else max(df for *_, df in known)
    return Spread(math.sqrt(total), freedom, " and ".join(name for name, *_ in known))


def leaning(mcog: float, n_layers: int, spread: Spread, n_tasks: int) -> str:
    """Which side of the middle, (L + 1) / 2, an M-CoG lies on for sure: lower, upper or open.

    The interval is wider the more tasks are judged (Bonferroni), so that in a study in which
    nothing leans at most 5 % are expected to name a task.
    """
    margin = spread.margin(1 - (1 - CONFIDENCE) / n_tasks)
    away = mcog - (n_layers + 1) / 2
    return (LOWER if away < 0 else UPPER) if abs(away) > margin else OPEN
