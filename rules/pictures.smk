"""
Which tables and figures a study has, by name; functions for rules/report.smk, no rules.
"""

import yaml

from memloc.study import techniques
from memloc.study.command import command
from memloc.study.figures import KINDS
from memloc.store.files import sha256

# What each technique's runs leave behind.
STUDIED = techniques.chosen(config["techniques"])
TECHNIQUE_TABLES = {name: f"{RUN}/{found.table}" for name, found in STUDIED.items()}
WINDOW_TECHNIQUES = [name for name, found in STUDIED.items() if found.windows]
# What is swapped: whole layers, and their attention or feed-forward blocks apart.
COMPONENTS = config["swapping"]["components"] if "swapping" in STUDIED else []
COMPARED = len(TECHNIQUE_TABLES) > 1 or len(MODELS) > 1  # two of anything to correlate
DEPTH_COMPARED = "generalisation" in config["stages"] or (
    "centroids" in config["stages"] and "probing" in TECHNIQUE_TABLES
)
SUMMARY = f"{RESULTS}/summary"
FIGURE = f"{RESULTS}/figures"
CAPTION = "../workflow/report/{}.rst"


def asked(key, name):
    """The command that makes the page with one more technique or stage, as this run was called."""
    called = workflow.config_settings
    files = [os.path.relpath(path) for path in called.configfiles]
    return command(files, called.config, {key: [*config[key], name]})


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


def pair_list():
    """task and model of every pair of the study, in the order of their paths."""
    return [
        dict(task=task, model=model) for task in config["tasks"] for model in MODELS
    ]


def pair_paths(pattern):
    return [pattern.format(**pair) for pair in pair_list()]


def component_table(component):
    """What a run's swapping of one component leaves behind."""
    return f"{RUN}/swap.tsv" if component == "layer" else f"{RUN}/swap-{component}.tsv"


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


def pictures(kind, name, wildcards):
    """Entries of the list of figures: one of a kind for each set of wildcards."""
    return [
        dict(name=name.format(**words), kind=kind, wildcards=words)
        for words in wildcards
    ]


def single(kind):
    """A figure of the whole study."""
    return pictures(kind, kind, [{}])


def by_model(*kinds):
    """A figure per model of each kind."""
    models = [{"model": model} for model in MODELS]
    return [
        figure
        for kind in kinds
        for figure in pictures(kind, f"{kind}_{{model}}", models)
    ]


def matrices(key, names):
    """Wildcards of figures by `key` (technique or component), model and task."""
    return [
        {key: name, "task": task, "model": model}
        for name in names
        for model in MODELS
        for task in config["tasks"]
    ]


def figure_names():
    """Names of all figures with their kind and wildcards: one entry per picture of the page."""
    by_layer = ["layer_weights", *(["techniques"] if len(TECHNIQUE_TABLES) > 1 else [])]
    by_layer += ["label_probes"] if "probing" in TECHNIQUE_TABLES else []
    blocks = [component for component in COMPONENTS if component != "layer"]
    figures = [
        *by_model("training"),
        *pictures(
            "matrix",
            "matrix_{technique}_{task}_{model}",
            matrices("technique", WINDOW_TECHNIQUES),
        ),
        *by_model(*by_layer),
        *pictures(
            "component_matrix",
            "swap-{component}_{task}_{model}",
            matrices("component", blocks),
        ),
    ]
    figures += by_model("components") if len(COMPONENTS) > 1 else []
    figures += by_model("examples") if "swapping" in STUDIED else []
    figures += single("one_layer") if WINDOW_TECHNIQUES else []
    figures += single("mcog")
    if COMPARED:
        measures = [{"measure": measure} for measure in ("mcog", "layer_weights")]
        figures += single("mcog_averages")
        figures += pictures("correlations", "correlations_{measure}", measures)
    if any(f"{task}-binary" in config["tasks"] for task in config["tasks"]):
        figures += single("binarised")
    figures += single("depth_correlations") if DEPTH_COMPARED else []
    return figures


def refuse_same_names(figures):
    """Stop a study in which two figures would be one file: tasks a, a_b with models b_c, c."""
    seen = {}
    for figure in figures:
        name, other = figure["name"], seen.get(figure["name"])
        if other:
            pair = " and ".join(
                str(Path(*found["wildcards"].values())) for found in (other, figure)
            )
            raise WorkflowError(
                f"configuration: tasks, models: the figures of {pair} would both be "
                f"{FIGURE}/{name}.png. Rename a task or model so that it holds no '_'"
            )
        seen[name] = figure


PROGRESSING = [name for name in ("swapping", "gradients") if name in TECHNIQUE_TABLES]


def by_epoch(run, **facts):
    """A run's facts at each epoch that is localised in: those kept, and the last one."""
    last = model_settings(run["model"])["training"]["epochs"]
    return [
        run | dict(epoch=e, last=last, **facts) for e in sorted({*KEPT_EPOCHS, last})
    ]


def progressing_runs():
    """What the progression's tables of techniques are of, one entry per table."""
    return [
        found
        for name in PROGRESSING
        for run in run_list()
        for found in by_epoch(run, name=name)
    ]


def progressing_events():
    """The same for tables of centroid events, where centroids are analysed."""
    if "centroids" not in config["stages"]:
        return []
    return [found for run in run_list() for found in by_epoch(run, name="events")]


def progressing_path(found):
    """Path of one of those tables."""
    folder = RUN.format(**found)
    if found["epoch"] != found["last"]:
        folder = f"{folder}/epoch{found['epoch']}"
    tables = {"events": "centroid_events.tsv"}
    return f"{folder}/{tables.get(found['name']) or STUDIED[found['name']].table}"


def progression_figures():
    """Depth of memorisation by epoch."""
    return by_model("progression")


def explanation_figures():
    """Figures of the centroid analysis and of events."""
    places = [
        {"task": task, "model": model} for model in MODELS for task in config["tasks"]
    ]
    return [
        *single("events"),
        *by_model("swapped_halves"),
        *pictures("centroids", "centroids_{task}_{model}", places),
    ]


def generalisation_figures():
    """A memorisation map per task and model, and the scores of all."""
    maps = pictures("memorisation_map", "memorisation_map_{task}_{model}", pair_list())
    return [*single("generalisation"), *maps]


def finished(stage):
    """Whether a stage was run by its target, and all its models are those of this study.

    A model that the study has come to need is trained when the target is asked for again.
    """
    tables = [Path(f"{SUMMARY}/{name}.tsv") for name in STAGE_TABLES[stage]]
    return any(table.exists() for table in tables) and ON_REQUEST[stage]()


def requested():
    """Stages asked for by their own target, once the plan is being made."""
    asked_for = planning.targets(workflow)
    return [s for s in ON_REQUEST if s not in STAGES and s in asked_for]


# Further parts of the study (config's stages): the summary tables that each adds, and functions
# that list its figures as figure_names does.
STAGE_TABLES = {
    "centroids": ["events", "centroids"],
    "generalisation": ["generalisation"],
    "control": CONTROL_TABLES,
    "progression": ["progression"],
}
STAGE_FIGURES = {
    "control": control_figures,
    "centroids": explanation_figures,
    "generalisation": generalisation_figures,
    "progression": progression_figures,
}
# Stages of this study: epochs that are kept make one.
STAGES = [*config["stages"], *(["progression"] if KEPT_EPOCHS else [])]
if not control_plan.possible(config["control"], config["tasks"]):
    STAGES = [stage for stage in STAGES if stage != "control"]
# Stages that are targets of their own, and stay on the page once they have been run; functions that
# say whether all models of theirs are there.
ON_REQUEST = {"control": control_trained}
STAGES += [stage for stage in ON_REQUEST if stage not in STAGES and finished(stage)]
FIGURES_LIST = figure_names()
FIGURES_LIST += [figure for stage in STAGES for figure in STAGE_FIGURES[stage]()]
refuse_same_names(FIGURES_LIST)
FIGURES = [
    f"{FIGURE}/{f['name']}.{kind}" for f in FIGURES_LIST for kind in ("pdf", "png")
]
SUMMARY_TABLES = ["layer_weights", "mcog", "one_layer", "training"]
SUMMARY_TABLES += ["probe_f1", "label_f1"] if "probing" in TECHNIQUE_TABLES else []
SUMMARY_TABLES += ["correlations"] if COMPARED or DEPTH_COMPARED else []
SUMMARY_TABLES += ["components", "component_mcog"] if len(COMPONENTS) > 1 else []
EXAMPLE_TABLES = ["examples", "example_shares", "example_ranks"]
SUMMARY_TABLES += EXAMPLE_TABLES if "swapping" in STUDIED else []
SUMMARY_TABLES += [table for stage in STAGES for table in STAGE_TABLES[stage]]
if "probing" in TECHNIQUE_TABLES and "events" not in SUMMARY_TABLES:
    SUMMARY_TABLES.append("events")  # those of probes
SUMMARIES = [f"{SUMMARY}/{name}.tsv" for name in SUMMARY_TABLES]


def page_tables():
    """Names of the tables on the page: the study's, and those of stages that were asked for."""
    return SUMMARY_TABLES + [t for stage in requested() for t in STAGE_TABLES[stage]]


def page_figures():
    """The figures on the page, likewise."""
    return FIGURES_LIST + [f for stage in requested() for f in STAGE_FIGURES[stage]()]


def page_files(kind):
    """Their files of a kind, pdf or png."""
    return [f"{FIGURE}/{figure['name']}.{kind}" for figure in page_figures()]


wildcard_constraints:
    technique="|".join(TECHNIQUE_TABLES),
    measure="mcog|layer_weights",


def correlated_tables():
    """Input function: tables that correlations are made of as well, where they are made."""
    names = ("events", "generalisation")
    return {name: f"{SUMMARY}/{name}.tsv" for name in names if name in SUMMARY_TABLES}


def picture(name, kind, subcategory, **labels):
    """A figure's two files, of a kind of KINDS; the PNG goes into Snakemake's own report."""
    shown = report(
        f"{FIGURE}/{name}.png",
        caption=CAPTION.format(kind),
        category=KINDS[kind].section.capitalize(),
        subcategory=subcategory,
        labels=labels or {"figure": subcategory},
    )
    return [f"{FIGURE}/{name}.pdf", shown]


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
        "data": {
            task: f"{RESULTS}/{task}/perturbed.parquet" for task in config["tasks"]
        },
        "settings": dict(config),
        "paper": paper_study(),
        "absent": absent(),
    }


def weight_options():
    """Keywords of the techniques' weights, as config chooses them."""
    return {
        "gradients": {"variant": config["gradients"]["variant"]},
        "weight-change": {"reference": config["weight_change"]["reference"]},
    }


def technique_records():
    """Records of the studied techniques, below a run; retraining's jobs have their own."""
    return [
        (
            "retrain/*.tsv.provenance.json"
            if name == "retraining"
            else f"{found.table}.provenance.json"
        )
        for name, found in STUDIED.items()
    ]


def paper_study():
    """The settings of config.yaml, without what this run changes."""
    with open(Path(workflow.basedir, "config.yaml"), encoding="utf-8") as file:
        return yaml.safe_load(file)


def absent():
    """Techniques and tables that this study leaves out: their target, and how to ask for them."""
    missing = {
        name: {"target": f"{RUN}/{found.table}", "command": asked("techniques", name)}
        for name, found in techniques.TECHNIQUES.items()
        if name not in STUDIED
    }
    missing |= {
        table: {"target": f"{SUMMARY}/{table}.tsv", "command": asked("stages", stage)}
        for stage, tables in STAGE_TABLES.items()
        for table in tables
        if table not in page_tables()
    }
    if "swapping" not in STUDIED:
        missing["examples"] = {
            "target": f"{SUMMARY}/examples.tsv",
            "command": asked("techniques", "swapping"),
        }
    if not KEPT_EPOCHS:
        missing["progression"][
            "command"
        ] = "snakemake --config 'training={keep_epochs: [1, 2, 5, 10]}'"
    if "correlations" not in SUMMARY_TABLES:
        missing["correlations"] = {
            "target": f"{SUMMARY}/correlations.tsv",
            "command": "",
        }
    return missing


def provenance_files():
    """Records beside the results, by task; the page shows those that exist.

    A pattern stands for the jobs that retraining was split into.
    """
    return {
        task: [
            f"{RESULTS}/{task}/perturbed.parquet.provenance.json",
            *(
                f"{RESULTS}/{task}/{model}/frozen/final.provenance.json"
                for model in MODELS
            ),
        ]
        + [
            path
            for record in (
                "original/final.provenance.json",
                "perturbed/final.provenance.json",
                *technique_records(),
                *(f"swap-{name}.tsv.provenance.json" for name in COMPONENTS),
                "centroids.tsv.provenance.json",
            )
            for path in run_paths(f"{RUN}/{record}", tasks=[task])
        ]
        + [
            f"{RESULTS}/{task}/*/control/{models}/final.provenance.json"
            for models in ("frozen", "*/original", "*/perturbed")
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
