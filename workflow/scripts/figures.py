"""Draw one figure, as PDF, PNG and what else is asked for."""

from jobs import job
from memloc.figures.draw import draw
from memloc.figures.page import page_of

with job(snakemake):
    draw(
        drawer=snakemake.params.drawer,
        outputs=list(snakemake.output),
        tables=dict(snakemake.input.items()),
        tasks=snakemake.params.names["tasks"],
        models=snakemake.params.names["models"],
        chosen=dict(snakemake.wildcards.items()),
        runs=snakemake.params.get("runs", ()),
        page=page_of(*snakemake.params.page),
    )
