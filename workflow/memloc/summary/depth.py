"""Correlations of the depth of memorisation: with generalisation (Table 2), and between events.

Frames are the summary's mcog, layer_weights, events and generalisation; what a study lacks gives no
rows. An event that never happens counts as layer L + 1; where it can't be told there is no depth
(nan): its pair is left out, and the note says so.
Each correlation is over tasks, within each model where there are several.
"""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from memloc.seeds import derive
from memloc.study import published
from memloc.study.techniques import TECHNIQUES
from memloc.summary.spearman import correlate

BINARY = "-binary"
KEYS = ["task", "model"]
CENTROID_EVENTS = ("crossing", "initiation")
GENERALISATION = ("score", "validation_scaled")
BASELINES = ("score_above_prior", "validation_above_majority")  # beyond the paper
HELD = ("n_classes", "balance")  # what Table 2 holds fixed once more
PARTIAL = "generalisation-partial"
POOLED = "all"


def main_tasks(tasks: Iterable[str]) -> list[str]:
    """The tasks without those that are binarised variants of others among them."""
    found = list(dict.fromkeys(tasks))
    return [t for t in found if not (t.endswith(BINARY) and t.removesuffix(BINARY) in found)]


def depths(mcog: pd.DataFrame, events: pd.DataFrame | None) -> pd.DataFrame:
    """Layers by depth measure, a column each, indexed by task and model.

    "mcog" is the mean over the paper's techniques that were run, "mcog:NAME" a technique's own.
    """
    paper = [name for name, technique in TECHNIQUES.items() if technique.paper]
    techniques = mcog["technique"].unique()
    wide = mcog.pivot(index=KEYS, columns="technique", values="mcog")
    found = wide.rename(columns=lambda name: f"mcog:{name}")
    found.insert(0, "mcog", levelled_mean(wide[[n for n in paper if n in techniques]]))
    if events is not None and len(events):
        trained = events[events["source"].isin(["trained", "none"])]
        layers = trained.pivot(index=KEYS, columns="event", values="layer")
        found = found.join(layers.astype(float), how="outer")
    pairs = pd.MultiIndex.from_frame(mcog[KEYS].drop_duplicates())
    return found.reindex(pairs.append(found.index.difference(pairs)))


def levelled_mean(wide: pd.DataFrame) -> pd.Series:
    """Mean over columns (techniques) of a frame indexed by task and model.

    Techniques differ in level. Where some are missing for a task, the others' distances from their
    own means over the model's tasks stand for them, so that no task moves for lack of a technique.
    """
    means = wide.groupby(level="model").transform("mean")
    moved = (wide - means).mean(axis=1) + means.mean(axis=1)
    return wide.mean(axis=1).where(wide.notna().all(axis=1), moved)


def over_techniques(mcog: pd.DataFrame) -> pd.DataFrame:
    """mcog and sd over techniques by task and model, from those rows of mcog.tsv that count.

    The answer and Figure 7 both show these numbers.
    """
    wide = mcog.pivot(index=KEYS, columns="technique", values="mcog")
    return pd.DataFrame({"mcog": levelled_mean(wide), "sd": wide.std(axis=1)})


def commonest(layers: pd.Series) -> list[str]:
    """The models that have the commonest number of layers; only their layers can be pooled."""
    return list(layers.index[layers == layers.mode().iloc[0]]) if len(layers) else []


def depth_row(
    frame: pd.DataFrame,
    x: str,
    y: str,
    seed: int,
    *,
    measure: str,
    level: str,
    a: str,
    b: str,
    paper: float = np.nan,
    held: Sequence[str] = (),
) -> dict:
    """A row of correlations.tsv from two columns of a frame indexed by task (and model).

    `held`: columns that are held fixed, constant in a task.
    """
    pairs = frame.reset_index().rename(columns={"model": "stratum"})
    pairs = pairs.assign(x=frame[x].to_numpy(), y=frame[y].to_numpy())
    found = correlate(pairs, derive(seed, measure, level, a, b), held)
    lost = len(pairs) - found["n_pairs"]
    notes = [found["note"], f"{lost} left out: no value" if lost else ""]
    where = {"family": measure, "measure": measure, "level": level, "a": a, "b": b}
    return where | found | {"paper_rho": paper, "note": "; ".join(filter(None, notes))}


def pooled_and_each(frame: pd.DataFrame, peers: list[str]) -> dict[str, pd.DataFrame]:
    """The part of a frame of the models that can be pooled, and that of each model, by level."""
    pooled = {POOLED: frame[frame.index.isin(peers, level="model")]}
    return pooled | dict(iter(frame.groupby(level="model", sort=False)))


def with_generalisation(frame: pd.DataFrame, peers: list[str], seed: int) -> list[dict]:
    """Table 2, depth against generalisation: of the models `peers` together, and of each model.

    Beside it, against the scores of other baselines, and with classes and balance held fixed.
    """
    rows = []
    names = [n for n in ("crossing", "probing-memorisation") if n in frame]  # as in the paper
    names += [n for n in frame if n.startswith("mcog")]
    for level, part in pooled_and_each(frame, peers).items():
        for depth, target in product(names, (*GENERALISATION, *BASELINES)):
            facts: Any = dict(level=level, a=depth, b=target)
            paper = published.table_2(depth, target, level)
            row = depth_row(
                part, depth, target, seed, measure="generalisation", paper=paper, **facts
            )
            rows.append(row | {"family": _family(depth, target)})
            if ":" not in depth and target in GENERALISATION:
                rows.append(
                    depth_row(part, depth, target, seed, measure=PARTIAL, held=HELD, **facts)
                )
    return rows


def _family(depth: str, target: str) -> str:
    """The table that a correlation of depth with generalisation stands in."""
    if target in BASELINES:
        return "generalisation-baselines"
    return "generalisation-technique" if ":" in depth else "generalisation"


def between_events(frame: pd.DataFrame, peers: list[str], seed: int) -> list[dict]:
    """Centroid against probing events, pooled and for each model."""
    rows = []
    parts = pooled_and_each(frame, peers)
    for (centroid, probing), rho in published.EVENTS.items():
        if {centroid, probing} <= set(frame):
            for level, part in parts.items():
                facts = dict(measure="events", level=level, a=centroid, b=probing)
                paper = rho if level == POOLED else np.nan
                rows.append(depth_row(part, centroid, probing, seed, **facts, paper=paper))
    return rows


def depth_rows(
    found: pd.DataFrame, peers: list[str], generalisation: pd.DataFrame | None, seed: int
) -> list[dict]:
    """Rows of Table 2 (None: not run) and of events, from the `depths` of the main tasks."""
    rows = []
    if generalisation is not None and len(generalisation):
        target = generalisation.set_index(KEYS)[[*GENERALISATION, *BASELINES, *HELD]]
        rows += with_generalisation(found.join(target), peers, seed)
    return rows + between_events(found, peers, seed)
