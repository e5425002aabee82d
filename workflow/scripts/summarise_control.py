"""Accuracies and layer weights of techniques where the right layers are known."""

from jobs import job
from memloc.summary.control import write_accuracy

with job(snakemake):
    write_accuracy(
        snakemake.input,
        snakemake.params.runs,
        snakemake.params.options,
        snakemake.params.seed,
        dict(snakemake.output.items()),
    )
