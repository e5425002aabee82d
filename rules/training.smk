"""Pre-trained models and fine-tuning.

In: resources/models (retrieved here) and results/{task}/perturbed.parquet.
Out: checkpoints theta_O, theta_M1, theta_M2, theta_F with a history per run. Each checkpoint
folder has a small .sha256 beside it: later rules depend on that file, so that touching files
re-runs nothing while changed weights re-run what hangs on them. Digest, record and history stay
when `keep_checkpoints` lets the folder go.
"""


rule retrieve_model:
    """Fetch a pre-trained model once; check that it is whole and its layers can be found."""
    output:
        folder=directory(f"{RESOURCES}/models/{{model}}"),
        digest=f"{RESOURCES}/models/{{model}}.sha256",
    log:
        LOG(f"{RESOURCES}/models/{{model}}.log"),
    benchmark:
        BENCHMARK(f"{RESOURCES}/models/{{model}}.tsv")
    # Compute nodes often have no network.
    localrule: True
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(8000),
        runtime=minutes(60),
    params:
        source=lambda w: settings.model_source(config, w.model),
        code=CODE("retrieve_model.py", "models.retrieve"),
    script:
        "../workflow/scripts/retrieve_model.py"


rule train_original:
    """theta_O: fine-tune on the original labels."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        pretrained=ancient(f"{RESOURCES}/models/{{model}}"),
        digest=f"{RESOURCES}/models/{{model}}.sha256",
    output:
        final=kept("theta_O", directory(f"{RUN}/original/final")),
        digest=f"{RUN}/original/final.sha256",
        record=f"{RUN}/original/final.provenance.json",
        history=f"{RUN}/original/history.tsv",
    log:
        LOG(f"{RUN}/original/training.log"),
    benchmark:
        BENCHMARK(f"{RUN}/original/training.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=cost_mb("train_original"),
        runtime=cost_minutes("train_original"),
        gpu=1,
    params:
        settings=plain_training_params,
        scratch=f"{RESULTS}/.scratch/{{task}}/{{model}}/seed{{seed}}/original",
        code=CODE("train.py", "training.finetune"),
    script:
        "../workflow/scripts/train.py"


use rule train_original as train_perturbed with:
    """theta_M1, theta_M2 and the epochs to keep: fine-tune on the perturbed labels."""
    output:
        final=kept("theta_M2", directory(f"{RUN}/perturbed/final")),
        digest=f"{RUN}/perturbed/final.sha256",
        record=f"{RUN}/perturbed/final.provenance.json",
        memorised=kept("theta_M1", directory(f"{RUN}/perturbed/memorised")),
        memorised_digest=f"{RUN}/perturbed/memorised.sha256",
        epochs=[
            kept("epoch", directory(f"{RUN}/epoch{epoch}/perturbed/final"))
            for epoch in KEPT_EPOCHS
        ],
        epoch_digests=[
            f"{RUN}/epoch{epoch}/perturbed/final.sha256" for epoch in KEPT_EPOCHS
        ],
        history=f"{RUN}/perturbed/history.tsv",
    log:
        LOG(f"{RUN}/perturbed/training.log"),
    benchmark:
        BENCHMARK(f"{RUN}/perturbed/training.tsv")
    params:
        settings=training_params,
        keep_epochs=KEPT_EPOCHS,
        scratch=f"{RESULTS}/.scratch/{{task}}/{{model}}/seed{{seed}}/perturbed",
        code=CODE("train.py", "training.finetune"),


use rule train_original as train_frozen with:
    """theta_F: train the head alone, on the perturbed labels."""
    output:
        final=kept("theta_F", directory(f"{RESULTS}/{{task}}/{{model}}/frozen/final")),
        digest=f"{RESULTS}/{{task}}/{{model}}/frozen/final.sha256",
        record=f"{RESULTS}/{{task}}/{{model}}/frozen/final.provenance.json",
        history=f"{RESULTS}/{{task}}/{{model}}/frozen/history.tsv",
    log:
        LOG(f"{RESULTS}/{{task}}/{{model}}/frozen/training.log"),
    benchmark:
        BENCHMARK(f"{RESULTS}/{{task}}/{{model}}/frozen/training.tsv")
    params:
        settings=plain_training_params,
        seed=lambda w: min(SEEDS(w.model)),
        scratch=f"{RESULTS}/.scratch/{{task}}/{{model}}/frozen",
        code=CODE("train.py", "training.finetune"),
