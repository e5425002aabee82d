"""Centroid analysis of one fine-tuned pair."""

import offline  # noqa: F401
from jobs import job, untracked
from memloc.centroid_files import centroid_checkpoints
from memloc.reading import Reading

with job(snakemake):
    centroid_checkpoints(
        data=snakemake.input.data,
        memorised=snakemake.input.memorised,
        original=snakemake.input.original,
        table=snakemake.output.table,
        events=snakemake.output.events,
        reading=Reading(**snakemake.params.reading),
        batch_tokens=untracked(snakemake, "centroids", "batch_tokens"),
        precision=snakemake.params.precision,
    )
