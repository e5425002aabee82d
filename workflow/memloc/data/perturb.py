"""Splits, subsets and perturbed labels: what the data seed decides (section 3; Table 1).

One data seed fixes them for all model seeds. Splits, subsets and labels are drawn from random
streams of their own, so that another ratio, for example, leaves the split as it is.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from memloc.errors import MemlocError, listed
from memloc.seeds import derive
from memloc.store.columns import text_names
from memloc.store.provenance import sha256, write_provenance
from memloc.store.tables import read_parquet, read_tsv, write_task

logger = logging.getLogger(__name__)


def perturb_file(
    source: str | Path,
    output: str | Path,
    *,
    task: str,
    labels: list[str],
    share: float | None,
    natural: bool,
    ratio: float,
    data_seed: int,
    rows_seed: int | None = None,
    max_train: int | None = None,
    max_heldout: int | None = None,
    unmarked: bool = False,
) -> None:
    """Write ``perturbed.parquet`` and its record from a retrieved table.

    Columns: split (train, validation, test), index (row of the retrieved table), the texts,
    original_label, label, noisy. `share`: size of the training part where the source has one
    split only; `natural`: the task brings its own noise, so nothing is flipped; `rows_seed`: draws
    splits and subsets in place of `data_seed`, where rows of another data seed are perturbed anew;
    `unmarked`: no label is perturbed and no row marked, for noisy rows will be found.
    """
    kept = natural or unmarked
    settings = {"ratio": None if kept else ratio, "data_seed": data_seed, "share": share}
    settings |= {"max_train": max_train, "max_heldout": max_heldout}
    settings |= {} if rows_seed is None else {"rows_seed": rows_seed}
    frame = read_parquet(source).reset_index(names="index")
    of_rows = data_seed if rows_seed is None else rows_seed
    frame = assign_splits(frame, share, of_rows, max_train, max_heldout)
    if unmarked:
        frame = _unmarked(frame, labels, task)
    elif natural:
        frame = _own_noise(frame, labels, task)
    else:
        frame = perturb(frame, labels, ratio, data_seed, task)
    _write(frame, output, labels, task=task, source_sha256=sha256(source), **settings)


def _write(
    frame: pd.DataFrame, output: str | Path, labels: list[str], task: str, **settings: Any
) -> None:
    """Write a task's table and its record; a warning where layer retraining has nothing to do."""
    frame = frame[["split", "index", *text_names(frame), "original_label", "label", "noisy"]]
    facts = describe(frame, labels)
    if facts["clean"] <= facts["noisy"]:
        logger.warning(
            "%s: %d noisy and %d clean training rows: layer retraining, which holds out as many "
            "clean rows as there are noisy ones, has none left to train on",
            *(task, facts["noisy"], facts["clean"]),
        )
    write_task(frame, output)
    write_provenance(output, task=task, **settings, **facts)
    logger.info(
        "%s: %d noisy and %d clean training rows, %d validation rows, %d test rows",
        *(task, facts["noisy"], facts["clean"]),
        *(facts["rows"][split] for split in ("validation", "test")),
    )


# --- noise that was found --------------------------------------------------------------------


def mark_file(
    unmarked: str | Path, found: str | Path, output: str | Path, settings: Mapping[str, Any]
) -> None:
    """Write ``perturbed.parquet`` of a task whose noisy rows were found (generalise.finding).

    `found`: found.tsv, columns index and found. A noisy row keeps its label, and has no original
    one, as natural noise that nobody corrected: θ_O is trained without it. `settings` are those of
    perturb_file, and `finding`, which says how rows were found, for the record.
    """
    task, labels = settings["task"], settings["labels"]
    frame, table = read_parquet(unmarked), read_tsv(found, ["index", "found"])
    train = frame["split"] == "train"
    if list(frame.loc[train, "index"]) != list(table["index"]):
        raise MemlocError(
            f"{found}: tells of other rows than the training rows of {unmarked}; delete it to have "
            "it made anew"
        )
    noisy = train.copy()
    noisy[train] = table["found"].to_numpy(dtype=bool)
    frame = frame.assign(noisy=noisy, original_label=frame["label"].where(~noisy, None))
    known = {key: settings[key] for key in ("data_seed", "share", "max_train", "max_heldout")}
    digests = {"source_sha256": sha256(unmarked), "found_sha256": sha256(found)}
    _write(frame, output, labels, task=task, ratio=None, noise=settings["finding"], **known,
           **digests)  # fmt: skip


# --- splits --------------------------------------------------------------------------------


def assign_splits(
    frame: pd.DataFrame,
    share: float | None,
    data_seed: int,
    max_train: int | None = None,
    max_heldout: int | None = None,
) -> pd.DataFrame:
    """Rows with split train, validation or test; order within a split is the source's.

    A split "all" gives int(share * n) shuffled rows to training, the rest is held out. Subsets
    are drawn next. The held-out part is then shuffled and halved; validation gets the smaller
    half of an odd number.
    """
    if "all" in set(frame["split"]):
        order = _generator(data_seed, "split").permutation(len(frame))
        assert share is not None, "a task file that reads one split gives its share"
        n_train = int(share * len(frame))
        train, heldout = order[:n_train], order[n_train:]
    else:
        train = np.flatnonzero(frame["split"] == "train")
        heldout = np.flatnonzero(frame["split"] == "heldout")
    train = _subset(train, max_train, data_seed, "max_train")
    heldout = _subset(heldout, max_heldout, data_seed, "max_heldout")
    heldout = _generator(data_seed, "halves").permutation(heldout)
    parts = {"train": train}
    parts["validation"], parts["test"] = np.split(heldout, [len(heldout) // 2])
    for name, rows in parts.items():
        if not len(rows):
            limit = ", or raise data.max_heldout" if max_heldout is not None else ""
            raise MemlocError(f"split {name}: no rows. Add rows{limit}.")
    whole = [frame.iloc[np.sort(rows)].assign(split=name) for name, rows in parts.items()]
    return _true_heldout(pd.concat(whole, ignore_index=True))


def _subset(rows: np.ndarray, most: int | None, seed: int, purpose: str) -> np.ndarray:
    if most is None or len(rows) <= most:
        return rows
    return _generator(seed, purpose).choice(rows, most, replace=False)


def _true_heldout(frame: pd.DataFrame) -> pd.DataFrame:
    """With natural noise and a split of our own, held-out rows too must carry true labels."""
    if "noisy" not in frame:
        return frame
    wrong = (frame["split"] != "train") & frame["noisy"]
    corrected = wrong & frame["original_label"].notna()
    frame.loc[corrected, "label"] = frame.loc[corrected, "original_label"]
    frame.loc[wrong, "noisy"] = False
    return frame[~(wrong & ~corrected)].reset_index(drop=True)


# --- labels --------------------------------------------------------------------------------


def perturb(
    frame: pd.DataFrame, labels: list[str], ratio: float, data_seed: int, task: str
) -> pd.DataFrame:
    """Give int(ratio * n) training rows of each class a label drawn uniformly from the others.

    Adds original_label and noisy; validation and test rows keep their labels. Raises
    MemlocError for a ratio outside (0, 1), a label outside `labels`, and a class too small.
    """
    if not 0 < ratio < 1:
        raise MemlocError(
            f"config key perturbation.ratio: {ratio} is not between 0 and 1. The paper uses 0.15."
        )
    unknown = sorted(set(frame["label"]) - set(labels))
    if unknown:
        raise MemlocError(
            f"task {task}: label {unknown[0]!r} is not among {', '.join(labels)}. Add it to labels "
            "in the task file, or leave its rows out with filters.drop_labels."
        )
    original = frame["label"].to_numpy(dtype=object)
    changed = original.copy()
    training = (frame["split"] == "train").to_numpy()
    for name in labels:
        rows = np.flatnonzero(training & (original == name))
        n_noisy = int(ratio * len(rows))
        if n_noisy == 0:
            raise MemlocError(
                f"task {task}: class {name!r} has {len(rows)} training examples, too few to "
                f"perturb {ratio:.0%} of them (at least {int(np.ceil(1 / ratio))} are needed). "
                "Raise perturbation.ratio or data.max_train, or leave the class out with "
                "filters.drop_labels."
            )
        stream = _generator(data_seed, "perturbation", name)
        chosen = stream.permutation(rows)[:n_noisy]
        others = np.array([other for other in labels if other != name], dtype=object)
        changed[chosen] = others[stream.integers(len(others), size=n_noisy)]
    return frame.assign(original_label=original, label=changed, noisy=changed != original)


def _unmarked(frame: pd.DataFrame, labels: list[str], task: str) -> pd.DataFrame:
    """The frame with its labels as they are and no row marked, if every class has a row."""
    lacking = sorted(set(labels) - set(frame.loc[frame["split"] == "train", "label"]))
    if lacking:
        raise MemlocError(
            f"task {task}: no training row has the label {listed(lacking)}. Add some, raise "
            "data.max_train, or leave the class out with filters.drop_labels."
        )
    return frame.assign(original_label=frame["label"], noisy=False)


def _own_noise(frame: pd.DataFrame, labels: list[str], task: str) -> pd.DataFrame:
    """The frame as it is, if every class has a true example, and some rows are noisy, not all."""
    train = frame[frame["split"] == "train"]
    true = {name: int((train["original_label"] == name).sum()) for name in labels}
    given = {name: int((train["label"] == name).sum()) for name in labels}
    lacking = [name for name in labels if not true[name]]
    if lacking:
        raise MemlocError(
            f"task {task}: no training row is known to be truly {listed(lacking)}: all with that "
            "label are marked noisy, so that θ_O, trained on true labels, would have no example "
            "of it. Mark fewer rows, give corrections (columns.corrected), raise data.max_train, "
            "or leave the class out with filters.drop_labels."
        )
    for name in labels:
        if 2 * true[name] < given[name]:
            logger.warning(
                "%s: class %s has %d training rows, but only %d known to be truly of it: θ_O has "
                "no other example of that class",
                *(task, name, given[name], true[name]),
            )
    noisy = frame["noisy"].sum()
    if noisy == 0 or noisy == (frame["split"] == "train").sum():
        raise MemlocError(
            f"task {task}: columns.noisy marks {noisy} training rows. Memorisation is measured on "
            "noisy against clean rows: mark some, not none or all; or remove columns.noisy to have "
            "labels perturbed."
        )
    return frame


# --- facts ---------------------------------------------------------------------------------


def describe(frame: pd.DataFrame, labels: list[str]) -> dict[str, Any]:
    """Counts for provenance and tasks.tsv: sizes, noise, labels, duplicates."""
    train = frame[frame["split"] == "train"]
    return {
        "rows": {
            name: int((frame["split"] == name).sum()) for name in ("train", "validation", "test")
        },
        "noisy": int(train["noisy"].sum()),
        "clean": int((~train["noisy"]).sum()),
        "noisy_uncorrected": int(train["original_label"].isna().sum()),
        "noisy_by_original_label": _by(train, "original_label", labels),
        "noisy_by_label": _by(train, "label", labels),
        "label_counts": {name: int((train["label"] == name).sum()) for name in labels},
        **duplicates(frame),
    }


def duplicates(frame: pd.DataFrame) -> dict[str, int]:
    """Count rows with exactly the same texts.

    train_repeats: training rows that repeat an earlier one. heldout_in_train: held-out rows
    whose texts are in training too. conflicting: training rows whose texts occur with more
    than one label, which cannot all be memorised; conflicting_before: the same of the original
    labels (rows without one left out).
    """
    texts = text_names(frame)
    train, heldout = frame[frame["split"] == "train"], frame[frame["split"] != "train"]
    known = set(train[texts].itertuples(index=False, name=None))
    return {
        "train_repeats": int(train.duplicated(texts).sum()),
        "heldout_in_train": sum(
            row in known for row in heldout[texts].itertuples(index=False, name=None)
        ),
        "conflicting": _conflicts(train, texts, "label"),
        "conflicting_before": _conflicts(
            train.dropna(subset="original_label"), texts, "original_label"
        ),
    }


def _conflicts(train: pd.DataFrame, texts: list[str], column: str) -> int:
    return int((train.groupby(texts, sort=False)[column].transform("nunique") > 1).sum())


def _by(train: pd.DataFrame, column: str, labels: list[str]) -> dict[str, int]:
    noisy = train[train["noisy"]]
    return {name: int((noisy[column] == name).sum()) for name in labels}


def _generator(seed: int, *purpose: str) -> np.random.Generator:
    return np.random.default_rng(derive(seed, *purpose))
