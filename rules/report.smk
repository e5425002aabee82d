"""
Tables of the whole study, figures and the report.

In: swap.tsv (and the other techniques' tables) and history.tsv of every run.
Out: results/summary/*.tsv, results/figures/*.{pdf,png}, results/report.html.
"""

from memloc.files import sha256

# What a technique's runs leave behind; a technique joins the study with its entry here.
TECHNIQUE_TABLES = {
    "swapping": f"{RUN}/swap.tsv",
}
WINDOW_TECHNIQUES = [t for t in ("swapping", "retraining") if t in TECHNIQUE_TABLES]
COMPARED = len(TECHNIQUE_TABLES) > 1 or len(MODELS) > 1  # two of anything to correlate
SUMMARY = f"{RESULTS}/summary"
FIGURE = f"{RESULTS}/figures"
CAPTION = "../workflow/report/{}.rst"


def run_list(models=MODELS, tasks=config["tasks"], **facts):
    """task, model and seed of runs, in the order of their paths; `facts` hold for all."""
    return [
        dict(task=task, model=model, seed=seed, **facts)
        for task in tasks
        for model in models
        for seed in SEEDS(model)
    ]


def run_paths(pattern, **chosen):
    return [pattern.format(**run) for run in run_list(**chosen)]


def display_names():
    """Labels and categories, as figures and the page show them."""
    return {
        "tasks": {
            name: {key: TASKS[name][key] for key in ("label", "category")}
            for name in config["tasks"]
        },
        "models": {
            name: {"label": model_source(name).get("label", name)} for name in MODELS
        },
    }


def figure_names():
    """Names of all figures with their kind and wildcards: one entry per picture of the page."""
    figures = [
        dict(name=f"training_{m}", kind="training", wildcards={"model": m})
        for m in MODELS
    ]
    figures += [
        dict(
            name=f"matrix_{technique}_{task}_{model}",
            kind="matrix",
            wildcards={"technique": technique, "task": task, "model": model},
        )
        for technique in WINDOW_TECHNIQUES
        for model in MODELS
        for task in config["tasks"]
    ]
    kinds = ["layer_weights", *(["techniques"] if len(TECHNIQUE_TABLES) > 1 else [])]
    figures += [
        dict(name=f"{kind}_{model}", kind=kind, wildcards={"model": model})
        for kind in kinds
        for model in MODELS
    ]
    whole = ["one_layer", "mcog", *(["mcog_averages"] if COMPARED else [])]
    figures += [dict(name=kind, kind=kind, wildcards={}) for kind in whole]
    if COMPARED:
        figures += [
            dict(
                name=f"correlations_{measure}",
                kind="correlations",
                wildcards={"measure": measure},
            )
            for measure in ("mcog", "layer_weights")
        ]
    return figures


FIGURES_LIST = figure_names()
FIGURES = [
    f"{FIGURE}/{f['name']}.{kind}" for f in FIGURES_LIST for kind in ("pdf", "png")
]
SUMMARY_TABLES = ["layer_weights", "mcog", "one_layer", "training"]
SUMMARY_TABLES += ["correlations"] if COMPARED else []
SUMMARIES = [f"{SUMMARY}/{name}.tsv" for name in SUMMARY_TABLES]


wildcard_constraints:
    technique="|".join(TECHNIQUE_TABLES),
    measure="mcog|layer_weights",


rule summarise:
    """Layer weights and M-CoG of every task, model and technique, over seeds."""
    input:
        [path for pattern in TECHNIQUE_TABLES.values() for path in run_paths(pattern)],
    output:
        layer_weights=f"{SUMMARY}/layer_weights.tsv",
        mcog=f"{SUMMARY}/mcog.tsv",
        one_layer=f"{SUMMARY}/one_layer.tsv",
    log:
        f"logs/{SUMMARY}/weights.log",
    benchmark:
        f"benchmarks/{SUMMARY}/weights.tsv"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=[run for name in TECHNIQUE_TABLES for run in run_list(technique=name)],
        code=CODE("summary"),
    script:
        "../workflow/scripts/summarise.py"


rule summarise_training:
    """Outcome of every training run."""
    input:
        histories=[
            path
            for labels in ("original", "perturbed")
            for path in run_paths(f"{RUN}/{{labels}}/history.tsv", labels=labels)
        ],
        checkpoints=ancient(
            [
                path
                for labels in ("original", "perturbed")
                for path in run_paths(f"{RUN}/{{labels}}/final", labels=labels)
            ]
        ),
    output:
        training=f"{SUMMARY}/training.tsv",
    log:
        f"logs/{SUMMARY}/training.log",
    benchmark:
        f"benchmarks/{SUMMARY}/training.tsv"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=[
            run
            for labels in ("original", "perturbed")
            for run in run_list(labels=labels)
        ],
        code=CODE("summary"),
    script:
        "../workflow/scripts/summarise.py"


rule correlate:
    """Spearman correlations between techniques and between models."""
    input:
        layer_weights=rules.summarise.output.layer_weights,
        mcog=rules.summarise.output.mcog,
    output:
        f"{SUMMARY}/correlations.tsv",
    log:
        f"logs/{SUMMARY}/correlations.log",
    benchmark:
        f"benchmarks/{SUMMARY}/correlations.tsv"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(20),
    params:
        seed=config["data_seed"],
        code=CODE("correlations"),
    script:
        "../workflow/scripts/summarise.py"


def picture(name, caption, subcategory, **labels):
    """A figure's two files; the PNG goes into Snakemake's own report."""
    shown = report(
        f"{FIGURE}/{name}.png",
        caption=CAPTION.format(caption),
        category="Training" if subcategory == "Training" else "Techniques",
        subcategory=subcategory,
        labels=labels or {"figure": subcategory},
    )
    return [f"{FIGURE}/{name}.pdf", shown]


rule figure_matrix:
    """Draw a figure, as PDF and PNG, from the tables of runs or of the summary."""
    input:
        runs=lambda w: run_paths(
            TECHNIQUE_TABLES[w.technique], models=[w.model], tasks=[w.task]
        ),
    output:
        picture(
            "matrix_{technique}_{task}_{model}",
            "matrix",
            "Window matrices",
            technique="{technique}",
            task="{task}",
            model="{model}",
        ),
    log:
        f"logs/{FIGURE}/matrix_{{technique}}_{{task}}_{{model}}.log",
    benchmark:
        f"benchmarks/{FIGURE}/matrix_{{technique}}_{{task}}_{{model}}.tsv"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        kind="matrix",
        names=display_names(),
        code=CODE("figures"),
    script:
        "../workflow/scripts/figures.py"


use rule figure_matrix as figure_training with:
    input:
        histories=lambda w: run_paths(f"{RUN}/perturbed/history.tsv", models=[w.model]),
        training=rules.summarise_training.output.training,
    output:
        picture("training_{model}", "training", "Training", model="{model}"),
    log:
        f"logs/{FIGURE}/training_{{model}}.log",
    benchmark:
        f"benchmarks/{FIGURE}/training_{{model}}.tsv"
    params:
        kind="training",
        names=display_names(),
        runs=lambda w: run_list(models=[w.model], labels="perturbed"),
        code=CODE("figures"),


use rule figure_matrix as figure_layer_weights with:
    input:
        layer_weights=rules.summarise.output.layer_weights,
    output:
        picture(
            "layer_weights_{model}", "layer_weights", "Layer weights", model="{model}"
        ),
    log:
        f"logs/{FIGURE}/layer_weights_{{model}}.log",
    benchmark:
        f"benchmarks/{FIGURE}/layer_weights_{{model}}.tsv"
    params:
        kind="layer_weights",
        names=display_names(),
        code=CODE("figures"),


use rule figure_layer_weights as figure_techniques with:
    output:
        picture(
            "techniques_{model}",
            "techniques",
            "Techniques side by side",
            model="{model}",
        ),
    log:
        f"logs/{FIGURE}/techniques_{{model}}.log",
    benchmark:
        f"benchmarks/{FIGURE}/techniques_{{model}}.tsv"
    params:
        kind="techniques",
        names=display_names(),
        code=CODE("figures"),


use rule figure_matrix as figure_one_layer with:
    input:
        one_layer=rules.summarise.output.one_layer,
    output:
        picture("one_layer", "one_layer", "Largest error from one layer"),
    log:
        f"logs/{FIGURE}/one_layer.log",
    benchmark:
        f"benchmarks/{FIGURE}/one_layer.tsv"
    params:
        kind="one_layer",
        names=display_names(),
        code=CODE("figures"),


use rule figure_matrix as figure_mcog with:
    input:
        mcog=rules.summarise.output.mcog,
        layer_weights=rules.summarise.output.layer_weights,
    output:
        picture("mcog", "mcog", "Memorisation centre of gravity"),
    log:
        f"logs/{FIGURE}/mcog.log",
    benchmark:
        f"benchmarks/{FIGURE}/mcog.tsv"
    params:
        kind="mcog",
        names=display_names(),
        code=CODE("figures"),


use rule figure_mcog as figure_mcog_averages with:
    output:
        picture(
            "mcog_averages",
            "mcog_averages",
            "Memorisation centre of gravity, averaged",
        ),
    log:
        f"logs/{FIGURE}/mcog_averages.log",
    benchmark:
        f"benchmarks/{FIGURE}/mcog_averages.tsv"
    params:
        kind="mcog_averages",
        names=display_names(),
        code=CODE("figures"),


use rule figure_matrix as figure_correlations with:
    input:
        correlations=rules.correlate.output[0],
    output:
        picture(
            "correlations_{measure}",
            "correlations",
            "Correlations",
            measure="{measure}",
        ),
    log:
        f"logs/{FIGURE}/correlations_{{measure}}.log",
    benchmark:
        f"benchmarks/{FIGURE}/correlations_{{measure}}.tsv"
    params:
        kind="correlations",
        names=display_names(),
        code=CODE("figures"),


def model_origin(model):
    """Where a pre-trained model came from, in words."""
    source = model_source(model)
    kinds = ("hub", "package", "folder")
    return next((str(source[kind]) for kind in kinds if source.get(kind)), "")


def page_content():
    """What the page says that no table holds."""
    names = display_names()
    for model, spec in names["models"].items():
        spec |= {
            "source": model_origin(model),
            "note": model_source(model).get("note", ""),
        }
    return {
        "title": config.get("title", "Where is memorisation?"),
        "tasks": names["tasks"],
        "models": names["models"],
        "settings": dict(config),
        "absent": {
            name: f"{SUMMARY}/{name}.tsv"
            for name in ("correlations",)
            if name not in SUMMARY_TABLES
        },
    }


def provenance_files():
    """Records beside the results, by task; the page shows those that exist."""
    return {
        task: [f"{RESULTS}/{task}/perturbed.parquet.provenance.json"]
        + [
            path
            for record in (
                "original/final/provenance.json",
                "perturbed/final/provenance.json",
                "swap.tsv.provenance.json",
            )
            for path in run_paths(f"{RUN}/{record}", tasks=[task])
        ]
        for task in config["tasks"]
    }


def template_digests():
    """Checksums of the page and captions, so that editing one makes the page anew."""
    return {
        p.name: sha256(p)
        for p in sorted((WORKFLOW / "report").iterdir())
        if p.is_file()
    }


rule report:
    """The page of results."""
    input:
        unpack(lambda w: dict(zip(SUMMARY_TABLES, SUMMARIES))),
        tasks=rules.task_table.output[0],
        png=[path for path in FIGURES if path.endswith(".png")],
        pdf=[path for path in FIGURES if path.endswith(".pdf")],
    output:
        page=f"{RESULTS}/report.html",
        cost=f"{SUMMARY}/cost.tsv",
    log:
        f"logs/{RESULTS}/report.log",
    benchmark:
        f"benchmarks/{RESULTS}/report.tsv"
    threads: 1
    resources:
        mem_mb=mem(2000),
        runtime=minutes(10),
    params:
        content=page_content(),
        pictures=[{k: f[k] for k in ("kind", "wildcards")} for f in FIGURES_LIST],
        tables=[*SUMMARY_TABLES, "tasks"],
        records=provenance_files(),
        benchmarks=f"benchmarks/{RESULTS}",
        templates=template_digests(),
        code=CODE("report"),
    script:
        "../workflow/scripts/report.py"
