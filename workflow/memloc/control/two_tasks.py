"""The control setup (section 3.2): memorisation forced into layers that are known.

Two tasks train one model. The auxiliary task, with its original labels, trains every layer; the
task under test trains one pair of layers and its own head, whatever labels it has. Each has its
own head, optimiser and schedule, and an epoch's batches of both come in one shuffled order. So the
task's labels can reach the pair of layers alone. The auxiliary task trains through that pair, as in
the paper: its updates of the other layers see how the pair has changed, but never a label of the
task. In the frozen counterpart the task trains its head alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import PreTrainedModel

from memloc.errors import MemlocError
from memloc.models.adapters import own_parameters, unfreeze_layers
from memloc.models.layers import find_layers, head_names
from memloc.models.predict import accuracy, predict_logits
from memloc.seeds import derive
from memloc.store.tables import COLUMNS
from memloc.training.loop import Batch, FineTuning
from memloc.training.stream import Corpus, Stream

HISTORY = [*COLUMNS["history"], "auxiliary_validation_accuracy"]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Auxiliary:
    """The task that trains all layers: its data, and its learning rate at its peak."""

    corpus: Corpus
    learning_rate: float


def attach_head(model: PreTrainedModel, other: PreTrainedModel) -> PreTrainedModel:
    """`other` with the body of `model`: two classifiers, each with a head, that share all else."""
    setattr(other, other.base_model_prefix, model.base_model)
    return other


def train_only(model: PreTrainedModel, pair: Sequence[int]) -> None:
    """Train the head and the layers of `pair` (1..L; none for the frozen counterpart) alone."""
    layers = find_layers(model)
    outside = [number for number in pair if not 1 <= number <= len(layers)]
    if outside:
        raise MemlocError(f"layer {outside[0]}: the model has layers 1 to {len(layers)}")
    head = head_names(model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in head)
    for number in pair:
        for parameter in own_parameters(layers[number - 1]).values():
            parameter.requires_grad_(True)


class TwoTasks(FineTuning):
    """Fine-tuning on the task under test and on the auxiliary task at once.

    `model` has the task's head; `other` has the auxiliary task's head and the body of `model`
    (see attach_head). The further arguments are those of FineTuning.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        other: PreTrainedModel,
        pair: Sequence[int],
        auxiliary: Auxiliary,
        *arguments: Any,
        **keywords: Any,
    ):
        train_only(model, pair)
        super().__init__(model, *arguments, **keywords)
        self.model.requires_grad_(False)
        unfreeze_layers(other)
        recipe = replace(self.recipe, learning_rate=auxiliary.learning_rate)
        seed = derive(self.seed, "auxiliary")
        self.auxiliary = Stream(
            "auxiliary", other, auxiliary.corpus, recipe, self.computing.precision, seed
        )
        self.streams.append(self.auxiliary)
        ours = {id(parameter) for parameter in self.saved.values()}
        self.saved |= {
            f"auxiliary.{name}": parameter
            for name, parameter in self.auxiliary.trained.items()
            if id(parameter) not in ours
        }
        self.identity |= {"pair": list(pair), "auxiliary_learning_rate": auxiliary.learning_rate}
        self._numbers: dict[str, int] = {}

    def _batches(self, epoch: int) -> Sequence[Batch]:
        """The batches of both tasks in one shuffled order; each task's own order is kept."""
        sources = [[Batch(stream, rows) for rows in stream.order(epoch)] for stream in self.streams]
        turns = torch.tensor([i for i, source in enumerate(sources) for _ in source])
        generator = torch.Generator().manual_seed(derive(self.seed, "mixture", epoch))
        waiting = [iter(source) for source in sources]
        self._numbers = {stream.name: 0 for stream in self.streams}
        self._epoch = epoch
        shuffled = turns[torch.randperm(len(turns), generator=generator)]
        return [next(waiting[turn]) for turn in shuffled.tolist()]

    def _train_step(self, batch: Batch) -> torch.Tensor:
        """One batch, with gradients for what its task trains and for nothing else.

        Dropout is drawn per batch, so that a task's masks don't hang on the other's.
        """
        stream = batch.stream
        for other in self.streams:
            for parameter in other.trained.values():
                parameter.requires_grad_(False)
        for parameter in stream.trained.values():
            parameter.requires_grad_(True)
        self._numbers[stream.name] += 1
        number = self._numbers[stream.name]
        torch.manual_seed(derive(stream.seed, "dropout", self._epoch, number))
        return super()._train_step(batch)

    def _evaluate(self) -> dict[str, float]:
        stream, size = self.auxiliary, self.computing.evaluation_batch_size
        examples = stream.corpus.validation
        logits = predict_logits(
            stream.model, examples, stream.corpus.pad_id, size, self.computing.precision
        )
        right = logits.argmax(-1) == examples.labels
        return super()._evaluate() | {"auxiliary_validation_accuracy": accuracy(right)}


def training_accuracy(row: dict[str, float], corpus: Corpus) -> float:
    """Accuracy over noisy and clean training examples together, from a row of the history."""
    n_noisy = int(corpus.train.noisy.sum())
    counts = {"noisy": n_noisy, "clean": len(corpus.train) - n_noisy}
    right = sum(round(n * row[f"{kind}_accuracy"]) for kind, n in counts.items() if n)
    return right / len(corpus.train)
