"""
Generalisation (section 5): each task trained on many random halves, tested on the other halves.

In: results/{task}/perturbed.parquet and resources/models.
Out: results/{task}/halves/{half}.parquet, the examples that half trains on, so that each half is
a target of its own; results/{task}/{model}/halves/{half}.parquet, the probability of every
training example's label; generalisation.tsv per task and model; summary/generalisation.tsv; figures.
"""


rule split_half:
    """Choose the training examples of one half."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
    output:
        f"{RESULTS}/{{task}}/halves/{{half}}.parquet",
    log:
        LOG(f"{RESULTS}/{{task}}/halves/{{half}}.log"),
    benchmark:
        BENCHMARK(f"{RESULTS}/{{task}}/halves/{{half}}.tsv")
    # Seconds each, and hundreds of them: not worth a place in a queue.
    localrule: True
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(5),
    params:
        settings=split_settings,
        code=CODE("split_half.py", "generalise.halves"),
    script:
        "../workflow/scripts/split_half.py"


rule train_half:
    """Fine-tune on one half and predict all training examples; the model isn't kept."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        split=f"{RESULTS}/{{task}}/halves/{{half}}.parquet",
        pretrained=ancient(f"{RESOURCES}/models/{{model}}"),
        digest=f"{RESOURCES}/models/{{model}}.sha256",
    output:
        f"{RESULTS}/{{task}}/{{model}}/halves/{{half}}.parquet",
    log:
        LOG(f"{RESULTS}/{{task}}/{{model}}/halves/{{half}}.log"),
    benchmark:
        BENCHMARK(f"{RESULTS}/{{task}}/{{model}}/halves/{{half}}.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=cost_mb("train_half"),
        runtime=cost_minutes("train_half"),
        gpu=1,
    params:
        recipe=half_recipe,
        labels=config["generalisation"]["labels"],
        seed=lambda w: min(SEEDS(w.model)),
        reading=reading,
        precision=config["precision"],
        scratch=f"{RESULTS}/.scratch/{{task}}/{{model}}/halves/{{half}}",
        code=CODE("train_half.py", "generalise.train"),
    script:
        "../workflow/scripts/train_half.py"


rule gather_halves:
    """Generalisation and counterfactual memorisation of every training example."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        halves=expand(
            f"{RESULTS}/{{{{task}}}}/{{{{model}}}}/halves/{{half}}.parquet",
            half=HALVES,
        ),
    output:
        table=f"{RESULTS}/{{task}}/{{model}}/generalisation.tsv",
        halves=f"{RESULTS}/{{task}}/{{model}}/generalisation_halves.tsv",
    log:
        LOG(f"{RESULTS}/{{task}}/{{model}}/generalisation.log"),
    benchmark:
        BENCHMARK(f"{RESULTS}/{{task}}/{{model}}/generalisation.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        halves=HALVES,
        n_classes=lambda w: len(class_names(w)),
        code=CODE("generalisation.py", "generalise.scores"),
    script:
        "../workflow/scripts/generalisation.py"


rule summarise_generalisation:
    """Generalisation score and validation accuracy of every task and model."""
    input:
        tables=pair_paths(f"{RESULTS}/{{task}}/{{model}}/generalisation.tsv"),
        halves=pair_paths(f"{RESULTS}/{{task}}/{{model}}/generalisation_halves.tsv"),
        histories=run_paths(f"{RUN}/{config['generalisation']['labels']}/history.tsv"),
    output:
        f"{SUMMARY}/generalisation.tsv",
    log:
        LOG(f"{SUMMARY}/generalisation.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/generalisation.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        pairs=pair_list(),
        runs=run_list(),
        code=CODE("generalisation.py", "generalise.scores"),
    script:
        "../workflow/scripts/generalisation.py"


use rule figure_matrix as figure_memorisation_map with:
    """Memorisation map: every training example where trained on and where held out."""
    input:
        examples=f"{RESULTS}/{{task}}/{{model}}/generalisation.tsv",
        halves=f"{RESULTS}/{{task}}/{{model}}/generalisation_halves.tsv",
    output:
        picture(
            "memorisation_map_{task}_{model}",
            "memorisation_map",
            "Memorisation maps",
            task="{task}",
            model="{model}",
        ),
    log:
        LOG(f"{FIGURE}/memorisation_map_{{task}}_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/memorisation_map_{{task}}_{{model}}.tsv")
    params:
        kind="memorisation_map",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.generalisation"),


use rule figure_matrix as figure_generalisation with:
    """Generalisation score and validation accuracy per task and model."""
    input:
        generalisation=rules.summarise_generalisation.output[0],
    output:
        picture("generalisation", "generalisation", "Scores"),
    log:
        LOG(f"{FIGURE}/generalisation.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/generalisation.tsv")
    params:
        kind="generalisation",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.generalisation"),
