"""Generalisation score and counterfactual memorisation from half/half trainings (section 5).

An example's generalisation is the mean probability of its label over the halves that held it out,
its training memorisation the same over those that trained on it, its counterfactual memorisation
the difference of the two (Feldman 2020; Zhang et al. 2023). A task's generalisation score is the
share of its examples whose generalisation exceeds random guessing, 1 / classes.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memloc.errors import MemlocError
from memloc.generalise.baselines import COLUMNS as BASELINES
from memloc.generalise.baselines import baselines, scaled
from memloc.generalise.halves import LABEL_COLUMNS, read_half
from memloc.store.provenance import write_provenance
from memloc.store.tables import COLUMNS as TABLES
from memloc.store.tables import read_parquet, read_tsv, write_tsv

logger = logging.getLogger(__name__)
EXAMPLE_COLUMNS = [
    "index", "noisy", "n_heldout", "n_trained", "generalisation", "training_memorisation",
    "counterfactual_memorisation", "above_chance",
]  # fmt: skip
HALF_COLUMNS = [
    "half", "n_heldout", "n_trained", "score", "probability_heldout", "probability_trained",
    "chance",
]  # fmt: skip
COLUMNS = [
    "task", "model", "score", "sd", "validation_accuracy", "validation_scaled", "n_examples",
    "n_halves", "score_clean", "score_noisy", "validation_sd", "n_never_heldout", "chance",
    *BASELINES,
]  # fmt: skip
NEVER = "none"  # above_chance of an example that no half held out


def score_examples(
    halves: Sequence[pd.DataFrame], examples: pd.DataFrame, chance: float
) -> pd.DataFrame:
    """A row per example (EXAMPLE_COLUMNS) from the halves' tables (index, trained, probability).

    `examples` has index and noisy. above_chance is "yes", "no", or "none" for an example that was
    never held out, whose generalisation is nan; one never trained on has no training memorisation.
    """
    rows = pd.concat(halves, ignore_index=True)
    grouped = rows.groupby(["trained", "index"])["probability"].agg(["size", "mean"])
    found = examples[["index", "noisy"]].set_index("index")
    for kind, count, mean in [
        (False, "n_heldout", "generalisation"),
        (True, "n_trained", "training_memorisation"),
    ]:
        present = kind in grouped.index.get_level_values(0)
        part = grouped.loc[kind] if present else grouped.iloc[:0].droplevel(0)
        found[count] = part["size"].reindex(found.index).fillna(0).astype("int64")
        found[mean] = part["mean"].reindex(found.index)
    found["counterfactual_memorisation"] = found["training_memorisation"] - found["generalisation"]
    above = np.where(found["generalisation"] > chance, "yes", "no")
    found["above_chance"] = np.where(found["n_heldout"] > 0, above, NEVER)
    return found.reset_index()[EXAMPLE_COLUMNS]


def score_halves(halves: Mapping[int, pd.DataFrame], chance: float) -> pd.DataFrame:
    """A row per half (HALF_COLUMNS): its own score is that of the examples it held out."""
    rows = []
    for number, frame in halves.items():
        trained = frame["trained"].to_numpy(dtype=bool)
        probability = frame["probability"].to_numpy()
        held = probability[~trained]
        rows.append(
            {
                "half": number,
                "n_heldout": len(held),
                "n_trained": int(trained.sum()),
                "score": float((held > chance).mean()),
                "probability_heldout": float(held.mean()),
                "probability_trained": float(probability[trained].mean()),
                "chance": chance,
            }
        )
    return pd.DataFrame(rows, columns=HALF_COLUMNS)


def share_above(examples: pd.DataFrame) -> float:
    """The generalisation score of examples (rows of generalisation.tsv); nan where none counts.

    Examples that were never held out don't count.
    """
    counted = examples.loc[examples["above_chance"] != NEVER, "above_chance"]
    return float((counted == "yes").mean()) if len(counted) else float("nan")


# --- from files to files -------------------------------------------------------------------


def gather_halves(
    data: str | Path,
    halves: Mapping[int, str | Path],
    output: str | Path,
    output_halves: str | Path,
    n_classes: int,
) -> None:
    """Write generalisation.tsv and generalisation_halves.tsv of one task and model.

    `halves` maps a half's number to its table; `data` is the task's perturbed.parquet.
    """
    frame = read_parquet(data, ["split", "index", "noisy"])
    examples = frame[frame["split"] == "train"]
    tables = {number: read_half(path) for number, path in halves.items()}
    refuse_strangers(tables, halves, examples)
    chance = 1 / n_classes
    found = score_examples(list(tables.values()), examples, chance)
    by_half = score_halves(tables, chance)
    missing = int((found["above_chance"] == NEVER).sum())
    if missing:
        logger.warning(
            "%d of %d training examples were never held out: the score leaves them out; more "
            "halves, or generalisation.splits: pairs, would hold out each of them",
            missing,
            len(found),
        )
    write_tsv(by_half, output_halves, HALF_COLUMNS)
    write_tsv(found, output, EXAMPLE_COLUMNS)
    score = share_above(found)
    facts = {"score": score, "n_never_heldout": missing, "chance": chance}
    write_provenance(output, halves=list(halves), **facts)
    logger.info("score %.4f over %d halves", score, len(by_half))


def refuse_strangers(
    tables: Mapping[int, pd.DataFrame], paths: Mapping[int, str | Path], examples: pd.DataFrame
) -> None:
    known = set(examples["index"])
    for number, table in tables.items():
        if not table["index"].is_unique or not set(table["index"]) <= known:
            raise MemlocError(
                f"{paths[number]}: holds examples that aren't in the task's training data, or some "
                "twice; delete it and train the half anew"
            )


def generalisation_row(
    examples: pd.DataFrame,
    halves: pd.DataFrame,
    histories: Sequence[pd.DataFrame],
    data: pd.DataFrame,
    labels: str,
) -> dict[str, Any]:
    """One task and model of the summary, all COLUMNS but task and model.

    `histories` are the history tables of its seeds, `data` the task's perturbed.parquet, `labels`
    those trained on (original or perturbed). sd: over the halves' own scores (ddof 1), each
    of which rests on one model, not on the mean over several as `score` does.
    """
    chance = float(halves["chance"].iloc[0])
    ends = [h.sort_values("epoch")["validation_accuracy"].iloc[-1] for h in histories]
    accuracy = pd.Series(ends, dtype=float)
    never = examples["above_chance"] == NEVER
    return {
        "score": share_above(examples),
        "sd": halves["score"].std(),
        "validation_accuracy": accuracy.mean(),
        "validation_scaled": scaled(accuracy.mean(), chance),
        "n_examples": int((~never).sum()),
        "n_halves": len(halves),
        "score_clean": share_above(examples[~examples["noisy"]]),
        "score_noisy": share_above(examples[examples["noisy"]]),
        "validation_sd": accuracy.std(),
        "n_never_heldout": int(never.sum()),
        "chance": chance,
        **baselines(examples, data, LABEL_COLUMNS[labels], accuracy.mean(), round(1 / chance)),
    }


def summarise_generalisation(
    tables: Iterable[str | Path],
    halves: Iterable[str | Path],
    pairs: Sequence[Mapping[str, str]],
    histories: Iterable[str | Path],
    runs: Iterable[Mapping[str, Any]],
    data: Mapping[str, str | Path],
    labels: str,
    output: str | Path,
) -> None:
    """Write summary/generalisation.tsv: a row per task and model.

    `pairs` says task and model of each of `tables` and `halves`, `runs` those (and the seed) of
    each of `histories`, both in order. `data`: perturbed.parquet by task; `labels`: those trained
    on, original or perturbed.
    """
    trained: dict[tuple[str, str], list[pd.DataFrame]] = {}
    for path, run in zip(histories, runs, strict=True):
        history = read_tsv(path, TABLES["history"])
        trained.setdefault((run["task"], run["model"]), []).append(history)
    columns = ["split", "index", *dict.fromkeys(["label", LABEL_COLUMNS[labels]])]
    labelled = {task: read_parquet(path, columns) for task, path in data.items()}
    rows = []
    for table, by_half, pair in zip(tables, halves, pairs, strict=True):
        examples, own = read_tsv(table, EXAMPLE_COLUMNS), read_tsv(by_half, HALF_COLUMNS)
        key = pair["task"], pair["model"]
        found = generalisation_row(examples, own, trained[key], labelled[key[0]], labels)
        rows.append({"task": key[0], "model": key[1], **found})
    write_tsv(pd.DataFrame(rows, columns=COLUMNS), output, COLUMNS)
