"""All windows over seeds; noise undone against accuracy lost: which window is the best edit."""

from jobs import job
from memloc.summary.edits import write_edits
from memloc.summary.seeds import read_runs
from memloc.summary.windows import write_windows

with job(snakemake):
    tables, ends = read_runs(
        snakemake.input.tables,
        snakemake.params.runs,
        snakemake.input.histories,
        snakemake.params.trainings,
    )
    write_edits(tables, ends, snakemake.output.edits)
    write_windows(tables, ends, snakemake.output.windows)
