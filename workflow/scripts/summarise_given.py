"""The checkpoints that the study was given (rule of that name)."""

from jobs import job
from memloc.summary.given import write_given

with job(snakemake):
    write_given(snakemake.params.checkpoints, snakemake.output[0])
