"""Half/half splits of the training examples (section 5, footnote 8): which ones a half trains on.

A half follows from the data seed and its own number alone, so that more halves leave the earlier
ones as they are. Numbers start at 1.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from memloc.errors import MemlocError
from memloc.seeds import derive
from memloc.store.provenance import sha256, write_provenance
from memloc.store.tables import read_parquet, write_parquet

LABEL_COLUMNS = {"original": "original_label", "perturbed": "label"}
SPLITS = ("random", "pairs")


def class_columns(n_classes: int) -> list[str]:
    """Names of the columns of a half's table that hold the classes' probabilities, by class id."""
    return [f"p_{number}" for number in range(n_classes)]


def read_half(path: str | Path, columns: list[str] | None = None) -> pd.DataFrame:
    """A half's table, or some columns of it.

    Raises MemlocError where a probability is missing or infinite: a mean over halves would leave it
    out in silence.
    """
    frame = read_parquet(path, columns)
    values = frame.drop(columns=["index", "trained"]).to_numpy("float64")
    wrong = ~np.isfinite(values)
    if wrong.any():
        row = int(wrong.any(axis=1).argmax())
        raise MemlocError(
            f"{path}: {int(wrong.any(axis=1).sum())} of {len(frame)} rows lack a probability (the "
            f"first is row {frame['index'].iloc[row]}, with {values[row][wrong[row]][0]}); delete "
            "it to have the half trained anew, at a lower generalisation.learning_rate if it is "
            "so again"
        )
    return frame


def trained_rows(
    labels: np.ndarray, half: int, data_seed: int, splits: str = "random", stratify: bool = False
) -> np.ndarray:
    """(n,) bool: whether half number `half` trains on each of n examples; n // 2 or one more do.

    `splits`: "random" draws every half on its own, as the paper does; with "pairs" half 2k trains
    on exactly what half 2k - 1 holds out, so each example is held out once per pair. `stratify`:
    halve each class (`labels`, (n,)) to within one example, rather than all of them together.
    """
    if splits not in SPLITS:
        raise MemlocError(f"generalisation.splits: {splits!r} is none of {', '.join(SPLITS)}")
    paired = splits == "pairs"
    draw = (half + 1) // 2 if paired else half
    purpose = "half pair" if paired else "half"
    order = np.random.default_rng(derive(data_seed, purpose, draw)).permutation(len(labels))
    if stratify:
        classes = np.unique(labels, return_inverse=True)[1]
        order = order[np.argsort(classes[order], kind="stable")]
    trained = np.zeros(len(labels), dtype=bool)
    trained[order[1::2]] = True  # every second one: neighbours are of one class when stratified
    return ~trained if paired and half % 2 == 0 else trained


def write_half(
    data: str | Path,
    output: str | Path,
    *,
    task: str,
    class_names: list[str],
    half: int,
    data_seed: int,
    splits: str,
    stratify: bool,
    labels: str,
) -> None:
    """Write a half's examples, columns index and trained, from a perturbed.parquet.

    `labels`: those trained on ("original" or "perturbed"); examples that have none are left out.
    Raises MemlocError when the half would train on no example of a class.
    """
    column = LABEL_COLUMNS[labels]
    frame = read_parquet(data, ["split", "index", column])
    frame = frame[(frame["split"] == "train") & frame[column].notna()]
    names = frame[column].to_numpy(dtype=object)
    if len(names) < 2:
        raise MemlocError(
            f"task {task}: {len(names)} training examples with {labels} labels can't be halved; "
            "raise data.max_train or add rows"
        )
    trained = trained_rows(names.astype(str), half, data_seed, splits, stratify)
    _refuse_missing_class(names, trained, class_names, f"task {task}, half {half}", stratify)
    table = pa.table({"index": frame["index"].to_numpy("int64"), "trained": trained})
    write_parquet(table, output)
    write_provenance(
        output,
        task=task,
        data_sha256=sha256(data),
        half=half,
        data_seed=data_seed,
        splits=splits,
        stratify=stratify,
        labels=labels,
        n_trained=int(trained.sum()),
        n_heldout=int((~trained).sum()),
    )


def _refuse_missing_class(
    names: np.ndarray, trained: np.ndarray, class_names: list[str], where: str, stratify: bool
) -> None:
    for name in class_names:
        among = names == name
        if among.any() and not (among & trained).any():
            remedy = (
                "" if stratify else "set generalisation.stratify: true to halve each class, or "
            )
            raise MemlocError(
                f"{where}: it would train on none of the {int(among.sum())} training examples of "
                f"class {name!r}; {remedy}leave the class out with filters.drop_labels, or raise "
                "data.max_train"
            )
