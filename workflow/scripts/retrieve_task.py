"""Fetch one data set into one checked table (rule retrieve_task)."""

from jobs import job
from memloc.data.retrieve import retrieve

with job(snakemake):
    retrieve(
        snakemake.params.task,
        list(snakemake.input),
        snakemake.output.table,
        snakemake.output.manifest,
    )
