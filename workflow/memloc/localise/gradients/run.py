"""Forgetting gradients from checkpoints on disk to a table on disk."""

import logging
from collections.abc import Mapping
from typing import Any

from memloc.data.examples import Reading, noisy_training
from memloc.localise.gradients.gradients import forgetting_gradients
from memloc.localise.gradients.variants import COLUMNS, NORM_COLUMNS, gradient_weights
from memloc.models.load import load_finetuned, load_other, on_device
from memloc.models.run_record import RunRecord
from memloc.store.tables import write_tsv

logger = logging.getLogger(__name__)


def run(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
) -> None:
    """Write gradients.tsv (`table`), and the `norms` behind it.

    inputs: data, theta_M1, theta_F. settings: reading; objective, "loss" or "logit"; precision;
    seed, which draws as many clean examples as there are noisy ones; of a given run without
    theta_M1 also stand_ins, which says that theta_M2 takes its place.
    """
    for theta, other in settings.get("stand_ins", {}).items():
        logger.info("%s takes the place of %s, which isn't given", other, theta)
    record = RunRecord(settings["precision"], [inputs["theta_M1"], inputs["theta_F"]])
    reading = Reading(**settings["reading"])
    train, pad_id = noisy_training(inputs["data"], inputs["theta_M1"], reading)
    model = on_device(load_finetuned(inputs["theta_M1"]), record.device)
    table, norms = forgetting_gradients(
        model,
        load_other(inputs["theta_F"], model),
        train,
        pad_id,
        batch_tokens,
        record.precision,
        settings["objective"],
        settings["seed"],
    )
    write_tsv(norms, outputs["norms"], NORM_COLUMNS)
    write_tsv(table, outputs["table"], COLUMNS)
    record.write(outputs["table"], **settings, batch_tokens=batch_tokens)
    weights = gradient_weights(table)["weight"]
    logger.info(
        "%d noisy and %d clean examples; layer weights %s",
        table["n_noisy"].iloc[0],
        table["n_clean"].iloc[0],
        " ".join(f"{weight:.3f}" for weight in weights),
    )
