"""Pre-trained models and fine-tuning.

In: resources/models (retrieved here) and results/{task}/perturbed.parquet.
Out: checkpoints theta_O, theta_M1, theta_M2, theta_F with a history per run. Each checkpoint
folder has a small .sha256 beside it: later rules depend on that file, so that touching files
re-runs nothing while changed weights re-run what hangs on them. Digest, record and history stay
when `keep_checkpoints` lets the folder go.
"""


rule retrieve_model:
    """Fetch a pre-trained model once, and examine whether memloc is right about it."""
    output:
        folder=directory(PLACES.pretrained()),
        digest=PLACES.pretrained(".sha256"),
    log:
        LOG(PLACES.pretrained()),
    benchmark:
        BENCHMARK(PLACES.pretrained())
    # Compute nodes often have no network.
    localrule: True
    conda:
        "../envs/memloc.yaml"
    threads: 2
    resources:
        mem_mb=COSTS.examining,
        runtime=minutes(60),
    params:
        source=PARAMS.model_source,
        exam="admission.exam:admit",
        code=CODE("retrieve_model.py"),
    script:
        "../workflow/scripts/retrieve_model.py"


rule fetch:
    """All that needs a network, data sets and models: for machines whose jobs have none."""
    input:
        tables=expand(PLACES.retrieved(".parquet"), task=STUDY.fetched_tasks()),
        manifests=expand(PLACES.retrieved(".manifest.json"), task=STUDY.fetched_tasks()),
        models=ancient(expand(PLACES.pretrained(), model=STUDY.models)),
        digests=expand(PLACES.pretrained(".sha256"), model=STUDY.models),
        given=[found["record"] for found in STUDY.given.checkpoints()],
    output:
        f"{PLACES.results}/fetched.tsv",
    log:
        LOG(f"{PLACES.results}/fetched"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/fetched")
    localrule: True
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        tasks=STUDY.fetched_tasks(),
        models=STUDY.models,
        code=CODE("fetch.py"),
    script:
        "../workflow/scripts/fetch.py"


rule train_original:
    """theta_O: fine-tune on the original labels."""
    input:
        data=PLACES.data,
        pretrained=ancient(PLACES.pretrained()),
        digest=PLACES.pretrained(".sha256"),
    output:
        final=kept("theta_O", directory(PLACES.run("original/final"))),
        digest=PLACES.run("original/final.sha256"),
        record=PLACES.run("original/final.provenance.json"),
        history=PLACES.run("original/history.tsv"),
    log:
        LOG(PLACES.run("original/training")),
    benchmark:
        BENCHMARK(PLACES.run("original/training"))
    wildcard_constraints:
        task=_STUDY.given.trained_tasks("theta_O"),
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=COSTS.megabytes("train_original"),
        runtime=COSTS.minutes("train_original"),
        gpu=1,
    params:
        labels="original",
        train_layers=True,
        seed=lambda w: int(w.seed),
        settings=PARAMS.training_to_the_end,
        scratch=PLACES.scratch("{task}/{model}/seed{seed}/original"),
        code=CODE("train.py"),
    script:
        "../workflow/scripts/train.py"


use rule train_original as train_perturbed with:
    """theta_M1, theta_M2 and the epochs to keep: fine-tune on the perturbed labels."""
    output:
        final=kept("theta_M2", directory(PLACES.run("perturbed/final"))),
        digest=PLACES.run("perturbed/final.sha256"),
        record=PLACES.run("perturbed/final.provenance.json"),
        memorised=kept("theta_M1", directory(PLACES.run("perturbed/memorised"))),
        memorised_digest=PLACES.run("perturbed/memorised.sha256"),
        epochs=[
            kept("epoch", directory(PLACES.run(f"epoch{epoch}/perturbed/final")))
            for epoch in STUDY.kept_epochs
        ],
        epoch_digests=[
            PLACES.run(f"epoch{epoch}/perturbed/final.sha256")
            for epoch in STUDY.kept_epochs
        ],
        history=PLACES.run("perturbed/history.tsv"),
    log:
        LOG(PLACES.run("perturbed/training")),
    benchmark:
        BENCHMARK(PLACES.run("perturbed/training"))
    wildcard_constraints:
        task=_STUDY.given.trained_tasks("theta_M2"),
    params:
        labels="perturbed",
        train_layers=True,
        seed=lambda w: int(w.seed),
        settings=PARAMS.training,
        keep_epochs=STUDY.kept_epochs,
        scratch=PLACES.scratch("{task}/{model}/seed{seed}/perturbed"),
        code=CODE("train.py"),


use rule train_original as train_frozen with:
    """theta_F: train the head alone, on the perturbed labels."""
    output:
        final=kept("theta_F", directory(PLACES.pair("frozen/final"))),
        digest=PLACES.pair("frozen/final.sha256"),
        record=PLACES.pair("frozen/final.provenance.json"),
        history=PLACES.pair("frozen/history.tsv"),
    log:
        LOG(PLACES.pair("frozen/training")),
    benchmark:
        BENCHMARK(PLACES.pair("frozen/training"))
    wildcard_constraints:
        task=_STUDY.given.trained_tasks("theta_F"),
    params:
        labels="perturbed",
        train_layers=False,
        seed=PARAMS.first_seed,
        settings=PARAMS.training_to_the_end,
        scratch=PLACES.scratch("{task}/{model}/frozen"),
        code=CODE("train.py"),
