"""LoRA adapters: a model's linear layers as peft's, and the adapters' weights.

An adapted model is a plain classifier whose linear layers, those inside its layers, are peft's: a
base weight, which is theta_P's and never changes, and beside it B A, whose product is added (Hu et
al., 2022). B is 0 at first, so that a fresh adapter changes nothing. Trained are A and B, the head,
and a pooler that the base lacks. These alone are in an adapter's files, which are peft's own.

peft is imported where it is needed: importing it takes seconds.
"""

import copy
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from memloc.errors import MemlocError
from memloc.models.layers import (
    find_layers,
    freeze_embeddings,
    head_names,
    pooler_names,
)
from memloc.seeds import derive
from memloc.targets import is_target, refuse_targets

NAME = "default"  # of the one adapter of a model, as peft calls it
MERGE = "merge it into its base with peft's merge_and_unload and name the merged model instead"


@dataclasses.dataclass(frozen=True)
class Lora:
    """How adapters are built; the fields are config.yaml's `training.lora`.

    r: rank; alpha: B A counts alpha / r times; dropout: on what A reads; targets: "all-linear", or
    names of linear layers; base: the type that base weights are kept in.
    """

    r: int
    alpha: int
    dropout: float
    targets: str | Sequence[str]
    base: str

    @property
    def dtype(self) -> torch.dtype:
        """The type of base weights."""
        return getattr(torch, self.base)


def lora_of(settings: Mapping[str, Any]) -> Lora | None:
    """The adapters that a rule's settings ask for; None: whole layers are trained."""
    return Lora(**settings["lora"]) if settings.get("lora") else None


# --- models with adapters --------------------------------------------------------------------


def is_adapted(model: nn.Module) -> bool:
    """Whether a model has an adapter."""
    return any(belongs_to_adapter(name) for name, _ in model.named_parameters())


def belongs_to_adapter(name: str) -> bool:
    return any(part in ("lora_A", "lora_B") for part in name.split("."))


def own_parameters(layer: nn.Module) -> dict[str, nn.Parameter]:
    """What fine-tuning trains of a layer: its adapter's parameters if it has one, else all."""
    named = dict(layer.named_parameters())
    return {name: p for name, p in named.items() if belongs_to_adapter(name)} or named


def add_adapter(
    model: PreTrainedModel, lora: Lora, seed: int, new_pooler: Iterable[str] = ()
) -> None:
    """Give every layer of a model a fresh adapter, drawn from `seed`, in place.

    new_pooler: names of its parameters, where theta_P has none: it is trained as well. Raises
    MemlocError for targets that name no linear layer, and for layers without any.
    """
    from peft import LoraConfig

    saved = saved_modules(model, new_pooler)
    config = LoraConfig(
        task_type="SEQ_CLS",
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=_targets(model, lora.targets),
        modules_to_save=saved,
    )
    inject(model, config)
    _draw(model, seed)


@torch.no_grad()
def _draw(model: PreTrainedModel, seed: int) -> None:
    """Draw every A anew, as peft does and on any device the same, and set every B to 0."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "adapter"))
        for module in model.modules():
            if hasattr(module, "reset_lora_parameters"):  # one of peft's linear layers
                first: Any = module.lora_A[NAME].weight
                first.copy_(nn.init.kaiming_uniform_(torch.empty(first.shape), a=math.sqrt(5)))
                module.lora_B[NAME].weight.zero_()


def linear_layers(model: PreTrainedModel) -> dict[str, str]:
    """Every linear layer inside the model's layers: its name in the model, and in its layer."""
    names = {id(module): name for name, module in model.named_modules()}
    return {
        names[id(module)]: name
        for layer in find_layers(model)
        for name, module in layer.named_modules()
        if isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"
    }


def _targets(model: PreTrainedModel, wanted: str | Sequence[str]) -> list[str]:
    """Names of the linear layers inside the model's layers that are wanted."""
    inside = linear_layers(model)
    refuse_targets(type(model).__name__, wanted, inside.values())
    return [full for full, name in inside.items() if is_target(name, wanted)]


def inject(model: PreTrainedModel, config: Any) -> None:
    """Put peft's linear layers into a model; their A and B are float32, and the head stays plain.

    The head is trained as it is, so peft's wrapper of what it calls modules_to_save isn't needed.
    """
    from peft import inject_adapter_in_model

    wanted = {name: p.requires_grad for name, p in model.named_parameters()}
    plain = copy.copy(config)
    plain.modules_to_save = None
    inject_adapter_in_model(plain, model, NAME)
    model.peft_config = {NAME: config}
    for name, parameter in model.named_parameters():
        if belongs_to_adapter(name):
            parameter.data = parameter.data.float()
        parameter.requires_grad_(wanted.get(name.replace(".base_layer.", "."), True))
    model.train(model.training)
    _refuse_bare_layers(model)


def _refuse_bare_layers(model: PreTrainedModel) -> None:
    for number, layer in enumerate(find_layers(model), start=1):
        if not is_adapted(layer):
            raise MemlocError(
                f"the adapter leaves layer {number} of {len(find_layers(model))} out, and layers "
                f"are compared by their adapters; train one for every layer, or {MERGE}"
            )


def unfreeze_layers(model: PreTrainedModel) -> None:
    """Train what fine-tuning trains: all but what comes before layer 1, or the adapters, the head
    and a pooler that the base lacks, which are all that an adapter's files hold."""
    if not is_adapted(model):
        freeze_embeddings(model)
        return
    held = trained_names(model)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in held)


def trained_names(model: PreTrainedModel) -> set[str]:
    """Names of the parameters that an adapter's files hold."""
    kept = model.peft_config[NAME].modules_to_save or []
    return {
        name
        for name, _ in model.named_parameters()
        if ".original_module." not in name  # what peft's wrapper keeps of the base's head
        if belongs_to_adapter(name) or any(name.startswith(f"{module}.") for module in kept)
    }


@torch.no_grad()
def merged_weights(layer: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """A layer's weights as they take effect, float64: an adapter's product added to its base.

    Names are those of the layer without an adapter. Two adapters with the same product give the
    same weights, however it is shared between A and B.
    """
    modules = dict(layer.named_modules())
    for name, parameter in layer.named_parameters():
        if belongs_to_adapter(name):
            continue
        weight, owner = (
            parameter.double(),
            modules[name.rpartition(".")[0].removesuffix(".base_layer")],
        )
        if name.endswith(".base_layer.weight") and not owner.merged:
            product = owner.lora_B[NAME].weight.double() @ owner.lora_A[NAME].weight.double()
            product = product.T if owner.fan_in_fan_out else product
            weight = weight + owner.scaling[NAME] * product
        yield name.replace(".base_layer.", "."), weight


# --- types -----------------------------------------------------------------------------------


def keep_float(model: PreTrainedModel, further: Iterable[str]) -> None:
    """Keep the head, and what else is trained, in float32 behind a base of another type.

    further: names of parameters beside the head's. What these modules read is cast.
    """
    modules = dict(model.named_modules())
    for name in saved_modules(model, further):
        modules[name].float().register_forward_pre_hook(_to_float)


def saved_modules(model: PreTrainedModel, names: Iterable[str]) -> list[str]:
    """Modules that peft saves beside the adapters: the head's, and the pooler if it's named."""
    head = {name.partition(".")[0] for name in head_names(model)}
    pooled = {f"{model.base_model_prefix}.pooler"} if pooler_names(model) & set(names) else set()
    return sorted(head | pooled)


def _to_float(module: nn.Module, args: tuple) -> tuple:
    return tuple(a.float() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args)


# --- models that share a base ----------------------------------------------------------------


def at_start(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """theta_P with the adapter that a run of this seed starts from: a copy that shares the base.

    The head is the model's own.
    """
    other = sharing_base(model)
    _draw(other, seed)
    return other


def sharing_base(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of an adapted model that has its own adapter and head alone: one base in memory."""
    held = trained_names(model)
    shared: list[Tensor] = [p for name, p in model.named_parameters() if name not in held]
    shared += list(model.buffers())
    return copy.deepcopy(model, memo={id(tensor): tensor for tensor in shared})


def is_like(model: PreTrainedModel, config: Any, base: tuple[Path, str]) -> bool:
    """Whether a model has an adapter built as `config` says, over that base of that type."""
    if not is_adapted(model) or getattr(model, "memloc_base", None) != base:
        return False
    ours, theirs = (dataclasses.asdict(each) for each in (config, model.peft_config[NAME]))
    said = {"modules_to_save", "inference_mode", "base_model_name_or_path", "peft_version"}
    said |= {"init_lora_weights"}  # A and B are what a folder holds, however they were drawn
    return all(ours[key] == theirs[key] for key in ours.keys() - said)
