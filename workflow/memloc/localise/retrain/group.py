"""One group of windows, retrained side by side."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from memloc.data.tokens import Examples, collate, token_batches
from memloc.errors import MemlocError
from memloc.localise.retrain.clip import Clip
from memloc.localise.retrain.store import Store
from memloc.localise.retrain.variants import SharedModel, WindowVariants
from memloc.machine.device import autocast
from memloc.progress import progress
from memloc.seeds import derive
from memloc.training.optimiser import Optimisation, Optimiser
from memloc.windows import Window, window_name

logger = logging.getLogger(__name__)
LOSS_CHECK_STEPS = 50  # asking a GPU for the losses at every step would make it wait
TOKENS_AT_ONCE = 32_768  # padded tokens of all windows together when evaluating


@dataclass(frozen=True)
class RetrainingRecipe(Optimisation):
    """How windows are retrained; the fields are config.yaml's `retraining`.

    train_head: final norm, pooler and head are trained too (the authors' code), not frozen.
    """

    train_head: bool


@dataclass(frozen=True)
class JobSettings:
    """seed: order of examples and dropout; memory_mb: what the job may use on a CPU;
    save_minutes: what a killed job may lose, beside the epoch it was in."""

    seed: int
    pad_id: int
    precision: str
    memory_mb: float | None = None
    save_minutes: float = 0.0


class GroupRun:
    """The windows of one group, their optimiser and schedule.

    recomputed: layers keep no activations, and are computed again in the backward pass.
    """

    def __init__(
        self,
        shared: SharedModel,
        initial: nn.ModuleList,
        windows: list[Window],
        clean: Examples,
        job: JobSettings,
        recipe: RetrainingRecipe,
        recomputed: bool = False,
    ):
        self.shared, self.clean, self.job, self.recipe = shared, clean, job, recipe
        rounded = job.precision == "bfloat16"
        self.variants = WindowVariants(shared, initial, windows, rounded, recomputed)
        sheets = self.variants.sheets()
        self.rows = {name: rows for name, (rows, _) in sheets.items()}
        self.optimiser = Optimiser(self.rows, recipe, len(clean), job.seed, stacked=True)
        self.clip = Clip(list(sheets.values()), recipe.clip_norm)
        self.steps = self.optimiser.steps

    def train(self, store: Store, after_epoch: Callable[[int], None]) -> None:
        """Train what `store` doesn't already hold of the epochs, and have it save them."""
        first = store.load(self.variants.windows, self.rows, self.optimiser)
        for epoch in range(first + 1, self.recipe.epochs + 1):
            losses = self._train_epoch(epoch)
            logger.info(
                "%s: epoch %d/%d, mean loss %.4f (%.4f to %.4f)",
                self._name(),
                epoch,
                self.recipe.epochs,
                losses.mean(),
                losses.min(),
                losses.max(),
            )
            if epoch < self.recipe.epochs:  # after the last one, the group's result is stored
                store.save(epoch, self.variants.windows, self.rows, self.optimiser)
            after_epoch(epoch)

    @torch.no_grad()
    def predictions(self, examples: Examples) -> torch.Tensor:
        """(examples, windows): the class id that each window predicts of each example."""
        device, windows = self.shared.model.device, self.variants.windows
        predicted = torch.empty(len(examples), len(windows), dtype=torch.int64)
        tokens, described = TOKENS_AT_ONCE // len(windows), f"{self._name()}: evaluating"
        batches = token_batches(examples, tokens, self.job.pad_id, device, described)
        for rows, inputs in batches:
            with autocast(self.job.precision, device):
                found = self.variants.logits(inputs).argmax(-1)
            predicted[rows] = found.T.cpu()
        return predicted

    def _name(self) -> str:
        first, last = (window_name(self.variants.windows[i]) for i in (0, -1))
        return f"window {first}" if first == last else f"windows {first} to {last}"

    def _train_epoch(self, epoch: int) -> torch.Tensor:
        """Each window's mean loss (windows,) over the epoch's steps."""
        generator = torch.Generator().manual_seed(derive(self.job.seed, "retraining order", epoch))
        order = torch.randperm(len(self.clean), generator=generator)
        losses = torch.zeros(self.steps, len(self.variants.windows), device=self._device)
        self.shared.model.train()
        steps = enumerate(order.split(self.recipe.batch_size))
        described = f"{self._name()}: epoch {epoch}/{self.recipe.epochs}"
        for step, rows in progress(steps, self.steps, described):
            self.shared.masks.begin((epoch - 1) * self.steps + step + 1)
            losses[step] = self.step(rows)
            if (step + 1) % LOSS_CHECK_STEPS == 0 or step + 1 == self.steps:
                self._refuse_nonfinite(losses[: step + 1], epoch)
        self.shared.model.eval()
        return losses.mean(0).cpu()

    @property
    def _device(self) -> torch.device:
        return self.shared.model.device

    def step(self, rows: torch.Tensor) -> torch.Tensor:
        """One step of every window on the clean examples at `rows`; the losses (windows,)."""
        inputs = collate(
            [self.clean.ids[row] for row in rows.tolist()], self.job.pad_id, self._device
        )
        with autocast(self.job.precision, self._device):
            logits = self.variants.logits(inputs)
        labels = self.clean.labels[rows].to(self._device)
        losses = nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.repeat(len(logits)), reduction="none"
        )
        losses = losses.unflatten(0, (len(logits), -1)).mean(1)
        self.optimiser.zero_grad()
        losses.sum().backward()  # a window's own loss alone reaches its own weights
        self.clip()
        self.optimiser.step()
        return losses.detach()

    def _refuse_nonfinite(self, losses: torch.Tensor, epoch: int) -> None:
        wrong = (~losses.isfinite()).nonzero()
        if len(wrong):
            step, column = wrong[0].tolist()
            raise MemlocError(
                f"window {window_name(self.variants.windows[column])}: retraining loss became "
                f"{losses[step, column].item()} in epoch {epoch}, step {step + 1} of {self.steps} "
                f"(learning_rate {self.recipe.learning_rate:g}, precision {self.job.precision}); "
                "lower retraining.learning_rate or use float32"
            )
