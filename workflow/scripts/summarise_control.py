"""Accuracies and layer weights of techniques where the right layers are known."""

from jobs import job
from memloc.control.tables import write_accuracy

with job(snakemake):
    write_accuracy(
        snakemake.input,
        snakemake.params.runs,
        snakemake.params.options,
        dict(snakemake.output.items()),
    )
