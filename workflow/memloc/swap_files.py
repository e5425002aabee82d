"""Layer swapping from checkpoints on disk to tables on disk."""

import logging
import time
from dataclasses import asdict
from pathlib import Path

import torch

from memloc.devices import device_name, pick_device, resolve_precision
from memloc.encoding import Examples
from memloc.evaluation import memorised_share
from memloc.files import atomic, write_provenance
from memloc.models import load_finetuned
from memloc.reading import Reading, check_pair, noisy_training
from memloc.seeds import derive
from memloc.swapping import swap_windows
from memloc.tables import COLUMNS, write_tsv

logger = logging.getLogger(__name__)


def swap_checkpoints(
    data: str | Path,
    memorised: str | Path,
    original: str | Path,
    table: str | Path,
    examples: str | Path,
    reading: Reading,
    clean_examples: str,
    batch_tokens: int,
    precision: str,
    seed: int,
) -> None:
    """Swap every window of theta_M2 for theta_O's layers and write both tables.

    Errors are measured on all noisy training examples, and on all clean ones or as many as there
    are noisy ones (`clean_examples`: "all" or "equal", drawn from `seed`).
    """
    started = time.perf_counter()
    device = pick_device()
    precision = resolve_precision(precision, device)
    check_pair([memorised, original])
    training, pad_id = noisy_training(data, memorised, reading)
    chosen = choose_examples(training, clean_examples, seed)
    model = load_finetuned(memorised).to(device)
    before = memorised_share(model, chosen, pad_id, 64, precision)
    result = swap_windows(
        model,
        load_finetuned(original).to(device),
        chosen,
        pad_id,
        batch_tokens,
        precision,
    )
    with atomic(examples) as draft:
        result.examples.to_parquet(draft, index=False)
    write_tsv(result.table, table, COLUMNS["windows"])
    write_provenance(
        table,
        reading=asdict(reading),
        clean_examples=clean_examples,
        noisy_predicted_before=before,
        batch_tokens=batch_tokens,
        precision=precision,
        seed=seed,
        device=device_name(device),
        seconds=time.perf_counter() - started,
    )
    single = result.table[result.table["start"] == result.table["end"]]
    logger.info(
        "%d windows, %d noisy and %d clean examples; largest error of a single layer %.3f, of all "
        "layers %.3f; mean clean error %.4f",
        len(result.table),
        int(chosen.noisy.sum()),
        int((~chosen.noisy).sum()),
        single["noisy_error"].max(),
        result.table["noisy_error"].max(),
        result.table["clean_error"].mean(),
    )


def choose_examples(training: Examples, clean_examples: str, seed: int) -> Examples:
    """All noisy examples, with all clean ones ("all") or an equal number of them ("equal")."""
    if clean_examples == "all":
        return training
    noisy, clean = training.noisy.nonzero().flatten(), (~training.noisy).nonzero().flatten()
    generator = torch.Generator().manual_seed(derive(seed, "clean examples"))
    drawn = clean[torch.randperm(len(clean), generator=generator)[: len(noisy)]]
    return training.select(torch.cat([noisy, drawn]).sort().values)
