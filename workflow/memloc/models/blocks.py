"""The attention and the feed-forward block of a layer, found by what they do rather than by name.

A layer's attention is the one module in it that carries information between tokens: in a forward
pass, what it puts out at one token changes when what it receives at another does. Everything else
in a layer treats each token by itself. A layer's parameters then fall into

    attention  those of that module,
    mlp        those of every other module with a matrix (GPT-NeoX's dense layers beside its
               parallel attention, OPT's fc1 and fc2, which have no module of their own, BERT's
               intermediate and output),
    rest       layer norms, wherever they stand: BERT keeps them inside its attention and output
               modules, OPT beside them; they belong to neither block.

A layer norm is a module without children whose parameters are all vectors as wide as the state, so
that norms of single heads inside the attention count as attention. A layer without such a module,
with several, or with nothing beside it can't be told apart, which is an error.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map
from transformers import PreTrainedModel

from memloc.errors import MemlocError
from memloc.models.layers import find_layers, toy_inputs
from memloc.models.load import check_compatible

LAYER, ATTENTION, MLP, REST = "layer", "attention", "mlp", "rest"
COMPONENTS = (LAYER, ATTENTION, MLP)
# A change at one token that moves another by less than this share of its own is rounding.
FAINT = 1e-4

Call = tuple[tuple[Any, ...], dict[str, Any]]


def keep_component(theirs: PreTrainedModel, ours: PreTrainedModel, component: str) -> None:
    """Let `theirs` differ from `ours` in one component of its layers alone, in place.

    Swapping its whole layers then swaps that component. "layer" leaves it as it is.
    """
    if component == LAYER:
        return
    check_compatible(ours, theirs, f"swapping of {component}")
    found = components(ours)
    if component not in found[0]:
        raise MemlocError(f"component {component!r} is unknown; there are {', '.join(COMPONENTS)}")
    keep_parts(theirs, ours, [parts[component] for parts in found])


@torch.no_grad()
def keep_parts(theirs: PreTrainedModel, ours: PreTrainedModel, kept: Sequence[set[str]]) -> None:
    """Give the layers of `theirs` the weights of `ours`, but for those `kept` names by layer."""
    for donor, layer, names in zip(find_layers(theirs), find_layers(ours), kept, strict=True):
        given = dict(layer.named_parameters())
        for name, parameter in donor.named_parameters():
            if name not in names:
                parameter.copy_(given[name])


def components(model: PreTrainedModel) -> list[dict[str, set[str]]]:
    """Per layer the names of its parameters by component: attention, mlp and rest.

    Raises MemlocError for a layer that can't be told apart.
    """
    was_training = model.training
    model.eval()
    calls = _observe(model)
    width = model.config.hidden_size
    found = [
        _parts(layer, calls, width, f"layer {number} of {type(model).__name__}")
        for number, layer in enumerate(find_layers(model), start=1)
    ]
    model.train(was_training)
    return found


def _parts(
    layer: nn.Module, calls: dict[nn.Module, Call], width: int, what: str
) -> dict[str, set[str]]:
    """Names of one layer's parameters by component; `what` names the layer in errors."""
    matrices = {name for name, parameter in layer.named_parameters() if parameter.dim() > 1}
    norms = _norms(layer, width)
    name = _attention(layer, calls, matrices, what)
    inside = {n for n, _ in layer.named_parameters() if n.startswith(f"{name}.")}
    parts = {
        ATTENTION: inside - norms,
        MLP: {n for n, _ in layer.named_parameters()} - inside - norms,
        REST: norms,
    }
    for component in (ATTENTION, MLP):
        if not parts[component] & matrices:
            raise MemlocError(
                f"{what}: its {component} block can't be found ({name!r} carries information "
                "between tokens); leave it out of swapping.components"
            )
    return parts


def _norms(layer: nn.Module, width: int) -> set[str]:
    """Names of the parameters of layer norms."""
    return {
        f"{name}.{own}" if name else own
        for name, module in layer.named_modules()
        if not any(module.children()) and any(True for _ in module.parameters())
        if all(parameter.shape == (width,) for parameter in module.parameters())
        for own, _ in module.named_parameters()
    }


def _attention(
    layer: nn.Module, calls: dict[nn.Module, Call], matrices: set[str], what: str
) -> str:
    """Name of the one outermost module that mixes tokens and leaves matrices outside itself."""
    mixing = [
        name
        for name, module in layer.named_modules()
        if name and module in calls and _mixes(module, *calls[module])
    ]
    # A module that wraps the whole layer tells nothing: look inside it.
    mixing = [name for name in mixing if any(not m.startswith(f"{name}.") for m in matrices)]
    outermost = [
        name for name in mixing if not any(name.startswith(f"{other}.") for other in mixing)
    ]
    if len(outermost) != 1:
        raise MemlocError(
            f"{what}: attention and feed-forward block can't be told apart: expected one module "
            f"that carries information between tokens, found {outermost or 'none'}; leave "
            "attention and mlp out of swapping.components"
        )
    return outermost[0]


@torch.no_grad()
def _observe(model: PreTrainedModel) -> dict[nn.Module, Call]:
    """What each module inside the layers received in a forward pass of a toy batch."""
    calls: dict[nn.Module, Call] = {}

    def note(module: nn.Module, args: tuple, kwargs: dict) -> None:
        calls[module] = tree_map(_copied, (args, kwargs))

    inside = [module for layer in find_layers(model) for module in layer.modules()]
    hooks = [module.register_forward_pre_hook(note, with_kwargs=True) for module in inside]
    try:
        model(**toy_inputs(model, rows=2))
    finally:
        for hook in hooks:
            hook.remove()
    return calls


def _copied(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


@torch.no_grad()
def _mixes(module: nn.Module, args: tuple, kwargs: dict) -> bool:
    """Whether what a module receives at the first token changes what it puts out at later ones."""
    generator = torch.Generator().manual_seed(0)

    def disturbed(value: Any) -> Any:
        if not _is_state(value):
            return _copied(value)
        noise = torch.randn(value[0, 0].shape, generator=generator).to(value)
        value = value.clone()
        value[0, 0] += (1 + value[0, 0].abs()) * noise
        return value

    plain = _states(module(*tree_map(_copied, args), **tree_map(_copied, kwargs)))
    changed = _states(module(*tree_map(disturbed, args), **tree_map(disturbed, kwargs)))
    for before, after in zip(plain, changed, strict=True):
        effect = (after - before)[0].abs().flatten(1).amax(1)  # by token
        if effect[1:].max() > FAINT * effect.max():
            return True
    return False


def _states(output: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(output)[0] if _is_state(leaf)]


def _is_state(value: Any) -> bool:
    """Whether a value is (rows, tokens, width) of the toy batch."""
    return (
        isinstance(value, torch.Tensor)
        and value.is_floating_point()
        and value.dim() == 3
        and value.shape[:2] == (2, 5)
    )
