"""Linear layers that read one tensor, as query, key and value do: which these are.

It shows when they compute. One product can then take the place of several, forward and backward,
and the gradients of what they read come as one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode


@dataclass(frozen=True)
class Siblings:
    """Names in a module of the weights of linear layers that read one tensor, and of their biases,
    of which they have all one or none."""

    weights: tuple[str, ...]
    biases: tuple[str, ...]

    def parts(self) -> list[tuple[str, ...]]:
        """What is joined: the weights, and the biases if there are any."""
        return [self.weights, self.biases] if self.biases else [self.weights]


@torch.no_grad()
def siblings_in(
    module: nn.Module, joins: Callable[[str], bool], run: Callable[[], object]
) -> list[Siblings]:
    """The siblings in a module that show when `run` has it compute.

    joins: whether a parameter of this name may be joined with others. A parameter that several
    products read never is, nor are frozen ones with trained ones.
    """
    with _Readers() as readers:
        run()
    names = {id(p): name for name, p in module.named_parameters() if joins(name)}
    uses = Counter(id(parameter) for _, *both in readers.seen for parameter in both)
    groups: dict[Any, list[tuple[str, str | None]]] = {}
    for x, weight, bias in readers.seen:
        given = [weight] if bias is None else [weight, bias]
        if any(id(p) not in names or uses[id(p)] > 1 for p in given):
            continue
        kind = id(x), *((p.dtype, p.requires_grad) for p in given)
        offset = None if bias is None else names[id(bias)]
        groups.setdefault(kind, []).append((names[id(weight)], offset))
    return [
        Siblings(tuple(n for n, _ in group), tuple(b for _, b in group if b is not None))
        for group in groups.values()
        if len(group) > 1
    ]


class _Readers(TorchFunctionMode):
    """Notes what linear layers read."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Tensor, Tensor, Tensor | None]] = []

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        if func is F.linear:
            self.seen.append(_linear(*args, **kwargs or {}))
        result = func(*args, **(kwargs or {}))
        # In training, each dropout gives a tensor of its own, as adapters' do.
        return result.clone() if func is F.dropout else result


def _linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    return input, weight, bias


@torch.no_grad()
def side_by_side(parameters: Sequence[Tensor]) -> Tensor:
    """Parameters as one tensor along axis 0, whose memory is theirs from now on.

    Those that lie side by side already stay where they are, so that all who ask share them.
    """
    first, *others = (parameter.detach() for parameter in parameters)
    if not others:
        return first
    if not all(parameter.is_contiguous() for parameter in parameters):
        return _moved(parameters)
    memory, end = first.untyped_storage().data_ptr(), first.data_ptr() + first.nbytes
    for part in others:
        if part.untyped_storage().data_ptr() != memory or part.data_ptr() != end:
            return _moved(parameters)
        end += part.nbytes
    return first.as_strided((sum(map(len, parameters)), *first.shape[1:]), first.stride())


def _moved(parameters: Sequence[Tensor]) -> Tensor:
    whole = torch.cat(list(parameters))
    parts = whole.split([len(parameter) for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.data = part
    return whole


def joint(names: Iterable[str]) -> str:
    """What parameters are called together."""
    return " + ".join(names)
