"""How far every layer of one fine-tuned model moved."""

import offline  # noqa: F401
from jobs import job
from memloc.data.examples import Reading
from memloc.localise.weight_change.run import compare_checkpoints

with job(snakemake):
    compare_checkpoints(
        memorised=snakemake.input.memorised,
        original=snakemake.input.original,
        pretrained=snakemake.input.pretrained,
        table=snakemake.output[0],
        reading=Reading(**snakemake.params.reading),
    )
