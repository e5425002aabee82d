"""From raw rows to one table: columns picked, rows filtered, labels named, noise read.

What a task file says is done in this order: rows without any content dropped, columns picked,
repeats found among all documents, labels read, rows filtered and repeats dropped, labels named,
noise read, empty texts refused or dropped. What is wrong with rows is told at once, at the end.
"""

import math
from collections import Counter
from typing import Any

import pandas as pd

from memloc.data.faults import PLACE, by_value, places, raise_all
from memloc.data.readers import ROW
from memloc.errors import MemlocError, listed, shortly
from memloc.progress import progress
from memloc.study.tasks import Task, alternatives, as_text, label_map, text_columns

TRUE, FALSE = ("1", "true", "yes"), ("0", "false", "no", "")
LONGEST_TEXT = 1_000_000  # characters: a long book; models read some hundred words of it
UNREAD = "…"  # stands for a text or score that is refused, until all faults are told


def normalise(raw: dict[str, pd.DataFrame], task: Task) -> tuple[pd.DataFrame, dict[str, int]]:
    """One table of all splits as the task file maps and filters it, and rows dropped by reason.

    Raises MemlocError that tells all bad rows, grouped by their values.
    """
    dropped: dict[str, int] = {}
    faults: list[str] = []
    names = ("all",) if "all" in task["split"] else ("train", "heldout")
    parts = [
        _pick(_with_content(part, task, dropped), task, name)
        for name, part in zip(names, raw.values(), strict=True)
    ]
    frame = _read(pd.concat(parts, ignore_index=True), task, faults)
    frame = _filter(frame, task, dropped, faults)
    if "noisy" in task["columns"]:
        frame = _natural_noise(frame, task, dropped, faults)
    frame = _without_empty(frame, task, dropped, faults)
    raise_all(faults)
    frame = _binarise(frame, task, dropped)
    return frame.drop(columns=[ROW]).reset_index(drop=True), dropped


def _with_content(raw: pd.DataFrame, task: Task, dropped: dict[str, int]) -> pd.DataFrame:
    """With `drop_empty`, rows that have neither texts nor a label or score are left out."""
    if not task.get("drop_empty", False):
        return raw
    empty = pd.Series(True, index=raw.index)
    for name in [*task["columns"]["text"], _label_column(task)]:
        empty &= _column(raw, name).map(as_text) == ""
    return _drop(raw, empty, "empty row", dropped)


def _pick(raw: pd.DataFrame, task: Task, split: str) -> pd.DataFrame:
    """The columns we use under our names, all raw: split, texts, label (or score), noise, ROW."""
    columns = task["columns"]
    texts = {
        name: _column(raw, column)
        for name, column in zip(text_columns(task), columns["text"], strict=True)
    }
    frame = pd.DataFrame({"split": split} | texts, index=raw.index, dtype=object)
    frame["label"] = _column(raw, _label_column(task))
    if "noisy" in columns:
        frame["noisy"] = _column(raw, columns["noisy"])
        if "corrected" in columns:
            frame["original_label"] = _column(raw, columns["corrected"])
    frame[ROW] = raw[ROW]
    return frame


def _label_column(task: Task) -> str:
    return str(task["columns"].get("label") or task["label_from_score"]["column"])


def _read(frame: pd.DataFrame, task: Task, faults: list[str]) -> pd.DataFrame:
    """Texts as texts, and labels of scores."""
    read: dict[str, list[Any]] = {
        name: _as_texts(frame, name, faults) for name in text_columns(task)
    }
    if "label_from_score" in task:
        read["label"] = _signs(frame, task["label_from_score"], faults)
    return frame.assign(**{name: pd.Series(read[name], frame.index, object) for name in read})


def _column(raw: pd.DataFrame, wish: str) -> pd.Series:
    """The column of that name; files of one split may each have another of `a|b`."""
    # A name may itself hold a bar, or begin with a space.
    names = dict.fromkeys((wish, *alternatives(wish)))
    first, *others = [raw[name] for name in names if name in raw] or [None]
    for other in others:
        first = first.where(first.notna(), other)
    if first is not None:
        return first
    found = PLACE.fullmatch(raw[ROW].iloc[0]) if len(raw) else None
    raise MemlocError(
        f"{found.group(1) if found else 'the source'}: has no column {wish!r}; it has "
        f"{listed(name for name in raw if name != ROW)}. Correct `columns` in the task file."
    )


def _as_texts(frame: pd.DataFrame, name: str, faults: list[str]) -> list[str]:
    """A text column's values as texts; a missing one is empty."""
    texts, others, odd = [], [], []
    pairs = zip(frame[name], frame[ROW], strict=True)
    for value, row in progress(pairs, len(frame), f"texts of column {name} checked"):
        text = UNREAD
        if isinstance(value, list | tuple | dict | bytes):
            others.append((f"{shortly(value)}, a {type(value).__name__}", row))
        elif value is None or value is pd.NA or value != value:
            text = ""
        elif why := _unreadable(value if isinstance(value, str) else str(value)):
            odd.append((f"{why} in {shortly(value)}", row))
        else:
            text = str(value)
        texts.append(text)
    if others:
        faults.append(
            f"{places(row for _, row in others)}: column {name!r} holds {others[0][0]} and not a "
            "text. Join its parts to one text in the file, or name another column under "
            "columns.text."
        )
    if odd:
        faults.append(
            f"{places(row for _, row in odd)}: column {name!r} holds {odd[0][0]}. Remove it, or "
            "write the file anew from its source as UTF-8, one document per row."
        )
    return texts


def _unreadable(text: str) -> str | None:
    """What makes a text none that a model should read; None for any other.

    Half a character, as a JSON "\\ud83d" alone is, can be neither stored nor tokenised. NUL stands
    in texts of another encoding (UTF-16) or in no text at all. Models read the beginning alone of
    a text as long as a book, while all of it would be held and tokenised many times.
    """
    if len(text) > LONGEST_TEXT:
        return f"{len(text):,} characters, more than the {LONGEST_TEXT:,} that memloc reads,"
    if "\0" in text:
        return f"NUL at character {text.index(chr(0)) + 1}"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        return f"{half!r} at character {error.start + 1}, half of a character (a lone surrogate)"
    return None


def _signs(frame: pd.DataFrame, rule: dict[str, Any], faults: list[str]) -> list[str | None]:
    """Label of each row's score; None where the score is too near zero to tell."""
    least = rule.get("least", 0)
    signs: list[str | None] = []
    odd: list[tuple[Any, str]] = []
    for value, row in zip(frame["label"], frame[ROW], strict=True):
        score = _finite(value)
        if score is None:
            odd.append((as_text(value) and value, row))
        far = score is not None and abs(score) >= least and score != 0
        signs.append((rule["positive"] if (score or 0) > 0 else rule["negative"]) if far else None)
    if odd:
        faults.append(
            f"{rule['column']} is not a finite number: {by_value(*zip(*odd, strict=True))}. Mend "
            "it, leave the rows out of the file, or correct label_from_score.column."
        )
    return signs


def _finite(value: Any) -> float | None:
    """A score as a number; None where it is missing, nan, infinite or no number."""
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return score if math.isfinite(score) else None


def _drop(frame: pd.DataFrame, gone: pd.Series, why: str, dropped: dict[str, int]) -> pd.DataFrame:
    if gone.any():
        dropped[why] = dropped.get(why, 0) + int(gone.sum())
    return frame[~gone]


def _filter(
    frame: pd.DataFrame, task: Task, dropped: dict[str, int], faults: list[str]
) -> pd.DataFrame:
    """Apply the filters that look at labels; afterwards label holds label names."""
    filters = task.get("filters", {})
    # Before any row is left out: a copy of an earlier document goes, whatever that one's label.
    repeated = _repeats(frame, task) if filters.get("drop_repeats") else None
    if "label_from_score" in task:
        frame = _drop(frame, frame["label"].isna(), "score near zero", dropped)
    if filters.get("single_label"):
        topics = frame["label"].map(_topics)
        frame = _drop(frame, topics.map(len) != 1, "not exactly one label", dropped)
        frame = frame.assign(label=topics.map(lambda names: names[0] if names else None))
    frame = frame.assign(label=frame["label"].map(as_text))
    unwanted = [as_text(value) for value in filters.get("drop_labels", [])]
    frame = _drop(frame, frame["label"].isin(unwanted), "label left out", dropped)
    if "commonest" in filters:
        # Repeats count here, so that they are dropped only afterwards.
        counts = Counter(frame.loc[frame["split"] != "heldout", "label"])
        # Ties are broken by name, so that the choice does not hang on the order of rows.
        kept = sorted(counts, key=lambda name: (-counts[name], name))[: filters["commonest"]]
        frame = _drop(frame, ~frame["label"].isin(kept), "label not among the commonest", dropped)
    if repeated is not None:
        frame = _drop(frame, repeated[frame.index], "repeated text", dropped)
    return frame.assign(label=_named(frame["label"], frame[ROW], task, "label", faults))


def _repeats(frame: pd.DataFrame, task: Task) -> pd.Series:
    """Which rows have the texts of an earlier row of any split; empty texts are no copies."""
    texts = frame[text_columns(task)]
    empty = texts.apply(lambda column: column.str.strip() == "").any(axis=1)
    return texts.duplicated() & ~empty


def _topics(value: Any) -> list[str]:
    """The labels of one document: a list, or one text with `|` between them; none if empty."""
    if _is_list(value):
        return [as_text(name) for name in value]
    return [name for name in map(str.strip, as_text(value).split("|")) if name]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _named(
    values: pd.Series, rows: pd.Series, task: Task, column: str, faults: list[str]
) -> pd.Series:
    """Raw labels to label names; any other becomes nan and is told with its rows."""
    names = label_map(task)
    unknown = ~values.isin(list(names))
    if unknown.any():
        faults.append(
            f"{column} {by_value(values[unknown], rows[unknown])} is not among the labels of task "
            f"{task['name']} ({listed(task['all_labels'])}). Correct the rows, list the value "
            "under label_values, or leave such rows out with filters.drop_labels."
        )
    return values.map(names)


def _binarise(frame: pd.DataFrame, task: Task, dropped: dict[str, int]) -> pd.DataFrame:
    """Keep the two labels of a -binary task, which must be the commonest ones (Appendix C)."""
    if task["labels"] == task["all_labels"]:
        return frame
    counts = Counter(frame.loc[frame["split"] != "heldout", "label"])
    rest = max((counts[name] for name in counts if name not in task["labels"]), default=0)
    if min(counts[name] for name in task["labels"]) < rest:
        commonest = ", ".join(f"{name} ({n})" for name, n in counts.most_common(3))
        raise MemlocError(
            f"task {task['name']}: binary_labels are {', '.join(task['labels'])}, but the "
            f"commonest are {commonest}. Correct binary_labels in the task file."
        )
    gone = ~frame["label"].isin(task["labels"])
    if "original_label" in frame:
        gone |= frame["original_label"].notna() & ~frame["original_label"].isin(task["labels"])
    return _drop(frame, gone, "label not among the two commonest", dropped)


def _without_empty(
    frame: pd.DataFrame, task: Task, dropped: dict[str, int], faults: list[str]
) -> pd.DataFrame:
    empty = pd.Series(False, index=frame.index)
    for column in text_columns(task):
        empty |= frame[column].str.strip() == ""
    # A binary variant leaves out the rows of other labels anyway.
    empty &= frame["label"].isin(task["labels"]) | frame["label"].isna()
    if empty.any() and not task.get("drop_empty", False):
        faults.append(
            f"{places(frame.loc[empty, ROW])}: empty text ({int(empty.sum())} rows of task "
            f"{task['name']}; columns {listed(text_columns(task))}). Fill them in, or set "
            "drop_empty: true in the task file."
        )
    return _drop(frame, empty, "empty text", dropped)


# --- natural noise ------------------------------------------------------------------------


def _natural_noise(
    frame: pd.DataFrame, task: Task, dropped: dict[str, int], faults: list[str]
) -> pd.DataFrame:
    """Read the task's own noise: noisy as bool, original_label as name or None.

    Held-out rows must carry true labels: a noisy one takes its correction, or is dropped.
    """
    frame = frame.assign(noisy=_truths(frame, task["columns"]["noisy"], faults))
    noisy = frame["noisy"].astype(bool)
    original = frame["label"].where(~noisy, None).astype(object)
    if "original_label" in frame:
        given = frame["original_label"].map(as_text)
        corrected = (given != "") & noisy
        original[corrected] = _named(
            given[corrected], frame.loc[corrected, ROW], task, "corrected label", faults
        )
        _tell_contradictions(frame, given, original, noisy, task, faults)
    frame = frame.assign(original_label=original)
    heldout = frame["split"] == "heldout"
    unknown = heldout & original.isna()
    frame.loc[heldout & noisy & ~unknown, "label"] = original
    frame.loc[heldout, "noisy"] = False
    return _drop(frame, unknown, "held-out, noisy and not corrected", dropped)


def _truths(frame: pd.DataFrame, column: str, faults: list[str]) -> list[bool]:
    words = frame["noisy"].map(as_text).str.lower()
    odd = ~words.isin(TRUE + FALSE)
    if odd.any():
        faults.append(
            f"{column} is {by_value(frame.loc[odd, 'noisy'], frame.loc[odd, ROW])}. Write true or "
            "false (or 1/0, yes/no)."
        )
    return [word in TRUE for word in words]


def _tell_contradictions(
    frame: pd.DataFrame,
    given: pd.Series,
    original: pd.Series,
    noisy: pd.Series,
    task: Task,
    faults: list[str],
) -> None:
    same = noisy & (original == frame["label"])
    if same.any():
        faults.append(
            f"{places(frame.loc[same, ROW])}: marked noisy, but the corrected label equals the "
            "label. Unmark the row or correct one of the two."
        )
    names = label_map(task)
    other = ~noisy & (given != "") & (given.map(names) != frame["label"])
    if other.any():
        faults.append(
            f"{places(frame.loc[other, ROW])}: not marked noisy, but the corrected label differs "
            "from the label. Mark the row or empty its corrected label."
        )
