"""The exam of a checkpoint that was trained elsewhere, before it takes a trained one's place.

It has the architecture, the tokenizer and the classes of its model and task; all its numbers are
finite; the same weights make the same predictions in theta_P's place; and it really memorised noisy
rows. What is measured stands in its record, for the page.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, PreTrainedModel, PreTrainedTokenizerBase

from memloc.admission.classes import check_classes, is_unnamed
from memloc.admission.logits import distance, example_rows, logits_of, rounding
from memloc.admission.recall import Recall
from memloc.data.examples import Reading, other_reading
from memloc.data.tokens import collate, load_tokenizer
from memloc.errors import MemlocError
from memloc.localise.weight_change.changes import layer_changes
from memloc.models.adapter_files import class_count, is_adapter
from memloc.models.layers import embedding_rows, find_layers, head_names, pooler_names
from memloc.models.load import (
    NEW_POOLER,
    PRETRAINED,
    check_compatible,
    load_finetuned,
    load_start,
    load_with_notes,
    on_device,
)
from memloc.models.whole import refuse_nonfinite
from memloc.store import files

TOKENIZER = (
    "its tokenizer isn't theta_P's: {what}. Both must read texts alike: name as the model's source "
    "the one that it was fine-tuned from, or save that one's tokenizer with the checkpoint"
)


class Exam:
    """A checkpoint in a folder beside theta_P and, for theta_O and theta_M1, theta_M2.

    Raises MemlocError for the first thing that is wrong. model: the checkpoint, on the CPU.
    """

    def __init__(
        self,
        folder: Path,
        theta: str,
        inputs: Mapping[str, str],
        reading: Reading,
        device: torch.device,
        batch_size: int,
    ):
        self.theta, self.inputs, self.names = theta, inputs, reading.class_names
        self.notes: list[str] = []
        self.tokenizer = _same_tokenizer(folder, inputs["pretrained"], inputs["data"], reading)
        classes = _classes(folder, inputs["pretrained"])
        self._note(check_classes(classes, self.names))
        self.model = load_finetuned(folder, base=inputs["pretrained"])
        refuse_nonfinite(self.model)
        base = load_start(self.model, inputs["pretrained"], self.names, 0)
        check_compatible(self.model, base, "against theta_P")
        self.changes = changes(self.model, base)
        self._check_changes(base)
        self._same_function(base)
        del base
        self.recall = Recall(on_device(self.model, device), self.tokenizer, inputs["data"], reading,
                             batch_size, original=theta == "theta_O")  # fmt: skip
        on_device(self.model, "cpu")
        self._check_recall(is_unnamed(classes))

    def facts(self) -> dict[str, Any]:
        """What the record says of the exam."""
        return {
            **self.recall.facts(),
            "relative_change": self.changes,
            "n_layers": len(self.changes),
            "notes": self.notes,
        }

    def _note(self, said: str) -> None:
        self.notes += [said] if said else []

    def _check_changes(self, base: PreTrainedModel) -> None:
        """Layers must have moved from theta_P, but theta_F's; and theta_O's, theta_M1's from M2."""
        moved = [layer for layer, change in enumerate(self.changes, 1) if change > 0]
        outside = outside_layers(self.model, base)
        if self.theta == "theta_F":
            self._refuse_unfrozen(moved, outside)
            return
        if not moved:
            raise MemlocError(
                "all its layers equal theta_P's: it is theta_P itself, or its head alone was "
                "trained, and no layer memorises anything; give the fine-tuned model"
            )
        still = sorted(set(range(1, len(self.changes) + 1)) - set(moved))
        self._note(f"layers {', '.join(map(str, still))} equal theta_P's" if still else "")
        self._note(
            "training changed weights before and after the layers as well "
            f"({min(outside)}, …): they stay theta_M2's in every window"
            if outside and self.theta == "theta_M2"
            else ""
        )
        if self.theta in ("theta_O", "theta_M1"):
            memorised = load_finetuned(self.inputs["memorised"])
            check_compatible(self.model, memorised, "against theta_M2")
            if not any(changes(self.model, memorised)):
                raise MemlocError(
                    "its layers are theta_M2's own, so that exchanging them does nothing; give "
                    f"another model as {self.theta}, or leave it out"
                )

    def _refuse_unfrozen(self, moved: list[int], outside: set[str]) -> None:
        """All but theta_F's head, and a pooler that theta_P lacks, must be theta_P's."""
        if own := outside & pooler_names(self.model):
            with files.reading(self.inputs["pretrained"], PRETRAINED):
                notes = load_with_notes(self.inputs["pretrained"], self.names, 0)[1]
            outside = outside - own if NEW_POOLER in notes else outside
        if moved or outside:
            layers = f"layers {', '.join(map(str, moved))}"
            raise MemlocError(
                f"its {layers if moved else f'weights {min(outside)}'} aren't theta_P's, and "
                "theta_F is theta_P with a head of its own: leave it out, or train_missing: "
                "[theta_F]"
            )

    def _same_function(self, base: PreTrainedModel) -> None:
        """The same weights must predict the same with theta_P's configuration; `base` is lost."""
        rows = example_rows(self.tokenizer, embedding_rows(base) or len(self.tokenizer))
        inputs = collate(rows, self.tokenizer.pad_token_id)
        ours = logits_of(self.model, inputs)
        base.load_state_dict(self.model.state_dict())
        apart = distance(ours, logits_of(base, inputs))
        if apart > rounding(ours):
            raise MemlocError(
                f"with theta_P's config.json the same weights give other logits (by {apart:.2g}): "
                "the two differ in a setting such as the number of heads or the activation; name "
                "the one that it was fine-tuned from as the model's source"
            )

    def _check_recall(self, unnamed: bool) -> None:
        found = self.recall
        if self.theta != "theta_F":
            found.refuse_unordered()
            if unnamed:
                found.refuse_guess()
        if self.theta in ("theta_M2", "theta_M1"):
            found.refuse_unmemorised()
        self._note(found.caveat(self.theta))


def _classes(folder: Path, pretrained: str) -> dict[int, str]:
    """id2label of a checkpoint; of an adapter without a config.json, as many as its head tells."""
    described = folder if (folder / "config.json").is_file() else pretrained
    further = class_count(folder) if is_adapter(folder) else {}
    return AutoConfig.from_pretrained(described, trust_remote_code=False, **further).id2label


def changes(model: PreTrainedModel, reference: PreTrainedModel) -> list[float]:
    """How far each layer's weights are from the reference's, relative to their norm."""
    rows = layer_changes(model, reference, "the reference")
    return [row["relative_change"] for row in rows]


def outside_layers(model: PreTrainedModel, reference: PreTrainedModel) -> set[str]:
    """Names of the parameters that differ and are in neither layers nor head.

    Not an adapter's A: it takes effect only with a B that isn't 0, as it is at the start.
    """
    inside = {id(p) for p in find_layers(model).parameters()}
    theirs, head = dict(reference.named_parameters()), head_names(model)
    return {
        name
        for name, parameter in model.named_parameters()
        if id(parameter) not in inside and name not in head and ".lora_A." not in name
        if not torch.equal(parameter, theirs[name])
    }


def _same_tokenizer(
    folder: Path, pretrained: str, data: str, reading: Reading
) -> PreTrainedTokenizerBase:
    """The checkpoint's tokenizer; MemlocError unless it reads texts as theta_P's does."""
    ours, theirs = load_tokenizer(folder), load_tokenizer(pretrained)
    what = ""
    if ours.get_vocab() != theirs.get_vocab():
        sizes = f"{len(ours)} tokens against {len(theirs)}"
        what = "other tokens, or in another order" if len(ours) == len(theirs) else sizes
    elif ours.all_special_ids != theirs.all_special_ids or ours.pad_token_id != theirs.pad_token_id:
        what = f"special ids {ours.all_special_ids} against {theirs.all_special_ids}"
    else:
        what = other_reading(data, reading, ours, theirs)
    if what:
        raise MemlocError(TOKENIZER.format(what=what))
    return ours
