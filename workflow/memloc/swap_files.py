"""Layer swapping, and what else replaces windows of theta_M2, from checkpoints to tables."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import PreTrainedModel

from memloc.components import LAYER, keep_component
from memloc.devices import device_name, pick_device, resolve_precision
from memloc.encoding import Examples
from memloc.evaluation import memorised_examples, share_of
from memloc.files import atomic, write_provenance
from memloc.models import load_finetuned
from memloc.reading import Reading, check_pair, noisy_training
from memloc.seeds import derive
from memloc.swapping import Swapper, window_errors
from memloc.tables import COLUMNS, write_tsv

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Measuring:
    """On which examples and how errors of windows are measured.

    clean_examples: errors are measured on all noisy training examples, and on all clean ones
    ("all") or as many as there are noisy ones ("equal", drawn from `seed`).
    """

    reading: Reading
    clean_examples: str
    batch_tokens: int
    precision: str
    seed: int

    @classmethod
    def of(cls, settings: Mapping[str, Any], batch_tokens: int) -> "Measuring":
        """From a rule's settings, in which the reading is still plain."""
        reading = Reading(**settings["reading"])
        return cls(**{**settings, "reading": reading}, batch_tokens=batch_tokens)


@dataclass(frozen=True)
class WindowFiles:
    """What to write: the table of windows, that of noisy examples by window and, if asked for,
    which noisy examples theta_M2 remembers before anything is replaced (index, memorised)."""

    table: str | Path
    examples: str | Path
    memorised: str | Path | None = None


def swap_checkpoints(
    data: str | Path,
    memorised: str | Path,
    original: str | Path,
    files: WindowFiles,
    measuring: Measuring,
    component: str = LAYER,
) -> None:
    """Swap every window of theta_M2 for theta_O's layers, or for the attention or feed-forward
    blocks of these (`component`), and write the tables."""

    def swapper(model: PreTrainedModel) -> Swapper:
        theirs = load_finetuned(original).to(model.device)
        keep_component(theirs, model, component)
        return Swapper(model, theirs)

    check_pair([memorised, original])
    measure_checkpoints(data, memorised, swapper, files, measuring, component=component)


def measure_checkpoints(
    data: str | Path,
    memorised: str | Path,
    swapper: Callable[[PreTrainedModel], Swapper],
    files: WindowFiles,
    measuring: Measuring,
    **facts: Any,
) -> None:
    """Write the errors of every window of what `swapper` makes of theta_M2; `facts` for the record.

    Raises MemlocError for checkpoints that don't belong together.
    """
    started = time.perf_counter()
    device = pick_device()
    precision = resolve_precision(measuring.precision, device)
    training, pad_id = noisy_training(data, memorised, measuring.reading)
    chosen = choose_examples(training, measuring.clean_examples, measuring.seed)
    model = load_finetuned(memorised).to(device)
    before = memorised_examples(model, chosen, pad_id, 64, precision)
    share = share_of(before)
    sweep = swapper(model)
    result = window_errors(sweep, chosen, pad_id, measuring.batch_tokens, precision)
    if files.memorised is not None:
        frame = pd.DataFrame({"index": chosen.index[chosen.noisy].numpy(), "memorised": before})
        _write_parquet(frame.sort_values("index"), files.memorised)
    _write_parquet(result.examples, files.examples)
    write_tsv(result.table, files.table, COLUMNS["windows"])
    write_provenance(
        files.table,
        **asdict(measuring) | {"precision": precision},
        **facts,
        noisy_predicted_before=share,
        device=device_name(device),
        seconds=time.perf_counter() - started,
    )
    _report(sweep.name, result.table)


def _write_parquet(frame: pd.DataFrame, path: str | Path) -> None:
    with atomic(path) as draft:
        frame.to_parquet(draft, index=False)


def _report(name: str, table: pd.DataFrame) -> None:
    single = table[table["start"] == table["end"]]
    logger.info(
        "%s: %d windows, %d noisy and %d clean examples; largest error of a single layer %.3f, of "
        "any window %.3f; mean clean error %.4f",
        name,
        len(table),
        table["n_noisy"].iloc[0],
        table["n_clean"].iloc[0],
        single["noisy_error"].max(),
        table["noisy_error"].max(),
        table["clean_error"].mean(),
    )


def choose_examples(training: Examples, clean_examples: str, seed: int) -> Examples:
    """All noisy examples, with all clean ones ("all") or an equal number of them ("equal")."""
    if clean_examples == "all":
        return training
    noisy, clean = training.noisy.nonzero().flatten(), (~training.noisy).nonzero().flatten()
    generator = torch.Generator().manual_seed(derive(seed, "clean examples"))
    drawn = clean[torch.randperm(len(clean), generator=generator)[: len(noisy)]]
    return training.select(torch.cat([noisy, drawn]).sort().values)
