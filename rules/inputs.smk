"""What the inputs and params of some rules are; functions, no rules."""


def checkpoints(localising):
    """Input functions of a rule: its checkpoints, and the digests that it depends on."""
    read = _STUDY.given.reads(localising)
    found = {name: ancient(theta(other)) for name, other in read.items()}
    found |= {f"{name}_digest": theta(other, ".sha256") for name, other in read.items()}
    found["base"] = ancient(base_of_adapters)
    return found | ({"data": PLACES.data} if localising.data else {})


def base_of_adapters(wildcards):
    """Input function: theta_P, where checkpoints are adapters of it; nothing where they are whole."""
    place = PLACES.pretrained().format(model=wildcards.model)
    return [place] if PARAMS.lora(wildcards.model) else []


def settings_of(localising):
    """Params function: what the results of a rule depend on."""
    more = _STUDY.given.settings(localising)
    return readable(lambda wildcards: localising.settings(_STUDY, wildcards) | more)


def compared(ending=""):
    """Input function: theta_M2, with which further checkpoints that are given are compared."""

    def found(w):
        if STUDY.given.theta_of(w.checkpoint) not in ("theta_O", "theta_M1"):
            return []
        return theta("theta_M2", ending)({**w, "subject": Path(w.checkpoint).parts[0]})

    return found


def other_seed(name):
    """Input function: a file of the same task and model, of the seed after the rule's own."""
    return lambda w: PLACES.run(name).format(
        task=w.task, model=w.model, seed=STUDY.next_seed(w.model, int(w.seed))
    )


def retrieved_table(wildcards):
    """Input function: the retrieved rows of a task, also of one that is perturbed anew."""
    return PLACES.retrieved(".parquet").format(task=task_of(wildcards.task))


def labelled_from():
    """Inputs of perturbed.parquet: the retrieved rows, or those without marks and what was found."""
    if STUDY.finds_noise:
        return {"table": PLACES.unmarked, "found": PLACES.found}
    return {"table": retrieved_table}


def halves_of_finders(wildcards):
    """Input function: all halves of the models that find a task's noisy rows, model by model."""
    settings = PARAMS.finding(wildcards)
    pattern = PLACES.pair("halves/{half}.parquet")
    return [
        pattern.format(task=wildcards.task, model=model, half=half)
        for model in settings["models"]
        for half in settings["halves"]
    ]


def checked_windows(wildcards):
    """Input function: the data of a retraining job, once its windows are known to exist."""
    layers = STUDY.known_layers(wildcards.model)
    STUDY.check_ratio(wildcards.task)
    if layers is not None:
        readable(parse_windows)(wildcards.windows, layers)
    return PLACES.data


def whole_window(wildcards):
    """Input function: the table with the window of all layers, where a job doesn't retrain it."""
    found = STUDY.whole_window_job(wildcards.model, wildcards.windows)
    words = {**wildcards, "windows": found}
    return [PLACES.subject("retrain/{windows}.tsv").format(**words)] if found else []


def retrained(ending):
    """Input function: what the retraining jobs of one subject leave behind."""
    pattern = PLACES.subject(f"retrain/{{windows}}{ending}")
    return lambda w: expand(pattern, windows=STUDY.retrain_jobs(w.model), **w)


def picture(figure):
    """A figure's files: the first formats, and the PNG that Snakemake's report shows."""
    words = re.findall(r"{(\w+)}", figure.name)
    shown = report(
        f"{PLACES.figure(figure.name)}.png",
        caption="../workflow/report/figure.rst",
        category=figure.section.capitalize(),
        subcategory=figure.title,
        labels={word: f"{{{word}}}" for word in words} or {"figure": figure.title},
    )
    others = [ending for ending in STUDY.figure_formats if ending != "png"]
    return [*(f"{PLACES.figure(figure.name)}.{ending}" for ending in others), shown]


def of_study(function):
    """Input or params function: what a figure's entry says for its wildcards."""
    return readable(lambda wildcards: function(_STUDY, wildcards))


def names_of(figure):
    """Param: labels of tasks and models; a function where the study may lack what they are of."""
    if figure.stage != "control":
        return STUDY.shown_names
    return of_study(lambda study, wildcards: study.control.names())


def runs_of(figure):
    """Param: which runs a figure's tables are of."""
    return [] if figure.runs is no_runs else of_study(figure.runs)


def page():
    """The page as this command asks for it, beside the study of config.yaml."""
    paper = read_defaults(ROOT / "config.yaml")
    return Readable(PagePlan(_STUDY, called(PART), paper, targets()))


def page_files(ending):
    """Input function: the files of the page's figures, pdf or png."""
    return lambda w: STUDY.figure_files(STUDY.page_figures(targets()), ending)


def template_digests():
    """Checksums of the page's templates, so that editing one makes the page anew."""
    files = (path for path in (WORKFLOW / "report").iterdir() if path.is_file())
    return {path.name: sha256(path) for path in sorted(files)}
