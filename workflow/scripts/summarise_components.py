"""Layer weights of swapped layers and of their attention and feed-forward blocks."""

from jobs import job
from memloc.summary.components import summarise_components

with job(snakemake):
    summarise_components(snakemake.input, snakemake.params.runs, dict(snakemake.output.items()))
