"""Outcome of every control model's training."""

from jobs import job
from memloc.summary.control import write_control_training

with job(snakemake):
    write_control_training(
        snakemake.input.histories,
        snakemake.input.records,
        snakemake.params.runs,
        snakemake.output.control_training,
    )
