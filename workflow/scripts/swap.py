"""Swap every window of one fine-tuned pair."""

import offline  # noqa: F401
from jobs import job
from memloc.reading import Reading
from memloc.swap_files import swap_checkpoints

with job(snakemake):
    swap_checkpoints(
        data=snakemake.input.data,
        memorised=snakemake.input.memorised,
        original=snakemake.input.original,
        table=snakemake.output.table,
        examples=snakemake.output.examples,
        reading=Reading(**snakemake.params.reading),
        clean_examples=snakemake.params.clean_examples,
        batch_tokens=snakemake.params.batch_tokens,
        precision=snakemake.params.precision,
        seed=snakemake.params.seed,
    )
