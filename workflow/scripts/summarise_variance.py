"""Variance of M-CoG by task, data seed and model seed."""

from jobs import job
from memloc.summary.variance import write_variance

with job(snakemake):
    write_variance(
        snakemake.input.tables,
        snakemake.params.runs,
        snakemake.input.histories,
        snakemake.input.records,
        snakemake.params.trainings,
        snakemake.output[0],
        options=snakemake.params.options,
    )
