"""Tables of the control setup over tasks, models and pairs of layers."""

from jobs import job
from memloc.control.tables import write_accuracy, write_control_training, write_variants

with job(snakemake):
    params, outputs = snakemake.params, dict(snakemake.output.items())
    if snakemake.rule == "summarise_control_training":
        write_control_training(
            snakemake.input.histories,
            snakemake.input.records,
            params.runs,
            outputs["control_training"],
        )
    elif snakemake.rule == "summarise_variants":
        write_variants(snakemake.input, params.runs, params.weights, outputs["gradient_variants"])
    else:
        write_accuracy(snakemake.input, params.runs, params.options, outputs)
