"""Generalisation of one task and model from its halves, or of the whole study from those."""

from jobs import job
from memloc.generalise.scores import gather_halves, summarise_generalisation

with job(snakemake):
    given = snakemake.input
    if snakemake.rule == "gather_halves":
        gather_halves(
            given.data,
            dict(zip(snakemake.params.halves, given.halves, strict=True)),
            snakemake.output.table,
            snakemake.output.halves,
            snakemake.params.n_classes,
        )
    else:
        summarise_generalisation(
            given.tables,
            given.halves,
            snakemake.params.pairs,
            given.histories,
            snakemake.params.runs,
            snakemake.output[0],
        )
