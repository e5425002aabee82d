"""AdamW whose moments rest in bfloat16, rounded at random so that they are right on average."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from memloc.seeds import derive

MOMENTS = ("exp_avg", "exp_avg_sq")


class ShortAdamW(torch.optim.AdamW):
    """torch's AdamW, but that both moments of each parameter are kept in bfloat16.

    A step widens the moments of one parameter at a time, has torch move them, and rounds them back.
    With beta2 = 0.999 the second one changes by less in a step than bfloat16 tells apart, so that
    rounding to the nearest would leave it where it is; rounded up or down at random, with chances
    that make the mean right, it follows. What is drawn for a parameter follows from `seed`, its
    name and `done`, the steps so far. stacked: axis 0 counts windows, and all get the same draws,
    so that none depends on its companions.
    """

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        seed: int,
        done: Callable[[], int],
        stacked: bool,
        **options: Any,
    ):
        super().__init__(parameters.values(), **options)
        self.named, self.seed, self.done, self.stacked = dict(parameters), seed, done, stacked

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        (group,) = self.param_groups
        beta1, beta2 = group["betas"]
        options = {key: group[key] for key in ("lr", "weight_decay", "eps", "maximize", "fused")}
        for name, parameter in self.named.items():
            if parameter.grad is None:
                continue
            state = self._state(parameter)
            wide = [state[key].to(parameter.dtype) for key in MOMENTS]
            lists = [[parameter], [parameter.grad], *([one] for one in wide), [], [state["step"]]]
            adamw(*lists, amsgrad=False, beta1=beta1, beta2=beta2, **options)  # type: ignore[arg-type]
            self._narrow(name, parameter, wide)

    def _state(self, parameter: Tensor) -> dict[str, Tensor]:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            state |= {key: torch.zeros_like(parameter, dtype=torch.bfloat16) for key in MOMENTS}
        return state

    def _narrow(self, name: str, parameter: Tensor, wide: list[Tensor]) -> None:
        generator = torch.Generator(parameter.device)
        generator.manual_seed(derive(self.seed, "moments", self.done(), name))
        shape = parameter.shape[1:] if self.stacked else parameter.shape
        draws = torch.empty(shape, dtype=torch.int32, device=parameter.device)
        for key, moment in zip(MOMENTS, wide, strict=True):
            draws.random_(0, 1 << 16, generator=generator)
            self.state[parameter][key].copy_(rounded_at_random(moment, draws))


def rounded_at_random(wide: Tensor, draws: Tensor) -> Tensor:
    """`wide` as float32, each number rounded to one that bfloat16 has, the next up or down.

    draws: int32 of 0 to 65535, at random; they are added to the 16 bits that bfloat16 lacks, so
    that a number is rounded away from 0 as often as it is nearer to that side. May change `wide`.
    """
    wide = wide.float()
    wide.view(torch.int32).add_(draws).bitwise_and_(-(1 << 16))
    return wide
