"""Choose which training examples one half trains on (rule split_half)."""

from jobs import job
from memloc.generalise.halves import write_half

with job(snakemake):
    write_half(
        snakemake.input.data,
        snakemake.output[0],
        half=int(snakemake.wildcards.half),
        **snakemake.params.settings,
    )
