"""Examples to swap windows for."""

import torch

from memloc.data.examples import join
from memloc.data.tokens import Examples
from tiny import random_ids


def examples(rows=24, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return Examples(
        ids=random_ids(rows, seed),
        labels=torch.randint(0, 3, (rows,), generator=generator),
        noisy=torch.arange(rows) % 3 == 0,
        index=torch.randperm(rows, generator=generator) + 100,
    )


def measured(data=None, heldout=10):
    """Training examples (noisy ones were of the class below), and held-out ones after them."""
    data = data or examples()
    original = torch.where(data.noisy, (data.labels - 1) % 3, data.labels)
    return join(data, original, examples(heldout, seed=4))
