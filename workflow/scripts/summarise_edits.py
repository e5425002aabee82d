"""All windows over seeds; noise undone against accuracy lost: which window is the best edit."""

from jobs import job
from memloc.summary.edits import write_edits
from memloc.summary.windows import write_windows

with job(snakemake):
    write_edits(
        snakemake.input.tables,
        snakemake.params.runs,
        snakemake.input.histories,
        snakemake.params.trainings,
        snakemake.output.edits,
    )
    write_windows(
        snakemake.input.tables,
        snakemake.params.runs,
        snakemake.input.histories,
        snakemake.params.trainings,
        snakemake.output.windows,
    )
