"""How well noisy rows are told from clean ones, of all tasks and models in one table."""

from jobs import job
from memloc.generalise.detection import summarise_detection

with job(snakemake):
    summarise_detection(snakemake.input, snakemake.params.pairs, snakemake.output[0])
