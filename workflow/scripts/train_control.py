"""Train one model of the control setup: theta_O, theta_M1 with theta_M2, or theta_F."""

from pathlib import Path

import offline  # noqa: F401
from jobs import run, untracked
from memloc.control.train import Setting, train_control
from memloc.data.examples import Reading
from memloc.models.adapters import lora_of
from memloc.training.finetune import RunFiles
from memloc.training.loop import Computing, Recipe

with run(snakemake) as is_done:
    if not is_done:
        chosen = snakemake.params.settings
        train_control(
            data=snakemake.input.data,
            auxiliary_data=snakemake.input.auxiliary,
            pretrained=snakemake.input.pretrained,
            places=RunFiles(
                scratch=Path(snakemake.params.scratch),
                **{name: Path(path) for name, path in snakemake.output.items()},
            ),
            labels=snakemake.params.labels,
            seed=chosen["seed"],
            recipe=Recipe(**chosen["recipe"]),
            setting=Setting(**chosen["setting"]),
            reading=Reading(**chosen["reading"]),
            auxiliary_reading=Reading(**chosen["auxiliary_reading"]),
            computing=Computing(
                chosen["precision"],
                untracked(snakemake, "evaluation_batch_size"),
                untracked(snakemake, "save_minutes"),
                packed=chosen["packed"],
            ),
            code=snakemake.params.code,
            lora=lora_of(chosen),
        )
