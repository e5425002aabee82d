"""Probing from checkpoints on disk to a table on disk."""

import logging
import time
from dataclasses import asdict
from pathlib import Path

import torch
from transformers import PreTrainedModel

from memloc.data.examples import Reading, check_same_tokenizer, noisy_training
from memloc.data.tokens import Examples
from memloc.localise.probes.probing import Place, Probing, original_labels, probe_targets
from memloc.localise.probes.stack import ProbeRecipe
from memloc.localise.probes.weights import COLUMNS, FROZEN, MEMORISED, probe_weights
from memloc.machine.device import device_name, pick_device, resolve_precision
from memloc.models.load import check_compatible, find_layers, load_finetuned
from memloc.models.pooled_states import pooled_states, room_for_states
from memloc.store.provenance import write_provenance
from memloc.store.tables import write_tsv

logger = logging.getLogger(__name__)


def probe_checkpoints(
    data: str | Path,
    memorised: str | Path,
    frozen: str | Path,
    table: str | Path,
    reading: Reading,
    recipe: ProbeRecipe,
    seeds: list[int],
    states: str,
    batch_tokens: int,
    precision: str,
) -> None:
    """Write probes.tsv: probes of every layer of theta_M2 (`memorised`), and of layer 1 of
    theta_F (`frozen`). `states` is the type that hidden states are kept in."""
    started = time.perf_counter()
    device = pick_device()
    precision = resolve_precision(precision, device)
    check_same_tokenizer([memorised, frozen])
    train, pad_id = noisy_training(data, memorised, reading)
    original = original_labels(data, train.index, reading.class_names)
    targets = probe_targets(train, original, len(reading.class_names))
    probing = Probing(targets, seeds, recipe, device)
    model, baseline = load_finetuned(memorised), load_finetuned(frozen)
    check_compatible(model, baseline, "probing")
    n_layers, width = len(find_layers(model)), model.config.hidden_size
    with (
        room_for_states(n_layers + 1, len(train), width, states) as ours,
        room_for_states(2, len(train), width, states) as theirs,
    ):
        for source, room in ((model, ours), (baseline, theirs)):
            _read_states(source, room, train, pad_id, batch_tokens, precision, device)
        logger.info(
            "hidden states of %d examples read in %.1f s", len(train), time.perf_counter() - started
        )
        del model, baseline, source
        places = [Place(MEMORISED, layer, ours[layer]) for layer in range(n_layers + 1)]
        frame = probing.run([*places, Place(FROZEN, 1, theirs[1])])
    write_tsv(frame, table, COLUMNS)
    write_provenance(
        table,
        reading=asdict(reading),
        recipe=asdict(recipe),
        probe_seeds=seeds,
        states=states,
        batch_tokens=batch_tokens,
        precision=precision,
        device=device_name(device),
        seconds=time.perf_counter() - started,
    )
    weights = probe_weights(frame)["weight"]
    logger.info(
        "%d examples, %d probes; layer weights %s",
        len(train),
        len(frame.drop_duplicates(["kind", "source", "probe_seed", "layer"])),
        " ".join(f"{weight:.3f}" for weight in weights),
    )


def _read_states(
    model: PreTrainedModel,
    room: torch.Tensor,
    train: Examples,
    pad_id: int,
    batch_tokens: int,
    precision: str,
    device: torch.device,
) -> None:
    pooled_states(model.to(device), train, pad_id, batch_tokens, precision, room)
    model.to("cpu")  # probes have the device to themselves
