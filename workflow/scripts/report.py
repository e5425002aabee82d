"""Put results/report.html together, with the cost of all stages."""

from pathlib import Path

from jobs import job
from memloc.report.page import write_report
from memloc.summary.budget import write_actual
from memloc.summary.cost import write_cost

with job(snakemake):
    params = snakemake.params
    names = [*params.content["tasks"], *params.content["models"]]
    write_cost(params.benchmarks, names, snakemake.output.cost)
    write_actual(snakemake.output.actual, snakemake.input.budget, params.finished)
    pictures = [
        {"png": png, "pdf": pdf, **labels}
        for png, pdf, labels in zip(
            snakemake.input.png, snakemake.input.pdf, params.pictures, strict=True
        )
    ]
    tables = {name: snakemake.input[name] for name in params.tables}
    write_report(
        snakemake.output.page,
        tables=tables
        | {
            "budget": snakemake.input.budget,
            "budget_actual": snakemake.output.actual,
            "cost": snakemake.output.cost,
        },
        pictures=pictures,
        records=params.records,
        manifests=params.manifests,
        templates=str(Path(snakemake.scriptdir).parent / "report"),
        **params.content,
    )
