"""Where single examples sit: of one run (rule locate_examples), or of all."""

from jobs import job
from memloc.summary.examples import summarise_locations, write_locations

with job(snakemake):
    if snakemake.rule == "locate_examples":
        write_locations(snakemake.input.examples, snakemake.input.memorised, snakemake.output[0])
    else:
        outputs = dict(snakemake.output.items())
        summarise_locations(snakemake.input, snakemake.params.runs, outputs)
