"""Whether a technique found anything in a task and model: the one rule that all parts share.

Where it found nothing, its weights are noise and lie near the middle layer by construction. Its
rows are marked in the summary (columns found and reason); what orders or averages depths leaves
them out.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from scipy import stats

from memloc.localise.probes.weights import THETA_M2
from memloc.localise.weights import whole_window
from memloc.study.techniques import Technique

LEVEL = 0.05  # of the one-sided tests: how often nothing may pass for something
UNREACHED = "θ_M1 was never reached"
NO_LABELS = "modifying all layers undoes no more than was never memorised"
CHANCE = "probes tell noisy examples no better than random labels"
ONE_PROBE = "one probe seed: no noise band to judge by"
UNDEFINED = "no seed has weights"


@dataclass(frozen=True)
class Outcome:
    """How far a run's training went: accuracy on noisy labels, whether theta_M1 was reached."""

    noisy_accuracy: float = 1.0
    reached: bool = True


def nothing_found(
    technique: Technique, tables: Mapping[int, pd.DataFrame], outcomes: Mapping[int, Outcome]
) -> str:
    """Why a technique found nothing in a task and model, "" where it found something.

    `tables`: the technique's table by seed; `outcomes`: of the same runs.
    """
    reads = technique.rule.reads if technique.rule else ()
    if "theta_M1" in reads and not any(outcomes[seed].reached for seed in tables):
        return UNREACHED
    if technique.windows:
        return "" if labels_undone(tables, outcomes) else NO_LABELS
    if technique.name == "probing":
        return noise_unseen(tables)
    return ""


def labels_undone(tables: Mapping[int, pd.DataFrame], outcomes: Mapping[int, Outcome]) -> bool:
    """Whether the window of all layers loses more noisy labels than the model never had.

    Two shares of the noisy examples of all seeds, compared one-sided by their normal band.
    """
    counts = lost = never = 0.0
    for seed, table in tables.items():
        whole = whole_window(table)
        counts += whole["n_noisy"]
        lost += whole["n_noisy"] * whole["noisy_error"]
        never += whole["n_noisy"] * (1 - outcomes[seed].noisy_accuracy)
    a, b = lost / counts, never / counts
    band = stats.norm.isf(LEVEL) * math.sqrt((a * (1 - a) + b * (1 - b)) / counts)
    return bool(a - b > band)


def noise_unseen(tables: Mapping[int, pd.DataFrame]) -> str:
    """Why noise probes count as having found nothing; "" where a layer stands out.

    Each probe of each seed gains F1 over random labels. A layer 1..L stands out where the mean gain
    exceeds its own noise over probes: a one-sided t test, Bonferroni over layers.
    """
    frame = pd.concat([table.assign(seed=seed) for seed, table in tables.items()])
    chosen = frame["kind"].eq("noise") & frame["examples"].eq("all") & frame["layer"].ge(1)
    frame = frame[chosen & frame["source"].eq(THETA_M2)]
    gains = (frame["f1"] - frame["f1_random"]).groupby(frame["layer"])
    count = int(gains.size().min()) if len(frame) else 0
    if count < 2:
        return ONE_PROBE
    band = stats.t.isf(LEVEL / gains.ngroups, count - 1) * gains.std() / math.sqrt(count)
    return "" if (gains.mean() > band).any() else CHANCE
