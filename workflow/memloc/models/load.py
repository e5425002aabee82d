"""Pre-trained and fine-tuned classifiers: loading, digests, and whether two belong together."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedModel
from transformers.utils import logging as transformers_logging

from memloc.data.tokens import has_tokenizer, load_tokenizer
from memloc.errors import MemlocError
from memloc.models import adapter_files, adapters
from memloc.models.adapters import Lora
from memloc.models.bases import base_of
from memloc.models.layers import (
    find_layers,
    head_names,
    misfits,
    pooler,
    pooler_names,
    toy_inputs,
)
from memloc.models.whole import refuse_further_layers
from memloc.seeds import derive
from memloc.store.files import reading

NEW_POOLER = (
    "its checkpoint has no pooler: the pooler is drawn from the seed, and is as new as the head"
)
PRETRAINED = "Delete the folder to have the model retrieved and examined anew."
FINETUNED = "Delete the folder to have the model trained anew."

# Which weights are missing is checked here; transformers' own table of them would only alarm.
transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()


def load_pretrained(
    folder: str | Path, class_names: Sequence[str], seed: int, lora: Lora | None = None
) -> PreTrainedModel:
    """theta_P with a fresh head for `class_names`, drawn from `seed`, in float32.

    With `lora` it also has a fresh adapter, which changes nothing yet, and the base weights are of
    the type that it names. Raises MemlocError when weights other than the head's are missing from
    the folder, or when its layers can't be found or are fewer than the weights'. A pooler that is
    missing is drawn from the seed as well.
    """
    with reading(folder, PRETRAINED):
        return load_with_notes(folder, class_names, seed, lora)[0]


def load_with_notes(
    folder: str | Path, class_names: Sequence[str], seed: int, lora: Lora | None = None
) -> tuple[PreTrainedModel, list[str]]:
    """load_pretrained, and what a reader of its results should know of the model.

    To be used inside `store.files.reading`: what others wrote fails in any way.
    """
    with torch.random.fork_rng(devices=[]):
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder,
            num_labels=len(class_names),
            id2label=dict(enumerate(class_names)),
            label2id={name: i for i, name in enumerate(class_names)},
            dtype=lora.dtype if lora else torch.float32,
            ignore_mismatched_sizes=True,  # a head of other classes is replaced anyway
            output_loading_info=True,
            trust_remote_code=False,
        )
        new_pooler = pooler_names(model) & set(report["missing_keys"])
        if lora:
            adapters.keep_float(model, new_pooler)
        torch.manual_seed(derive(seed, "head"))
        _renew_head(model)
        if new_pooler:
            torch.manual_seed(derive(seed, "pooler"))
            _renew(model, pooler(model))
    mismatched = {name for name, *_ in report["mismatched_keys"]}
    missing = sorted((set(report["missing_keys"]) | mismatched) - head_names(model) - new_pooler)
    if missing:
        raise MemlocError(
            f"{folder}: the checkpoint lacks weights beyond the head's: {', '.join(missing[:5])}"
            f"{' …' if len(missing) > 5 else ''}; is it a complete {model.config.model_type} model?"
        )
    prepared = _prepare(model, folder, report["unexpected_keys"])
    if lora:
        adapters.add_adapter(prepared, lora, seed, new_pooler)
        prepared.memloc_base = (Path(folder).resolve(), lora.base)
    return prepared, [NEW_POOLER] if new_pooler else []


def _renew_head(model: PreTrainedModel) -> None:
    """Draw the head's weights anew, also where the checkpoint brought a head of its own."""
    base = {id(module) for module in model.base_model.modules()}
    _renew(model, [module for module in model.modules() if id(module) not in base])


def _renew(model: PreTrainedModel, modules: Sequence[nn.Module]) -> None:
    spread = getattr(model.config, "initializer_range", 0.02)
    for module in modules:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=spread)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif (reset := getattr(module, "reset_parameters", None)) is not None:
            reset()


def load_finetuned(
    folder: str | Path,
    beside: PreTrainedModel | None = None,
    base: str | Path | None = None,
) -> PreTrainedModel:
    """A checkpoint that fine-tuning wrote, in float32; missing weights, further layers are errors.

    Where the folder holds an adapter, theta_P with that adapter, over base weights of the type that
    the adapter was trained with. `base`: the folder of theta_P, where it isn't found by itself
    (see `bases.base_of`). `beside`: a model already loaded, with which memory is shared for base
    weights that are the same.
    """
    with reading(folder, FINETUNED):
        if adapter_files.is_adapter(folder):
            return _load_adapted(folder, beside, base)
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
        )
        if missing := sorted(report["missing_keys"])[:5]:
            raise MemlocError(
                f"{folder}: not a fine-tuned checkpoint, it lacks {', '.join(missing)}"
            )
        return _prepare(model, folder, report["unexpected_keys"])


def _load_adapted(
    folder: str | Path, beside: PreTrainedModel | None, base: str | Path | None
) -> PreTrainedModel:
    place, dtype = base_of(folder, base)
    config = adapter_files.read_config(folder)
    origin = (place.resolve(), dtype)
    if beside is not None and adapters.is_like(beside, config, origin):
        return adapter_files.beside(beside, folder)
    described = folder if (Path(folder) / "config.json").is_file() else place
    classes = adapter_files.class_count(folder)
    model, report = AutoModelForSequenceClassification.from_pretrained(
        place,
        config=AutoConfig.from_pretrained(described, trust_remote_code=False, **classes),
        dtype=getattr(torch, dtype),
        ignore_mismatched_sizes=True,
        output_loading_info=True,
        trust_remote_code=False,
    )
    brought = adapter_files.further_names(folder)
    if missing := sorted(set(report["missing_keys"]) - brought)[:5]:
        raise MemlocError(
            f"{folder}: neither the adapter nor its base {place} has {', '.join(missing)}"
        )
    adapters.keep_float(model, brought)
    prepared = _prepare(model, folder, report["unexpected_keys"])
    adapter_files.put_adapter(prepared, config, folder)
    prepared.memloc_base = origin
    return prepared


def load_other(folder: str | Path, model: PreTrainedModel) -> PreTrainedModel:
    """Another checkpoint, on a model's device, in shared memory where both have one base."""
    return on_device(load_finetuned(folder, beside=model), model.device)


def load_start(
    model: PreTrainedModel, folder: str | Path, class_names: Sequence[str], seed: int
) -> PreTrainedModel:
    """theta_P as the run that made `model` started from it, on the model's device.

    Of an adapted model, the same base with a fresh adapter, in shared memory; else `folder`.
    """
    if adapters.is_adapted(model):
        return adapters.at_start(model, seed)
    return on_device(load_pretrained(folder, class_names, seed), model.device)


def on_device(model: PreTrainedModel, device: torch.device | str) -> PreTrainedModel:
    """The model, moved to a device."""
    nn.Module.to(model, device)  # transformers' own wrapper of it hides its types
    return model


def _prepare(model: PreTrainedModel, folder: str | Path, unused: Iterable[str]) -> PreTrainedModel:
    """The model as `ready` makes it. unused: names of weights that found no place in it."""
    try:
        pad_id = load_tokenizer(folder).pad_token_id if has_tokenizer(folder) else None
        prepared = ready(model, pad_id)
        refuse_further_layers(prepared, unused)
        return prepared
    except MemlocError as error:
        raise MemlocError(f"{folder}: {error}") from None


def ready(model: PreTrainedModel, pad_id: int | None) -> PreTrainedModel:
    """The model, changed to what all stages take for granted; its weights stay as they are.

    It is in evaluation mode, keeps no cache, runs every layer once, and pads with `pad_id` (None:
    its tokenizer isn't known). Raises MemlocError where its layers can't be found.
    """
    model.config.use_cache = False  # decoders would grow keys from call to call
    model.config.return_dict = True
    model.activation_checkpointing_disable()  # it runs layers twice
    find_layers(model)
    if pad_id is not None:
        agree_on_padding(model, pad_id)
    model.eval()
    # BigBird settles on full or sparse attention by its first input: the same one in all jobs.
    with torch.no_grad():
        model(**toy_inputs(model, rows=2))
    return model


def agree_on_padding(model: PreTrainedModel, pad_id: int) -> None:
    """Make the tokenizer's pad id the model's, which finds a row's last token by it.

    Raises MemlocError where the model also counts positions from its pad id: with another one it
    would be another model.
    """
    known = model.config.pad_token_id
    if known is not None and known != pad_id:
        for module in model.modules():
            if hasattr(module, "padding_idx") and hasattr(module, "position_embeddings"):
                raise MemlocError(
                    f"the tokenizer pads with id {pad_id}, the model with id {known}, from which "
                    "it counts positions; give the tokenizer the model's pad token (pad_token) "
                    "and save it with save_pretrained"
                )
    model.config.pad_token_id = pad_id


def check_compatible(ours: PreTrainedModel, theirs: PreTrainedModel, where: str) -> None:
    """Raise MemlocError unless both models have the same parameter names and shapes."""
    models = [dict(model.named_parameters()) for model in (ours, theirs)]
    if differing := misfits(*models):
        name = differing[0]
        one, two = (tuple(own[name].shape) if name in own else None for own in models)
        raise MemlocError(
            f"{where}: the two models differ in shape, e.g. {name}: {one} against {two}; both must "
            "come from the same pre-trained model and task"
        )
