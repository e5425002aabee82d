"""
Generalisation (section 5): each task trained on many random halves, tested on the other halves.

In: results/{task}/perturbed.parquet and resources/models.
Out: results/{task}/halves/{half}.parquet, the examples that half trains on, so that each half is
a target of its own; results/{task}/{model}/halves/{half}.parquet, the probability of every
training example's label; generalisation.tsv per task and model.
"""


rule split_half:
    """Choose the training examples of one half."""
    input:
        data=STUDY.halved,
    output:
        PLACES.task("halves/{half}.parquet"),
    log:
        LOG(PLACES.task("halves/{half}")),
    benchmark:
        BENCHMARK(PLACES.task("halves/{half}"))
    # Seconds each, and hundreds of them: not worth a place in a queue.
    localrule: True
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(5),
    params:
        settings=PARAMS.split,
        code=CODE("split_half.py"),
    script:
        "../workflow/scripts/split_half.py"


rule train_half:
    """Fine-tune on one half and predict all training examples; the model isn't kept."""
    input:
        data=STUDY.halved,
        split=rules.split_half.output[0],
        pretrained=ancient(PLACES.pretrained()),
        digest=PLACES.pretrained(".sha256"),
    output:
        PLACES.pair("halves/{half}.parquet"),
    log:
        LOG(PLACES.pair("halves/{half}")),
    benchmark:
        BENCHMARK(PLACES.pair("halves/{half}"))
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=COSTS.megabytes("train_half"),
        runtime=COSTS.minutes("train_half"),
        gpu=1,
    params:
        recipe=PARAMS.half_recipe,
        labels=config["generalisation"]["labels"],
        seed=PARAMS.first_seed,
        reading=PARAMS.reading,
        precision=config["precision"],
        packed=config["packed"],
        scratch=PLACES.scratch("{task}/{model}/halves/{half}"),
        code=CODE("train_half.py"),
    script:
        "../workflow/scripts/train_half.py"


rule find_noise:
    """How memorised each training example is, and which count as noisy, where nobody marked any."""
    input:
        data=PLACES.unmarked,
        halves=readable(halves_of_finders),
    output:
        PLACES.found,
    log:
        LOG(PLACES.task("found")),
    benchmark:
        BENCHMARK(PLACES.task("found"))
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        settings=PARAMS.finding,
        code=CODE("find_noise.py"),
    script:
        "../workflow/scripts/find_noise.py"


rule gather_halves:
    """Generalisation and counterfactual memorisation of every training example."""
    input:
        data=PLACES.data,
        halves=expand(
            PLACES.pair("halves/{half}.parquet"), half=STUDY.halves, allow_missing=True
        ),
    output:
        table=PLACES.pair("generalisation.tsv"),
        halves=PLACES.pair("generalisation_halves.tsv"),
    log:
        LOG(PLACES.pair("generalisation")),
    benchmark:
        BENCHMARK(PLACES.pair("generalisation"))
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        halves=STUDY.halves,
        n_classes=lambda w: len(PARAMS.split(w)["class_names"]),
        code=CODE("gather_halves.py"),
    script:
        "../workflow/scripts/gather_halves.py"


rule label_losses:
    """Every training example's loss at theta_M1."""
    input:
        data=PLACES.data,
        theta_M1=ancient(PLACES.run("perturbed/memorised")),
        theta_M1_digest=PLACES.run("perturbed/memorised.sha256"),
    output:
        table=PLACES.run("losses.tsv"),
    log:
        LOG(PLACES.run("losses")),
    benchmark:
        BENCHMARK(PLACES.run("losses"))
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        gpu=1,
        mem_mb=COSTS.megabytes("label_losses"),
        runtime=COSTS.minutes("label_losses"),
    params:
        run="generalise.losses:run",
        settings=PARAMS.computing,
        batch_tokens=["evaluation_batch_size"],
        code=CODE("localise.py", "generalise.losses"),
    script:
        "../workflow/scripts/localise.py"


rule detect_noise:
    """How well counterfactual memorisation and two baselines tell noisy rows from clean ones."""
    input:
        data=PLACES.data,
        generalisation=PLACES.pair("generalisation.tsv"),
        losses=lambda w: STUDY.run_paths(
            PLACES.run("losses.tsv"), tasks=[w.task], models=[w.model]
        ),
        halves=rules.gather_halves.input.halves,
    output:
        PLACES.pair("detection.tsv"),
    log:
        LOG(PLACES.pair("detection")),
    benchmark:
        BENCHMARK(PLACES.pair("detection"))
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(2000),
        runtime=minutes(10),
    params:
        class_names=lambda w: PARAMS.split(w)["class_names"],
        code=CODE("detect_noise.py"),
    script:
        "../workflow/scripts/detect_noise.py"
