"""Swap every window of one fine-tuned pair."""

import offline  # noqa: F401
from jobs import job, untracked
from memloc.localise.swap import swap_checkpoints
from memloc.localise.sweep import Measuring, WindowFiles

with job(snakemake):
    tokens = untracked(snakemake, "swapping", "batch_tokens")
    swap_checkpoints(
        data=snakemake.input.data,
        memorised=snakemake.input.memorised,
        original=snakemake.input.original,
        files=WindowFiles(**dict(snakemake.output.items())),
        measuring=Measuring.of(snakemake.params.measuring, tokens),
        component=snakemake.params.component,
    )
