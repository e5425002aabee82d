"""Generalisation of one task and model from its halves."""

from jobs import job
from memloc.generalise.scores import gather_halves

with job(snakemake):
    gather_halves(
        snakemake.input.data,
        dict(zip(snakemake.params.halves, snakemake.input.halves, strict=True)),
        snakemake.output.table,
        snakemake.output.halves,
        snakemake.params.n_classes,
    )
