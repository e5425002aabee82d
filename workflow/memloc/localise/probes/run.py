"""Probing from checkpoints on disk to a table on disk."""

import logging
from collections.abc import Mapping
from typing import Any

from memloc.data.examples import Reading, noisy_training, original_labels
from memloc.localise.probes.classifiers import ProbeRecipe
from memloc.localise.probes.probing import Place, Probing, probe_targets
from memloc.localise.probes.weights import COLUMNS, THETA_F, THETA_M2, probe_weights
from memloc.models.layers import find_layers
from memloc.models.load import check_compatible, load_finetuned, on_device
from memloc.models.pooled_states import pooled_states, room_for_states
from memloc.models.run_record import RunRecord
from memloc.store.tables import write_tsv

logger = logging.getLogger(__name__)


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Write probes.tsv (`table`): probes of every layer of theta_M2, and of layer 1 of theta_F.

    inputs: data, theta_M2, theta_F. settings: reading; recipe, the fields of ProbeRecipe; seeds of
    the probes; states, the type that hidden states are kept in; last_state, on which side of the
    final norm the state after layer L is read; precision.
    """
    record = RunRecord(settings["precision"], [inputs["theta_M2"], inputs["theta_F"]])
    reading = Reading(**settings["reading"])
    train, pad_id = noisy_training(inputs["data"], inputs["theta_M2"], reading)
    original = original_labels(inputs["data"], train.index, reading.class_names)
    targets = probe_targets(train, original, len(reading.class_names))
    recipe = ProbeRecipe(**settings["recipe"])
    probing = Probing(targets, settings["seeds"], recipe, record.device)
    model, baseline = load_finetuned(inputs["theta_M2"]), load_finetuned(inputs["theta_F"])
    check_compatible(model, baseline, "probing")
    n_layers, size = len(find_layers(model)), (len(train), model.config.hidden_size)
    with (
        room_for_states(n_layers + 1, *size, settings["states"]) as ours,
        room_for_states(2, *size, settings["states"]) as theirs,
    ):
        for source, room in ((model, ours), (baseline, theirs)):
            on_device(source, record.device)
            fill = source, train, pad_id, batch_tokens, record.precision, room
            pooled_states(*fill, settings["last_state"])
            on_device(source, "cpu")  # probes have the device to themselves
        logger.info("hidden states of %d examples read in %.1f s", len(train), record.seconds)
        del model, baseline, source
        places = [Place(THETA_M2, layer, ours[layer]) for layer in range(n_layers + 1)]
        frame = probing.run([*places, Place(THETA_F, 1, theirs[1])])
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
