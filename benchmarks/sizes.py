"""Sizes and batches that the benchmarks of training share; no benchmark itself."""

from types import SimpleNamespace

import torch

from memloc.data.tokens import Examples

REAL = SimpleNamespace(
    layers=12, width=768, rows=8, tokens=64, steps=30, examples=512, retrained=5, models=[6, 30],
    seconds=10.0, processes=4, large=64, probes="--examples 1000 --epochs 4 --sample 3",
)  # fmt: skip
TINY = SimpleNamespace(
    layers=2, width=64, rows=2, tokens=8, steps=2, examples=8, retrained=1, models=[2, 3],
    seconds=0.2, processes=2, large=4,
    probes="--examples 100 --epochs 2 --sample 1 --repeats 1 --threads 1",
)  # fmt: skip


def examples(size: SimpleNamespace, count: int) -> Examples:
    """Random examples of one length, a seventh of them noisy."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(1000, 20_000, (count, size.tokens), generator=generator)
    labels = torch.randint(0, 2, (count,), generator=generator)
    return Examples(ids.tolist(), labels, torch.arange(count) % 7 == 0, torch.arange(count))
