"""memloc: in which layers does a fine-tuned language model memorise?

Targets: all (default), fetch, datasets, checkpoints, control, tables, figures, report, or any path under results/.
"""

from snakemake.utils import min_version

min_version("9.0")


include: "rules/common.smk"


if config["container"]:  # before the rules, which take it over

    container: config["container"]


include: "rules/inputs.smk"
include: "rules/data.smk"
include: "rules/training.smk"
include: "rules/given.smk"
include: "rules/control.smk"
include: "rules/localisation.smk"
include: "rules/generalisation.smk"
include: "rules/summaries.smk"
include: "rules/figures.smk"
include: "rules/report.smk"


rule all:
    """The whole study: every table, every figure, and the report (the default)."""
    default_target: IS_DEFAULT
    input:
        STUDY.whole(),


rule datasets:
    """All data sets, retrieved and perturbed, and the table of their sizes."""
    input:
        rules.task_table.output,
        [PLACES.data.format(task=task) for task in STUDY.anew],


rule checkpoints:
    """All fine-tuned models: theta_O, theta_M1, theta_M2 and theta_F."""
    input:
        STUDY.run_paths(PLACES.run("perturbed/final"), tasks=EVERY_DRAW),
        STUDY.run_paths(PLACES.run("original/final")) if STUDY.has("theta_O") else [],
        STUDY.pair_paths("frozen/final") if STUDY.has("theta_F") else [],
        [
            PLACES.pair("frozen/final").format(task=task, model=model)
            for task in STUDY.anew
            for model in STUDY.models
        ],


rule control:
    """The control setup (section 3.2): its models, tables and figures, and the page that shows them."""
    input:
        rules.report.output.page,
        [PLACES.summary(name) for name in CONTROL.tables],
        lambda w: STUDY.figure_files(STUDY.figures_of(["control"])),


rule tables:
    """All tables over tasks and models, in the folder summary."""
    input:
        [PLACES.summary(name) for name in STUDY.summary_tables],


rule figures:
    """All figures that this study has, in each of their formats, in the folder figures."""
    input:
        STUDY.figure_files(STUDY.figures),
