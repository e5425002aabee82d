"""Texts, labels and marks as a notebook has them, checked and tokenised."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.data.examples import UNKNOWN, Measured, join
from memloc.data.tokens import Examples, tokenised
from memloc.door.classes import check_original, class_ids
from memloc.errors import MemlocError, shortly

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
    values = _column(given, given.labels, "label")
    labels = class_ids(_as_many(values, len(rows), "labels"), model, "labels")
    noisy = _marks(_column(given, given.noisy, "noisy"), len(rows))
    original = torch.where(noisy, UNKNOWN, labels)
    if given.original_labels is not None:
        values = _column(given, given.original_labels, "original_label")
        values = _as_many(values, len(rows), "original_labels")
        original = class_ids(values, model, "original_labels", missing=True)
        check_original(labels, noisy, original)
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
    labels = class_ids(_as_many(values, len(rows), "validation labels"), model, "validation labels")
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
    found = _own(values)
    if not isinstance(found, Iterable) or isinstance(found, Mapping | Set | str | bytes):
        raise MemlocError(f"{shortly(values)} is given where a list is expected, one value a text")
    return [_own(value) for value in found]


def _own(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _rows(texts: Any, columns: Sequence[str], what: str) -> Rows:
    """Each row's parts. Raises MemlocError unless all are texts, as many in every row."""
    if _is_dataset(texts):
        texts = list(zip(*(_named(texts, name, what) for name in columns), strict=True))
    if isinstance(texts, str):
        raise MemlocError(f"{what}: one text alone; expected a list of texts")
    found = _plain(texts)
    if not found:
        raise MemlocError(f"{what}: there are none")
    rows: Rows = []
    for number, row in enumerate(found):
        parts = (row,) if isinstance(row, str) else row
        fits = isinstance(parts, list | tuple) and len(parts) > 0
        if (
            not fits
            or len(parts) != len((rows or [parts])[0])
            or not all(isinstance(part, str) for part in parts)
        ):
            raise MemlocError(
                f"{what}: row {number} is {shortly(row)}; expected a text, or texts, as many in "
                "every row"
            )
        rows.append(tuple(parts))
    return rows


def _as_many(values: Any, count: int, what: str) -> list:
    found = _plain(values)
    if len(found) != count:
        raise MemlocError(f"{what}: {len(found)} values for {count} texts; give one for each")
    return found


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
