"""Fine-tune one model on one task: theta_O, theta_M1 with theta_M2, or theta_F."""

from pathlib import Path

import offline  # noqa: F401
from jobs import run, untracked
from memloc.data.examples import Reading
from memloc.models.adapters import lora_of
from memloc.training.finetune import RunFiles, fine_tune
from memloc.training.loop import Computing, Recipe

with run(snakemake) as is_done:
    if not is_done:
        chosen = snakemake.params.settings
        outputs = {
            name: Path(path) for name, path in snakemake.output.items() if isinstance(path, str)
        }
        kept = zip(
            snakemake.params.get("keep_epochs", []),
            snakemake.output.get("epochs", []),
            snakemake.output.get("epoch_digests", []),
            strict=True,
        )
        fine_tune(
            data=snakemake.input.data,
            pretrained=snakemake.input.pretrained,
            places=RunFiles(
                scratch=Path(snakemake.params.scratch),
                epochs={epoch: (Path(folder), Path(digest)) for epoch, folder, digest in kept},
                **outputs,
            ),
            labels=snakemake.params.labels,
            train_layers=snakemake.params.train_layers,
            seed=snakemake.params.seed,
            recipe=Recipe(**chosen["recipe"]),
            reading=Reading(**chosen["reading"]),
            computing=Computing(
                chosen["precision"],
                untracked(snakemake, "evaluation_batch_size"),
                untracked(snakemake, "save_minutes"),
                packed=chosen["packed"],
            ),
            code=snakemake.params.code,
            lora=lora_of(chosen),
        )
