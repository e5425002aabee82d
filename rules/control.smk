"""
The control setup: models that memorise in known layers, for scoring the techniques (section 3.2).

In: perturbed.parquet of the task under test and of the auxiliary task, a pre-trained model. Out:
results/{task}/{model}/control/layers{a}-{b}/{original,perturbed}/ and control/frozen/ with the same
files as the runs of the main study, so that every technique's rule localises in them too.
"""


rule control_original:
    """theta_O of a pair of layers: original labels change the pair, the auxiliary task all layers."""
    input:
        data=PLACES.data,
        auxiliary=CONTROL.auxiliary_data,
        pretrained=ancient(PLACES.pretrained()),
        pretrained_digest=PLACES.pretrained(".sha256"),
    output:
        final=kept("theta_O", directory(PLACES.control("{pair}/original/final"))),
        digest=PLACES.control("{pair}/original/final.sha256"),
        record=PLACES.control("{pair}/original/final.provenance.json"),
        history=PLACES.control("{pair}/original/history.tsv"),
    log:
        LOG(PLACES.control("{pair}/original/training")),
    benchmark:
        BENCHMARK(PLACES.control("{pair}/original/training"))
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=COSTS.megabytes("control_original"),
        runtime=COSTS.minutes("control_original"),
        gpu=1,
    params:
        labels="original",
        settings=PARAMS.control_training_to_the_end,
        scratch=PLACES.scratch("{task}/{model}/control/{pair}/original"),
        code=CODE("train_control.py"),
    script:
        "../workflow/scripts/train_control.py"


use rule control_original as control_perturbed with:
    """theta_M1 and theta_M2 of a pair of layers: perturbed labels change the pair."""
    output:
        final=kept("theta_M2", directory(PLACES.control("{pair}/perturbed/final"))),
        digest=PLACES.control("{pair}/perturbed/final.sha256"),
        record=PLACES.control("{pair}/perturbed/final.provenance.json"),
        memorised=kept(
            "theta_M1", directory(PLACES.control("{pair}/perturbed/memorised"))
        ),
        memorised_digest=PLACES.control("{pair}/perturbed/memorised.sha256"),
        history=PLACES.control("{pair}/perturbed/history.tsv"),
    log:
        LOG(PLACES.control("{pair}/perturbed/training")),
    benchmark:
        BENCHMARK(PLACES.control("{pair}/perturbed/training"))
    params:
        labels="perturbed",
        settings=PARAMS.control_training,
        scratch=PLACES.scratch("{task}/{model}/control/{pair}/perturbed"),
        code=CODE("train_control.py"),


use rule control_original as control_frozen with:
    """theta_F of the control setup: perturbed labels change the task's head alone."""
    output:
        final=kept("theta_F", directory(PLACES.control("frozen/final"))),
        digest=PLACES.control("frozen/final.sha256"),
        record=PLACES.control("frozen/final.provenance.json"),
        history=PLACES.control("frozen/history.tsv"),
    log:
        LOG(PLACES.control("frozen/training")),
    benchmark:
        BENCHMARK(PLACES.control("frozen/training"))
    params:
        labels="perturbed",
        settings=PARAMS.control_training_to_the_end,
        scratch=PLACES.scratch("{task}/{model}/control/frozen"),
        code=CODE("train_control.py"),
