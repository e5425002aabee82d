"""Outcome of every training run."""

from jobs import job
from memloc.summary.training import write_training

with job(snakemake):
    write_training(
        snakemake.input.histories,
        snakemake.input.records,
        snakemake.params.runs,
        snakemake.output.training,
    )
