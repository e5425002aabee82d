"""Probes of every layer of one fine-tuned model."""

import offline  # noqa: F401
from jobs import job, untracked
from memloc.data.examples import Reading
from memloc.localise.probes.run import probe_checkpoints
from memloc.localise.probes.stack import ProbeRecipe

with job(snakemake):
    probe_checkpoints(
        data=snakemake.input.data,
        memorised=snakemake.input.memorised,
        frozen=snakemake.input.frozen,
        table=snakemake.output[0],
        reading=Reading(**snakemake.params.reading),
        recipe=ProbeRecipe(**snakemake.params.recipe),
        seeds=snakemake.params.seeds,
        states=snakemake.params.states,
        batch_tokens=untracked(snakemake, "probing", "batch_tokens"),
        precision=snakemake.params.precision,
    )
