"""Centroid curves of the whole study."""

from jobs import job
from memloc.explain.events import write_curves

with job(snakemake):
    write_curves(snakemake.input, snakemake.params.runs, snakemake.output[0])
