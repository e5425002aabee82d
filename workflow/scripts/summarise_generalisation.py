"""Generalisation of every task and model in one table."""

from jobs import job
from memloc.generalise.scores import summarise_generalisation

with job(snakemake):
    summarise_generalisation(
        snakemake.input.tables,
        snakemake.input.halves,
        snakemake.params.pairs,
        snakemake.input.histories,
        snakemake.params.runs,
        dict(zip(snakemake.params.tasks, snakemake.input.data, strict=True)),
        snakemake.params.labels,
        snakemake.output[0],
    )
