"""Models as a notebook lends them: what a computation changes in them is put back afterwards."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from memloc.errors import MemlocError, listed
from memloc.machine.device import DETERMINISTIC
from memloc.models.adapter_files import refuse_odd
from memloc.models.adapters import NAME, is_adapted
from memloc.models.layers import misfits
from memloc.models.load import on_device

Weights = Mapping[str, torch.Tensor]
# What transformers keeps in modules about the recomputing of activations.
CHECKPOINTING = ("gradient_checkpointing", "_gradient_checkpointing_func")


def as_models(given: Mapping[str, PreTrainedModel | Weights]) -> dict[str, PreTrainedModel]:
    """The models by name; state dicts take the architecture of the first model among them.

    A PeftModel is the model inside it, with the adapter in its layers. Raises MemlocError where
    none of them is a model, for other objects, for state dicts that don't fit, and for weights that
    aren't float32 (a base under an adapter may be bfloat16) or lie on several devices.
    """
    unwrapped = [getattr(model, "get_base_model", lambda m=model: m)() for model in given.values()]
    whole = [model for model in unwrapped if isinstance(model, PreTrainedModel)]
    found = {}
    for name, model in given.items():
        if not isinstance(model, PreTrainedModel | Mapping):
            model = _out_of_peft(model, name)
        if isinstance(model, Mapping):
            if not whole:
                raise MemlocError(
                    f"{', '.join(given)} are all state dicts, which don't say how their model is "
                    "built; give one of them as a model"
                )
            model = _with_weights(whole[0], model, name)
        elif not isinstance(model, PreTrainedModel):
            raise MemlocError(
                f"{name} is a {type(model).__name__}, not a model of transformers or a state dict; "
                "take the model out of what wraps it"
            )
        _check_weights(model, name)
        found[name] = model
    return found


def _out_of_peft(model: Any, name: str) -> Any:
    """The model inside a PeftModel, with the adapter in its layers; others as they are."""
    inside = getattr(model, "get_base_model", None)
    if inside is None:
        return model
    if set(model.peft_config) != {NAME}:
        raise MemlocError(
            f"{name} has the adapters {listed(model.peft_config)}; give a PeftModel with one "
            f"adapter, named {NAME}"
        )
    refuse_odd(model.peft_config[NAME].to_dict(), name)
    return inside()


def refuse_merged(given: Mapping[str, Any], technique: str) -> None:
    """Raise MemlocError for adapters that are merged into the weights: nothing of them learns."""
    for name, model in given.items():
        modules = model.modules() if isinstance(model, nn.Module) else ()
        if any(getattr(module, "merged", False) is True for module in modules):
            raise MemlocError(
                f"{name}: its adapter is merged into the weights, so that {technique} has no "
                "parameters of it to train or to differentiate; call its unmerge_adapter() first"
            )


def _with_weights(like: PreTrainedModel, weights: Weights, name: str) -> PreTrainedModel:
    model = copy.deepcopy(like)
    if wrong := misfits(model.state_dict(), weights):
        raise MemlocError(
            f"{name}: its state dict doesn't fit a {type(like).__name__} of the other model's "
            f"configuration: {listed(wrong)} are missing, unknown or of another shape"
        )
    model.load_state_dict(weights)
    return model


def _check_weights(model: PreTrainedModel, name: str) -> None:
    kinds = {parameter.dtype for parameter in model.parameters()}
    allowed = {torch.float32, torch.bfloat16} if is_adapted(model) else {torch.float32}
    if not kinds <= allowed:
        raise MemlocError(
            f"{name}: its weights are {listed(sorted(map(str, kinds)))}; memloc computes with "
            "float32 weights: load it with dtype=torch.float32, or give model.float()"
        )
    places = {parameter.device for parameter in model.parameters()}
    if len(places) > 1 or places == {torch.device("meta")}:
        raise MemlocError(
            f"{name}: its weights lie on {listed(sorted(map(str, places)))}; move the whole model "
            "to one device"
        )


@contextmanager
def lent(models: Mapping[str, PreTrainedModel], device: torch.device) -> Iterator[None]:
    """Within it models may be changed in all but their weights, and gradients are empty.

    Put back are mode, requires_grad, gradients, configuration, recomputing of activations and
    device of every model, torch's random state, and its choice of deterministic kernels. Hooks stay
    where they are.
    """
    states = [_State(model) for model in {id(model): model for model in models.values()}.values()]
    try:
        with _calm(device):
            yield
    finally:
        for state in states:
            state.restore()


class _State:
    """All that is put back of one model."""

    def __init__(self, model: PreTrainedModel):
        self.model, self.device = model, model.device
        self.config = dict(vars(model.config))
        self.modules = [(module, _kept(module)) for module in model.modules()]
        self.parameters = [(p, p.requires_grad, p.grad) for p in model.parameters()]
        for parameter, *_ in self.parameters:
            parameter.grad = None

    def restore(self) -> None:
        on_device(self.model, self.device)
        vars(self.model.config).clear()
        vars(self.model.config).update(self.config)
        for module, kept in self.modules:
            vars(module).update(kept)
        for parameter, requires_grad, gradient in self.parameters:
            parameter.requires_grad_(requires_grad)
            parameter.grad = gradient


def _kept(module: nn.Module) -> dict[str, Any]:
    own = vars(module)
    return {name: own[name] for name in ("training", *CHECKPOINTING) if name in own}


@contextmanager
def _calm(device: torch.device) -> Iterator[None]:
    """Within it torch computes as in a job of its own, whatever the notebook has set."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    lenient = torch.is_deterministic_algorithms_warn_only_enabled()
    filled = DETERMINISTIC.fill_uninitialized_memory
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(_indices(device)))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for kind in {"cpu", device.type}:
            stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        # Other kinds of devices lack some deterministic kernels.
        torch.use_deterministic_algorithms(True, warn_only=device.type not in ("cpu", "cuda"))
        DETERMINISTIC.fill_uninitialized_memory = False
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(deterministic, warn_only=lenient)
            DETERMINISTIC.fill_uninitialized_memory = filled


def _indices(device: torch.device) -> list[int]:
    return [device.index or 0] if device.type == "cuda" else []
