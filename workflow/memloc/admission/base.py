"""A given adapter is put on the base of its run: theta_P, by hash where its files tell one."""

import os
from pathlib import Path

from transformers import PreTrainedModel

from memloc.data.examples import Reading
from memloc.data.tokens import has_tokenizer, load_tokenizer
from memloc.errors import MemlocError
from memloc.models.adapter_files import BRING, CONFIG, read_config
from memloc.models.adapters import Lora
from memloc.models.bases import RECORD, base_of, record_base
from memloc.models.layers import misfits
from memloc.models.load import load_pretrained
from memloc.models.refusals import weight_files
from memloc.store.files import read_record, write_json
from memloc.store.provenance import sha256

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
        notes = _compare(named, Path(pretrained))
        record_base(draft, pretrained, place=final)
    # A path of the machine that it comes from would mean nothing here, and not be passed on.
    raw = read_record(draft / CONFIG, BRING) or {}
    write_json(draft / CONFIG, raw | {"base_model_name_or_path": os.path.relpath(pretrained)})
    if not has_tokenizer(draft):
        load_tokenizer(pretrained).save_pretrained(draft)
        notes.append("it brings no tokenizer: theta_P's is taken")
    return notes


def _compare(named: str, pretrained: Path) -> list[str]:
    """A note where the base that an adapter names can't be compared with theta_P by its weights."""
    folder = Path(named).expanduser()
    shared = [name for name in weight_files(pretrained) if named and (folder / name).is_file()]
    for name in shared:
        if sha256(folder / name) != sha256(pretrained / name):
            what = f"{CONFIG} names {named}, whose {name} has another hash"
            raise MemlocError(OTHER.format(what=what))
    if shared:
        return []
    manifest = read_record(pretrained / "manifest.json", "Delete the folder") or {}
    if named and named in manifest.get("source", {}).values():
        return []
    said = named or "which its files don't name"
    return [f"its base, {said}, is taken for theta_P: its files tell no hash"]


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
