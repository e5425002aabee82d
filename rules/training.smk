"""Pre-trained models and fine-tuning.

In: resources/models (retrieved here) and results/{task}/perturbed.parquet.
Out: checkpoints theta_O, theta_M1, theta_M2, theta_F with a history per run. Each checkpoint
folder has a small .sha256 beside it: later rules depend on that file, so that touching files
re-runs nothing while changed weights re-run what hangs on them.
"""


rule retrieve_model:
    """Fetch a pre-trained model once; check that it is whole and its layers can be found."""
    output:
        folder=directory(RESOURCES + "/models/{model}"),
        digest=RESOURCES + "/models/{model}.sha256",
    params:
        source=lambda w: settings.model_source(config, w.model),
        code=CODE("pretrained"),
    threads: 1
    resources:
        mem_mb=mem(8000),
        runtime=minutes(60),
    log:
        "logs/" + RESOURCES + "/models/{model}.log",
    benchmark:
        "benchmarks/" + RESOURCES + "/models/{model}.tsv"
    script:
        "../workflow/scripts/retrieve_model.py"


def training_params(wildcards):
    return {
        "recipe": model_settings(wildcards.model)["training"],
        "reading": reading(wildcards),
        "computing": computing(wildcards),
    }


rule train_original:
    """theta_O: fine-tune on the original labels."""
    input:
        data=RESULTS + "/{task}/perturbed.parquet",
        pretrained=ancient(RESOURCES + "/models/{model}"),
        digest=RESOURCES + "/models/{model}.sha256",
    output:
        final=directory(RUN + "/original/final"),
        digest=RUN + "/original/final.sha256",
        history=RUN + "/original/history.tsv",
    params:
        settings=training_params,
        scratch=RESULTS + "/.scratch/{task}/{model}/seed{seed}/original",
        code=CODE("finetuning"),
    threads: config["threads"]
    resources:
        mem_mb=mem(12000),
        runtime=minutes(480),
        gpu=1,
    log:
        "logs/" + RUN + "/original/training.log",
    benchmark:
        "benchmarks/" + RUN + "/original/training.tsv"
    script:
        "../workflow/scripts/train.py"


use rule train_original as train_perturbed with:
    output:
        final=directory(RUN + "/perturbed/final"),
        digest=RUN + "/perturbed/final.sha256",
        memorised=directory(RUN + "/perturbed/memorised"),
        memorised_digest=RUN + "/perturbed/memorised.sha256",
        history=RUN + "/perturbed/history.tsv",
    params:
        settings=training_params,
        scratch=RESULTS + "/.scratch/{task}/{model}/seed{seed}/perturbed",
        code=CODE("finetuning"),
    log:
        "logs/" + RUN + "/perturbed/training.log",
    benchmark:
        "benchmarks/" + RUN + "/perturbed/training.tsv"


use rule train_original as train_frozen with:
    output:
        final=directory(RESULTS + "/{task}/{model}/frozen/final"),
        digest=RESULTS + "/{task}/{model}/frozen/final.sha256",
        history=RESULTS + "/{task}/{model}/frozen/history.tsv",
    params:
        settings=training_params,
        seed=lambda w: SEEDS(w.model)[0],
        scratch=RESULTS + "/.scratch/{task}/{model}/frozen",
        code=CODE("finetuning"),
    log:
        "logs/" + RESULTS + "/{task}/{model}/frozen/training.log",
    benchmark:
        "benchmarks/" + RESULTS + "/{task}/{model}/frozen/training.tsv"
