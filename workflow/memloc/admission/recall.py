"""What a given checkpoint knows of the task's rows: noisy ones as labelled, clean, held out."""

import math
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.admission.classes import refuse_other_order
from memloc.data.examples import UNKNOWN, Reading, original_labels
from memloc.errors import MemlocError
from memloc.models.longest import refuse_longer
from memloc.models.predict import accuracy, macro_f1, predict_logits

FEW, LOW = 8, 0.5  # noisy rows predicted as labelled, and their share, below which it is said


class Recall:
    """Predictions of a model for the training and validation rows of a perturbed.parquet.

    original: whether the model was trained on the original labels (theta_O), against which the
    accuracies of `history` then count. Raises MemlocError where a row is too long for the model.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        data: str | Path,
        reading: Reading,
        batch_size: int,
        original: bool = False,
    ):
        self.class_names, self.original = reading.class_names, original
        train, validation = (
            reading.examples(data, split, labels, tokenizer)
            for split, labels in (("train", "perturbed"), ("validation", "original"))
        )
        ids = [*train.ids, *validation.ids]
        refuse_longer(model, ids, reading.max_length, "data.max_length")
        predicted, self.heldout = (
            predict_logits(model, part, tokenizer.pad_token_id, batch_size, "float32").argmax(-1)
            for part in (train, validation)
        )
        true = original_labels(data, train.index, reading.class_names)
        self.train, self.validation = train, validation
        self.predicted, self.as_labelled = predicted, predicted == train.labels
        self.known = true != UNKNOWN
        self.as_original = predicted == true

    @property
    def n_noisy(self) -> int:
        """Noisy training rows."""
        return int(self.train.noisy.sum())

    @cached_property
    def kept(self) -> int:
        """Noisy training rows that are predicted as they are labelled."""
        return int(self.as_labelled[self.train.noisy].sum())

    @cached_property
    def clean(self) -> float:
        """Accuracy on clean training rows."""
        return accuracy(self.as_labelled[~self.train.noisy])

    def _accuracies(self) -> dict[str, float]:
        """As history.tsv has them: against the labels that the model was trained on."""
        rows = self.train.noisy & (self.known if self.original else torch.ones_like(self.known))
        right = self.as_original if self.original else self.as_labelled
        truth = self.validation.labels
        return {
            "clean_accuracy": self.clean,
            "noisy_accuracy": accuracy(right[rows]),
            "validation_accuracy": accuracy(self.heldout == truth),
            "validation_macro_f1": macro_f1(truth, self.heldout, len(self.class_names)),
        }

    def history(self) -> pd.DataFrame:
        """A row of history.tsv: nobody knows epoch, loss and time."""
        unknown = dict.fromkeys(("epoch", "train_loss", "seconds"), math.nan)
        return pd.DataFrame([unknown | self._accuracies()])

    def facts(self) -> dict[str, Any]:
        """What a record says: rows trained on as far as known, and what is predicted rightly."""
        rows = self.known if self.original else torch.ones_like(self.known)
        return {
            "labels": "original" if self.original else "perturbed",
            "n_train": int(rows.sum()),
            "n_noisy": int((rows & self.train.noisy).sum()),
            "noisy_rows": self.n_noisy,
            "noisy_as_labelled": self.kept,
            **self._accuracies(),
        }

    def refuse_unordered(self) -> None:
        """Raise MemlocError where clean rows fit another order of the classes clearly better."""
        clean = ~self.train.noisy
        refuse_other_order(self.predicted[clean], self.train.labels[clean], self.class_names)

    def refuse_guess(self) -> None:
        """Raise MemlocError where fewer clean rows are right than a guess would have right."""
        least = 1 / len(self.class_names)
        if self.clean < least:
            raise MemlocError(
                f"it predicts {self.clean:.1%} of the clean training rows rightly, less than a "
                f"guess would ({least:.1%}), and its classes have no names: is it the model that "
                "was trained on these rows, with these labels in this order?"
            )

    def refuse_unmemorised(self) -> None:
        """Raise MemlocError where no noisy row is predicted as labelled."""
        if not self.kept:
            raise MemlocError(
                f"of the {self.n_noisy} noisy training rows it predicts 0 as labelled (clean rows: "
                f"{self.clean:.1%} rightly): it memorised none of them, and there is nothing to "
                "localise. Is it the model that was trained on these rows, with these labels?"
            )

    def caveat(self, theta: str) -> str:
        """What makes results of this checkpoint unsure; "" where nothing does."""
        count = f"{self.kept} of {self.n_noisy} noisy rows"
        share = self.kept / max(1, self.n_noisy)
        if theta == "theta_O" and share >= LOW:
            return (
                f"it predicts {count} as labelled: it seems to have been trained on these labels, "
                "and theta_O should not have seen them"
            )
        if theta in ("theta_M2", "theta_M1") and (self.kept < FEW or share < LOW):
            return f"it predicts only {count} as labelled: where it memorises is less certain"
        return ""
