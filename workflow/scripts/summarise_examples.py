"""Where single examples sit, over all runs."""

from jobs import job
from memloc.summary.examples import summarise_locations

with job(snakemake):
    summarise_locations(snakemake.input, snakemake.params.runs, dict(snakemake.output.items()))
