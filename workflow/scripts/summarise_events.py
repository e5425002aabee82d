"""Events of the whole study, from centroids and from probes."""

from jobs import job
from memloc.explain.events import write_events

with job(snakemake):
    write_events(
        snakemake.input.get("centroids", []),
        snakemake.params.centroid_runs,
        snakemake.input.get("probes", []),
        snakemake.params.probe_runs,
        snakemake.output[0],
    )
