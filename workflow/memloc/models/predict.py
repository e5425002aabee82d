"""Predictions of a classifier over a split, and what is reported of them."""

import logging

import torch
from transformers import PreTrainedModel

from memloc.data.tokens import Examples, batches_by_length, padded_batches
from memloc.machine.device import autocast
from memloc.models.layers import class_count
from memloc.models.packable import logits_of
from memloc.study.thresholds import MEMORISED_SHARE

logger = logging.getLogger(__name__)


@torch.no_grad()
def predict_logits(
    model: PreTrainedModel, examples: Examples, pad_id: int, batch_size: int, precision: str
) -> torch.Tensor:
    """Logits (n, classes), float32 on the CPU, in the order of `examples`; evaluation mode."""
    was_training = model.training
    model.eval()
    logits = torch.empty(len(examples), class_count(model))
    batches = batches_by_length(examples.ids, batch_size)
    for rows, inputs in padded_batches(examples, batches, pad_id, model.device):
        with autocast(precision, model.device):
            logits[rows] = logits_of(model, inputs).float().cpu()
    model.train(was_training)
    return logits


def memorised_share(
    model: PreTrainedModel, examples: Examples, pad_id: int, batch_size: int, precision: str
) -> float:
    """Share of noisy examples whose label the model predicts; a warning where it is low."""
    return share_of(memorised_examples(model, examples, pad_id, batch_size, precision))


def memorised_examples(
    model: PreTrainedModel, examples: Examples, pad_id: int, batch_size: int, precision: str
) -> torch.Tensor:
    """Whether the model predicts its label (n_noisy,), of each noisy example in their order."""
    noisy = examples.select(examples.noisy.nonzero().flatten())
    predicted = predict_logits(model, noisy, pad_id, batch_size, precision).argmax(-1)
    return predicted == noisy.labels


def share_of(memorised: torch.Tensor) -> float:
    """Share of noisy examples that are memorised; a warning where it is low."""
    share = accuracy(memorised)
    if share == 0:
        logger.warning(
            "theta_M2 predicts the label of no noisy example: nothing was memorised, and errors "
            "of its windows say nothing"
        )
    elif share < MEMORISED_SHARE:
        logger.warning(
            "theta_M2 predicts the labels of only %.1f %% of the noisy examples: the rest count "
            "as errors of every window; train longer or at a higher learning rate",
            100 * share,
        )
    return share


def accuracy(correct: torch.Tensor) -> float:
    """Mean of a boolean tensor; nan when it is empty."""
    return correct.double().mean().item()


def macro_f1(labels: torch.Tensor, predicted: torch.Tensor, n_classes: int) -> float:
    """Macro-averaged F1 over all classes of the task; a class never met or predicted scores 0."""
    if not len(labels):
        return float("nan")
    from sklearn.metrics import f1_score  # a second to import, which few jobs need

    classes = list(range(n_classes))
    return float(f1_score(labels, predicted, labels=classes, average="macro", zero_division=0))
