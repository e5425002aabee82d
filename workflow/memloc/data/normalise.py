"""From raw rows to one table: columns picked, rows filtered, labels named, noise read.

What a task file says is done in this order: columns are picked, repeats found among all documents,
labels read, rows filtered and repeats dropped, labels named, empty texts refused or dropped.
"""

from collections import Counter
from typing import Any

import pandas as pd

from memloc.data.readers import ROW
from memloc.errors import MemlocError
from memloc.study.tasks import Task, alternatives, as_text, label_map, text_columns

TRUE, FALSE = ("1", "true", "yes"), ("0", "false", "no", "")
NAMED = 10  # rows that an error names before it only counts them


def normalise(raw: dict[str, pd.DataFrame], task: Task) -> tuple[pd.DataFrame, dict[str, int]]:
    """One table of all splits as the task file maps and filters it, and rows dropped by reason."""
    dropped: dict[str, int] = {}
    names = ("all",) if "all" in task["split"] else ("train", "heldout")
    parts = [_pick(part, task, name) for name, part in zip(names, raw.values(), strict=True)]
    frame = pd.concat(parts, ignore_index=True)
    frame = _filter(frame, task, dropped)
    if "noisy" in task["columns"]:
        frame = _natural_noise(frame, task, dropped)
    frame = _binarise(frame, task, dropped)
    frame = _without_empty(frame, task, dropped)
    return frame.drop(columns=[ROW]).reset_index(drop=True), dropped


def _pick(raw: pd.DataFrame, task: Task, split: str) -> pd.DataFrame:
    """The columns we use under our names: split, texts, label (raw), noise, ROW."""
    columns = task["columns"]
    texts = {
        name: _as_texts(raw, column)
        for name, column in zip(text_columns(task), columns["text"], strict=True)
    }
    frame = pd.DataFrame({"split": split} | texts, index=raw.index, dtype=object)
    if "label_from_score" in task:
        frame["label"] = _signs(raw, task["label_from_score"])
    else:
        frame["label"] = _column(raw, columns["label"])
    if "noisy" in columns:
        frame["noisy"] = _column(raw, columns["noisy"])
        if "corrected" in columns:
            frame["original_label"] = _column(raw, columns["corrected"])
    frame[ROW] = raw[ROW]
    return frame


def _column(raw: pd.DataFrame, wish: str) -> pd.Series:
    for name in alternatives(wish):
        if name in raw:
            return raw[name]
    has = [name for name in raw if name != ROW]
    raise MemlocError(
        f"{raw[ROW].iloc[0].rsplit(' row ', 1)[0]}: has no column {wish!r}; it has "
        f"{', '.join(map(repr, has))}. Correct `columns` in the task file."
    )


def _as_texts(raw: pd.DataFrame, wish: str) -> list[str]:
    """A text column's values as texts; a missing one is empty."""
    return [_as_one_text(*pair, wish) for pair in zip(_column(raw, wish), raw[ROW], strict=True)]


def _as_one_text(value: Any, row: str, column: str) -> str:
    if isinstance(value, list | tuple | dict | bytes):
        kind = type(value).__name__
        raise MemlocError(
            f"{row}: column {column!r} holds {_shortly(value)}, a {kind} and not a text. Join its "
            "parts to one text in the file, or name another column under columns.text."
        )
    if value is None or value is pd.NA or value != value:
        return ""
    text = str(value)
    _refuse_surrogates(text, row, column)
    return text


def _refuse_surrogates(text: str, row: str, column: str) -> None:
    """Half a character, as a JSON "\\ud83d" alone is, can be neither stored nor tokenised."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = text[error.start]
        raise MemlocError(
            f"{row}: column {column!r} holds {half!r} at character {error.start + 1}, half of a "
            f"character (a lone surrogate) in {_shortly(text)}. Remove it, or write the file anew "
            "from its source as UTF-8."
        ) from error


def _shortly(value: Any) -> str:
    shown = ascii(value) if isinstance(value, str) else repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _signs(raw: pd.DataFrame, rule: dict[str, Any]) -> list[str | None]:
    """Label of each row's score; None where the score is too near zero to tell."""
    least = rule.get("least", 0)
    signs: list[str | None] = []
    for value, row in zip(_column(raw, rule["column"]), raw[ROW], strict=True):
        try:
            score = float(value)
        except (TypeError, ValueError) as error:
            raise MemlocError(
                f"{row}: {rule['column']} is {value!r}, not a number. Mend it, or correct "
                "label_from_score.column."
            ) from error
        far = abs(score) >= least and score != 0
        signs.append((rule["positive"] if score > 0 else rule["negative"]) if far else None)
    return signs


def _drop(frame: pd.DataFrame, gone: pd.Series, why: str, dropped: dict[str, int]) -> pd.DataFrame:
    if gone.any():
        dropped[why] = int(gone.sum())
    return frame[~gone]


def _filter(frame: pd.DataFrame, task: Task, dropped: dict[str, int]) -> pd.DataFrame:
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
    return frame.assign(label=_named(frame["label"], frame[ROW], task, "label"))


def _repeats(frame: pd.DataFrame, task: Task) -> pd.Series:
    """Which rows have the texts of an earlier row of any split; empty texts are no copies."""
    texts = frame[text_columns(task)]
    empty = texts.apply(lambda column: column.str.strip() == "").any(axis=1)
    return texts.duplicated() & ~empty


def _topics(value: Any) -> list[Any]:
    """The labels of one document: a list, or one text with `|` between them; none if empty."""
    if _is_list(value):
        return list(value)
    return [name for name in map(str.strip, as_text(value).split("|")) if name]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _named(values: pd.Series, rows: pd.Series, task: Task, column: str) -> pd.Series:
    """Raw labels to label names; an error counts and names the rows with any other."""
    names = label_map(task)
    unknown = ~values.isin(list(names))
    if unknown.any():
        found = sorted(set(values[unknown]))[:NAMED]
        odd = ", ".join(ascii(value) if value else "'' (none)" for value in found)
        raise MemlocError(
            f"{_some(rows[unknown])}: {column} {odd} is not among the labels of task "
            f"{task['name']} ({', '.join(task['all_labels'])}). Correct the rows, list the value "
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


def _without_empty(frame: pd.DataFrame, task: Task, dropped: dict[str, int]) -> pd.DataFrame:
    empty = pd.Series(False, index=frame.index)
    for column in text_columns(task):
        empty |= frame[column].str.strip() == ""
    if empty.any() and not task.get("drop_empty", False):
        raise MemlocError(
            f"{_some(frame.loc[empty, ROW])}: empty text ({int(empty.sum())} rows of task "
            f"{task['name']}; columns {', '.join(text_columns(task))}). Fill them in, or set "
            "drop_empty: true in the task file."
        )
    return _drop(frame, empty, "empty text", dropped)


def _some(rows: pd.Series) -> str:
    """Names of the first rows, and how many more there are."""
    named = ", ".join(rows.iloc[:NAMED])
    return named if len(rows) <= NAMED else f"{named} and {len(rows) - NAMED} more"


# --- natural noise ------------------------------------------------------------------------


def _natural_noise(frame: pd.DataFrame, task: Task, dropped: dict[str, int]) -> pd.DataFrame:
    """Read the task's own noise: noisy as bool, original_label as name or None.

    Held-out rows must carry true labels: a noisy one takes its correction, or is dropped.
    """
    frame = frame.assign(noisy=_truths(frame, task["columns"]["noisy"]))
    noisy = frame["noisy"].astype(bool)
    original = frame["label"].where(~noisy, None).astype(object)
    if "original_label" in frame:
        given = frame["original_label"].map(as_text)
        corrected = (given != "") & noisy
        original[corrected] = _named(
            given[corrected], frame.loc[corrected, ROW], task, "corrected label"
        )
        _refuse_contradictions(frame, given, original, noisy, task)
    frame = frame.assign(original_label=original)
    heldout = frame["split"] == "heldout"
    unknown = heldout & original.isna()
    frame.loc[heldout & noisy & ~unknown, "label"] = original
    frame.loc[heldout, "noisy"] = False
    return _drop(frame, unknown, "held-out, noisy and not corrected", dropped)


def _truths(frame: pd.DataFrame, column: str) -> list[bool]:
    words = frame["noisy"].map(lambda value: "" if value is None else as_text(value).lower())
    odd = ~words.isin(TRUE + FALSE)
    if odd.any():
        raise MemlocError(
            f"{_some(frame.loc[odd, ROW])}: {column} is {frame.loc[odd, 'noisy'].iloc[0]!r}. "
            "Write true or false (or 1/0, yes/no)."
        )
    return [word in TRUE for word in words]


def _refuse_contradictions(
    frame: pd.DataFrame, given: pd.Series, original: pd.Series, noisy: pd.Series, task: Task
) -> None:
    same = noisy & (original == frame["label"])
    if same.any():
        raise MemlocError(
            f"{_some(frame.loc[same, ROW])}: marked noisy, but the corrected label equals the "
            "label. Unmark the row or correct one of the two."
        )
    names = label_map(task)
    other = ~noisy & (given != "") & (given.map(names) != frame["label"])
    if other.any():
        raise MemlocError(
            f"{_some(frame.loc[other, ROW])}: not marked noisy, but the corrected label differs "
            "from the label. Mark the row or empty its corrected label."
        )
