"""Errors of swapping with noise beside those of swapping between two models without any."""

from jobs import job
from memloc.summary.no_noise import write_no_noise

with job(snakemake):
    write_no_noise(
        snakemake.input.swapped,
        snakemake.input.mixed,
        snakemake.params.runs,
        snakemake.output[0],
    )
