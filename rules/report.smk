"""
The page of results, and the compute budget of the whole study.

In: the tables and figures of the study. Out: results/report.html, results/budget.tsv (the whole
study, whatever is finished and whatever was asked for), summary/{cost,budget_actual}.tsv.
"""


rule budget:
    """What the whole study will cost, by stage and model, and how long it takes on N GPUs."""
    output:
        f"{PLACES.results}/budget.tsv",
    log:
        LOG(f"{PLACES.results}/budget"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/budget")
    localrule: True
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        settings=lambda w: readable(COSTS.whole_study)(),
        code=CODE("budget.py"),
    script:
        "../workflow/scripts/budget.py"


rule report:
    """The page of results: every table and figure of the run in one file."""
    input:
        unpack(
            lambda w: {
                name: PLACES.summary(name) for name in STUDY.page_tables(targets())
            }
        ),
        perturbed=list(page().data().values()),
        tasks=rules.task_table.output[0],
        budget=rules.budget.output[0],
        png=page_files("png"),
        pdf=page_files("pdf"),
    output:
        page=PLACES.page,
        cost=PLACES.summary("cost"),
        actual=PLACES.summary("budget_actual"),
    log:
        LOG(f"{PLACES.results}/report"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/report")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(2000),
        runtime=minutes(10),
    params:
        content=lambda w: page().content(),
        pictures=lambda w: [
            {key: figure[key] for key in ("kind", "wildcards")}
            for figure in STUDY.page_figures(targets())
        ],
        tables=lambda w: [*STUDY.page_tables(targets()), "tasks"],
        records={
            task: [planning.local_copy(workflow, path) for path in paths]
            for task, paths in page().records().items()
        },
        manifests={
            model: planning.local_copy(workflow, f"{folder}/manifest.json")
            for model, folder in zip(
                STUDY.models, expand(PLACES.pretrained(), model=STUDY.models)
            )
        },
        benchmarks=planning.local_copy(
            workflow, BENCHMARK(PLACES.results).removesuffix(".tsv")
        ),
        finished=lambda w: planning.benchmark_patterns(PART),
        templates=template_digests(),
        code=CODE("report.py"),
    script:
        "../workflow/scripts/report.py"
