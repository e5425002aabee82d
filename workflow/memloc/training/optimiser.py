"""AdamW with its schedule: how parameters move, and the state that a killed run resumes from."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR


@dataclass(frozen=True)
class Optimisation:
    """AdamW over so many epochs, with warm-up, linear decay and clipping by norm."""

    epochs: int
    learning_rate: float
    batch_size: int
    warmup: float
    weight_decay: float
    clip_norm: float


class Optimiser:
    """AdamW over some parameters, on batches of `n_examples` examples; `steps` make an epoch."""

    def __init__(self, parameters: Iterable[Tensor], recipe: Optimisation, n_examples: int):
        self.adamw = torch.optim.AdamW(
            parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
        )
        self.steps = math.ceil(n_examples / recipe.batch_size)
        total = self.steps * recipe.epochs
        self.schedule = linear_schedule(self.adamw, int(recipe.warmup * total), total)

    def zero_grad(self) -> None:
        """Forget the gradients of the last step."""
        self.adamw.zero_grad()

    def step(self) -> None:
        """Move the parameters along their gradients, and the learning rate along its schedule."""
        self.adamw.step()
        self.schedule.step()

    # --- partial state -----------------------------------------------------------------

    def moments(self) -> dict[str, Tensor]:
        """AdamW's state as flat tensors, named by the parameter's number and the moment."""
        state = self.adamw.state_dict()["state"]
        return {f"{i}.{key}": value for i, slot in state.items() for key, value in slot.items()}

    def schedule_state(self) -> dict[str, Any]:
        """Where the schedule is, as plain values."""
        return self.schedule.state_dict()

    def resume(self, moments: Mapping[str, Tensor], schedule: dict[str, Any]) -> None:
        """Go on from what `moments` and `schedule_state` once gave."""
        self.schedule.load_state_dict(schedule)
        content = self.adamw.state_dict()
        content["state"] = {}
        for name, value in moments.items():
            number, _, key = name.partition(".")
            content["state"].setdefault(int(number), {})[key] = value
        for group, rate in zip(content["param_groups"], self.schedule.get_last_lr(), strict=True):
            group["lr"] = rate
        self.adamw.load_state_dict(content)


def linear_schedule(adamw: torch.optim.Optimizer, warmup: int, total: int) -> LambdaLR:
    """The learning rate rises from 0 over `warmup` steps, and falls to 0 at step `total`.

    transformers has the same, in a module whose import takes a job half a second.
    """

    def share(step: int) -> float:
        if step < warmup:
            return step / warmup
        return max(0.0, (total - step) / max(1, total - warmup))

    return LambdaLR(adamw, share)
