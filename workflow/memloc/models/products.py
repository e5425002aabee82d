"""The parameters of linear layers: what matrix products read, and autocast rounds."""

from collections.abc import Iterator

from torch import nn
from transformers.pytorch_utils import Conv1D

LINEAR = (nn.Linear, Conv1D)


def linear_parameters(module: nn.Module) -> Iterator[tuple[nn.Module, str, str]]:
    """Of each parameter of a linear layer: that layer, its name there and that in `module`."""
    for prefix, part in module.named_modules():
        if isinstance(part, LINEAR):
            for name, _ in part.named_parameters(recurse=False):
                yield part, name, f"{prefix}.{name}" if prefix else name
