"""Checkpoints that were trained elsewhere, examined and copied to where training would put them."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from memloc.admission.base import put_on_base, refuse_other_adapter
from memloc.admission.checkpoint import Exam
from memloc.data.examples import Reading
from memloc.errors import MemlocError
from memloc.models.adapter_files import is_adapter
from memloc.models.adapters import lora_of
from memloc.models.digests import WEIGHTS, checkpoint_digest
from memloc.models.load import FINETUNED
from memloc.models.retrieve import bring
from memloc.models.run_record import RunRecord
from memloc.store.files import atomic, write_json
from memloc.store.provenance import provenance
from memloc.store.tables import COLUMNS, write_tsv

logger = logging.getLogger(__name__)
MENDED = "Save the model there anew with save_pretrained."


def take_in(
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    theta: str,
    source: dict[str, Any],
    reading: Reading,
    batch_size: int,
    trained: Mapping[str, Any] | None = None,
) -> None:
    """Copy a checkpoint from its source to `final`; `digest`, `record` and `measured` lie beside.

    inputs: data, pretrained and, for theta_O and theta_M1, memorised (theta_M2). trained: settings
    (`lora`) of what train_missing has trained beside it; None: nothing is. Where it fails the
    exam, nothing is written, and MemlocError names the checkpoint and its source.
    """
    final = Path(outputs["final"])
    run = RunRecord("float32")
    with atomic(final) as draft:
        origin = source.get("folder") or f"{source['hub']} at {source['revision']}"
        try:
            facts = bring(source, draft, "given", adapters=True)
            notes = put_on_base(draft, inputs["pretrained"], final) if is_adapter(draft) else []
            exam = Exam(draft, theta, inputs, reading, run.device, batch_size)
            if trained is not None:
                refuse_other_adapter(exam.model, inputs["pretrained"], reading, lora_of(trained))
            facts |= exam.facts()
            facts["notes"] = notes + facts["notes"]
            _one_file(draft, exam.model)
        except MemlocError as error:
            said = str(error).replace(f"{draft}: ", "").replace(str(draft), origin)
            said = said.replace(FINETUNED, MENDED).removeprefix(f"model {origin}: ")
            raise MemlocError(f"given: {theta} from {origin}: {said}") from None
    for note in facts["notes"]:
        logger.warning("%s: %s", theta, note)
    with atomic(outputs["digest"]) as lines:
        lines.write_text(checkpoint_digest(final))
    write_tsv(exam.recall.history(), outputs["measured"], COLUMNS["history"])
    record = provenance(theta=theta, source=source, **facts, **run.facts())
    write_json(outputs["record"], record)


def _one_file(folder: Path, model: PreTrainedModel) -> None:
    """Have the weights in one file of safetensors, as every checkpoint has them."""
    if is_adapter(folder):
        model.config.save_pretrained(folder)  # which peft leaves out: it has the classes' names
    if is_adapter(folder) or (folder / WEIGHTS).exists():
        return
    for file in [f for end in ("*.bin", "*.safetensors", "*.index.json") for f in folder.glob(end)]:
        file.unlink()
    model.save_pretrained(folder, max_shard_size="100GB")
