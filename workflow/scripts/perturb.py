"""Split one data set and perturb its labels (rule perturb_task)."""

from jobs import job
from memloc.data.perturb import perturb_file

with job(snakemake):
    perturb_file(snakemake.input.table, snakemake.output.table, **snakemake.params.settings)
