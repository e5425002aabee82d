"""Centroid analysis from checkpoints on disk to tables on disk."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from transformers import PreTrainedModel

from memloc.data.examples import UNKNOWN, Reading, noisy_training, original_labels
from memloc.data.tokens import Examples
from memloc.explain.centroids import (
    COLUMNS,
    CROSSING,
    EVENT_COLUMNS,
    Classes,
    centroid_events,
    centroid_table,
)
from memloc.explain.events import event_layers
from memloc.explain.mixtures import Mixer, half_choices, mixed_states
from memloc.models.layers import find_layers
from memloc.models.load import check_compatible, load_finetuned, on_device
from memloc.models.pooled_states import room_for_states
from memloc.models.run_record import RunRecord
from memloc.store.tables import write_tsv

logger = logging.getLogger(__name__)


def project(
    memorised: PreTrainedModel,
    original: PreTrainedModel,
    train: Examples,
    classes: Classes,
    pad_id: int,
    batch_tokens: int,
    precision: str,
) -> pd.DataFrame:
    """Training examples between all pairs of classes, layer by layer: a frame with COLUMNS.

    Of theta_M2 as trained, and with the bottom and the top half of its layers taken from theta_O.
    """
    check_compatible(memorised, original, "centroid analysis")
    n_layers, width = len(find_layers(memorised)), memorised.config.hidden_size
    choices = half_choices(n_layers)
    with room_for_states(len(choices) * n_layers, len(train), width, "float32") as room:
        states = room.view(len(choices), n_layers, len(train), width)
        mixer = Mixer(memorised, original, choices)
        mixed_states(mixer, train, pad_id, batch_tokens, precision, states)
        tables = [
            centroid_table(source, part.numpy(), classes)
            for source, part in zip(choices, states, strict=True)
        ]
    return pd.concat(tables, ignore_index=True)


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Write centroids.tsv (`table`) and centroid_events.tsv (`events`) of theta_M2, as trained and
    with the bottom and the top half of its layers taken from theta_O.

    inputs: data, theta_M2, theta_O. settings: reading, precision.
    """
    record = RunRecord(settings["precision"], [inputs["theta_M2"], inputs["theta_O"]])
    reading = Reading(**settings["reading"])
    train, pad_id = noisy_training(inputs["data"], inputs["theta_M2"], reading)
    classes, unplaced = _classes(inputs["data"], train, reading)
    model, theirs = (
        on_device(load_finetuned(inputs[name]), record.device) for name in ("theta_M2", "theta_O")
    )
    found = project(model, theirs, train, classes, pad_id, batch_tokens, record.precision)
    happened = centroid_events(found)
    write_tsv(happened, outputs["events"], EVENT_COLUMNS)
    write_tsv(found, outputs["table"], COLUMNS)
    record.write(
        outputs["table"],
        **settings,
        batch_tokens=batch_tokens,
        layers_of_theta_O={
            name: [layer for layer, theirs in enumerate(choice, start=1) if theirs]
            for name, choice in half_choices(len(find_layers(model))).items()
        },
        noisy_without_original_label=unplaced,
    )
    _log(happened, len(train))


def _classes(data: str | Path, train: Examples, reading: Reading) -> tuple[Classes, int]:
    """The classes of the training examples, and how many noisy ones have no original label."""
    original = original_labels(data, train.index, reading.class_names)
    arrays = (values.numpy() for values in (train.labels, original, train.noisy))
    classes = Classes(reading.class_names, *arrays)
    unplaced = int((train.noisy & (original == UNKNOWN)).sum())
    if unplaced:
        logger.warning(
            "%d of %d noisy examples have no original label: they belong to no pair of classes, "
            "and no crossing is measured with them",
            unplaced,
            int(train.noisy.sum()),
        )
    return classes, unplaced


def _log(events: pd.DataFrame, n_examples: int) -> None:
    crossings = events[events["event"] == CROSSING]
    for source, part in crossings.groupby("source", sort=False):
        happened, n_none, n_undefined = event_layers(part["layer"])
        logger.info(
            "%d examples, layers %s: noisy ones cross at layer %s on average, in %d of %d pairs of "
            "classes%s",
            n_examples,
            source,
            f"{happened.mean():.2f}" if len(happened) else "none",
            len(happened),
            len(happened) + n_none,
            f" ({n_undefined} without noisy examples)" if n_undefined else "",
        )
