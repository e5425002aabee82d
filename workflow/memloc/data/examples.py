"""How a model reads a task's texts, and the training examples as it reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from memloc.data.tokens import Examples, load_examples, load_tokenizer
from memloc.errors import MemlocError


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


def noisy_training(
    data: str | Path, checkpoint: str | Path, reading: Reading
) -> tuple[Examples, int]:
    """The training examples with perturbed labels as a checkpoint reads them, and the pad id."""
    tokenizer = load_tokenizer(checkpoint)
    return reading.examples(data, "train", "perturbed", tokenizer), tokenizer.pad_token_id


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
