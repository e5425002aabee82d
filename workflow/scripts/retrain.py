"""Retrain the windows that a file name asks for."""

import offline  # noqa: F401
from jobs import run, untracked
from memloc.data.examples import Reading
from memloc.localise.retrain.group import RetrainingRecipe
from memloc.localise.retrain.run import retrain_checkpoints

with run(snakemake) as is_done:
    if not is_done:
        retrain_checkpoints(
            data=snakemake.input.data,
            memorised=snakemake.input.memorised,
            pretrained=snakemake.input.pretrained,
            whole=next(iter(snakemake.input.whole), None),
            table=snakemake.output.table,
            examples=snakemake.output.examples,
            scratch=snakemake.params.scratch,
            windows=snakemake.wildcards.windows,
            reading=Reading(**snakemake.params.reading),
            recipe=RetrainingRecipe(**snakemake.params.recipe),
            precision=snakemake.params.precision,
            packed=snakemake.params.packed,
            seed=snakemake.params.seed,
            heldout_seed=snakemake.params.heldout_seed,
            memory_mb=snakemake.resources.get("mem_mb"),
            code=snakemake.params.code,
            save_minutes=untracked(snakemake, "save_minutes"),
        )
