"""The parts of a classifier, its layers and its head, and which of them are trained."""

from collections.abc import Mapping

import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.errors import MemlocError


def find_layers(model: PreTrainedModel) -> nn.ModuleList:
    """The model's one module list of length num_hidden_layers, layer 1 first.

    Lists inside a layer don't count, nor do lists of lists. Raises MemlocError when there is none
    or more than one: a model that keeps the parts of its layers in lists of their own, attention
    in one and feed-forward blocks in another, has no whole layers.
    """
    n_layers = getattr(model.config, "num_hidden_layers", None)
    lists = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList)
        and len(module) == n_layers
        and all(_holds(part) and not isinstance(part, nn.ModuleList) for part in module)
    }
    inner = {id(part) for each in lists.values() for layer in each for part in layer.modules()}
    lists = {name: module for name, module in lists.items() if id(module) not in inner}
    if len(lists) != 1:
        raise MemlocError(
            f"the layers of {type(model).__name__} can't be found: expected one list of "
            f"num_hidden_layers = {n_layers} modules, found {', '.join(sorted(lists)) or 'none'}; "
            "use a model whose layers are one torch ModuleList"
        )
    return next(iter(lists.values()))


def _holds(module: nn.Module) -> bool:
    return any(parameter.numel() for parameter in module.parameters())


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def layer_parameter_count(model: PreTrainedModel) -> int:
    """Parameters of one layer (all layers are alike)."""
    return _size(find_layers(model)[0])


def misfits(ours: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]) -> list[str]:
    """Names, in order, of what only one of two models has, or has in another shape."""
    return sorted(
        name
        for name in ours.keys() | theirs.keys()
        if name not in ours or name not in theirs or ours[name].shape != theirs[name].shape
    )


def embedding_rows(model: PreTrainedModel) -> int | None:
    """How many token ids the input embeddings know; None where they are no table (CANINE)."""
    try:
        weight = getattr(model.get_input_embeddings(), "weight", None)
    except NotImplementedError:
        return None
    return None if weight is None else len(weight)


def class_count(model: PreTrainedModel) -> int:
    """How many classes the head tells apart."""
    return model.config.num_labels or 0


def head_names(model: PreTrainedModel) -> set[str]:
    """Names of the head's parameters: those outside the base model."""
    prefix = f"{model.base_model_prefix}."
    return {name for name, _ in model.named_parameters() if not name.startswith(prefix)}


def pooler(model: PreTrainedModel) -> list[nn.Module]:
    """Modules of the base model's pooler, which training without classification leaves out."""
    found = getattr(model.base_model, "pooler", None)
    return list(found.modules()) if isinstance(found, nn.Module) else []


def pooler_names(model: PreTrainedModel) -> set[str]:
    """Names of the pooler's parameters."""
    own = {id(parameter) for module in pooler(model) for parameter in module.parameters()}
    return {name for name, parameter in model.named_parameters() if id(parameter) in own}


def freeze_embeddings(model: PreTrainedModel) -> None:
    """Train all but what comes before layer 1 (section 3: the input embeddings are frozen).

    Which modules those are is seen in a forward pass, so any architecture will do. Parameters
    that the pass never reaches stay frozen too.
    """
    before, after = _called_around_layers(model)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for module in [*find_layers(model), *after]:
        for parameter in module.parameters():
            parameter.requires_grad_(True)
    for module in before:
        for parameter in module.parameters():
            parameter.requires_grad_(False)


def freeze_all_but_head(model: PreTrainedModel) -> None:
    """Train the head alone: theta_F."""
    head = head_names(model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in head)


def _called_around_layers(model: PreTrainedModel) -> tuple[list[nn.Module], list[nn.Module]]:
    """Modules without children that a forward pass calls before layer 1, and after layer L."""
    layers = find_layers(model)
    inside = {id(module) for layer in layers for module in layer.modules()}
    around: tuple[list[nn.Module], list[nn.Module]] = ([], [])
    entered = False

    def note(module: nn.Module, *_: object) -> None:
        around[entered].append(module)

    def enter(*_: object) -> None:
        nonlocal entered
        entered = True

    hooks = [layers[0].register_forward_pre_hook(enter)]
    for module in model.modules():
        if id(module) not in inside and not any(module.children()):
            hooks.append(module.register_forward_pre_hook(note))
    try:
        with torch.no_grad():
            model(**toy_inputs(model, rows=2))
    finally:
        for hook in hooks:
            hook.remove()
    return around


def toy_inputs(model: PreTrainedModel, rows: int) -> dict[str, torch.Tensor]:
    """A small padded batch that any text model accepts: ids (rows, 5), the last row shorter."""
    pad = model.config.pad_token_id or 0
    token = 1 if pad == 0 else 0
    ids = torch.full((rows, 5), token, device=model.device)
    mask = torch.ones_like(ids)
    ids[-1, 3:], mask[-1, 3:] = pad, 0
    return {"input_ids": ids, "attention_mask": mask}
