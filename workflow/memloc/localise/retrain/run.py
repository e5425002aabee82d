"""Layer retraining from checkpoints on disk to tables on disk."""

import logging
from dataclasses import asdict
from functools import partial
from pathlib import Path

from memloc.data.examples import Reading, noisy_training, with_heldout
from memloc.errors import MemlocError
from memloc.localise.retrain.group import JobSettings, RetrainingRecipe
from memloc.localise.retrain.retraining import Retraining
from memloc.localise.weights import whole_window
from memloc.machine.memory import reuse_memory
from memloc.models.digests import checkpoint_digest, weights_hash
from memloc.models.layers import find_layers
from memloc.models.load import (
    load_finetuned,
    load_start,
    on_device,
)
from memloc.models.run_record import RunRecord
from memloc.store.provenance import sha256, versions
from memloc.store.tables import COLUMNS, read_tsv, write_parquet, write_tsv
from memloc.windows import parse_windows

logger = logging.getLogger(__name__)


def retrain_checkpoints(
    data: str | Path,
    memorised: str | Path,
    pretrained: str | Path,
    whole: str | Path | None,
    table: str | Path,
    examples: str | Path,
    scratch: str | Path,
    windows: str,
    reading: Reading,
    recipe: RetrainingRecipe,
    precision: str,
    packed: bool,
    seed: int,
    heldout_seed: int,
    memory_mb: float | None,
    code: str,
    save_minutes: float = 0.0,
) -> None:
    """Retrain windows ("all", "from-S" or "S-E") of theta_M2 from theta_P; write both tables.

    whole: the table that has the window of all layers, where it isn't among `windows`.
    """
    reuse_memory()
    record = RunRecord(precision, [memorised, pretrained])
    model = on_device(load_finetuned(memorised, base=pretrained), record.device)
    record.pack(model, packed, trained=True)
    chosen = parse_windows(windows, len(find_layers(model)))
    training, pad_id = noisy_training(data, memorised, reading)
    job = Retraining(
        model,
        load_start(model, pretrained, reading.class_names, seed),
        training,
        partial(with_heldout, data=data, checkpoint=memorised, reading=reading),
        JobSettings(seed, pad_id, record.precision, memory_mb, save_minutes),
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
    record.packed = job.shared.stack.packed
    result = job.run(chosen, whole_error=_whole_error(whole, len(find_layers(model))))
    write_parquet(result.examples, examples)
    write_tsv(result.table, table, COLUMNS["windows"])
    record.write(
        table,
        windows=windows,
        reading=asdict(reading),
        recipe=asdict(recipe),
        seed=seed,
        heldout_seed=heldout_seed,
        n_trained_on=len(job.clean),
        normalised_by=Path(whole or table).name,
        **result.facts,
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


def _whole_error(table: str | Path | None, n_layers: int) -> float | None:
    """The noisy error of the window of all layers in another job's table; None without one."""
    if table is None:
        return None
    row = whole_window(read_tsv(table, COLUMNS["windows"]))
    if (row["start"], row["end"]) != (1, n_layers):
        raise MemlocError(f"{table} has no window 1-{n_layers}; delete it to have it made anew")
    return float(row["noisy_error"])
