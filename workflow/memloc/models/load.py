"""Pre-trained and fine-tuned classifiers: loading, digests, and whether two belong together."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel
from transformers.utils import logging as transformers_logging

from memloc.errors import MemlocError
from memloc.models.layers import find_layers, head_names
from memloc.seeds import derive
from memloc.store.provenance import sha256

WEIGHTS = "model.safetensors"

# Which weights are missing is checked here; transformers' own table of them would only alarm.
transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()


def load_pretrained(folder: str | Path, class_names: Sequence[str], seed: int) -> PreTrainedModel:
    """theta_P with a fresh head for `class_names`, drawn from `seed`, in float32.

    Raises MemlocError when weights other than the head's are missing from the folder, or when
    its layers can't be found.
    """
    with torch.random.fork_rng(devices=[]):
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder,
            num_labels=len(class_names),
            id2label=dict(enumerate(class_names)),
            label2id={name: i for i, name in enumerate(class_names)},
            dtype=torch.float32,
            ignore_mismatched_sizes=True,  # a head of other classes is replaced anyway
            output_loading_info=True,
        )
        torch.manual_seed(derive(seed, "head"))
        _renew_head(model)
    head = head_names(model)
    mismatched = {name for name, *_ in report["mismatched_keys"]}
    missing = sorted((set(report["missing_keys"]) | mismatched) - head)
    if missing:
        raise MemlocError(
            f"{folder}: the checkpoint lacks weights beyond the head's: {', '.join(missing[:5])}"
            f"{' …' if len(missing) > 5 else ''}; is it a complete {model.config.model_type} model?"
        )
    return _prepare(model, folder)


def _renew_head(model: PreTrainedModel) -> None:
    """Draw the head's weights anew, also where the checkpoint brought a head of its own."""
    spread = getattr(model.config, "initializer_range", 0.02)
    base = {id(module) for module in model.base_model.modules()}
    for module in model.modules():
        if id(module) in base:
            continue
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=spread)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif hasattr(module, "reset_parameters"):
            module.reset_parameters()


def load_finetuned(folder: str | Path) -> PreTrainedModel:
    """A checkpoint that fine-tuning wrote, in float32; any missing weight is an error."""
    model, report = AutoModelForSequenceClassification.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    if report["missing_keys"]:
        missing = sorted(report["missing_keys"])[:5]
        raise MemlocError(f"{folder}: not a fine-tuned checkpoint, it lacks {', '.join(missing)}")
    return _prepare(model, folder)


def _prepare(model: PreTrainedModel, folder: str | Path) -> PreTrainedModel:
    model.config.use_cache = False  # decoders would grow keys from call to call
    if model.config.pad_token_id is None:
        model.config.pad_token_id = model.config.eos_token_id
    try:
        find_layers(model)
    except MemlocError as error:
        raise MemlocError(f"{folder}: {error}") from None
    return model.eval()


def checkpoint_digest(folder: str | Path) -> str:
    """One line ``<sha256>  <folder name>/model.safetensors``, as ``sha256sum -c`` reads it."""
    folder = Path(folder)
    return f"{sha256(folder / WEIGHTS)}  {folder.name}/{WEIGHTS}\n"


def weights_hash(folder: str | Path) -> str:
    """One hash of all weight files of a folder, however many and in whichever format."""
    files = sorted(path for end in ("*.safetensors", "*.bin") for path in Path(folder).glob(end))
    return hashlib.sha256(" ".join(sha256(path) for path in files).encode()).hexdigest()


def check_compatible(ours: PreTrainedModel, theirs: PreTrainedModel, where: str) -> None:
    """Raise MemlocError unless both models have the same parameter names and shapes."""
    shapes = [{n: tuple(p.shape) for n, p in model.named_parameters()} for model in (ours, theirs)]
    differing = sorted(
        name
        for name in shapes[0].keys() | shapes[1].keys()
        if shapes[0].get(name) != shapes[1].get(name)
    )
    if differing:
        name = differing[0]
        raise MemlocError(
            f"{where}: the two models differ in shape, e.g. {name}: {shapes[0].get(name)} against "
            f"{shapes[1].get(name)}; both must come from the same pre-trained model and task"
        )
