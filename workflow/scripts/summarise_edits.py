"""Noise undone against accuracy lost: which window is the best edit."""

from jobs import job
from memloc.summary.edits import write_edits

with job(snakemake):
    write_edits(
        snakemake.input.tables,
        snakemake.params.runs,
        snakemake.input.histories,
        snakemake.params.trainings,
        snakemake.output[0],
    )
