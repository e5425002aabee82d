"""Draw one figure as PDF and PNG."""

import sys

# seaborn has its own substitute for the one function that it would take from there, and reading
# it is half of a figure's time.
sys.modules["scipy.stats"] = None

from jobs import job  # noqa: E402
from memloc.figures.draw import draw  # noqa: E402

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
