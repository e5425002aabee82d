"""Tables of the whole study from those of its runs."""

from jobs import job
from memloc.summary.correlations import write_correlations
from memloc.summary.weights import summarise, write_training

with job(snakemake):
    if snakemake.rule == "summarise_training":
        write_training(
            snakemake.input.histories,
            snakemake.input.records,
            snakemake.params.runs,
            snakemake.output.training,
        )
    elif snakemake.rule == "correlate":
        write_correlations(
            snakemake.input.layer_weights,
            snakemake.input.mcog,
            snakemake.output[0],
            snakemake.params.seed,
            snakemake.input.get("events"),
            snakemake.input.get("generalisation"),
        )
    else:
        summarise(
            snakemake.input,
            snakemake.params.runs,
            dict(snakemake.output.items()),
            options=snakemake.params.options,
        )
