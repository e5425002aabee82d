"""Layer retraining: theta_M2 with a window's layers reset to theta_P and retrained (section 3.1).

The windows of a job train side by side (`variants`), in groups that fit the device's memory. All
see the same examples in the same order under the same dropout masks, and each is clipped by the
norm of its own gradient: a window's result doesn't depend on its companions. A killed job goes
on from the last epoch of its group that was saved.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.data.examples import Measured
from memloc.data.tokens import Examples, collate
from memloc.errors import MemlocError
from memloc.groups import Group, WindowCost, group_of, group_windows, trained_bytes
from memloc.localise.clean import draw_clean
from memloc.localise.retrain.group import GroupRun, JobSettings, RetrainingRecipe
from memloc.localise.retrain.memory import budget_bytes, kept_bytes
from memloc.localise.retrain.store import Store
from memloc.localise.retrain.variants import SharedModel, WindowVariants
from memloc.localise.sweep import per_example, window_table
from memloc.machine.device import autocast
from memloc.machine.memory import is_out_of_memory, release
from memloc.models.adapters import own_parameters
from memloc.models.layers import find_layers
from memloc.models.load import check_compatible
from memloc.models.predict import memorised_share
from memloc.windows import Window, window_name

logger = logging.getLogger(__name__)


def split_clean(train: Examples, seed: int) -> tuple[Examples, Examples]:
    """The clean examples to retrain on, and those to evaluate: all noisy ones and as many clean.

    `seed` draws the held-out clean examples. Raises MemlocError when none is left to train on.
    """
    noisy, held_out, rest = draw_clean(train, seed, "retraining held out")
    if not len(rest):
        n_clean = len(train) - len(noisy)
        raise MemlocError(
            f"layer retraining: {n_clean} clean examples, of which {len(noisy)} (as many as "
            "there are noisy ones) are held out: none is left to retrain on; lower "
            "perturbation.ratio"
        )
    return train.select(rest), train.select(torch.cat([noisy, held_out]).sort().values)


@dataclass(frozen=True)
class RetrainResult:
    """table: a row per window (tables.COLUMNS["windows"]); examples: index, then per window
    whether the perturbed label was still predicted; facts: what provenance should say."""

    table: pd.DataFrame
    examples: pd.DataFrame
    facts: dict[str, Any]


class Retraining:
    """Everything windows are retrained with; `run` does it.

    memorised: theta_M2; pretrained: theta_P; train: the perturbed training split; measured_on:
    adds the held-out ones to the training examples that errors are measured on; heldout_seed: the
    clean examples kept out; scratch: a folder for partial state; identity: what else the result
    depends on (scratch of another identity is not resumed).
    """

    def __init__(
        self,
        memorised: PreTrainedModel,
        pretrained: PreTrainedModel,
        train: Examples,
        measured_on: Callable[[Examples], Measured],
        job: JobSettings,
        recipe: RetrainingRecipe,
        heldout_seed: int,
        scratch: str | Path,
        identity: dict[str, Any],
    ):
        check_compatible(memorised, pretrained, "layer retraining")
        self.job, self.recipe = job, recipe
        self.clean, evaluated = split_clean(train, heldout_seed)
        self.measured = measured_on(evaluated)
        self.evaluated = self.measured.examples
        self.shared = SharedModel(memorised, recipe.train_head, job.seed)
        self.initial: nn.ModuleList = find_layers(pretrained)
        self.store = Store(
            scratch,
            {
                **identity,
                "recipe": asdict(recipe),
                "precision": job.precision,
                "packed": self.shared.stack.packed,
                "siblings": self.shared.siblings,  # how saved weights lie
                "seed": job.seed,
                "heldout_seed": heldout_seed,
                "device": memorised.device.type,
            },
            job.save_minutes,
        )

    def run(
        self,
        windows: Sequence[Window],
        after_epoch: Callable[[int], None] = lambda epoch: None,
        whole_error: float | None = None,
    ) -> RetrainResult:
        """Retrain and evaluate `windows`; `after_epoch` is called at the end of an epoch.

        whole_error: the noisy error of the window of all layers, where it isn't among them.
        """
        windows = sorted(windows)
        memorised = self._memorised_noisy()
        done = self.store.finished()
        waiting = self._groups([w for w in windows if w not in done])
        while waiting:
            group = waiting.pop(0)
            if not self._retrain(group, after_epoch):
                waiting = [*self._smaller(group), *waiting]
        return self._result(
            windows,
            {
                "noisy_predicted_before": memorised,
                "groups": self.store.groups(),
                "recomputed": self.store.recomputed(),
            },
            whole_error,
        )

    def clear(self) -> None:
        """Forget the partial state, once the results are in place."""
        self.store.clear()

    def _memorised_noisy(self) -> float:
        """Share of noisy examples whose label theta_M2 predicts; at 0 errors mean nothing."""
        if not self.evaluated.noisy.any():
            raise MemlocError(
                "layer retraining: there are no noisy examples, so no memorisation error; "
                "raise perturbation.ratio"
            )
        pad_id, precision = self.job.pad_id, self.job.precision
        return memorised_share(self.shared.model, self.evaluated, pad_id, 64, precision)

    # --- groups that fit ---------------------------------------------------------------

    def _groups(self, windows: list[Window]) -> list[Group]:
        """Windows in groups that train at once; first the group that a killed job had begun."""
        begun = [window for window in self.store.begun() if window in windows]
        if begun != self.store.begun():
            begun = []
        rest = [window for window in windows if window not in begun]
        if not windows:
            return []
        cost, budget = self._cost(), self._budget()
        groups = group_windows(rest, cost, budget)
        if groups:
            logger.info(
                "%d windows in %d group(s) of at most %d; layers are computed again for %d of them",
                len(rest),
                len(groups),
                max(len(group.windows) for group in groups),
                sum(len(group.windows) for group in groups if group.recomputed),
            )
        return ([group_of(begun, cost, budget)] if begun else []) + groups

    def _budget(self) -> float:
        return budget_bytes(self.shared.model.device, self.job.memory_mb)

    def _cost(self) -> WindowCost:
        """What a window costs, measured on the longest batch there will be."""
        longest = sorted(self.clean.ids, key=len)[-self.recipe.batch_size :]
        inputs = collate(longest, self.job.pad_id, self.shared.model.device)
        with autocast(self.job.precision, self.shared.model.device):
            cost = measure_cost(self.shared, self.initial, inputs, self.recipe.moments)
        logger.info(
            "a layer of a window takes %.1f MB to train and %.1f MB of activations",
            1e-6 * trained_bytes(cost.moments) * cost.layer,
            1e-6 * cost.activation,
        )
        return cost

    def _smaller(self, group: Group) -> list[Group]:
        """What to go on with where a group has found too little memory."""
        first, last = (window_name(group.windows[i]) for i in (0, -1))
        parts = group.smaller()
        if not parts:
            raise MemlocError(
                f"window {first} alone doesn't fit the memory of {self.shared.model.device}: lower "
                "retraining.batch_size or data.max_length, or use a larger device"
                + ", or retraining.moments: bfloat16"
                * (self.recipe.moments == "float32")
            )
        logger.warning(
            "out of device memory with %d windows (%s to %s): going on with %s",
            len(group.windows),
            first,
            last,
            "halves" if len(parts) > 1 else "its layers computed again in the backward pass",
        )
        return parts

    def _retrain(self, group: Group, after_epoch: Callable[[int], None]) -> bool:
        """Retrain one group and store its results; False when the device's memory ran out."""
        device = self.shared.model.device
        run: GroupRun | None = None
        try:
            run = GroupRun(
                self.shared,
                self.initial,
                group.windows,
                self.clean,
                self.job,
                self.recipe,
                group.recomputed,
            )
            run.train(self.store, after_epoch)
            predicted = run.predictions(self.evaluated)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            failed = True
        else:
            found = {window: predicted[:, i] for i, window in enumerate(group.windows)}
            self.store.finish(found, group.recomputed)
            failed = False
        finally:
            run = None
        if failed:  # the exception is gone by now, and with it what it referred to
            release(device)
        return not failed

    # --- tables ------------------------------------------------------------------------

    def _result(
        self, windows: list[Window], facts: dict[str, Any], whole_error: float | None
    ) -> RetrainResult:
        finished, n_layers = self.store.finished(), self.shared.n_layers
        predicted = torch.stack([finished[window] for window in windows], dim=1)
        table = window_table(windows, predicted, self.measured, n_layers, whole_error)
        known = whole_error is not None or (1, n_layers) in windows
        if table["noisy_error_normalised"].isna().all() and known:
            logger.warning("the window of all layers has no error: normalised errors are undefined")
        return RetrainResult(table, per_example(windows, predicted, self.evaluated), facts)


def measure_cost(
    shared: SharedModel,
    initial: nn.ModuleList,
    inputs: dict[str, torch.Tensor],
    moments: str = "float32",
) -> WindowCost:
    """What a window costs when it trains on batches like `inputs`, seen in a layer's own forward
    pass: all layers at once needn't fit."""
    model = shared.model
    first = WindowVariants(shared, initial, [(1, 1)])
    model.train()
    passage = first.enter(inputs)
    state = passage.entry.hidden.clone().requires_grad_()
    weights = first.weights[0].stacks(first.short)
    rows = [rows for rows, _ in first.sheets().values()]
    run = partial(passage.through, 0, weights, state)
    kept = kept_bytes(run, [*rows, *weights.values(), *model.parameters()])
    model.eval()
    own = own_parameters(initial[0])
    layer = sum(parameter.numel() for parameter in own.values())
    tail = sum(sheet.rows.numel() for sheet in first.tail.sheets.values())
    short = sum(weights[name].nbytes for name in own if weights[name].dtype == first.short)
    del first, passage, run, weights, rows
    release(model.device)
    return WindowCost(shared.n_layers, layer, tail, kept, state.nbytes, moments, short / layer)
