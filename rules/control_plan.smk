"""
Which models the control setup consists of, and what they are made from; functions, no rules.
"""

from memloc.study import control as control_plan

CONTROL = f"{RESULTS}/{{task}}/{{model}}/control"


wildcard_constraints:
    pair=control_plan.PAIR,
    labels="original|perturbed",


# Whether some control models choose the post-processing of gradients.
VALIDATED = bool(control_plan.validation_tasks(config["control"], config["tasks"]))


def readable(function, *arguments):
    """What a check says about the configuration, without a trace."""
    try:
        return function(*arguments)
    except MemlocError as error:
        raise WorkflowError(str(error)) from None


def control_tasks():
    """Role of each task under test, "validation" or "test"."""
    return readable(control_plan.tasks_under_test, config["control"], config["tasks"])


def control_pairs(model):
    """Names of the pairs of layers of one model."""
    layers = layer_count(model, f"control.pairs: {config['control']['pairs']}")
    pairs = readable(control_plan.model_pairs, config["control"], layers)
    return [control_plan.pair_name(pair) for pair in pairs]


def control_runs(**facts):
    """task, model, pair and role of every control model; `facts` hold for all."""
    return [
        dict(task=task, model=model, pair=pair, role=role, **facts)
        for task, role in control_tasks().items()
        for model in MODELS
        for pair in control_pairs(model)
    ]


def control_technique_runs():
    """The same for every technique."""
    return [run for name in STUDIED for run in control_runs(technique=name)]


def control_technique_paths():
    """Their tables, in the same order."""
    return [
        control_table(run, STUDIED[run["technique"]].table)
        for run in control_technique_runs()
    ]


def control_table(run, table):
    """Path of a control model's table, as "swap.tsv"."""
    folder = SETUP.format(setup=f"control/{run['pair']}", **run)
    return f"{folder}/{table}"


def control_trainings():
    """task, model, pair ("frozen" for theta_F), role and labels of every trained model."""
    runs = [
        run | {"labels": labels}
        for run in control_runs()
        for labels in ("original", "perturbed")
    ]
    compared = any(technique.frozen for technique in STUDIED.values())
    frozen = dict.fromkeys((run["task"], run["model"], run["role"]) for run in runs)
    return runs + [
        dict(task=task, model=model, pair="frozen", role=role, labels="perturbed")
        for task, model, role in (frozen if compared else ())
    ]


def control_training_paths(name):
    """A file of every trained model, in the same order."""
    trained = "{pair}/{labels}"
    folders = [
        f"{CONTROL}/{'{pair}' if run['pair'] == 'frozen' else trained}".format(**run)
        for run in control_trainings()
    ]
    return [f"{folder}/{name}" for folder in folders]


def control_trained():
    """Whether every control model of this study has been trained; False where none can be."""
    try:
        digests = control_training_paths("final.sha256")
    except WorkflowError:
        return False
    return all(Path(digest).exists() for digest in digests)


def variant_runs():
    """The control models of validation tasks, which choose the gradients' post-processing."""
    runs = [run for run in control_runs() if run["role"] == control_plan.VALIDATION]
    if not runs:
        raise WorkflowError(
            "control.validation_tasks names no task, so there is nothing to choose the gradients' "
            "post-processing by; name one that is under test"
        )
    return runs


def variant_paths(table="gradients.tsv"):
    """Their tables of gradients, in the same order."""
    return [control_table(run, table) for run in variant_runs()]


def auxiliary_data(wildcards):
    """Input function: the auxiliary task's data, once task and pair are known to be possible."""
    control = config["control"]
    readable(control_plan.check_auxiliary, control, [wildcards.task])
    layers = known_layers(wildcards.model)
    if "pair" in wildcards.keys() and layers is not None:
        pair = control_plan.pair_of(wildcards.pair)
        readable(control_plan.check_pair, pair, layers)
    return f"{RESULTS}/{control['auxiliary']}/perturbed.parquet"


def plain_control_params(wildcards):
    """How a control model without theta_M1 is trained (theta_O, theta_F)."""
    params = control_params(wildcards)
    params["recipe"].pop("memorised_above")
    return params


def control_params(wildcards):
    """How a control model is trained; the frozen counterpart tries one learning rate alone."""
    control = config["control"]
    recipe = training_recipe(wildcards.model) | control["training"]
    pair = wildcards.get("pair")
    task = control["auxiliary"]
    return {
        "recipe": recipe,
        "setting": {
            "pair": list(control_plan.pair_of(pair)) if pair else [],
            "further_rates": (
                control_plan.higher_rates(control, recipe["learning_rate"])
                if pair
                else []
            ),
            "accuracy_above": control["accuracy_above"] if pair else 0,
            "auxiliary_learning_rate": control["auxiliary_learning_rate"],
        },
        "reading": reading(wildcards),
        "auxiliary_reading": reading(wildcards)
        | {"class_names": TASKS[task]["labels"]},
        "precision": config["precision"],
        "seed": min(SEEDS(wildcards.model)),
    }


def paper_models():
    """The models that the paper reports, by the name of their weights on the hub."""
    return {
        model: str(model_source(model).get("hub", "")).rpartition("/")[2]
        for model in MODELS
    }


def control_figures():
    """Figures of the control setup, as figure_names lists those of the study."""
    kinds = ["control_weights"]
    if "gradients" in STUDIED and VALIDATED:
        kinds.append("gradient_variants")
    return [*single("control_accuracy"), *by_model(*kinds)]


CONTROL_TABLES = ["control_accuracy", "control_techniques", "control_weights"]
CONTROL_TABLES += ["control_training"]
if "gradients" in config["techniques"] and VALIDATED:
    CONTROL_TABLES.append("gradient_variants")


def control_names():
    """Labels and categories of the tasks under test, and labels of models, for figures."""
    tasks = {
        name: {key: TASKS[name][key] for key in ("label", "category")}
        for name in control_tasks()
    }
    return display_names() | {"tasks": tasks}
