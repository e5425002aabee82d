"""Split one data set and perturb its labels, or mark the noisy rows that were found."""

from jobs import job
from memloc.data.perturb import mark_file, perturb_file

with job(snakemake):
    inputs, output, settings = snakemake.input, snakemake.output.table, snakemake.params.settings
    if inputs.get("found"):
        mark_file(inputs.table, inputs.found, output, settings)
    else:
        perturb_file(inputs.table, output, **settings)
