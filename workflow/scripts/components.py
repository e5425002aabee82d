"""Layer weights of swapped layers and of their blocks (rule summarise_components)."""

from jobs import job
from memloc.summary.components import summarise

with job(snakemake):
    summarise(snakemake.input, snakemake.params.runs, dict(snakemake.output.items()))
