"""Texts, labels and marks as a notebook has them, checked and tokenised."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.data.examples import UNKNOWN, Measured, join
from memloc.data.tokens import Examples, tokenised
from memloc.errors import MemlocError, shortly
from memloc.models.layers import class_count

Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class Given:
    """What a function of the door was called with.

    texts: n texts, n tuples of parts, or a `datasets.Dataset`; labels, noisy and original_labels:
    n values each, or names of the dataset's columns; columns: the dataset's text columns;
    validation: None, a pair of texts and labels, or a dataset with the same columns.
    """

    texts: Any
    labels: Any
    noisy: Any
    original_labels: Any = None
    validation: Any = None
    columns: Sequence[str] = ("text",)


@dataclass(frozen=True)
class Corpus:
    """Tokenised training examples with the labels trained on, their original class ids (n,), and
    held-out examples."""

    train: Examples
    original: torch.Tensor
    heldout: Examples

    def measured(self, chosen: Examples) -> Measured:
        """Some of the training examples, and all held-out ones after them."""
        place = {number: row for row, number in enumerate(self.train.index.tolist())}
        rows = torch.tensor([place[number] for number in chosen.index.tolist()])
        return join(chosen, self.original[rows], self.heldout)


def read(
    given: Given,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    separator: str | None,
    max_length: int,
) -> Corpus:
    """Everything given, as the model reads it. Raises MemlocError for what doesn't fit together."""
    rows = _rows(given.texts, given.columns, "texts")
    labels = _classes(_column(given, given.labels, "label"), len(rows), model, "labels")
    noisy = _marks(_column(given, given.noisy, "noisy"), len(rows))
    original = torch.where(noisy, UNKNOWN, labels)
    if given.original_labels is not None:
        values = _column(given, given.original_labels, "original_label")
        original = _classes(values, len(rows), model, "original_labels", missing=True)
        _check_original(labels, noisy, original)
    encode = partial(tokenised, tokenizer=tokenizer, separator=separator, max_length=max_length)
    train = encode(rows, labels, noisy, torch.arange(len(rows)), where="texts")
    return Corpus(train, original, _heldout(given, model, encode))


def _heldout(given: Given, model: PreTrainedModel, encode: Callable[..., Examples]) -> Examples:
    """The validation examples; without any, none."""
    found = given.validation
    if found is None:
        nothing = torch.empty(0, dtype=torch.int64)
        return Examples([], nothing, nothing.bool(), nothing)
    if _is_dataset(found):
        column = given.labels if isinstance(given.labels, str) else "label"
        texts, values = found, _named(found, column, "validation")
    elif isinstance(found, tuple) and len(found) == 2:
        texts, values = found
    else:
        raise MemlocError("validation: expected a pair (texts, labels), or a datasets.Dataset")
    rows = _rows(texts, given.columns, "validation texts")
    labels = _classes(values, len(rows), model, "validation labels")
    unmarked = torch.zeros(len(rows), dtype=torch.bool)
    return encode(rows, labels, unmarked, torch.arange(len(rows)), where="validation texts")


# --- datasets --------------------------------------------------------------------------------


def _is_dataset(values: Any) -> bool:
    names = getattr(values, "column_names", None)
    if isinstance(names, dict):
        raise MemlocError(f"a dataset of several splits ({', '.join(names)}): give one of them")
    return names is not None


def _named(dataset: Any, column: str, what: str) -> Any:
    if column not in dataset.column_names:
        raise MemlocError(
            f"{what}: the dataset has no column {column!r}; it has "
            f"{', '.join(dataset.column_names)}"
        )
    return dataset[column]


def _column(given: Given, values: Any, default: str) -> Any:
    """The values themselves, or those of the dataset's column of that name (None: the default)."""
    if _is_dataset(given.texts) and (values is None or isinstance(values, str)):
        return _named(given.texts, values or default, "texts")
    if values is None or isinstance(values, str):
        raise MemlocError(
            f"{default}: expected one value per text, and got {values!r}; names of columns need "
            "texts that are a datasets.Dataset"
        )
    return values


# --- rows ------------------------------------------------------------------------------------


def _plain(values: Any) -> list:
    """A list of Python's own values of a list, array, tensor, series or dataset's column."""
    found = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(found, Iterable):
        raise MemlocError(f"{shortly(values)} is given where a list is expected, one value a text")
    return [value.item() if hasattr(value, "item") else value for value in found]


def _rows(texts: Any, columns: Sequence[str], what: str) -> Rows:
    """Each row's parts. Raises MemlocError unless all are texts, as many in every row."""
    if _is_dataset(texts):
        texts = list(zip(*(_named(texts, name, what) for name in columns), strict=True))
    if isinstance(texts, str):
        raise MemlocError(f"{what}: one text alone; expected a list of texts")
    rows = [(row,) if isinstance(row, str) else tuple(row or ()) for row in _plain(texts)]
    if not rows:
        raise MemlocError(f"{what}: there are none")
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]) or not row or not all(isinstance(part, str) for part in row):
            raise MemlocError(
                f"{what}: row {number} is {shortly(row)}; expected a text, or texts, as many in "
                "every row"
            )
    return rows


def _as_many(values: Any, count: int, what: str) -> list:
    found = _plain(values)
    if len(found) != count:
        raise MemlocError(f"{what}: {len(found)} values for {count} texts; give one for each")
    return found


def _classes(
    values: Any, count: int, model: PreTrainedModel, what: str, missing: bool = False
) -> torch.Tensor:
    """Class ids (n,) of ids or of the model's own class names; UNKNOWN for None, if allowed."""
    names, n_classes = model.config.label2id or {}, class_count(model)
    ids = []
    for number, value in enumerate(_as_many(values, count, what)):
        if missing and value is None:
            ids.append(UNKNOWN)
            continue
        found: Any = names.get(value) if isinstance(value, str) else value
        whole = isinstance(found, int) and not isinstance(found, bool)
        if not whole or not 0 <= found < n_classes:
            raise MemlocError(
                f"{what}: row {number} has {shortly(value)}, which is no class of the model; it "
                f"has 0 to {n_classes - 1}, named {', '.join(map(str, names))}"
            )
        ids.append(found)
    return torch.tensor(ids)


def _marks(values: Any, count: int) -> torch.Tensor:
    """Which rows are noisy (n,). Raises MemlocError for other values, and without noisy rows."""
    marks = _as_many(values, count, "noisy")
    for number, mark in enumerate(marks):
        if not isinstance(mark, bool | int) or mark not in (0, 1):
            raise MemlocError(
                f"noisy: row {number} has {shortly(mark)}; expected True or False for each text, "
                "not the numbers of the noisy ones"
            )
    if not any(marks):
        raise MemlocError(
            "noisy: no example is marked as noisy, so there is no memorisation to locate; mark "
            "those whose label is wrong"
        )
    return torch.tensor([bool(mark) for mark in marks])


def _check_original(labels: torch.Tensor, noisy: torch.Tensor, original: torch.Tensor) -> None:
    """Raise MemlocError where noisy marks and original labels contradict each other."""
    known = original != UNKNOWN
    wrong = (known & ((labels != original) != noisy)).nonzero().flatten()
    if len(wrong):
        row = int(wrong[0])
        marked = "noisy" if noisy[row] else "clean"
        raise MemlocError(
            f"original_labels: row {row} is marked as {marked}, but its label is {labels[row]} and "
            f"its original label {original[row]}; of noisy rows they differ, of clean ones not"
        )
