"""Set every window of one fine-tuned model back to an earlier checkpoint."""

import offline  # noqa: F401
from jobs import job, untracked
from memloc.localise.rewind import rewind_checkpoints
from memloc.localise.sweep import Measuring, WindowFiles

with job(snakemake):
    tokens = untracked(snakemake, "swapping", "batch_tokens")
    rewind_checkpoints(
        data=snakemake.input.data,
        memorised=snakemake.input.memorised,
        earlier=snakemake.input.earlier,
        point=snakemake.params.point,
        files=WindowFiles(**dict(snakemake.output.items())),
        measuring=Measuring.of(snakemake.params.measuring, tokens),
    )
