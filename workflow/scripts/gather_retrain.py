"""Gather the tables of retraining jobs into one of all windows."""

from jobs import job
from memloc.localise.retrain.gather import gather_retrained

with job(snakemake):
    gather_retrained(
        tables=snakemake.input.tables,
        examples=snakemake.input.examples,
        table=snakemake.output.table,
        example_table=snakemake.output.examples,
    )
