"""Weight changes of layers between models in memory, adapted ones among them."""

import itertools
from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch
from transformers import PreTrainedModel

from memloc.localise.weight_change.weights import ORIGINAL, PRETRAINED, change_row
from memloc.models.adapters import merged_weights
from memloc.models.layers import find_layers
from memloc.models.load import check_compatible, load_finetuned, load_other, load_start


def layer_changes(
    model: PreTrainedModel, reference: PreTrainedModel, name: str
) -> list[dict[str, Any]]:
    """A row per layer: its L2 distance from the reference `name`, absolute and relative.

    Weights are those that take effect: an adapter's product counts as added to its base. Sums are
    taken in double precision. Raises MemlocError for a reference layer of zeros.
    """
    check_compatible(model, reference, "weight change")
    rows = []
    pairs = zip(find_layers(model), find_layers(reference), strict=True)
    for number, (ours, theirs) in enumerate(pairs, start=1):
        size = sum(weight.numel() for _, weight in merged_weights(ours))
        rows.append(change_row(name, number, *_norms(ours, theirs), size))
    return rows


@torch.no_grad()
def _norms(ours: torch.nn.Module, theirs: torch.nn.Module) -> tuple[float, float]:
    """L2 norms of a layer's difference from another, and of that other."""
    distance = norm = 0.0
    for (_, weight), (_, reference) in zip(
        merged_weights(ours), merged_weights(theirs), strict=True
    ):
        distance += (weight - reference).square().sum().item()
        norm += reference.square().sum().item()
    return distance**0.5, norm**0.5


def weight_changes(
    memorised: PreTrainedModel, references: Mapping[str, PreTrainedModel]
) -> pd.DataFrame:
    """How far theta_M2's layers are from those of each of `references`: a frame with COLUMNS."""
    rows = [layer_changes(memorised, model, name) for name, model in references.items()]
    return pd.DataFrame(itertools.chain(*rows))


def changes_of_models(inputs: Mapping[str, str], class_names: list[str]) -> pd.DataFrame:
    """The same of checkpoints on disk, theta_M2, theta_P and theta_O if it is there."""
    model = load_finetuned(inputs["theta_M2"])
    pretrained = load_start(model, inputs["theta_P"], class_names, 0)
    original = {ORIGINAL: load_other(inputs["theta_O"], model)} if "theta_O" in inputs else {}
    return weight_changes(model, original | {PRETRAINED: pretrained})
