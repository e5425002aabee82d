"""Centroid analysis from checkpoints on disk to tables on disk."""

import logging
import time
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from memloc.data.examples import Reading, check_same_tokenizer, noisy_training
from memloc.data.tokens import Examples
from memloc.explain.centroids import (
    COLUMNS,
    CROSSING,
    EVENT_COLUMNS,
    Classes,
    centroid_events,
    centroid_table,
)
from memloc.explain.events import layers_of
from memloc.explain.mixtures import Mixer, half_choices, mixed_states
from memloc.localise.probes.probing import original_labels
from memloc.localise.probes.stack import UNKNOWN
from memloc.machine.device import device_name, pick_device, resolve_precision
from memloc.models.load import check_compatible, find_layers, load_finetuned
from memloc.models.pooled_states import room_for_states
from memloc.store.provenance import write_provenance
from memloc.store.tables import write_tsv

logger = logging.getLogger(__name__)


def centroid_checkpoints(
    data: str | Path,
    memorised: str | Path,
    original: str | Path,
    table: str | Path,
    events: str | Path,
    reading: Reading,
    batch_tokens: int,
    precision: str,
) -> None:
    """Write centroids.tsv and centroid_events.tsv of theta_M2, as trained and with the bottom and
    the top half of its layers taken from theta_O."""
    started = time.perf_counter()
    device = pick_device()
    precision = resolve_precision(precision, device)
    check_same_tokenizer([memorised, original])
    train, pad_id = noisy_training(data, memorised, reading)
    classes = _classes(data, train, reading)
    model, theirs = load_finetuned(memorised).to(device), load_finetuned(original).to(device)
    check_compatible(model, theirs, "centroid analysis")
    n_layers, width = len(find_layers(model)), model.config.hidden_size
    choices = half_choices(n_layers)
    with room_for_states(len(choices) * n_layers, len(train), width, "float32") as room:
        states = room.view(len(choices), n_layers, len(train), width)
        mixer = Mixer(model, theirs, choices)
        mixed_states(mixer, train, pad_id, batch_tokens, precision, states)
        del mixer, model, theirs
        found = pd.concat(
            [
                centroid_table(source, part.numpy(), classes)
                for source, part in zip(choices, states, strict=True)
            ],
            ignore_index=True,
        )
    happened = centroid_events(found)
    write_tsv(happened, events, EVENT_COLUMNS)
    write_tsv(found, table, COLUMNS)
    unplaced = int((classes.noisy & (classes.original == UNKNOWN)).sum())
    write_provenance(
        table,
        reading=asdict(reading),
        layers_of_theta_O={
            name: [layer for layer, theirs in enumerate(choice, start=1) if theirs]
            for name, choice in choices.items()
        },
        noisy_without_original_label=unplaced,
        batch_tokens=batch_tokens,
        precision=precision,
        device=device_name(device),
        seconds=time.perf_counter() - started,
    )
    _log(happened, len(train))


def _classes(data: str | Path, train: Examples, reading: Reading) -> Classes:
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
    return classes


def _log(events: pd.DataFrame, n_examples: int) -> None:
    crossings = events[events["event"] == CROSSING]
    for source, part in crossings.groupby("source", sort=False):
        happened, n_none, n_undefined = layers_of(part["layer"])
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
