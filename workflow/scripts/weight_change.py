"""How far every layer of one fine-tuned model moved."""

import offline  # noqa: F401
from jobs import job
from memloc.reading import Reading
from memloc.weight_change_files import compare_checkpoints

with job(snakemake):
    compare_checkpoints(
        memorised=snakemake.input.memorised,
        original=snakemake.input.original,
        pretrained=snakemake.input.pretrained,
        table=snakemake.output[0],
        reading=Reading(**snakemake.params.reading),
    )
