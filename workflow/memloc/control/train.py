"""One model of the control setup from files to files, at the first learning rate that suffices."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from memloc.control.two_tasks import HISTORY, Auxiliary, TwoTasks, attach_head, training_accuracy
from memloc.data.examples import Reading
from memloc.data.tokens import load_tokenizer
from memloc.models.adapters import Lora
from memloc.models.load import load_pretrained, on_device
from memloc.models.run_record import RunRecord
from memloc.seeds import derive
from memloc.store.drafts import remove_scratch
from memloc.store.provenance import sha256
from memloc.training.finetune import (
    RunFiles,
    check_lengths,
    identity_of,
    read_corpus,
    require_room,
    write_results,
)
from memloc.training.loop import Computing
from memloc.training.stream import Recipe

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Setting:
    """What the control setup adds to a recipe.

    pair: layers that the task under test trains, none for the frozen counterpart; further_rates:
    learning rates tried in turn after the recipe's own while the training accuracy at the end
    isn't above `accuracy_above`; auxiliary_learning_rate: that of the auxiliary task, always.
    """

    pair: Sequence[int]
    further_rates: Sequence[float]
    accuracy_above: float
    auxiliary_learning_rate: float


@dataclass
class Attempt:
    """A finished run at one learning rate, and its accuracy on all training examples."""

    run: TwoTasks
    accuracy: float


class Ladder:
    """Runs at rising learning rates, up to the first that suffices.

    A finished run's partial state stays until the end, so that a killed job repeats none of them.
    `start` makes the run of a recipe, its partial state in a folder of that learning rate's own.
    """

    def __init__(self, start: Callable[[Recipe], TwoTasks], recipe: Recipe, setting: Setting):
        self.start, self.enough = start, setting.accuracy_above
        rates = [recipe.learning_rate, *setting.further_rates]
        self.recipes = [replace(recipe, learning_rate=rate) for rate in rates]
        self.tried: dict[float, float] = {}  # learning rate -> training accuracy at the end

    def climb(self) -> Attempt:
        """The first attempt above the threshold, else the best (the lowest rate among equals)."""
        for recipe in self.recipes:
            attempt = self._attempt(recipe)
            if attempt.accuracy > self.enough:
                return attempt
            if recipe is not self.recipes[-1]:
                attempt.run.save()
            logger.info(
                "training accuracy %.4f at learning rate %g is not above %g",
                attempt.accuracy,
                recipe.learning_rate,
                self.enough,
            )
        best = max(self.recipes, key=lambda recipe: self.tried[recipe.learning_rate])
        if len(self.recipes) > 1:
            logger.warning(
                "no learning rate sufficed: %g is taken, with training accuracy %.4f; add higher "
                "ones to control.learning_rates, or train longer",
                best.learning_rate,
                self.tried[best.learning_rate],
            )
        # Memory holds one model at a time: an earlier one is read from its saved state.
        return attempt if best is self.recipes[-1] else self._attempt(best)

    def _attempt(self, recipe: Recipe) -> Attempt:
        run = self.start(recipe)
        run.run()
        reached = training_accuracy(run.outcome.history[-1], run.corpus)
        self.tried[recipe.learning_rate] = reached
        return Attempt(run, reached)


def train_control(
    data: str | Path,
    auxiliary_data: str | Path,
    pretrained: str | Path,
    places: RunFiles,
    labels: str,
    seed: int,
    recipe: Recipe,
    setting: Setting,
    reading: Reading,
    auxiliary_reading: Reading,
    computing: Computing,
    code: str,
    lora: Lora | None = None,
) -> None:
    """Train one model of the control setup and write its checkpoints and history.

    Arguments are those of finetuning.fine_tune; the checkpoints have the head of the task under
    test. `labels` are that task's, the auxiliary one has its original ones.
    """
    record = RunRecord(computing.precision)
    computing = replace(computing, precision=record.precision)
    tokenizer = load_tokenizer(pretrained)
    corpus = read_corpus(data, labels, tokenizer, reading)
    other = read_corpus(auxiliary_data, "original", tokenizer, auxiliary_reading)
    identity = identity_of(data, pretrained, labels, reading, code) | {
        "auxiliary_data": sha256(auxiliary_data),
        "auxiliary_reading": asdict(auxiliary_reading),
        **({"lora": asdict(lora)} if lora else {}),
    }

    def start(chosen: Recipe) -> TwoTasks:
        model = load_pretrained(pretrained, reading.class_names, seed, lora)
        for part, whose in ((corpus, reading), (other, auxiliary_reading)):
            check_lengths(part, model, whose.max_length)
        second = load_pretrained(
            pretrained, auxiliary_reading.class_names, derive(seed, "auxiliary"), lora
        )
        on_device(model, record.device)
        packed = second.memloc_packed = record.pack(model, computing.packed, trained=True)
        run = TwoTasks(
            model,
            on_device(attach_head(model, second), record.device),
            setting.pair,
            Auxiliary(other, setting.auxiliary_learning_rate),
            corpus,
            chosen,
            replace(computing, packed=packed),
            seed,
            places.scratch / f"rate-{chosen.learning_rate:g}",
            identity,
        )
        require_room(run, places)
        return run

    ladder = Ladder(start, recipe, setting)
    chosen = ladder.climb()
    facts = {
        "labels": labels,
        "control": asdict(setting),
        "learning_rates_tried": [list(pair) for pair in ladder.tried.items()],
        "training_accuracy": chosen.accuracy,
        "reading": asdict(reading),
        "auxiliary_reading": asdict(auxiliary_reading),
        "n_auxiliary": len(other.train),
        **record.facts(),
    }
    write_results(chosen.run, tokenizer, places, facts, HISTORY)
    remove_scratch(places.scratch)
