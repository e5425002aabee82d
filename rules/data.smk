"""
Data sets: retrieved once, then split and perturbed by the data seed.

In: task files (workflow/tasks and `task_folders`), the sources they name or `tasks_dir`.
Out: resources/tasks/{task}.parquet with its manifest; results/{task}/perturbed.parquet with
its provenance; results/tasks.tsv, sizes, noise, duplicates and lengths of all tasks.
"""


rule retrieve_task:
    """Retrieve a data set once, normalised and checked."""
    input:
        # on this machine, wherever results live
        readable(lambda w: [local(path) for path in local_files(TASKS[w.task])]),
    output:
        table=PLACES.retrieved(".parquet"),
        manifest=PLACES.retrieved(".manifest.json"),
    log:
        LOG(PLACES.retrieved("")),
    benchmark:
        BENCHMARK(PLACES.retrieved(""))
    wildcard_constraints:
        task="[^/@]+",
    # Compute nodes often have no network, and it takes seconds.
    localrule: True
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(2000),
        runtime=minutes(20),
    params:
        task=PARAMS.retrieval,
        code=CODE("retrieve_task.py"),
    script:
        "../workflow/scripts/retrieve_task.py"


rule perturb_task:
    """Split a data set and perturb the labels of a share of each class, or mark found noise."""
    input:
        **labelled_from(),
    output:
        table=PLACES.data,
    log:
        LOG(PLACES.task("perturbed")),
    benchmark:
        BENCHMARK(PLACES.task("perturbed"))
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(2000),
        runtime=minutes(10),
    params:
        settings=PARAMS.labelling,
        code=CODE("perturb.py"),
    script:
        "../workflow/scripts/perturb.py"


use rule perturb_task as split_unmarked with:
    """Split a data set, and leave its labels as they are, for noisy rows to be found."""
    input:
        table=retrieved_table,
    output:
        table=PLACES.unmarked,
    log:
        LOG(PLACES.task("unmarked")),
    benchmark:
        BENCHMARK(PLACES.task("unmarked"))
    params:
        settings=PARAMS.unmarked,
        code=CODE("perturb.py"),


rule task_table:
    """Sizes, noise, duplicates and lengths of all tasks."""
    input:
        tables=expand(PLACES.data, task=STUDY.task_names),
        manifests=expand(PLACES.retrieved(".manifest.json"), task=STUDY.task_names),
        # folders have no checksum: their digests tell whether they are others
        models=ancient(expand(PLACES.pretrained(), model=STUDY.models)),
        digests=expand(PLACES.pretrained(".sha256"), model=STUDY.models),
    output:
        f"{PLACES.results}/tasks.tsv",
    log:
        LOG(f"{PLACES.results}/tasks"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/tasks")
    conda:
        "../envs/memloc.yaml"
    threads: 2
    resources:
        mem_mb=mem(4000),
        runtime=minutes(30),
    params:
        settings=PARAMS.task_table(),
        code=CODE("task_table.py"),
    script:
        "../workflow/scripts/task_table.py"
