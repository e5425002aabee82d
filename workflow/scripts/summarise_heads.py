"""Errors of single attention heads, over seeds."""

from jobs import job
from memloc.summary.heads import write_heads

with job(snakemake):
    write_heads(snakemake.input, snakemake.params.runs, snakemake.output[0])
