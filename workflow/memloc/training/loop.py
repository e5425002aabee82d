"""Fine-tuning (section 3, Appendix D): theta_O, theta_M1, theta_M2 and theta_F from one loop.

A run killed in the middle resumes from the last epoch that was saved and ends with the same bits:
weights, optimiser and schedule are saved after an epoch once enough time has passed, and the random
state of an epoch follows from the seed and the epoch's number alone. The last epoch isn't saved,
for the results are written then.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tqdm import tqdm
from transformers import PreTrainedModel

from memloc.data.tokens import Examples
from memloc.errors import MemlocError
from memloc.models.layers import class_count
from memloc.models.predict import accuracy, macro_f1, predict_logits
from memloc.seeds import derive
from memloc.training.states import Saving, State, States
from memloc.training.stream import Corpus, Recipe, Stream

__all__ = ["Batch", "Computing", "Corpus", "FineTuning", "Outcome", "Recipe"]

logger = logging.getLogger(__name__)
STATE, MEMORISED, KEPT = "state", "memorised", "epoch"  # partial states, numbered by epochs
LOSS_CHECK_STEPS = 50  # asking a GPU for the loss at every step would make it wait


@dataclass(frozen=True)
class Computing:
    """How a run computes: changes speed, rounding and, if packed, what dropout draws; not the
    science.

    save_minutes: what a killed run may lose, beside the epoch it was in. packed: tokens are
    computed without padding (`models.packable`); dropout is drawn for real tokens alone.
    """

    precision: str
    evaluation_batch_size: int
    save_minutes: float = 0.0
    packed: bool = False


@dataclass
class Outcome:
    """history: one dict per epoch (tables.COLUMNS["history"]); memorised_epoch: theta_M1's epoch,
    None when the training accuracy never exceeded the threshold."""

    history: list[dict[str, float]]
    memorised_epoch: int | None


class Batch(NamedTuple):
    """Rows of a stream's corpus that are trained on at once."""

    stream: Stream
    rows: torch.Tensor


class FineTuning:
    """One run over epochs, with its partial state in a scratch folder.

    `identity` is what the run depends on; a scratch folder of another identity is not resumed.
    The weights after each of `keep_epochs` are kept there as well.
    Only parameters with requires_grad are trained, saved and clipped.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        corpus: Corpus,
        recipe: Recipe,
        computing: Computing,
        seed: int,
        scratch: str | Path,
        identity: dict[str, Any],
        keep_epochs: Iterable[int] = (),
    ):
        self.model, self.corpus, self.recipe = model, corpus, recipe
        self.computing, self.seed = computing, seed
        self.scratch = Path(scratch)
        self.identity = {**identity, "recipe": asdict(recipe), "seed": seed}
        # The rest of `computing` is no part of it: another one may resume the run.
        self.identity |= {"precision": computing.precision, "packed": computing.packed}
        self.keep_epochs = sorted(keep_epochs)
        self.identity["keep_epochs"] = self.keep_epochs
        self.stream = Stream("task", model, corpus, recipe, computing.precision, seed)
        self.streams = [self.stream]
        self.saved = dict(self.stream.trained)  # what partial state and theta_M1 are made of
        self.outcome = Outcome([], None)

    def run(self, after_epoch: Callable[[int], None] = lambda epoch: None) -> Outcome:
        """Train what is left of the epochs; `after_epoch` is called at the end of each."""
        self.states = States(self.scratch, self.identity)
        self.saving = Saving(self.states, STATE, self.computing.save_minutes)
        self._resume()
        for epoch in range(len(self.outcome.history) + 1, self.recipe.epochs + 1):
            started = time.perf_counter()
            loss = self._train_epoch(epoch)
            row = {"epoch": epoch, "train_loss": loss, **self._evaluate()}
            row["seconds"] = time.perf_counter() - started
            self.outcome.history.append(row)
            self._report(row)
            self._keep(epoch)
            if epoch < self.recipe.epochs and self.saving.is_due:
                self.save()
            after_epoch(epoch)
        return self.outcome

    def load_memorised(self) -> None:
        """Put theta_M1 into the model; theta_M2 stays when the threshold was never exceeded."""
        if self.outcome.memorised_epoch is not None:
            self._load_weights(self._found(MEMORISED, self.outcome.memorised_epoch))

    def load_epoch(self, epoch: int) -> None:
        """Put the weights as they were after one of the epochs kept into the model."""
        self._load_weights(self._found(KEPT, epoch))

    def _found(self, name: str, epoch: int) -> State:
        """A state that this run has saved, or found whole when it began."""
        if state := self.states.find(name, epoch):
            return state
        raise MemlocError(
            f"{self.states.folder}: the weights after epoch {epoch} were damaged while this run "
            "went on; run the same command again to train them anew"
        )

    def clear(self) -> None:
        """Forget the partial state, once the results are in place."""
        self.states.clear()

    # --- one epoch ---------------------------------------------------------------------

    def _train_epoch(self, epoch: int) -> float:
        """Mean training loss of one epoch over the task's examples."""
        batches = self._batches(epoch)
        device = self.model.device
        losses = torch.zeros(len(batches), device=device)
        self._train_mode()
        devices = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), self._bar(epoch, len(batches)) as bar:
            torch.manual_seed(derive(self.seed, "dropout", epoch))
            for step, batch in enumerate(batches):
                losses[step] = self._train_step(batch)
                checked = (step + 1) % LOSS_CHECK_STEPS == 0 or step + 1 == len(batches)
                if checked:
                    self._refuse_nonfinite(losses[: step + 1], epoch, batches)
                    bar.set_postfix(loss=f"{losses[: step + 1].mean().item():.3f}", **self._last())
                bar.update()
        self._train_mode(False)
        ours = [len(batch.rows) * (batch.stream is self.stream) for batch in batches]
        weights = torch.tensor(ours, device=device)
        return ((losses * weights).sum() / weights.sum()).item()

    def _batches(self, epoch: int) -> Sequence[Batch]:
        """What an epoch trains on, in order."""
        return [Batch(self.stream, rows) for rows in self.stream.order(epoch)]

    def _train_mode(self, mode: bool = True) -> None:
        for stream in self.streams:
            stream.model.train(mode)

    def _train_step(self, batch: Batch) -> torch.Tensor:
        return batch.stream.step(batch.rows)

    def _evaluate(self) -> dict[str, float]:
        """Accuracies against the labels trained on, noisy and clean examples apart."""
        train, validation = self.corpus.train, self.corpus.validation
        correct = self._predict(train) == train.labels
        held_out = self._predict(validation)
        classes = class_count(self.model)
        threshold = self.recipe.memorised_above
        self._reached = threshold is not None and accuracy(correct) > threshold
        return {
            "clean_accuracy": accuracy(correct[~train.noisy]),
            "noisy_accuracy": accuracy(correct[train.noisy]),
            "validation_accuracy": accuracy(held_out == validation.labels),
            "validation_macro_f1": macro_f1(validation.labels, held_out, classes),
        }

    def _predict(self, examples: Examples) -> torch.Tensor:
        size, precision = self.computing.evaluation_batch_size, self.computing.precision
        return predict_logits(self.model, examples, self.corpus.pad_id, size, precision).argmax(-1)

    def _refuse_nonfinite(self, losses: torch.Tensor, epoch: int, batches: Sequence[Batch]) -> None:
        wrong = (~losses.isfinite()).nonzero()
        if len(wrong):
            step = int(wrong[0])
            recipe = batches[step].stream.recipe
            raise MemlocError(
                f"training loss became {losses[step].item()} in epoch {epoch}, step {step + 1} of "
                f"{len(batches)} (learning_rate {recipe.learning_rate:g}, precision "
                f"{self.computing.precision}); lower training.learning_rate or use float32"
            )

    # --- progress ----------------------------------------------------------------------

    def _bar(self, epoch: int, steps: int) -> tqdm:
        return tqdm(
            total=steps,
            desc=f"epoch {epoch}/{self.recipe.epochs}",
            leave=False,
            disable=not sys.stderr.isatty(),
        )

    def _last(self) -> dict[str, str]:
        if not self.outcome.history:
            return {}
        row = self.outcome.history[-1]
        return {key: f"{row[f'{key}_accuracy']:.3f}" for key in ("noisy", "clean", "validation")}

    def _report(self, row: dict[str, float]) -> None:
        logger.info(
            "epoch %d/%d  loss %.4f  accuracy: clean %.3f noisy %.3f validation %.3f  (%.1f s)",
            row["epoch"],
            self.recipe.epochs,
            row["train_loss"],
            row["clean_accuracy"],
            row["noisy_accuracy"],
            row["validation_accuracy"],
            row["seconds"],
        )

    # --- partial state -----------------------------------------------------------------

    def _keep(self, epoch: int) -> None:
        """Save the weights of an epoch that is to be had later, as theta_M1 or as one of its own.

        A run that goes on from before this epoch trains it again, and saves the same ones.
        """
        if self.outcome.memorised_epoch is None and self._reached:
            self.states.save(MEMORISED, epoch, {}, weights=self.saved)
            self.outcome.memorised_epoch = epoch
        if epoch in self.keep_epochs:
            self.states.save(KEPT, epoch, {}, weights=self.saved)

    def save(self) -> None:
        """Save the run as it is after the epochs so far."""
        moments = {
            f"{stream.name}.{name}": moment
            for stream in self.streams
            for name, moment in stream.optimiser.moments().items()
        }
        facts = {
            "history": self.outcome.history,
            "memorised_epoch": self.outcome.memorised_epoch,
            "schedules": {s.name: s.optimiser.schedule_state() for s in self.streams},
        }
        done = len(self.outcome.history)
        self.saving.save(done, facts, weights=self.saved, moments=moments)

    def _resume(self) -> None:
        whole = (state for state in self.states.saved(STATE) if self._has_all(state))
        state = next(whole, None)
        if state is None:
            return
        self._load_weights(state)
        moments = state.tensors("moments")
        for stream in self.streams:
            prefix = f"{stream.name}."
            own = {k.removeprefix(prefix): v for k, v in moments.items() if k.startswith(prefix)}
            stream.optimiser.resume(own, state.facts["schedules"][stream.name])
        self.outcome = Outcome(state.facts["history"], state.facts["memorised_epoch"])
        self.saving.begin(state.number)
        logger.info("resuming after epoch %d", state.number)

    def _has_all(self, state: State) -> bool:
        """Whether the weights that the run must have kept before a state are whole as well."""
        memorised = state.facts["memorised_epoch"]
        needed = [(KEPT, epoch) for epoch in self.keep_epochs if epoch <= state.number]
        needed += [(MEMORISED, memorised)] if memorised is not None else []
        missing = [f"{name}.{epoch}" for name, epoch in needed if not self.states.find(name, epoch)]
        if missing:
            logger.warning("%s lacks %s: not resumed", state.folder, ", ".join(missing))
        return not missing

    def _load_weights(self, state: State) -> None:
        weights = state.tensors("weights")
        with torch.no_grad():
            for name, parameter in self.saved.items():
                parameter.copy_(weights[name])
