"""How a model reads a task's texts, and the training examples as it reads them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from memloc.data.tokens import Examples, load_examples, load_tokenizer, plain_ids, special_ids
from memloc.errors import MemlocError, shortly
from memloc.store.columns import text_names
from memloc.store.tables import read_parquet

UNKNOWN = -100  # the class id of a label that nobody knows; torch's losses leave it out
TRAINING, VALIDATION = ("train", "perturbed"), ("validation", "original")  # split, labels
# Case, accents, marks and spaces, of which tokenizers make this and that.
PROBE = "It's  3.50 \u20ac for Cr\u00e8me-br\u00fbl\u00e9e, don't ACGT acgt"


@dataclass(frozen=True)
class Reading:
    """How a model reads a task: class names by id, the parts' separator, tokens at most."""

    class_names: list[str]
    separator: str | None
    max_length: int

    def examples(
        self, data: str | Path, split: str, labels: str, tokenizer: PreTrainedTokenizerBase
    ) -> Examples:
        """One split of a perturbed.parquet with its "original" or "perturbed" labels."""
        names, separator, longest = self.class_names, self.separator, self.max_length
        return load_examples(data, split, names, labels, tokenizer, separator, longest)


@dataclass(frozen=True)
class Measured:
    """What errors are measured on: training examples, and held-out ones after them.

    examples: noisy and clean training examples with the labels trained on, then validation
    examples with their original ones, of which none counts as noisy; original (n,): class ids of
    the original labels, UNKNOWN where nobody knows; heldout (n,): whether a row is a validation
    example.
    """

    examples: Examples
    original: torch.Tensor
    heldout: torch.Tensor


def join(training: Examples, original: torch.Tensor, heldout: Examples) -> Measured:
    """Training examples with their `original` class ids (n,), and held-out ones, in one."""
    n_training, n_heldout = len(training), len(heldout)
    unmarked = replace(heldout, noisy=torch.zeros(n_heldout, dtype=torch.bool))
    parts = (training, unmarked)
    examples = Examples(
        [ids for part in parts for ids in part.ids],
        torch.cat([part.labels for part in parts]),
        torch.cat([part.noisy for part in parts]),
        torch.cat([part.index for part in parts]),
        sum(part.n_cut for part in parts),
    )
    is_heldout = torch.arange(n_training + n_heldout) >= n_training
    return Measured(examples, torch.cat([original, heldout.labels]), is_heldout)


def with_heldout(
    training: Examples, data: str | Path, checkpoint: str | Path, reading: Reading
) -> Measured:
    """Training examples of a perturbed.parquet, and all its validation examples after them."""
    original = original_labels(data, training.index, reading.class_names)
    tokenizer = load_tokenizer(checkpoint)
    return join(training, original, reading.examples(data, "validation", "original", tokenizer))


def noisy_training(
    data: str | Path, checkpoint: str | Path, reading: Reading, labels: str = "perturbed"
) -> tuple[Examples, int]:
    """The training examples with their `labels` as a checkpoint reads them, and the pad id.

    "original" leaves out those whose original label nobody knows.
    """
    tokenizer = load_tokenizer(checkpoint)
    return reading.examples(data, "train", labels, tokenizer), tokenizer.pad_token_id


def original_labels(
    path: str | Path, index: torch.Tensor, class_names: Sequence[str]
) -> torch.Tensor:
    """Original class ids (n,) of the rows `index` of a perturbed.parquet; UNKNOWN where null."""
    frame = read_parquet(path, ["index", "original_label"]).set_index("index")
    names = frame.loc[index.tolist(), "original_label"]
    class_ids = {name: i for i, name in enumerate(class_names)}
    strange = sorted(set(names.dropna()) - set(class_ids))
    if strange:
        raise MemlocError(
            f"{path}: original_label {strange[0]!r} is not among the task's {list(class_names)}"
        )
    return torch.tensor([class_ids.get(name, UNKNOWN) for name in names])


def other_reading(
    data: str | Path,
    reading: Reading,
    ours: PreTrainedTokenizerBase,
    theirs: PreTrainedTokenizerBase,
) -> str:
    """The first training or validation text that two tokenizers read otherwise, in words, or "".

    Of one vocabulary, they may differ in what they make of a text first, or put around it.
    """
    first, second = (
        [reading.examples(data, *part, one) for part in (TRAINING, VALIDATION)]
        for one in (ours, theirs)
    )
    numbers = chain.from_iterable(part.index.tolist() for part in first)
    ids = (chain.from_iterable(part.ids for part in parts) for parts in (first, second))
    for number, *pair in zip(numbers, *ids, strict=True):
        if pair[0] != pair[1]:
            row = read_parquet(data).set_index("index").loc[number]
            tokens = zip_longest(*(ours.convert_ids_to_tokens(ids) for ids in pair))
            place, apart = next(found for found in enumerate(tokens, 1) if len({*found[1]}) > 1)
            said = ["nothing" if token is None else shortly(token) for token in apart]
            text = shortly(" ".join(row[text_names(row.index)]))
            return f"token {place} of {text} is {said[0]} by it, and {said[1]} by theta_P's"
    return ""


def check_same_tokenizer(folders: Sequence[str | Path]) -> None:
    """Raise MemlocError unless all checkpoints, such as theta_O and theta_M2, tokenise alike.

    They must have the same vocabulary, and read PROBE alike.
    """
    known = [_reading_of(load_tokenizer(folder)) for folder in folders]
    if any(other != known[0] for other in known):
        names = ", ".join(map(str, folders))
        raise MemlocError(
            f"these checkpoints have different tokenizers: {names}; "
            "both must come from the same pre-trained model: delete the one that doesn't"
        )


def _reading_of(tokenizer: PreTrainedTokenizerBase) -> tuple[object, ...]:
    """What decides how texts are read. It isn't the files: saving a tokenizer rewrites those."""
    ids = plain_ids(tokenizer, [PROBE])
    return tokenizer.get_vocab(), tokenizer.all_special_ids, special_ids(tokenizer), ids
