"""Centroid analysis from checkpoints on disk to tables on disk."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from transformers import PreTrainedModel

from memloc.data.examples import UNKNOWN, Reading, noisy_training, original_labels
from memloc.data.tokens import Examples
from memloc.explain.centroid_events import COLUMNS as EVENT_COLUMNS
from memloc.explain.centroid_events import CROSSING, LEAST, centroid_events
from memloc.explain.centroids import COLUMNS, Classes, centroid_table, is_pooled
from memloc.explain.mixtures import Mixer, half_choices, mixed_states
from memloc.models.last_state import BEFORE
from memloc.models.layers import find_layers
from memloc.models.load import check_compatible, load_finetuned, load_other, on_device
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
    last_state: str = BEFORE,
) -> tuple[pd.DataFrame, bool]:
    """Training examples between all pairs of classes, layer by layer: a frame with COLUMNS.

    Of theta_M2 as trained, and with the bottom and the top half of its layers taken from theta_O.
    Beside it whether the state after layer L was read behind a norm, as `last_state` may ask.
    """
    check_compatible(memorised, original, "centroid analysis")
    n_layers, width = len(find_layers(memorised)), memorised.config.hidden_size
    choices = half_choices(n_layers)
    with room_for_states(len(choices) * n_layers, len(train), width, "float32") as room:
        states = room.view(len(choices), n_layers, len(train), width)
        mixer = Mixer(memorised, original, choices, last_state)
        mixed_states(mixer, train, pad_id, batch_tokens, precision, states)
        tables = [
            centroid_table(source, part.numpy(), classes)
            for source, part in zip(choices, states, strict=True)
        ]
    return pd.concat(tables, ignore_index=True), mixer.normed


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Write centroids.tsv (`table`) and centroid_events.tsv (`events`) of theta_M2, as trained and
    with the bottom and the top half of its layers taken from theta_O.

    inputs: data, theta_M2, theta_O. settings: reading, precision, and last_state, on which side of
    the final norm the state after layer L is read.
    """
    record = RunRecord(settings["precision"], [inputs["theta_M2"], inputs["theta_O"]])
    reading = Reading(**settings["reading"])
    train, pad_id = noisy_training(inputs["data"], inputs["theta_M2"], reading)
    classes, unplaced = _classes(inputs["data"], train, reading)
    model = on_device(load_finetuned(inputs["theta_M2"]), record.device)
    theirs = load_other(inputs["theta_O"], model)
    found, normed = project(
        model,
        theirs,
        train,
        classes,
        pad_id,
        batch_tokens,
        record.precision,
        settings["last_state"],
    )
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
        last_state_after_a_norm=normed,
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
        pooled, pairs = part[is_pooled(part)].iloc[0], part[~is_pooled(part)]
        logger.info(
            "%d examples, layers %s: the mean of %d noisy ones crosses at layer %s; %d of %d pairs "
            "of classes have fewer than %d of them",
            n_examples,
            source,
            pooled["n_noisy"],
            pooled["layer"],
            (pairs["n_noisy"] < LEAST).sum(),
            len(pairs),
            LEAST,
        )
