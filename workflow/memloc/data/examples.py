"""How a model reads a task's texts, and the training examples as it reads them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from memloc.data.tokens import Examples, load_examples, load_tokenizer
from memloc.errors import MemlocError
from memloc.store.tables import read_parquet

UNKNOWN = -100  # the class id of a label that nobody knows; torch's losses leave it out


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


def check_same_tokenizer(folders: Sequence[str | Path]) -> None:
    """Raise MemlocError unless all checkpoints, such as theta_O and theta_M2, tokenise alike."""
    tokenizers = [load_tokenizer(folder) for folder in folders]
    # Not by their files: saving a tokenizer rewrites those.
    known = [(tokenizer.get_vocab(), tokenizer.all_special_ids) for tokenizer in tokenizers]
    if any(other != known[0] for other in known):
        names = ", ".join(map(str, folders))
        raise MemlocError(
            f"these checkpoints have different tokenizers: {names}; "
            "both must come from the same pre-trained model: delete the one that doesn't"
        )
