"""How well noisy rows of one task are told from clean ones by one model (rule detect_noise)."""

from jobs import job
from memloc.generalise.detection import detect_noise

with job(snakemake):
    detect_noise(
        snakemake.input.data,
        snakemake.input.generalisation,
        snakemake.input.losses,
        snakemake.input.halves,
        snakemake.output[0],
        snakemake.params.class_names,
    )
