"""How windows are measured, whatever is done to them: from examples or checkpoints to tables.

A sweep gives the logits of every window for a batch. Here its predictions become two tables: one
with a row per window, and one of single examples with a column per window.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from transformers import PreTrainedModel

from memloc.data.examples import (
    UNKNOWN,
    Measured,
    Reading,
    noisy_training,
    with_heldout,
)
from memloc.data.tokens import Examples, token_batches
from memloc.localise.clean import draw_clean
from memloc.machine.device import autocast
from memloc.models.layer_stack import LayerStack
from memloc.models.load import load_finetuned, on_device
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


def error_table(predicted: torch.Tensor, measured: Measured) -> pd.DataFrame:
    """Errors of each column of predicted (examples, columns), class ids: a row per column.

    An error is a prediction other than the label trained on; of held-out examples, which count in
    validation_error alone, other than the original one. to_original: the share of noisy examples
    that get their original label, among the n_original whose original label is known. A share of
    no example is nan.
    """
    examples, noisy = measured.examples, measured.examples.noisy
    wrong = predicted != examples.labels[:, None]
    clean, known = ~noisy & ~measured.heldout, noisy & (measured.original != UNKNOWN)
    returned = predicted == measured.original[:, None]
    frame = pd.DataFrame(
        {
            "noisy_error": _shares(wrong, noisy),
            "clean_error": _shares(wrong, clean),
            "n_noisy": int(noisy.sum()),
            "n_clean": int(clean.sum()),
            "to_original": _shares(returned, known),
            "n_original": int(known.sum()),
            "validation_error": _shares(wrong, measured.heldout),
            "n_validation": int(measured.heldout.sum()),
        }
    )
    return frame.assign(noise_minus_clean=frame["noisy_error"] - frame["clean_error"])


def _shares(found: torch.Tensor, rows: torch.Tensor) -> np.ndarray:
    """The share of `rows` that are true in each column."""
    return found[rows].double().mean(0).numpy()


def window_table(
    windows: Sequence[Window],
    predicted: torch.Tensor,
    measured: Measured,
    n_layers: int,
    whole_error: float | None = None,
) -> pd.DataFrame:
    """A row per window from predicted (examples, windows), class ids.

    whole_error: noisy error of the window of all layers, where it isn't among them.
    noisy_error_normalised is nan unless that window is there or known, and has an error.
    """
    frame = pd.DataFrame(windows, columns=["start", "end"]).join(error_table(predicted, measured))
    whole = frame.loc[(frame["start"] == 1) & (frame["end"] == n_layers), "noisy_error"]
    ceiling = whole.iloc[0] if len(whole) else whole_error
    frame["noisy_error_normalised"] = frame["noisy_error"] / (ceiling or float("nan"))
    return frame


def per_example(
    windows: Sequence[Window], predicted: torch.Tensor, examples: Examples
) -> pd.DataFrame:
    """index, then per window whether the perturbed label was still predicted; noisy rows only."""
    noisy = examples.noisy
    kept = predicted[noisy] == examples.labels[noisy, None]
    table = {"index": examples.index[noisy].numpy()}
    for column, window in enumerate(windows):
        table[window_name(window)] = kept[:, column].numpy()
    return pd.DataFrame(table).sort_values("index", ignore_index=True)


def predictions(
    sweep: Sweep, examples: Examples, pad_id: int, batch_tokens: int, precision: str
) -> torch.Tensor:
    """Class ids (examples, windows) that every window of a sweep predicts.

    Examples are batched by length, at most `batch_tokens` padded tokens a batch; predictions don't
    depend on it.
    """
    device = sweep.stack.model.device
    predicted = torch.empty(len(examples), len(sweep.windows), dtype=torch.int64)
    for rows, inputs in token_batches(examples, batch_tokens, pad_id, device, sweep.name):
        with autocast(precision, device):
            logits = sweep.sweep(inputs)
        found = torch.stack([logits[window].argmax(-1) for window in sweep.windows], dim=1)
        predicted[rows] = found.cpu()
    return predicted


def window_errors(
    sweep: Sweep, measured: Measured, pad_id: int, batch_tokens: int, precision: str
) -> SweepResult:
    """Errors of every window of a sweep, and what became of every noisy example."""
    examples = measured.examples
    predicted = predictions(sweep, examples, pad_id, batch_tokens, precision)
    return SweepResult(
        window_table(sweep.windows, predicted, measured, len(sweep.stack.layers)),
        per_example(sweep.windows, predicted, examples),
    )


@dataclass(frozen=True)
class Subject:
    """A model on its device whose parts will be modified, and what errors are measured on.

    before: whether it predicts its label (n_noisy,), of each noisy example in their order.
    """

    model: PreTrainedModel
    measured: Measured
    pad_id: int
    record: RunRecord
    before: torch.Tensor


def load_subject(
    inputs: Mapping[str, str],
    settings: Mapping[str, Any],
    changed: str = "theta_M2",
    labels: str = "perturbed",
) -> Subject:
    """The checkpoint `changed` of inputs, and the examples with their `labels` as it reads them.

    inputs: "data" and checkpoints. settings: reading; precision; packed; clean_examples: errors are
    measured on all noisy training examples, and on all clean ones ("all") or as many as there are
    noisy ones ("equal", drawn from seed), and on all validation examples.
    """
    data, checkpoint = inputs["data"], inputs[changed]
    record = RunRecord(settings["precision"], [inputs[name] for name in inputs if name != "data"])
    reading = Reading(**settings["reading"])
    training, pad_id = noisy_training(data, checkpoint, reading, labels)
    chosen = choose_examples(training, settings["clean_examples"], settings["seed"])
    measured = with_heldout(chosen, data, checkpoint, reading)
    model = on_device(load_finetuned(checkpoint), record.device)
    record.pack(model, settings["packed"])
    before = memorised_examples(model, chosen, pad_id, 64, record.precision)
    return Subject(model, measured, pad_id, record, before)


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
    settings: see `load_subject`; what else is there is recorded. Raises MemlocError for checkpoints
    that don't belong together.
    """
    subject = load_subject(inputs, settings)
    share, record = share_of(subject.before), subject.record
    sweep = sweep_of(subject.model)
    result = window_errors(sweep, subject.measured, subject.pad_id, batch_tokens, record.precision)
    if "memorised" in outputs:
        examples = subject.measured.examples
        index = examples.index[examples.noisy].numpy()
        frame = pd.DataFrame({"index": index, "memorised": subject.before})
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
