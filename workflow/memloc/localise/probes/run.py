"""Probing from checkpoints on disk to a table on disk."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import PreTrainedModel

from memloc.data.examples import Reading, noisy_training, original_labels
from memloc.data.tokens import Examples
from memloc.localise.probes.classifiers import ProbeRecipe
from memloc.localise.probes.probing import Place, Probing, Targets, probe_targets
from memloc.localise.probes.weights import COLUMNS, THETA_F, THETA_M2, probe_weights
from memloc.models.last_state import BEFORE
from memloc.models.layers import find_layers
from memloc.models.load import (
    check_compatible,
    load_finetuned,
    load_other,
    load_start,
    on_device,
)
from memloc.models.pooled_states import pooled_states, room_for_states
from memloc.models.run_record import RunRecord
from memloc.store.tables import write_tsv

logger = logging.getLogger(__name__)


def probe_layers(
    memorised: PreTrainedModel,
    frozen: PreTrainedModel,
    train: Examples,
    targets: Targets,
    pad_id: int,
    batch_tokens: int,
    precision: str,
    recipe: ProbeRecipe,
    seeds: Sequence[int],
    kept_as: str,
    device: torch.device,
    last_state: str = BEFORE,
) -> pd.DataFrame:
    """Probes of every layer of theta_M2, and of layer 1 of theta_F: a frame with COLUMNS.

    kept_as: the type that hidden states are kept in; last_state: on which side of the final norm
    the state after layer L is read. Both models are on the CPU afterwards, since
    probes have the device to themselves.
    """
    probing = Probing(targets, seeds, recipe, device)
    check_compatible(memorised, frozen, "probing")
    n_layers, size = len(find_layers(memorised)), (len(train), memorised.config.hidden_size)
    with (
        room_for_states(n_layers + 1, *size, kept_as) as ours,
        room_for_states(2, *size, kept_as) as theirs,
    ):
        for source, room in ((memorised, ours), (frozen, theirs)):
            on_device(source, device)
            pooled_states(source, train, pad_id, batch_tokens, precision, room, last_state)
            on_device(source, "cpu")
        del memorised, frozen, source
        places = [Place(THETA_M2, layer, ours[layer]) for layer in range(n_layers + 1)]
        return probing.run([*places, Place(THETA_F, 1, theirs[1])])


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Write probes.tsv (`table`): probes of every layer of theta_M2, and of layer 1 of theta_F.

    inputs: data, theta_M2, theta_F. settings: reading; recipe, the fields of ProbeRecipe; seeds of
    the probes; states, the type that hidden states are kept in; last_state, on which side of the
    final norm the state after layer L is read; precision; of a given run without theta_F also
    stand_ins, which says that theta_P takes its place: their layers are the same.
    """
    record = RunRecord(settings["precision"], [inputs["theta_M2"], inputs["theta_F"]])
    reading = Reading(**settings["reading"])
    train, pad_id = noisy_training(inputs["data"], inputs["theta_M2"], reading)
    original = original_labels(inputs["data"], train.index, reading.class_names)
    targets = probe_targets(train, original, len(reading.class_names))
    model = load_finetuned(inputs["theta_M2"])
    frame = probe_layers(
        model,
        _frozen(inputs["theta_F"], model, settings, reading),
        train,
        targets,
        pad_id,
        batch_tokens,
        record.precision,
        ProbeRecipe(**settings["recipe"]),
        settings["seeds"],
        settings["states"],
        record.device,
        settings["last_state"],
    )
    write_tsv(frame, outputs["table"], COLUMNS)
    chosen = {key: value for key, value in settings.items() if key != "seeds"}
    seeds = {"probe_seeds": settings["seeds"]}
    record.write(outputs["table"], **chosen, **seeds, batch_tokens=batch_tokens)
    weights = probe_weights(frame)["weight"]
    logger.info(
        "%d examples, %d probes; layer weights %s",
        len(train),
        len(frame.drop_duplicates(["kind", "source", "probe_seed", "layer"])),
        " ".join(f"{weight:.3f}" for weight in weights),
    )


def _frozen(
    folder: str | Path,
    model: PreTrainedModel,
    settings: Mapping[str, Any],
    reading: Reading,
) -> PreTrainedModel:
    """theta_F, or theta_P in its place: layer 1, of which alone states are read, is the same."""
    if settings.get("stand_ins", {}).get(THETA_F) == "theta_P":
        logger.info("theta_P takes the place of theta_F: layer 1 is the same")
        return load_start(model, folder, reading.class_names, 0)
    return load_other(folder, model)
