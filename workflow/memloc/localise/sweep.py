"""How windows are measured: any sweep over them, from examples or checkpoints to tables.

A sweep gives the logits of every window for a batch. Here its predictions become a row per window,
and a column per window for single examples.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd
import torch
from transformers import PreTrainedModel

from memloc.data.examples import Reading, noisy_training
from memloc.data.tokens import Examples, token_batches
from memloc.localise.clean import draw_clean
from memloc.machine.device import autocast
from memloc.models.layer_stack import LayerStack
from memloc.models.load import load_finetuned
from memloc.models.predict import memorised_examples, share_of
from memloc.models.run_record import RunRecord
from memloc.store.tables import COLUMNS, write_parquet, write_tsv
from memloc.windows import Window, window_name

logger = logging.getLogger(__name__)


class Sweep(Protocol):
    """What is measured: logits of every window in one go over the layers of `stack`'s model."""

    name: str
    stack: LayerStack
    windows: list[Window]

    def sweep(self, inputs: dict[str, torch.Tensor]) -> dict[Window, torch.Tensor]:
        """Logits (rows, classes) of every window for one batch."""
        ...


@dataclass(frozen=True)
class SweepResult:
    """table: one row per window; examples: per noisy example, whether a window kept its label."""

    table: pd.DataFrame
    examples: pd.DataFrame


def window_table(
    windows: Sequence[Window], kept: torch.Tensor, noisy: torch.Tensor, n_layers: int
) -> pd.DataFrame:
    """A row per window from kept (examples, windows), whether the trained label was predicted.

    noisy_error_normalised is nan unless the window of all layers is there and has an error.
    """
    errors = ~kept
    frame = pd.DataFrame(windows, columns=["start", "end"])
    frame["noisy_error"] = errors[noisy].double().mean(0).numpy()
    frame["clean_error"] = errors[~noisy].double().mean(0).numpy()
    frame["n_noisy"], frame["n_clean"] = int(noisy.sum()), int((~noisy).sum())
    whole = frame.loc[(frame["start"] == 1) & (frame["end"] == n_layers), "noisy_error"]
    ceiling = whole.iloc[0] if len(whole) and whole.iloc[0] > 0 else float("nan")
    frame["noisy_error_normalised"] = frame["noisy_error"] / ceiling
    return frame


def per_example(windows: Sequence[Window], kept: torch.Tensor, examples: Examples) -> pd.DataFrame:
    """index, then per window whether the perturbed label was still predicted; noisy rows only."""
    noisy = examples.noisy
    table = {"index": examples.index[noisy].numpy()}
    for column, window in enumerate(windows):
        table[window_name(window)] = kept[noisy][:, column].numpy()
    return pd.DataFrame(table).sort_values("index", ignore_index=True)


def window_errors(
    sweep: Sweep, examples: Examples, pad_id: int, batch_tokens: int, precision: str
) -> SweepResult:
    """Memorisation error and clean error of every window of a sweep over `examples`.

    An error is a prediction other than the (perturbed) label trained on. Examples are batched by
    length, at most `batch_tokens` padded tokens a batch; predictions don't depend on it.
    """
    device = sweep.stack.model.device
    kept = torch.zeros(len(examples), len(sweep.windows), dtype=torch.bool)
    described = f"{sweep.name}: windows"
    for rows, inputs in token_batches(examples, batch_tokens, pad_id, device, described):
        with autocast(precision, device):
            logits = sweep.sweep(inputs)
        predicted = torch.stack([logits[window].argmax(-1) for window in sweep.windows], dim=1)
        kept[rows] = predicted.cpu() == examples.labels[rows, None]
    return SweepResult(
        window_table(sweep.windows, kept, examples.noisy, len(sweep.stack.layers)),
        per_example(sweep.windows, kept, examples),
    )


def measure(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    settings: Mapping[str, Any],
    batch_tokens: int,
    sweep_of: Callable[[PreTrainedModel], Sweep],
) -> None:
    """Write the errors of all windows of what `sweep_of` makes of theta_M2.

    inputs: "data" and checkpoints, theta_M2 and whatever the windows are replaced by. outputs:
    "table", a row per window; "examples", the noisy examples by window; if asked for, "memorised",
    which noisy examples theta_M2 remembers before anything is replaced (index, memorised).
    settings: reading; precision; clean_examples: errors are measured on all noisy training
    examples, and on all clean ones ("all") or as many as there are noisy ones ("equal", drawn from
    seed); what else is there is recorded. Raises MemlocError for checkpoints that don't belong
    together.
    """
    checkpoints = [path for name, path in inputs.items() if name != "data"]
    record = RunRecord(settings["precision"], checkpoints)
    reading = Reading(**settings["reading"])
    training, pad_id = noisy_training(inputs["data"], inputs["theta_M2"], reading)
    chosen = choose_examples(training, settings["clean_examples"], settings["seed"])
    model = load_finetuned(inputs["theta_M2"]).to(record.device)
    before = memorised_examples(model, chosen, pad_id, 64, record.precision)
    share = share_of(before)
    sweep = sweep_of(model)
    result = window_errors(sweep, chosen, pad_id, batch_tokens, record.precision)
    if "memorised" in outputs:
        frame = pd.DataFrame({"index": chosen.index[chosen.noisy].numpy(), "memorised": before})
        write_parquet(frame.sort_values("index"), outputs["memorised"])
    write_parquet(result.examples, outputs["examples"])
    write_tsv(result.table, outputs["table"], COLUMNS["windows"])
    facts = {"batch_tokens": batch_tokens, "noisy_predicted_before": share}
    record.write(outputs["table"], **settings, **facts)
    _report(sweep.name, result.table)


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
    noisy, drawn, _ = draw_clean(training, seed, "clean examples")
    return training.select(torch.cat([noisy, drawn]).sort().values)
