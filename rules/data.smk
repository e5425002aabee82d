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
        lambda wildcards: list(map(local, local_files(TASKS[wildcards.task]))),
    output:
        table=f"{RESOURCES}/tasks/{{task}}.parquet",
        manifest=f"{RESOURCES}/tasks/{{task}}.manifest.json",
    log:
        LOG(f"{RESOURCES}/tasks/{{task}}.log"),
    benchmark:
        BENCHMARK(f"{RESOURCES}/tasks/{{task}}.tsv")
    # Compute nodes often have no network, and it takes seconds.
    localrule: True
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(2000),
        runtime=minutes(20),
    params:
        task=lambda wildcards: task_params(TASKS[wildcards.task]),
        code=CODE("retrieve_task.py", "data.retrieve", "data.hub"),
    script:
        "../workflow/scripts/retrieve_task.py"


rule perturb_task:
    """Split a data set and perturb the labels of a share of each class."""
    input:
        table=rules.retrieve_task.output.table,
    output:
        table=f"{RESULTS}/{{task}}/perturbed.parquet",
    log:
        LOG(f"{RESULTS}/{{task}}/perturbed.log"),
    benchmark:
        BENCHMARK(f"{RESULTS}/{{task}}/perturbed.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(2000),
        runtime=minutes(10),
    params:
        settings=lambda wildcards: perturbation_settings(wildcards.task),
        code=CODE("perturb.py", "data.perturb"),
    script:
        "../workflow/scripts/perturb.py"


rule task_table:
    """Sizes, noise, duplicates and lengths of all tasks."""
    input:
        tables=expand(f"{RESULTS}/{{task}}/perturbed.parquet", task=TASKS),
        manifests=expand(f"{RESOURCES}/tasks/{{task}}.manifest.json", task=TASKS),
        models=expand(f"{RESOURCES}/models/{{model}}", model=MODELS),
    output:
        f"{RESULTS}/tasks.tsv",
    log:
        LOG(f"{RESULTS}/tasks.log"),
    benchmark:
        BENCHMARK(f"{RESULTS}/tasks.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 2
    resources:
        mem_mb=mem(4000),
        runtime=minutes(30),
    params:
        settings=dict(
            tasks={
                name: {key: task[key] for key in ("label", "category", "labels")}
                for name, task in TASKS.items()
            },
            separators={
                model: model_source(model).get("separator") for model in MODELS
            },
            max_length=config["data"]["max_length"],
        ),
        code=CODE("task_table.py", "data.task_table"),
    script:
        "../workflow/scripts/task_table.py"
