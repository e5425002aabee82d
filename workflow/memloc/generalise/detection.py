"""How well noisy rows are told from clean ones without their marks, by three ways to suspect a row.

Counterfactual memorisation (generalise.scores) stands beside the loss at theta_M1, mean over seeds,
and cleanlab's confident learning (Northcutt et al., 2021), which is given the class probabilities
of the models that were not trained on a row, averaged over halves. All are judged on the same rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from memloc.errors import MemlocError
from memloc.generalise.halves import class_columns, read_half
from memloc.generalise.scores import EXAMPLE_COLUMNS
from memloc.store.provenance import write_provenance
from memloc.store.tables import COLUMNS as TABLES
from memloc.store.tables import read_parquet, read_tsv, write_tsv
from memloc.study.noise import THRESHOLD

MEMORISATION, LOSS, CLEANLAB = "counterfactual memorisation", "loss of θ_M1", "cleanlab"
PAIR_COLUMNS = [
    "method", "auroc", "ci_low", "ci_high", "precision", "n_noisy", "n", "n_models",
    "flagged", "flagged_precision", "flagged_recall",
]  # fmt: skip
COLUMNS = ["task", "model", *PAIR_COLUMNS]


def auroc(noisy: np.ndarray, suspicion: np.ndarray) -> tuple[float, float, float]:
    """Area under the ROC curve of `suspicion` (n,), and its 95 % interval over rows: value, low,
    high. Ties count half.

    The variance is DeLong's (1988), the interval one of the logit, which stays within 0 and 1. It
    is nan where noisy and clean rows are told apart without error, or fewer than two are there.
    """
    above, below = suspicion[noisy], suspicion[~noisy]
    m, n = len(above), len(below)
    if not m or not n:
        return float("nan"), float("nan"), float("nan")
    together = stats.rankdata(np.concatenate([above, below]))
    of_noisy = (together[:m] - stats.rankdata(above)) / n  # share of clean rows below each
    of_clean = 1 - (together[m:] - stats.rankdata(below)) / m  # share of noisy rows above each
    area = float(of_noisy.mean())
    if min(m, n) < 2 or not 0 < area < 1:
        return area, float("nan"), float("nan")
    error = np.sqrt(of_noisy.var(ddof=1) / m + of_clean.var(ddof=1) / n)
    middle, half = np.log(area / (1 - area)), 1.96 * error / (area * (1 - area))
    low, high = 1 / (1 + np.exp(-(middle + np.array([-half, half]))))
    return area, float(low), float(high)


def precision_at(noisy: np.ndarray, suspicion: np.ndarray, count: int) -> float:
    """The share of noisy rows among the `count` most suspicious; nan of none.

    Of rows that tie for the last places as many are noisy as are on average, so that it doesn't
    depend on the order of rows.
    """
    if not count:
        return float("nan")
    last = np.sort(suspicion)[::-1][count - 1]
    above, tied = suspicion > last, suspicion == last
    places = count - above.sum()
    return float((noisy[above].sum() + places * noisy[tied].mean()) / count)


def held_out_probabilities(halves: Iterable[pd.DataFrame], n_classes: int) -> pd.DataFrame:
    """Class probabilities of each example, index x classes, averaged over the halves that held it
    out; rows sum to 1. Examples that none held out are absent.
    """
    rows = pd.concat(halves, ignore_index=True)
    held = rows[~rows["trained"]].groupby("index")[class_columns(n_classes)].mean()
    return held.div(held.sum(axis=1), axis=0)


def confident_learning(
    labels: np.ndarray, probabilities: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """cleanlab's suspicion of n rows, 1 - label quality, and the rows that it flags, bool (n,).

    labels: class ids (n,); probabilities (n, classes). Both are cleanlab's own defaults.
    """
    from cleanlab.filter import find_label_issues  # seconds to import
    from cleanlab.rank import get_label_quality_scores

    quality = get_label_quality_scores(labels, probabilities)
    return 1 - quality, find_label_issues(labels, probabilities, n_jobs=1)


def judged(
    method: str, noisy: np.ndarray, suspicion: np.ndarray, flagged: np.ndarray | None, models: int
) -> dict[str, object]:
    """A row of PAIR_COLUMNS. flagged (n,): the rows that a method names by itself; None: none."""
    area, low, high = auroc(noisy, suspicion)
    count, found = int(noisy.sum()), np.nan if flagged is None else int(flagged.sum())
    hits = np.nan if flagged is None else int((flagged & noisy).sum())
    values = [
        method, area, low, high, precision_at(noisy, suspicion, count), count, len(noisy), models,
        found, hits / found if found else np.nan, hits / count if count else np.nan,
    ]  # fmt: skip
    return dict(zip(PAIR_COLUMNS, values, strict=True))


def detection_table(
    examples: pd.DataFrame,
    labels: pd.Series,
    losses: Sequence[pd.DataFrame],
    halves: Sequence[pd.DataFrame],
    n_classes: int,
) -> pd.DataFrame:
    """A row per method, PAIR_COLUMNS, of one task and model.

    `examples`: rows of generalisation.tsv; `labels`: class ids by index; `losses`: a run's table
    each; `halves`: their tables. Rows that were never held out or never trained on are left out.
    """
    known = examples.dropna(subset="counterfactual_memorisation")
    if known.empty:
        raise MemlocError(
            "no training row was both held out and trained on: raise generalisation.halves, or set "
            "generalisation.splits: pairs"
        )
    index, noisy = known["index"], known["noisy"].to_numpy(dtype=bool)
    memorisation = known["counterfactual_memorisation"].to_numpy()
    loss = sum(table.set_index("index")["loss"].loc[index].to_numpy() for table in losses)
    held = held_out_probabilities(halves, n_classes).loc[index].to_numpy()
    suspicion, flagged = confident_learning(labels.loc[index].to_numpy(), held)
    rows = [
        judged(MEMORISATION, noisy, memorisation, memorisation >= THRESHOLD, len(halves)),
        judged(LOSS, noisy, np.asarray(loss), None, len(losses)),
        judged(CLEANLAB, noisy, suspicion, flagged, len(halves)),
    ]
    return pd.DataFrame(rows, columns=PAIR_COLUMNS)


# --- from files to files -------------------------------------------------------------------


def detect_noise(
    data: str | Path,
    generalisation: str | Path,
    losses: Sequence[str | Path],
    halves: Sequence[str | Path],
    output: str | Path,
    class_names: Sequence[str],
) -> None:
    """Write detection.tsv of one task and model from its tables; `data`: perturbed.parquet."""
    frame = read_parquet(data, ["split", "index", "label"])
    train = frame[frame["split"] == "train"].set_index("index")["label"]
    labels = train.map({name: number for number, name in enumerate(class_names)})
    columns = ["index", "trained", *class_columns(len(class_names))]
    examples = read_tsv(generalisation, EXAMPLE_COLUMNS)
    tables = [read_tsv(path, TABLES["losses"]) for path in losses]
    for path, table in zip(losses, tables, strict=True):
        if set(table["index"]) != set(examples["index"]):
            raise MemlocError(
                f"{path}: tells of other examples than {generalisation}; delete both to have them "
                "made anew"
            )
    of_halves = [read_half(path, columns) for path in halves]
    found = detection_table(examples, labels, tables, of_halves, len(class_names))
    write_tsv(found, output, PAIR_COLUMNS)
    write_provenance(output, n_halves=len(halves), n_seeds=len(losses), threshold=THRESHOLD)


def summarise_detection(
    tables: Sequence[str | Path], pairs: Sequence[Mapping[str, str]], output: str | Path
) -> None:
    """Write summary/detection.tsv: the rows of all tasks and models (`pairs`, in order)."""
    frames = [
        read_tsv(path, PAIR_COLUMNS).assign(**pair)
        for path, pair in zip(tables, pairs, strict=True)
    ]
    write_tsv(pd.concat(frames, ignore_index=True), output, COLUMNS)
