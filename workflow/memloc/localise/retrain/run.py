"""Layer retraining from checkpoints on disk to tables on disk."""

import logging
import time
from dataclasses import asdict
from pathlib import Path

from memloc.data.examples import Reading, check_same_tokenizer, noisy_training
from memloc.localise.retrain.group import Recipe, Setup
from memloc.localise.retrain.retraining import Retraining
from memloc.machine.device import device_name, pick_device, resolve_precision
from memloc.models.layers import find_layers
from memloc.models.load import checkpoint_digest, load_finetuned, load_pretrained, weights_hash
from memloc.store.provenance import sha256, versions, write_provenance
from memloc.store.tables import COLUMNS, write_parquet, write_tsv
from memloc.windows import parse_windows

logger = logging.getLogger(__name__)


def retrain_checkpoints(
    data: str | Path,
    memorised: str | Path,
    pretrained: str | Path,
    table: str | Path,
    examples: str | Path,
    scratch: str | Path,
    windows: str,
    reading: Reading,
    recipe: Recipe,
    precision: str,
    seed: int,
    heldout_seed: int,
    memory_mb: float | None,
    code: str,
) -> None:
    """Retrain windows ("all", "from-S" or "S-E") of theta_M2 from theta_P; write both tables."""
    started = time.perf_counter()
    device = pick_device()
    precision = resolve_precision(precision, device)
    check_same_tokenizer([memorised, pretrained])
    model = load_finetuned(memorised)
    chosen = parse_windows(windows, len(find_layers(model)))
    training, pad_id = noisy_training(data, memorised, reading)
    job = Retraining(
        model.to(device),
        load_pretrained(pretrained, reading.class_names, seed).to(device),
        training,
        Setup(seed, pad_id, precision, memory_mb),
        recipe,
        heldout_seed,
        scratch,
        {
            "data": sha256(data),
            "code": code,
            "versions": versions(),
            "memorised": checkpoint_digest(memorised),
            "pretrained": weights_hash(pretrained),
            "reading": asdict(reading),
        },
    )
    result = job.run(chosen)
    write_parquet(result.examples, examples)
    write_tsv(result.table, table, COLUMNS["windows"])
    write_provenance(
        table,
        windows=windows,
        reading=asdict(reading),
        recipe=asdict(recipe),
        precision=precision,
        seed=seed,
        heldout_seed=heldout_seed,
        device=device_name(device),
        n_trained_on=len(job.clean),
        **result.facts,
        seconds=time.perf_counter() - started,
    )
    logger.info(
        "%d windows retrained on %d examples; noisy error %.3f to %.3f, mean clean error %.4f",
        len(result.table),
        len(job.clean),
        result.table["noisy_error"].min(),
        result.table["noisy_error"].max(),
        result.table["clean_error"].mean(),
    )
    job.clear()
