"""Events of the whole study, and its centroid curves, from the tables of its runs."""

from jobs import job
from memloc.explain.events import write_curves, write_events

with job(snakemake):
    params = snakemake.params
    if snakemake.rule == "summarise_centroids":
        write_curves(snakemake.input, params.runs, snakemake.output[0])
    else:
        write_events(
            snakemake.input.get("centroids", []),
            params.centroid_runs,
            snakemake.input.get("probes", []),
            params.probe_runs,
            snakemake.output[0],
        )
