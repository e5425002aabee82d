"""Layer weights of every technique, and what follows from them (rule summarise)."""

from jobs import job
from memloc.summary.weights import summarise_weights

with job(snakemake):
    summarise_weights(
        snakemake.input.tables,
        snakemake.params.runs,
        dict(snakemake.output.items()),
        snakemake.input.training,
        snakemake.input.examples,
        options=snakemake.params.options,
    )
