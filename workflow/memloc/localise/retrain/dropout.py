"""Dropout masks that every variant of a model shares."""

import torch
from torch import Tensor

from memloc.seeds import derive


class Masks:
    """Dropout masks of a training step, the same for all copies of a layer.

    A model has stages: 0 before layer 1, l = layer l, L + 1 after layer L. The masks of a stage
    follow from (seed, step, stage) alone, one after the other in the order of the stage's
    dropouts; whoever goes through the stage later in the same step gets the same ones.
    On the CPU they are what torch's dropout draws after ``torch.manual_seed(seed_of(stage))``.
    """

    def __init__(self, seed: int, device: torch.device):
        self.seed, self.device = seed, device
        self._generator = torch.Generator(device)
        self.begin(0)

    def begin(self, step: int) -> None:
        """Start a step: forget the last one's masks."""
        self._step = step
        self._drawn: dict[int, list[Tensor]] = {}
        self.enter(0)

    def enter(self, stage: int) -> None:
        """Go (again) to the start of a stage."""
        self._stage, self._next = stage, 0

    def seed_of(self, stage: int) -> int:
        """What the masks of a stage are drawn from."""
        return derive(self.seed, "retraining dropout", self._step, stage)

    def draw(self, shape: torch.Size, dtype: torch.dtype, rate: float) -> Tensor:
        """The stage's next mask: 0 with probability `rate`, else 1 / (1 - rate)."""
        drawn = self._drawn.setdefault(self._stage, [])
        if self._next == len(drawn):
            if not drawn:
                self._generator.manual_seed(self.seed_of(self._stage))
            mask = torch.empty(shape, dtype=dtype, device=self.device)
            mask.bernoulli_(1 - rate, generator=self._generator)
            drawn.append(mask.div_(1 - rate))
        self._next += 1
        return drawn[self._next - 1]
