"""Partial state of layer retraining: results of finished windows, and the epoch reached."""

import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from memloc.store.files import DiskFull, readable
from memloc.training.optimiser import Optimiser
from memloc.training.states import Saving, States
from memloc.windows import Window, window_name, window_of

logger = logging.getLogger(__name__)
FINISHED, GROUP = "finished", "group"


class Store:
    """A scratch folder of one job; content of another `identity` is thrown away.

    finished.N: of the N-th group that has ended, per window the class ids of the evaluated
    examples. group.E: of the group in training, the windows' weights, moments and schedule after
    epoch E; the last two that were saved are kept, at least `save_minutes` apart.
    """

    def __init__(self, folder: str | Path, identity: dict[str, Any], save_minutes: float = 0.0):
        self.states = States(folder, identity)
        self.saving = Saving(self.states, GROUP, save_minutes)
        self._begun = next(self.states.saved(GROUP), None)

    def clear(self) -> None:
        """Forget everything."""
        self.states.clear()

    def finished(self) -> dict[Window, torch.Tensor]:
        """Per finished window, the class id it predicts of each evaluated example."""
        return {
            window_of(name): found
            for state in self.states.saved(FINISHED)
            for name, found in state.tensors("predicted").items()
        }

    def groups(self) -> list[list[str]]:
        """Names of the windows of each finished group, also of those before the job was killed."""
        return [state.facts["windows"] for state in self.states.saved(FINISHED)][::-1]

    def recomputed(self) -> list[str]:
        """Names of the finished windows whose layers were computed again in backward passes."""
        ended = [state.facts for state in self.states.saved(FINISHED)][::-1]
        return [name for facts in ended if facts["recomputed"] for name in facts["windows"]]

    def finish(self, predicted: Mapping[Window, torch.Tensor], recomputed: bool) -> None:
        """Add the results of a group and drop its state."""
        named = {window_name(window): values for window, values in predicted.items()}
        number = max(self.states.numbers(FINISHED), default=0) + 1
        facts = {"windows": list(named), "recomputed": recomputed}
        self.states.save(FINISHED, number, facts, predicted=named)
        self.states.drop(GROUP)

    def begun(self) -> list[Window]:
        """Windows of the group whose epochs are partly done."""
        return [window_of(name) for name in self._begun.facts["windows"]] if self._begun else []

    def save(
        self,
        epoch: int,
        windows: Sequence[Window],
        rows: Mapping[str, torch.Tensor],
        optimiser: Optimiser,
    ) -> None:
        """Save a group after an epoch, if that is due; on a full disk it goes on without it."""
        if not self.saving.is_due:
            return
        moments = optimiser.moments()
        needed = 1.03 * sum(t.nbytes for t in (*rows.values(), *moments.values()))
        if shutil.disk_usage(self.states.folder).free < 2 * needed:
            self._unsaved(needed)
            return
        names = [window_name(window) for window in windows]
        facts = {"windows": names, "schedule": optimiser.schedule_state()}
        try:
            self.saving.save(epoch, facts, weights=rows, moments=moments)
        except DiskFull:  # others filled it meanwhile
            self._unsaved(needed)

    def _unsaved(self, needed: float) -> None:
        logger.warning(
            "%s: %s free are too few to save %s: a killed job would repeat its epochs "
            "since the last one saved",
            self.states.folder,
            readable(shutil.disk_usage(self.states.folder).free),
            readable(needed),
        )

    def load(
        self,
        windows: Sequence[Window],
        rows: Mapping[str, torch.Tensor],
        optimiser: Optimiser,
    ) -> int:
        """Put the saved state of these very windows in place; the epochs done (0: none).

        Any other group's state is dropped: that group has ended, or was too large for the device.
        """
        found = self._begun if self.begun() == list(windows) else None
        self._begun = None
        self.saving.begin(found.number if found else 0)
        if found is None:
            self.states.drop(GROUP)
            return 0
        saved = found.tensors("weights")
        with torch.no_grad():
            for name, own in rows.items():
                own.copy_(saved[name])
        optimiser.resume(found.tensors("moments"), found.facts["schedule"])
        logger.info("resuming %d window(s) after epoch %d", len(windows), found.number)
        return found.number
