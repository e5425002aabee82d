"""Which rows of a task count as noisy, where nobody marked them: those that models memorise.

A row's counterfactual memorisation (section 5; generalise.scores) is the label's probability from
models that trained on the row, less that from models that didn't. Rows from a threshold on, or the
most memorised share, count as noisy. With several models the mean over models decides.
"""

import logging
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd

from memloc.errors import MemlocError, listed
from memloc.generalise.halves import read_half
from memloc.generalise.scores import refuse_strangers, score_examples
from memloc.store.provenance import sha256, write_provenance
from memloc.store.tables import read_parquet, write_tsv

logger = logging.getLogger(__name__)
SCORES = ["counterfactual_memorisation", "generalisation", "training_memorisation"]
COLUMNS = ["index", "label", *SCORES, "n_heldout", "n_trained", "found"]


def chosen(
    index: np.ndarray, memorisation: np.ndarray, criterion: Mapping[str, float]
) -> np.ndarray:
    """(n,) bool: the rows that count as noisy, by their numbers and memorisation, both (n,).

    `criterion`: {"threshold": t}, the rows of t or more; or {"share": s}, the int(s * n) most
    memorised ones, of equally memorised rows those of lower number.
    """
    if "threshold" in criterion:
        return memorisation >= criterion["threshold"]
    found = np.zeros(len(index), dtype=bool)
    order = np.lexsort((index, -memorisation))
    found[order[: int(Decimal(str(criterion["share"])) * len(index))]] = True
    return found


def mean_scores(
    halves: Mapping[str, Sequence[pd.DataFrame]], examples: pd.DataFrame
) -> pd.DataFrame:
    """A row per example, COLUMNS but label and found: means over models of their halves' scores.

    `halves`: each model's tables of halves; `examples` has index. Models share their splits, so
    that the numbers of halves are those of each model.
    """
    examples = examples[["index"]].assign(noisy=False)
    scores = [score_examples(halves[model], examples, chance=0) for model in sorted(halves)]
    means = sum(each[SCORES] for each in scores) / len(scores)
    return pd.concat([scores[0][["index", "n_heldout", "n_trained"]], means], axis=1)


def find_noise(
    unmarked: str | Path,
    halves: Mapping[str, Mapping[int, str | Path]],
    output: str | Path,
    *,
    task: str,
    labels: Sequence[str],
    criterion: Mapping[str, float],
) -> None:
    """Write found.tsv, a row per training row of unmarked.parquet, and its record.

    `halves`: by model and number, the tables of halves. Raises MemlocError where a row was never
    held out or never trained on or lacks a probability, where a label has no rows, and where none,
    half or more, or all of a class would be noisy.
    """
    frame = read_parquet(unmarked, ["split", "index", "label"])
    examples = frame[frame["split"] == "train"].reset_index(drop=True)
    tables = {m: {n: read_half(path) for n, path in own.items()} for m, own in halves.items()}
    for model, own in tables.items():
        refuse_strangers(own, halves[model], examples)
    rows = mean_scores({m: list(own.values()) for m, own in tables.items()}, examples)
    rows = rows.assign(label=examples["label"])
    where = f"task {task}"
    _refuse_empty_classes(rows, labels, where)
    _refuse_unscored(rows, where)
    memorisation = rows["counterfactual_memorisation"].to_numpy()
    rows["found"] = chosen(rows["index"].to_numpy(), memorisation, criterion)
    _refuse_too_few(rows, criterion, where)
    _refuse_too_many(rows, criterion, labels, where)
    write_tsv(rows, output, COLUMNS)
    by_label = rows.loc[rows["found"], "label"].value_counts()
    facts = {
        "n": len(rows),
        "n_found": int(rows["found"].sum()),
        "found_by_label": {name: int(by_label.get(name, 0)) for name in labels},
        "least_memorised_found": float(memorisation[rows["found"]].min()),
        "most_memorised": float(memorisation.max()),
    }
    numbers = sorted(next(iter(tables.values())))
    write_provenance(output, task=task, source_sha256=sha256(unmarked), models=sorted(halves),
                     halves=numbers, criterion=dict(criterion), **facts)  # fmt: skip
    logger.info("%s: %d of %d rows count as noisy", where, facts["n_found"], len(rows))


def _remedy(criterion: Mapping[str, float], word: str) -> str:
    return f"{word} perturbation.found.{next(iter(criterion))}"


def _refuse_empty_classes(rows: pd.DataFrame, labels: Sequence[str], where: str) -> None:
    if absent := [name for name in labels if not (rows["label"] == name).any()]:
        raise MemlocError(
            f"{where}: no training row has the label {listed(absent)}, so that no model could "
            "learn it: leave the class out with filters.drop_labels, or raise data.max_train"
        )


def _refuse_unscored(rows: pd.DataFrame, where: str) -> None:
    never = rows[rows["counterfactual_memorisation"].isna()]
    if len(never):
        raise MemlocError(
            f"{where}: {len(never)} of {len(rows)} training rows (the first is row "
            f"{never['index'].iloc[0]}) were held out of no half, or trained on in none: raise "
            "generalisation.halves (finished halves stay), or set generalisation.splits: pairs"
        )


def _refuse_too_few(rows: pd.DataFrame, criterion: Mapping[str, float], where: str) -> None:
    """Raise MemlocError where no row is found, or one that isn't memorised at all."""
    top = rows.loc[rows["counterfactual_memorisation"].idxmax()]
    largest = f"{top['counterfactual_memorisation']:.3f} (row {top['index']})"
    longer = "or have halves memorise more (generalisation.epochs, generalisation.learning_rate)"
    if not rows["found"].any():
        wanted = " ".join(f"{key} {value:g}" for key, value in criterion.items())
        change = _remedy(criterion, "lower" if "threshold" in criterion else "raise")
        raise MemlocError(
            f"{where}: by {wanted} none of {len(rows)} training rows counts as noisy; the largest "
            f"counterfactual memorisation is {largest}: {change}, {longer}"
        )
    least = rows.loc[rows["found"], "counterfactual_memorisation"].min()
    if not least > 0:
        raise MemlocError(
            f"{where}: among the share of {criterion['share']:g} are rows that aren't memorised at "
            f"all (counterfactual memorisation {least:.3f}; the largest is {largest}): lower "
            f"perturbation.found.share, {longer}"
        )


def _refuse_too_many(
    rows: pd.DataFrame, criterion: Mapping[str, float], labels: Sequence[str], where: str
) -> None:
    """Raise MemlocError where half of the rows or more are found, or all of a class."""
    change = _remedy(criterion, "raise" if "threshold" in criterion else "lower")
    found = int(rows["found"].sum())
    if 2 * found >= len(rows):
        median = rows["counterfactual_memorisation"].median()
        raise MemlocError(
            f"{where}: {found} of {len(rows)} training rows would count as noisy, and clean ones "
            f"must outnumber them; half of the rows have a counterfactual memorisation of "
            f"{median:.3f} or more: {change}, or train halves less (generalisation.epochs)"
        )
    whole = [name for name in labels if rows.loc[rows["label"] == name, "found"].all()]
    if whole:
        raise MemlocError(
            f"{where}: all training rows of {listed(whole)} would count as noisy, so that θ_O, "
            f"which is trained without noisy rows, would have no example of it: {change}, or leave "
            "the class out with filters.drop_labels"
        )
