"""Forgetting gradients from checkpoints on disk to a table on disk."""

import logging
import time
from dataclasses import asdict
from pathlib import Path

from memloc.data.examples import Reading, check_same_tokenizer, noisy_training
from memloc.localise.gradients.gradients import forgetting_gradients
from memloc.localise.gradients.variants import COLUMNS, NORM_COLUMNS, gradient_weights
from memloc.machine.device import device_name, pick_device, resolve_precision
from memloc.models.load import load_finetuned
from memloc.store.provenance import write_provenance
from memloc.store.tables import write_tsv

logger = logging.getLogger(__name__)


def gradient_checkpoints(
    data: str | Path,
    memorised: str | Path,
    frozen: str | Path,
    table: str | Path,
    norms: str | Path,
    reading: Reading,
    objective: str,
    batch_tokens: int,
    precision: str,
    seed: int,
) -> None:
    """Write gradients.tsv (`table`), and the `norms` behind it, from theta_M1 (`memorised`) and
    theta_F (`frozen`).

    Clean examples, as many as there are noisy ones, are drawn from `seed`.
    """
    started = time.perf_counter()
    device = pick_device()
    precision = resolve_precision(precision, device)
    check_same_tokenizer([memorised, frozen])
    train, pad_id = noisy_training(data, memorised, reading)
    frame, values = forgetting_gradients(
        load_finetuned(memorised).to(device),
        load_finetuned(frozen).to(device),
        train,
        pad_id,
        batch_tokens,
        precision,
        objective,
        seed,
    )
    write_tsv(values, norms, NORM_COLUMNS)
    write_tsv(frame, table, COLUMNS)
    write_provenance(
        table,
        reading=asdict(reading),
        objective=objective,
        batch_tokens=batch_tokens,
        precision=precision,
        seed=seed,
        device=device_name(device),
        seconds=time.perf_counter() - started,
    )
    weights = gradient_weights(frame)["weight"]
    logger.info(
        "%d noisy and %d clean examples; layer weights %s",
        frame["n_noisy"].iloc[0],
        frame["n_clean"].iloc[0],
        " ".join(f"{weight:.3f}" for weight in weights),
    )
