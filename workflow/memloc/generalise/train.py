"""One half of a task fine-tuned, and what it predicts for every training example (section 5).

The model is not kept: only the probabilities it gives to each example's label and to all classes. A
killed job goes on after the last epoch it saved, as every fine-tuning does.
"""

import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from memloc.data.examples import Reading
from memloc.data.tokens import Examples, load_tokenizer
from memloc.errors import MemlocError
from memloc.generalise.halves import class_columns
from memloc.models.adapters import Lora, unfreeze_layers
from memloc.models.load import load_pretrained, on_device
from memloc.models.predict import predict_logits
from memloc.models.run_record import RunRecord
from memloc.seeds import derive
from memloc.store.files import require_space
from memloc.store.provenance import sha256, write_provenance
from memloc.store.tables import read_parquet, write_parquet
from memloc.training.finetune import check_lengths, identity_of
from memloc.training.loop import Computing, Corpus, FineTuning, Recipe

logger = logging.getLogger(__name__)


class HalfTuning(FineTuning):
    """Fine-tuning without an evaluation after each epoch: what counts is the end of training."""

    _reached = False

    def _evaluate(self) -> dict[str, float]:
        return {}

    def _last(self) -> dict[str, str]:
        return {}

    def _refuse_nonfinite(self, *losses: Any) -> None:
        try:
            super()._refuse_nonfinite(*losses)
        except MemlocError as error:  # what to lower is another setting
            name = "generalisation.learning_rate"
            raise MemlocError(str(error).replace("training.learning_rate", name)) from None

    def _report(self, row: dict[str, float]) -> None:
        epoch, loss, seconds = row["epoch"], row["train_loss"], row["seconds"]
        logger.info("epoch %d/%d  loss %.4f  (%.1f s)", epoch, self.recipe.epochs, loss, seconds)


@dataclass(frozen=True)
class Half:
    """A half's number and files: its split, where its predictions go, its partial state."""

    number: int
    split: Path
    output: Path
    scratch: Path


def train_half(
    data: str | Path,
    pretrained: str | Path,
    half: Half,
    labels: str,
    seed: int,
    recipe: Recipe,
    reading: Reading,
    computing: Computing,
    code: str,
    lora: Lora | None = None,
) -> None:
    """Train on one half and write its table: index, trained, probability, class_columns.

    `probability` is that of the label trained on ("original" or "perturbed"). Every half has a
    head, data order and dropout of its own, drawn from the model seed `seed` and its number; with
    `lora` an adapter too, which is trained in the place of the layers.
    """
    record = RunRecord(computing.precision)
    computing = replace(computing, precision=record.precision)
    tokenizer = load_tokenizer(pretrained)
    examples = reading.examples(data, "train", labels, tokenizer)
    trained = membership(half.split, examples)
    part, rest = (examples.select(rows.nonzero().flatten()) for rows in (trained, ~trained))
    corpus = Corpus(part, rest, tokenizer.pad_token_id)
    seed = derive(seed, "half", half.number)
    model = load_pretrained(pretrained, reading.class_names, seed, lora)
    check_lengths(corpus, model, reading.max_length)
    unfreeze_layers(model)
    _require_room(model, recipe, half.scratch)
    identity = identity_of(data, pretrained, labels, reading, code) | {"half": sha256(half.split)}
    identity |= {"lora": asdict(lora)} if lora else {}
    on_device(model, record.device)
    computing = replace(computing, packed=record.pack(model, computing.packed, trained=True))
    run = HalfTuning(model, corpus, recipe, computing, seed, half.scratch, identity)
    outcome = run.run()
    probabilities = class_probabilities(model, examples, corpus.pad_id, computing)
    facts = {
        "half": half.number,
        "labels": labels,
        "seed": seed,
        "recipe": asdict(recipe),
        "reading": asdict(reading),
        "train_loss": [row["train_loss"] for row in outcome.history],
        **record.facts(),
    }
    write_predictions(half.output, examples, trained, probabilities, facts)
    run.clear()


def membership(split: str | Path, examples: Examples) -> torch.Tensor:
    """(n,) bool, in the order of `examples`: which of them the half of file `split` trains on."""
    frame = read_parquet(split)
    if frame["index"].tolist() != examples.index.tolist():
        raise MemlocError(
            f"{split}: splits other examples than those trained on; delete it to have it made anew"
        )
    return torch.tensor(frame["trained"].to_numpy(dtype=bool, copy=True))


def class_probabilities(
    model: Any, examples: Examples, pad_id: int, computing: Computing
) -> torch.Tensor:
    """(n, classes) float64: the probability of each class, in evaluation mode."""
    size, precision = computing.evaluation_batch_size, computing.precision
    return predict_logits(model, examples, pad_id, size, precision).double().softmax(-1)


def write_predictions(
    output: Path,
    examples: Examples,
    trained: torch.Tensor,
    probabilities: torch.Tensor,
    facts: dict[str, Any],
) -> None:
    """Write a half's table, atomically, and its provenance; log what it learnt.

    probabilities: (n, classes); the table holds them as float32, the label's own as float64.
    """
    if not probabilities.isfinite().all():
        raise MemlocError(
            f"{output}: the model's predictions aren't numbers after training; lower "
            "generalisation.learning_rate or use precision: float32"
        )
    probability = probabilities.gather(1, examples.labels[:, None])[:, 0]
    columns = {"index": examples.index, "trained": trained, "probability": probability}
    names = class_columns(probabilities.shape[1])
    columns |= dict(zip(names, probabilities.float().T, strict=True))
    table = pa.table({name: value.numpy() for name, value in columns.items()})
    write_parquet(table, output)
    write_provenance(output, n_trained=int(trained.sum()), **facts)
    logger.info(
        "mean probability of the label: %.3f where trained on (%d examples), %.3f held out (%d)",
        probability[trained].mean(),
        int(trained.sum()),
        probability[~trained].mean(),
        int((~trained).sum()),
    )


def _require_room(model: torch.nn.Module, recipe: Recipe, scratch: Path) -> None:
    """Raise MemlocError unless the disk has room for the weights and moments of two states."""
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    needed = 2 * recipe.saved_bytes * trained
    require_space(scratch.parent, needed, "the partial state of this half")
