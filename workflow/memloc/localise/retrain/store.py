"""Partial state of layer retraining: results of finished windows, and the epoch reached."""

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from memloc.store.drafts import remove_scratch, settle
from memloc.store.files import (
    DiskFull,
    atomic,
    read_json,
    read_state,
    readable,
    write_json,
)
from memloc.training.optimiser import Optimiser
from memloc.windows import Window, window_name, window_of

logger = logging.getLogger(__name__)
FINISHED = "finished.safetensors"


class Store:
    """A scratch folder of one job; content of another `identity` is thrown away.

    finished.safetensors: per window the class ids of the evaluated examples, and the groups that
    have ended; group/: stacked weights, moments and schedule of the one in training.
    """

    def __init__(self, folder: str | Path, identity: dict[str, Any]):
        self.folder, self.identity = Path(folder), identity
        settle(self.folder / "group")
        known = self.folder / "identity.json"
        if known.exists() and read_state(known) != identity:
            logger.info("%s holds no run with these settings: starting anew", self.folder)
            self.clear()
        write_json(known, identity)

    def clear(self) -> None:
        """Forget everything."""
        remove_scratch(self.folder)

    def finished(self) -> dict[Window, torch.Tensor]:
        """Per finished window, the class id it predicts of each evaluated example."""
        path = self.folder / FINISHED
        if not path.exists():
            return {}
        return {window_of(name): found for name, found in load_file(path).items()}

    def groups(self) -> list[list[str]]:
        """Names of the windows of each finished group, also of those before the job was killed."""
        path = self.folder / FINISHED
        if not path.exists():
            return []
        with safe_open(path, "pt") as file:
            return json.loads(file.metadata()["groups"])

    def finish(self, predicted: Mapping[Window, torch.Tensor]) -> None:
        """Add the results of a group and drop its state."""
        everything = {**self.finished(), **predicted}
        groups = [*self.groups(), [window_name(window) for window in predicted]]
        with atomic(self.folder / FINISHED) as draft:
            save_file(
                {window_name(w): p.contiguous() for w, p in everything.items()},
                draft,
                metadata={"groups": json.dumps(groups)},
            )
        shutil.rmtree(self.folder / "group", ignore_errors=True)

    def begun(self) -> list[Window]:
        """Windows of the group whose epochs are partly done."""
        state = read_state(self.folder / "group" / "state.json")
        return [window_of(name) for name in state["windows"]] if state else []

    def save(
        self,
        epoch: int,
        windows: Sequence[Window],
        stacks: Mapping[str, torch.Tensor],
        optimiser: Optimiser,
    ) -> None:
        """Save a group after an epoch; on a full disk the run goes on without being saved."""
        needed = 3.1 * sum(stack.nbytes for stack in stacks.values())
        if shutil.disk_usage(self.folder).free < 2 * needed:
            self._unsaved(needed)
            return
        names = [window_name(window) for window in windows]
        facts = {"windows": names, "epoch": epoch, "schedule": optimiser.schedule_state()}
        try:
            with atomic(self.folder / "group") as draft:
                draft.mkdir()
                save_file({name: s.detach() for name, s in stacks.items()}, draft / "w.safetensors")
                save_file(optimiser.moments(), draft / "m.safetensors")
                write_json(draft / "state.json", facts)
        except DiskFull:  # others filled it meanwhile
            self._unsaved(needed)

    def _unsaved(self, needed: float) -> None:
        logger.warning(
            "%s: %s free are too few to save %s per epoch: a killed job would repeat its epochs "
            "since the last one saved",
            self.folder,
            readable(shutil.disk_usage(self.folder).free),
            readable(needed),
        )

    def load(
        self,
        windows: Sequence[Window],
        stacks: Mapping[str, torch.Tensor],
        optimiser: Optimiser,
    ) -> int:
        """Put the saved state of these very windows in place; the epochs done (0: none)."""
        if self.begun() != list(windows):
            return 0
        group = self.folder / "group"
        facts = read_json(group / "state.json")
        saved = load_file(group / "w.safetensors")
        with torch.no_grad():
            for name, stack in stacks.items():
                stack.copy_(saved[name])
        optimiser.resume(load_file(group / "m.safetensors"), facts["schedule"])
        logger.info("resuming %d window(s) after epoch %d", len(windows), facts["epoch"])
        return facts["epoch"]
