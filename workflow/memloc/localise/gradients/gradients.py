"""Forgetting gradients: which layers would change to forget the noisy labels (section 3.1).

The gradient of minus the cross-entropy is averaged over the noisy examples and over as many clean
ones; the third gradient is the difference of the two. Their norms are taken per layer, at theta_M1
and at theta_F. Gradients are added up batch by batch. Embeddings, final norm, pooler and head have
none, and dropout is off.
"""

import logging

import pandas as pd
import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.data.tokens import Examples, token_batches
from memloc.errors import MemlocError
from memloc.localise.clean import draw_clean
from memloc.localise.gradients.variants import (
    CLEAN,
    COLUMNS,
    DIFFERENCE,
    NOISY,
    NORM_COLUMNS,
    NORMS,
    THETA_F,
    THETA_M1,
    variant_table,
)
from memloc.machine.device import autocast
from memloc.models.adapters import own_parameters
from memloc.models.layers import find_layers
from memloc.models.load import check_compatible

logger = logging.getLogger(__name__)

ORDERS = {"L1": 1, "L2": 2}
OBJECTIVES = ("loss", "logit")


def forgetting_gradients(
    memorised: PreTrainedModel,
    frozen: PreTrainedModel,
    train: Examples,
    pad_id: int,
    batch_tokens: int,
    precision: str,
    objective: str,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The eight variants of one run, and the norms they are made from: frames with COLUMNS and
    NORM_COLUMNS of gradient_variants.

    `memorised` is theta_M1 and `frozen` theta_F, `train` has the perturbed labels. All noisy
    examples count, and an equal number of clean ones drawn by `seed`. Both models lose their
    parameters' requires_grad outside the layers.
    """
    check_compatible(memorised, frozen, "forgetting gradients")
    noisy, clean = noisy_and_clean(train, seed)
    options = (noisy, clean, pad_id, batch_tokens, precision, objective)
    norms = pd.concat(
        [
            gradient_norms(model, *options).assign(model=name)
            for name, model in ((THETA_M1, memorised), (THETA_F, frozen))
        ],
        ignore_index=True,
    )
    table = variant_table(norms).assign(n_noisy=len(noisy), n_clean=len(clean))
    return table[COLUMNS], norms[NORM_COLUMNS]


def noisy_and_clean(train: Examples, seed: int) -> tuple[Examples, Examples]:
    """All noisy examples, and as many clean ones drawn by `seed` (all, where there are fewer)."""
    noisy, drawn, rest = draw_clean(train, seed, "gradients", "clean examples")
    n_clean = len(drawn) + len(rest)
    if not len(noisy) or not n_clean:
        raise MemlocError(
            f"forgetting gradients need noisy and clean training examples, and there are "
            f"{len(noisy)} noisy and {n_clean} clean ones; raise perturbation.ratio"
        )
    if n_clean < len(noisy):
        logger.warning("only %d clean examples against %d noisy ones", n_clean, len(noisy))
    return train.select(noisy), train.select(drawn)


def gradient_norms(
    model: PreTrainedModel,
    noisy: Examples,
    clean: Examples,
    pad_id: int,
    batch_tokens: int,
    precision: str,
    objective: str = "loss",
) -> pd.DataFrame:
    """Norms per layer of the mean gradient over noisy examples, over clean ones, and of the
    first less the second.

    Frame examples (noisy | clean | difference), norm (L1 | L2), layer (1..L), value.
    """
    train_only_layers(model)
    options = (pad_id, batch_tokens, precision, objective)
    means = [mean_gradient(model, examples, *options) for examples in (noisy, clean)]
    rows = []
    for number, (ours, theirs) in enumerate(zip(*means, strict=True), start=1):
        parts = {NOISY: ours, CLEAN: theirs}
        parts[DIFFERENCE] = [a - b for a, b in zip(ours, theirs, strict=True)]
        rows += [
            (examples, norm, number, vector_norm(gradients, norm, number))
            for examples, gradients in parts.items()
            for norm in NORMS
        ]
    return pd.DataFrame(rows, columns=["examples", "norm", "layer", "value"])


def train_only_layers(model: PreTrainedModel) -> None:
    """Evaluation mode, and gradients alone for what fine-tuning trains of the layers."""
    model.eval().requires_grad_(False)
    for layer in find_layers(model):
        for parameter in own_parameters(layer).values():
            parameter.requires_grad_(True)


def mean_gradient(
    model: PreTrainedModel,
    examples: Examples,
    pad_id: int,
    batch_tokens: int,
    precision: str,
    objective: str,
) -> list[list[torch.Tensor]]:
    """Mean gradient of the objective over `examples`, per layer a list of its parameters'.

    The model keeps none of it.
    """
    model.zero_grad(set_to_none=True)
    device = model.device
    batches = token_batches(examples, batch_tokens, pad_id, device, "forgetting gradients")
    for rows, inputs in batches:
        with autocast(precision, device):
            logits = model(**inputs).logits
        labels = examples.labels[rows].to(device)
        (objective_sum(logits.float(), labels, objective) / len(examples)).backward()
    gradients = [
        [torch.zeros_like(p) if p.grad is None else p.grad for p in own_parameters(layer).values()]
        for layer in find_layers(model)
    ]
    model.zero_grad(set_to_none=True)
    return gradients


def objective_sum(logits: torch.Tensor, labels: torch.Tensor, objective: str) -> torch.Tensor:
    """What forgetting lowers, summed over rows: minus the cross-entropy ("loss"), or the target's
    raw logit ("logit", as the authors' code has it)."""
    if objective == "logit":
        return logits.gather(1, labels[:, None]).sum()
    if objective != "loss":
        raise MemlocError(f"gradients.objective {objective!r}: choose one of {OBJECTIVES}")
    return -nn.functional.cross_entropy(logits, labels, reduction="sum")


def vector_norm(gradients: list[torch.Tensor], norm: str, number: int) -> float:
    """Norm of the gradients of all parameters of layer `number` as one vector, in float64."""
    parts = [
        torch.linalg.vector_norm(gradient, ORDERS[norm], dtype=torch.float64)
        for gradient in gradients
    ]
    total = torch.linalg.vector_norm(torch.stack(parts), ORDERS[norm]).item()
    if not total < float("inf"):
        raise MemlocError(
            f"the gradient of layer {number} is not finite ({total}); use precision: float32, or "
            "look for a diverged training run in history.tsv"
        )
    return total
