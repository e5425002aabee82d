"""Write results/budget.tsv: what the configuration's whole plan will cost."""

from jobs import job
from memloc.summary.budget import write_budget

with job(snakemake) as log:
    budget = write_budget(snakemake.output[0], **snakemake.params.settings)
    log.info("%d jobs, %.2f GPU-hours", budget.jobs, budget.gpu_hours)
