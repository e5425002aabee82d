"""How the order of tasks by depth moves with choices of the analysis (rule of that name)."""

from jobs import job
from memloc.summary.sensitivity import write_sensitivity

with job(snakemake):
    names = ("tables", "examples", "training", "centroids")
    write_sensitivity(
        {name: list(snakemake.input.get(name, [])) for name in names},
        snakemake.params.runs,
        snakemake.params.centroid_runs,
        snakemake.params.options,
        snakemake.output[0],
    )
