"""Accuracy of each way of post-processing gradients, on validation tasks (Table 4)."""

from jobs import job
from memloc.summary.control import write_variants

with job(snakemake):
    write_variants(
        snakemake.input,
        snakemake.params.runs,
        snakemake.params.weights,
        snakemake.output.gradient_variants,
    )
