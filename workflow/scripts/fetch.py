"""Say what was fetched for a study (rule fetch)."""

from jobs import job
from memloc.data.fetched import write_fetched

with job(snakemake):
    names, models = snakemake.params.tasks, snakemake.params.models
    files = zip(snakemake.input.tables, snakemake.input.manifests, strict=True)
    write_fetched(
        snakemake.output[0],
        dict(zip(names, files, strict=True)),
        dict(zip(models, snakemake.input.models, strict=True)),
    )
