"""Which clean examples stand beside the noisy ones."""

import torch
from torch import Tensor

from memloc.data.tokens import Examples
from memloc.seeds import derive


def draw_clean(examples: Examples, seed: int, *purpose: str) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, each in ascending order: all noisy ones, as many clean ones, and the other clean ones.

    `seed` and `purpose` draw the clean ones; where there are fewer than noisy ones, all are drawn.
    """
    noisy, clean = examples.noisy.nonzero().flatten(), (~examples.noisy).nonzero().flatten()
    generator = torch.Generator().manual_seed(derive(seed, *purpose))
    shuffled = clean[torch.randperm(len(clean), generator=generator)]
    drawn, others = shuffled[: len(noisy)], shuffled[len(noisy) :]
    return noisy, drawn.sort().values, others.sort().values
