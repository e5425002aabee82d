"""A given adapter is put on the base of its run: theta_P, by hash where its files tell one."""

import os
from pathlib import Path

import torch
from transformers import PreTrainedModel

from memloc.data.examples import Reading
from memloc.data.tokens import has_tokenizer, load_tokenizer
from memloc.errors import MemlocError
from memloc.models.adapter_files import BRING, CONFIG, read_config, read_weights
from memloc.models.adapters import Lora
from memloc.models.bases import RECORD, base_of, record_base
from memloc.models.digests import weights_hash
from memloc.models.layers import head_names, misfits
from memloc.models.load import load_pretrained
from memloc.store.files import read_record, write_json

OTHER = (
    "it is an adapter of another base than theta_P: {what}. Name the one that it was trained on as "
    "the model's source"
)


def put_on_base(draft: Path, pretrained: str | Path, final: Path) -> list[str]:
    """Record theta_P as the base of an adapter, whose copy will lie at `final`; notes on it.

    Raises MemlocError where the adapter isn't plain LoRA, and where its own record, or the folder
    that peft's configuration names, tells another base. What neither tells is a note. An adapter
    without a tokenizer takes theta_P's, which is the one it was trained with.
    """
    named, notes = str(read_config(draft).base_model_name_or_path or ""), []
    if (draft / RECORD).is_file():
        place, dtype = base_of(draft, pretrained)
        if place.resolve() != Path(pretrained).resolve():
            raise MemlocError(OTHER.format(what=f"{RECORD} has the hash of {place}"))
        record_base(draft, pretrained, dtype, place=final)
    else:
        notes = [*_compare(named, Path(pretrained)), *_note_type(draft, Path(pretrained))]
        record_base(draft, pretrained, place=final)
    # A path of the machine that it comes from would mean nothing here, and not be passed on.
    raw = read_record(draft / CONFIG, BRING) or {}
    write_json(draft / CONFIG, raw | {"base_model_name_or_path": os.path.relpath(pretrained)})
    if not has_tokenizer(draft):
        load_tokenizer(pretrained).save_pretrained(draft)
        notes.append("it brings no tokenizer: theta_P's is taken")
    return notes


def _compare(named: str, pretrained: Path) -> list[str]:
    """A note where the base that an adapter names can't be compared with theta_P by its weights.

    A folder's are compared, in however many files they lie. A relative path is one of another
    machine or study as likely as not: what it leads to here says little.
    """
    folder = Path(named).expanduser()
    if named and (folder / "config.json").is_file():
        _refuse_other_weights(named, folder, pretrained)
        if folder.is_absolute():
            return []
    manifest = read_record(pretrained / "manifest.json", "Delete the folder") or {}
    if named and named == manifest.get("source", {}).get("hub"):
        return []
    said = f"known by its name alone, {named}," if named else "named nowhere"
    return [f"its base is {said} and is taken for theta_P: its files tell no hash"]


def _refuse_other_weights(named: str, folder: Path, pretrained: Path) -> None:
    """Raise MemlocError where a folder's weights, but for the head, aren't theta_P's."""
    try:
        if weights_hash(folder) == weights_hash(pretrained):
            return
        base, ours = (load_pretrained(place, ["a", "b"], 0) for place in (folder, pretrained))
    except MemlocError as error:
        said = str(error).removeprefix(f"{folder}: ")
        what = f"{CONFIG} names {named}, which can't be compared with it: {said}"
        raise MemlocError(f"its base must be theta_P, and {what}") from None
    theirs, own = (dict(model.named_parameters()) for model in (base, ours))
    further = (name for name in own if name not in head_names(ours))
    odd = misfits(own, theirs) or [n for n in further if not torch.equal(own[n], theirs[n])]
    if odd:
        raise MemlocError(OTHER.format(what=f"{CONFIG} names {named}, whose {odd[0]} differs"))


def _note_type(draft: Path, pretrained: Path) -> list[str]:
    """A note where an adapter seems to have been trained over a base of half precision.

    Its own record would say; without one, its head tells, or else the type that the base is
    stored in, by which transformers loads it where nobody asks for another.
    """
    raw = read_record(pretrained / "config.json", BRING) or {}
    stored = raw.get("dtype") or raw.get("torch_dtype")
    held = {str(weights.dtype).removeprefix("torch.") for weights in read_weights(draft).values()}
    for where, types in (("its own weights are", held), ("its base is", {stored})):
        if half := sorted({"bfloat16", "float16"} & types):
            return [
                f"{where} stored in {half[0]}, so that it may have been trained over a base of "
                "that type: here its base is float32"
            ]
    return []


def refuse_other_adapter(
    model: PreTrainedModel, pretrained: str | Path, reading: Reading, lora: Lora | None
) -> None:
    """Raise MemlocError where a model is built otherwise than what is trained beside it.

    lora: the adapters that training would give theta_P; None: it trains whole layers.
    """
    ours = dict(model.named_parameters())
    theirs = dict(load_pretrained(pretrained, reading.class_names, 0, lora).named_parameters())
    if odd := misfits(ours, theirs):
        name = odd[0]
        shapes = [tuple(own[name].shape) if name in own else None for own in (ours, theirs)]
        raise MemlocError(
            "what train_missing names would be built otherwise by training.lora: "
            f"{name} is {shapes[0]} here, and would be {shapes[1]}. Set training.lora (r, targets) "
            "as this one was trained, or give the others too and leave out train_missing"
        )
