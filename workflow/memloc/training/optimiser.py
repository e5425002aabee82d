"""AdamW with its schedule: how parameters move, and the state that a killed run resumes from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from memloc.groups import MOMENTS
from memloc.training.moments import ShortAdamW


@dataclass(frozen=True)
class Optimisation:
    """AdamW over so many epochs, with warm-up, linear decay and clipping by norm.

    moments: the type that AdamW's two moments of each parameter are kept in.
    """

    epochs: int
    learning_rate: float
    batch_size: int
    warmup: float
    weight_decay: float
    clip_norm: float
    moments: str = field(default="float32", kw_only=True)

    @property
    def saved_bytes(self) -> int:
        """Bytes of a trained parameter in a partial state: its weight and its moments."""
        return 4 + MOMENTS[self.moments]


class Optimiser:
    """AdamW over some parameters, on batches of `n_examples` examples; `steps` make an epoch.

    seed and stacked are for moments that are rounded at random (see ShortAdamW).
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        recipe: Optimisation,
        n_examples: int,
        seed: int,
        stacked: bool = False,
    ):
        how: dict[str, Any] = {"lr": recipe.learning_rate, "fused": True}
        how["weight_decay"] = recipe.weight_decay
        self.adamw: torch.optim.AdamW
        if recipe.moments == "float32":
            self.adamw = torch.optim.AdamW(parameters.values(), **how)
        else:
            self.adamw = ShortAdamW(parameters, seed, self._done, stacked, **how)
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

    def _done(self) -> int:
        return self.schedule.last_epoch  # of steps

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
        (group,) = self.adamw.param_groups
        (group["lr"],) = self.schedule.get_last_lr()
        self.adamw.state.clear()
        for name, value in moments.items():  # as they are: load_state_dict would widen short ones
            number, _, key = name.partition(".")
            parameter = group["params"][int(number)]
            self.adamw.state[parameter][key] = value.to(parameter.device)


def linear_schedule(adamw: torch.optim.Optimizer, warmup: int, total: int) -> LambdaLR:
    """The learning rate rises from 0 over `warmup` steps, and falls to 0 at step `total`.

    transformers has the same, in a module whose import takes a job half a second.
    """

    def share(step: int) -> float:
        if step < warmup:
            return step / warmup
        return max(0.0, (total - step) / max(1, total - warmup))

    return LambdaLR(adamw, share)
