"""One fine-tuning run from files to files: load, train, and put the checkpoints in place."""

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from memloc.data.examples import Reading
from memloc.data.tokens import load_tokenizer
from memloc.machine.device import pick_device
from memloc.models.adapter_files import save_adapter
from memloc.models.adapters import Lora, is_adapted, trained_names, unfreeze_layers
from memloc.models.bases import record_base
from memloc.models.digests import checkpoint_digest, weights_hash
from memloc.models.layers import freeze_all_but_head
from memloc.models.load import load_pretrained, on_device
from memloc.models.longest import refuse_longer
from memloc.models.run_record import RunRecord
from memloc.store.files import atomic, require_space, write_json
from memloc.store.provenance import provenance, sha256, versions, write_provenance
from memloc.store.tables import COLUMNS, write_tsv
from memloc.training.loop import Computing, Corpus, FineTuning, Recipe

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunFiles:
    """Where a run's results go; `memorised` (theta_M1) only for perturbed labels.

    epochs: folder and digest of the checkpoint after each epoch that is kept.
    `record`: a copy of the checkpoint's provenance, which stays when its folder is deleted.
    """

    final: Path
    digest: Path
    history: Path
    scratch: Path
    record: Path | None = None
    memorised: Path | None = None
    memorised_digest: Path | None = None
    epochs: Mapping[int, tuple[Path, Path]] = field(default_factory=dict)


def fine_tune(
    data: str | Path,
    pretrained: str | Path,
    places: RunFiles,
    labels: str,
    train_layers: bool,
    seed: int,
    recipe: Recipe,
    reading: Reading,
    computing: Computing,
    code: str,
    lora: Lora | None = None,
) -> None:
    """Fine-tune a pre-trained model on one task and write its checkpoints and history.

    `code` is a fingerprint of what computes: partial state of other code is not resumed.
    `labels` is "original" (theta_O) or "perturbed" (theta_M1, theta_M2); without `train_layers`
    only the head is trained (theta_F). With `lora`, adapters are trained in the layers' place.
    """
    record = RunRecord(computing.precision)
    computing = replace(computing, precision=record.precision)
    tokenizer = load_tokenizer(pretrained)
    corpus = read_corpus(data, labels, tokenizer, reading)
    model = load_pretrained(pretrained, reading.class_names, seed, lora)
    check_lengths(corpus, model, reading.max_length)
    (unfreeze_layers if train_layers else freeze_all_but_head)(model)
    identity = identity_of(data, pretrained, labels, reading, code)
    identity |= {"lora": asdict(lora)} if lora else {}
    identity["trained"] = [name for name, p in model.named_parameters() if p.requires_grad]
    on_device(model, record.device)
    computing = replace(computing, packed=record.pack(model, computing.packed, trained=True))
    run = FineTuning(
        model,
        corpus,
        recipe,
        computing,
        seed,
        places.scratch,
        identity,
        places.epochs,
    )
    require_room(run, places)
    run.run()
    facts = {
        "labels": labels,
        "reading": asdict(reading),
        **({"lora": asdict(lora)} if lora else {}),
        **record.facts(),
    }
    write_results(run, tokenizer, places, facts)
    run.clear()


def identity_of(
    data: str | Path, pretrained: str | Path, labels: str, reading: Reading, code: str
) -> dict[str, Any]:
    """What every fine-tuning run depends on beside its recipe and seed (see FineTuning)."""
    return {
        "data": sha256(data),
        "labels": labels,
        "code": code,
        "versions": versions(),
        "device": pick_device().type,
        "pretrained": weights_hash(pretrained),
        "reading": asdict(reading),
    }


def write_results(
    run: FineTuning,
    tokenizer: PreTrainedTokenizerBase,
    places: RunFiles,
    facts: dict[str, Any],
    columns: Sequence[str] = COLUMNS["history"],
) -> None:
    """Write what a finished run leaves: its history, and its checkpoints.

    `facts`: what else their records say, those of the RunRecord included.
    """
    train, outcome = run.corpus.train, run.outcome
    facts = {
        **facts,
        "seed": run.seed,
        "recipe": asdict(run.recipe),
        "n_train": len(train),
        "n_noisy": int(train.noisy.sum()),
        "n_cut": train.n_cut,
    }
    if run.recipe.memorised_above is not None:
        facts["memorised_epoch"] = outcome.memorised_epoch
    write_tsv(pd.DataFrame(outcome.history), places.history, list(columns))
    _write_checkpoint(run.model, tokenizer, places.final, places.digest, facts)
    _report(outcome.history[-1], outcome.memorised_epoch, run.recipe, facts["labels"])
    if places.memorised and places.memorised_digest:
        run.load_memorised()
        _write_checkpoint(run.model, tokenizer, places.memorised, places.memorised_digest, facts)
    for epoch, (folder, written) in places.epochs.items():
        run.load_epoch(epoch)
        _write_checkpoint(run.model, tokenizer, folder, written, facts | {"epoch": epoch})
    if places.record:
        write_json(places.record, provenance(**facts))


def read_corpus(
    data: str | Path, labels: str, tokenizer: PreTrainedTokenizerBase, reading: Reading
) -> Corpus:
    """Training and validation examples of a task, with its "original" or "perturbed" labels."""
    train, validation = (
        reading.examples(data, split, labels, tokenizer) for split in ("train", "validation")
    )
    logger.info(
        "%d training examples (%d noisy, %d cut at %d tokens), %d validation examples",
        len(train),
        int(train.noisy.sum()),
        train.n_cut,
        reading.max_length,
        len(validation),
    )
    return Corpus(train, validation, tokenizer.pad_token_id)


def check_lengths(corpus: Corpus, model: PreTrainedModel, max_length: int) -> None:
    """Raise MemlocError where an input is longer than the model, on the CPU, can read."""
    ids = [*corpus.train.ids, *corpus.validation.ids]
    refuse_longer(model, ids, max_length, "data.max_length")


def require_room(run: FineTuning, places: RunFiles) -> None:
    """Raise MemlocError unless the disk has room for all that a run writes.

    That is its checkpoints and, while one partial state replaces another, weights and optimiser
    moments of both.
    """
    whole = _bytes(run.model)
    numbers = sum(p.numel() for p in run.saved.values())
    checkpoints = (2 if places.memorised else 1) + len(places.epochs)
    state = run.recipe.saved_bytes * numbers
    needed = checkpoints * whole + 2 * state + (1 + len(places.epochs)) * 4 * numbers
    require_space(places.scratch.parent, needed, "the checkpoints of this run")


def _write_checkpoint(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    digest: Path,
    facts: dict[str, Any],
) -> None:
    with atomic(folder, _bytes(model)) as draft:
        if is_adapted(model):
            base, dtype = model.memloc_base
            # Relative: a checkpoint that names a folder of this machine could not be bundled.
            save_adapter(model, os.path.relpath(base), draft)
            record_base(draft, base, dtype, place=folder)
        else:
            model.save_pretrained(draft, max_shard_size="100GB")
        tokenizer.save_pretrained(draft)
        write_provenance(draft, **facts)
    with atomic(digest) as draft:
        draft.write_text(checkpoint_digest(folder))


def _bytes(model: PreTrainedModel) -> int:
    """Bytes of a model's checkpoint: of an adapted model, what adapters hold."""
    held = trained_names(model) if is_adapted(model) else None
    named = model.named_parameters()
    return sum(4 * p.numel() for name, p in named if held is None or name in held)


def _report(row: dict[str, float], memorised: int | None, recipe: Recipe, labels: str) -> None:
    accuracies = "noisy accuracy %.3f, clean accuracy %.3f, validation accuracy %.3f"
    logger.info(
        f"after %d epochs (%s labels): {accuracies}%s",
        row["epoch"],
        labels,
        row["noisy_accuracy"],
        row["clean_accuracy"],
        row["validation_accuracy"],
        _when(memorised, recipe.memorised_above),
    )


def _when(memorised: int | None, threshold: float | None) -> str:
    """When theta_M1 was reached, as the end of a log line."""
    if threshold is None:
        return ""
    if memorised is None:
        return f"; training accuracy never exceeded {threshold}"
    return f"; training accuracy exceeded {threshold} in epoch {memorised}"
