"""Examine a checkpoint that the study was given, and take it in."""

from jobs import job, untracked
from memloc.admission.given import take_in
from memloc.data.examples import Reading

with job(snakemake):
    chosen = snakemake.params.settings
    take_in(
        dict(snakemake.input.items()),
        dict(snakemake.output.items()),
        chosen["theta"],
        chosen["source"],
        Reading(**chosen["reading"]),
        untracked(snakemake, "evaluation_batch_size"),
        chosen.get("trained"),
    )
