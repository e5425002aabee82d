"""Weight changes of layers, from checkpoints on disk to a table on disk."""

import itertools
import logging
from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch
from transformers import PreTrainedModel

from memloc.data.examples import Reading
from memloc.errors import MemlocError
from memloc.localise.weight_change.weights import COLUMNS, ORIGINAL, PRETRAINED
from memloc.models.adapters import merged_weights
from memloc.models.layers import find_layers
from memloc.models.load import check_compatible, load_finetuned, load_other, load_start
from memloc.models.run_record import RunRecord
from memloc.store.tables import write_tsv

logger = logging.getLogger(__name__)


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
        distance, norm = _norms(ours, theirs)
        if norm == 0:
            raise MemlocError(f"weight change: all weights of layer {number} of {name} are 0")
        size = sum(weight.numel() for _, weight in merged_weights(ours))
        row = (name, number, distance, norm, distance / norm, size)
        rows.append(dict(zip(COLUMNS, row, strict=True)))
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


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Write weight_change.tsv (`table`): theta_M2 against theta_O and theta_P.

    inputs: theta_M2, theta_P and, but for a given run that has none, theta_O. settings: reading. No
    example is read, so `batch_tokens` plays no part.
    """
    record = RunRecord("float32", device=torch.device("cpu"))
    reading = Reading(**settings["reading"])
    model = load_finetuned(inputs["theta_M2"])
    pretrained = load_start(model, inputs["theta_P"], reading.class_names, 0)
    original = {ORIGINAL: load_other(inputs["theta_O"], model)} if "theta_O" in inputs else {}
    references = original | {PRETRAINED: pretrained}
    frame = weight_changes(model, references)
    write_tsv(frame, outputs["table"], COLUMNS)
    record.write(outputs["table"], **settings)
    for name, part in frame.groupby("reference", sort=False):
        changes = " ".join(f"{change:.4f}" for change in part["relative_change"])
        logger.info("relative change from %s by layer: %s", name, changes)
