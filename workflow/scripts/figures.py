"""Draw one figure as PDF and PNG."""

from jobs import job
from memloc.figures.draw import draw

with job(snakemake):
    draw(
        drawer=snakemake.params.drawer,
        outputs=list(snakemake.output),
        tables=dict(snakemake.input.items()),
        tasks=snakemake.params.names["tasks"],
        models=snakemake.params.names["models"],
        chosen=dict(snakemake.wildcards.items()),
        runs=snakemake.params.get("runs", ()),
    )
