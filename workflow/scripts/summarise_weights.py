"""Layer weights of every technique, and what follows from them (rule summarise)."""

from jobs import job
from memloc.summary.weights import summarise_weights

with job(snakemake):
    summarise_weights(
        snakemake.input,
        snakemake.params.runs,
        dict(snakemake.output.items()),
        options=snakemake.params.options,
    )
