"""Fine-tune on one half of a task and predict all of its training examples (rule train_half)."""

from pathlib import Path

import offline  # noqa: F401
from jobs import run, untracked
from memloc.data.examples import Reading
from memloc.generalise.train import Half, train_half
from memloc.models.adapters import lora_of
from memloc.training.loop import Computing, Recipe

with run(snakemake) as is_done:
    if not is_done:
        params = snakemake.params
        train_half(
            data=snakemake.input.data,
            pretrained=snakemake.input.pretrained,
            half=Half(
                number=int(snakemake.wildcards.half),
                split=Path(snakemake.input.split),
                output=Path(snakemake.output[0]),
                scratch=Path(params.scratch),
            ),
            labels=params.labels,
            seed=params.seed,
            recipe=Recipe(**{k: v for k, v in params.recipe.items() if k != "lora"}),
            reading=Reading(**params.reading),
            computing=Computing(
                params.precision,
                untracked(snakemake, "evaluation_batch_size"),
                untracked(snakemake, "save_minutes"),
                packed=params.packed,
            ),
            code=params.code,
            lora=lora_of(params.recipe),
        )
