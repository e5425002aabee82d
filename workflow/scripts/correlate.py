"""Rank correlations between techniques, between models, and of depth with generalisation."""

from jobs import job
from memloc.summary.correlations import write_correlations

with job(snakemake):
    write_correlations(
        snakemake.input.layer_weights,
        snakemake.input.mcog,
        snakemake.output[0],
        snakemake.params.seed,
        snakemake.input.get("events"),
        snakemake.input.get("generalisation"),
    )
