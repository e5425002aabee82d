"""Whether two ways to compute the same thing agree, up to rounding."""

from collections.abc import Sequence

import torch
from torch import Tensor

TOLERANCE = 1e-4  # of the largest number
# What a way can't do, it says in many ways.
CANT = (RuntimeError, ValueError, TypeError, IndexError, AssertionError, AttributeError)
PERIOD = 8191  # a prime, so that no two rows of a matrix are alike; sines take time


def alike(ones: Sequence[Tensor], twos: Sequence[Tensor], tolerance: float = TOLERANCE) -> bool:
    """Whether tensors differ by rounding alone, by the size of the largest: some gradients, as
    those of keys' biases, are 0."""
    apart = max(largest(one - two) for one, two in zip(ones, twos, strict=True))
    return apart <= tolerance * max(1e-6, *map(largest, twos))


def largest(tensor: Tensor) -> float:
    """The largest absolute number in a tensor; nan if it holds one."""
    low, high = tensor.detach().aminmax()  # ten times as fast as the infinity norm
    return torch.maximum(-low, high).item()


def wave(like: Tensor) -> Tensor:
    """Numbers between -1 and 1 in the shape of `like`, which differ between neighbours and rows."""
    count = like.numel()
    short = torch.sin(torch.arange(min(count, PERIOD), device=like.device) * 1.7)
    return short.repeat(-(-count // PERIOD))[:count].view(like.shape).to(like.dtype)
