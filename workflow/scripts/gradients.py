"""Forgetting gradients of one fine-tuned model."""

import offline  # noqa: F401
from jobs import job, untracked
from memloc.data.examples import Reading
from memloc.localise.gradients.run import gradient_checkpoints

with job(snakemake):
    gradient_checkpoints(
        data=snakemake.input.data,
        memorised=snakemake.input.memorised,
        frozen=snakemake.input.frozen,
        table=snakemake.output.table,
        norms=snakemake.output.norms,
        reading=Reading(**snakemake.params.reading),
        objective=snakemake.params.objective,
        batch_tokens=untracked(snakemake, "gradients", "batch_tokens"),
        precision=snakemake.params.precision,
        seed=snakemake.params.seed,
    )
