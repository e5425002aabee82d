"""Centroid analysis of one fine-tuned pair."""

import offline  # noqa: F401
from jobs import job, untracked
from memloc.data.examples import Reading
from memloc.explain.run import centroid_checkpoints

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
