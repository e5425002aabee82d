"""Localise in one subject: the function that params.run names ("localise.swap:run") does it."""

from importlib import import_module

import offline  # noqa: F401
from jobs import job, untracked

module, _, function = snakemake.params.run.partition(":")
run = getattr(import_module(f"memloc.{module}"), function)

with job(snakemake):
    # Digests are inputs only so that changed weights re-run the rule.
    inputs = {k: v for k, v in snakemake.input.items() if not k.endswith("_digest")}
    for base in inputs.pop("base", []):  # of adapters
        from memloc.models.bases import remember_base  # brings torch with it

        remember_base(base)
    batch_tokens = snakemake.params.get("batch_tokens")
    run(
        inputs,
        dict(snakemake.output.items()),
        snakemake.params.settings,
        untracked(snakemake, *batch_tokens) if batch_tokens else 0,
    )
