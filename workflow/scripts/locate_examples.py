"""Where the single examples of one run sit."""

from jobs import job
from memloc.summary.examples import write_locations

with job(snakemake):
    write_locations(snakemake.input.examples, snakemake.input.memorised, snakemake.output[0])
