"""Sizes, noise, duplicates and lengths of all tasks (rule task_table)."""

import offline  # noqa: F401
from jobs import job
from memloc.data.task_table import write_task_table

with job(snakemake):
    write_task_table(
        snakemake.input.tables,
        snakemake.input.manifests,
        snakemake.input.models,
        snakemake.output[0],
        **snakemake.params.settings,
    )
