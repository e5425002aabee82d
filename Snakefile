"""memloc: in which layers does a fine-tuned language model memorise?

Targets: all (default), datasets, checkpoints, control, tables, figures, report, or any path under results/.
"""

from snakemake.utils import min_version

min_version("9.0")


configfile: "config.yaml"


include: "rules/common.smk"
include: "rules/costs.smk"
include: "rules/budget.smk"
include: "rules/data.smk"
include: "rules/training.smk"
include: "rules/windows.smk"
include: "rules/gradients.smk"
include: "rules/probes.smk"
include: "rules/centroids.smk"
include: "rules/control_plan.smk"
include: "rules/pictures.smk"
include: "rules/report.smk"
include: "rules/generalisation.smk"
include: "rules/control.smk"
include: "rules/explanation.smk"
include: "rules/progression.smk"
include: "rules/examples.smk"


rule all:
    """The whole study: every table, every figure, and the report (the default)."""
    default_target: True
    input:
        f"{RESULTS}/report.html",
        SUMMARIES,
        FIGURES,


rule datasets:
    """All data sets, retrieved and perturbed, and the table of their sizes."""
    input:
        f"{RESULTS}/tasks.tsv",


rule checkpoints:
    """All fine-tuned models: theta_O, theta_M1, theta_M2 and theta_F."""
    input:
        RUNS(f"{RUN}/original/final"),
        RUNS(f"{RUN}/perturbed/final"),
        expand(
            f"{RESULTS}/{{task}}/{{model}}/frozen/final",
            task=config["tasks"],
            model=MODELS,
        ),


rule control:
    """The control setup (section 3.2): its models, tables and figures, and the page that shows them."""
    input:
        f"{RESULTS}/report.html",
        [f"{SUMMARY}/{name}.tsv" for name in STAGE_TABLES["control"]],
        [
            f"{FIGURE}/{figure['name']}.{kind}"
            for figure in control_figures()
            for kind in ("pdf", "png")
        ],


rule tables:
    """All tables over tasks and models, in the folder summary."""
    input:
        SUMMARIES,


rule figures:
    """All figures that this study has, as PDF and PNG, in the folder figures."""
    input:
        FIGURES,
