"""
The control setup: memorisation forced into known layers, and how well each technique finds them.

In: perturbed.parquet of the task under test and of the auxiliary task, a pre-trained model. Out:
results/{task}/{model}/control/layers{a}-{b}/{original,perturbed}/ and control/frozen/ with the same
files as the runs of the main study, so that every technique's rule localises in them too;
results/summary/{control_accuracy,control_techniques,control_weights,control_training,
gradient_variants}.tsv; figures.
"""


rule control_original:
    """theta_O of a pair of layers: original labels change the pair, the auxiliary task all layers."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        auxiliary=auxiliary_data,
        pretrained=ancient(f"{RESOURCES}/models/{{model}}"),
        pretrained_digest=f"{RESOURCES}/models/{{model}}.sha256",
    output:
        final=kept("theta_O", directory(f"{CONTROL}/{{pair}}/original/final")),
        digest=f"{CONTROL}/{{pair}}/original/final.sha256",
        record=f"{CONTROL}/{{pair}}/original/final.provenance.json",
        history=f"{CONTROL}/{{pair}}/original/history.tsv",
    log:
        LOG(f"{CONTROL}/{{pair}}/original/training.log"),
    benchmark:
        BENCHMARK(f"{CONTROL}/{{pair}}/original/training.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=cost_mb("control_original"),
        runtime=cost_minutes("control_original"),
        gpu=1,
    params:
        settings=plain_control_params,
        scratch=f"{RESULTS}/.scratch/{{task}}/{{model}}/control/{{pair}}/original",
        code=CODE("train_control.py", "control.train"),
    script:
        "../workflow/scripts/train_control.py"


use rule control_original as control_perturbed with:
    """theta_M1 and theta_M2 of a pair of layers: perturbed labels change the pair."""
    output:
        final=kept("theta_M2", directory(f"{CONTROL}/{{pair}}/perturbed/final")),
        digest=f"{CONTROL}/{{pair}}/perturbed/final.sha256",
        record=f"{CONTROL}/{{pair}}/perturbed/final.provenance.json",
        memorised=kept("theta_M1", directory(f"{CONTROL}/{{pair}}/perturbed/memorised")),
        memorised_digest=f"{CONTROL}/{{pair}}/perturbed/memorised.sha256",
        history=f"{CONTROL}/{{pair}}/perturbed/history.tsv",
    log:
        LOG(f"{CONTROL}/{{pair}}/perturbed/training.log"),
    benchmark:
        BENCHMARK(f"{CONTROL}/{{pair}}/perturbed/training.tsv")
    params:
        settings=control_params,
        scratch=f"{RESULTS}/.scratch/{{task}}/{{model}}/control/{{pair}}/perturbed",
        code=CODE("train_control.py", "control.train"),


use rule control_original as control_frozen with:
    """theta_F of the control setup: perturbed labels change the task's head alone."""
    output:
        final=kept("theta_F", directory(f"{CONTROL}/frozen/final")),
        digest=f"{CONTROL}/frozen/final.sha256",
        record=f"{CONTROL}/frozen/final.provenance.json",
        history=f"{CONTROL}/frozen/history.tsv",
    log:
        LOG(f"{CONTROL}/frozen/training.log"),
    benchmark:
        BENCHMARK(f"{CONTROL}/frozen/training.tsv")
    params:
        settings=plain_control_params,
        scratch=f"{RESULTS}/.scratch/{{task}}/{{model}}/control/frozen",
        code=CODE("train_control.py", "control.train"),


rule summarise_control:
    """How often each technique points at the layers that memorised: accuracy@1 and @2."""
    input:
        lambda w: control_technique_paths(),
    output:
        control_accuracy=f"{SUMMARY}/control_accuracy.tsv",
        control_techniques=f"{SUMMARY}/control_techniques.tsv",
        control_weights=f"{SUMMARY}/control_weights.tsv",
    log:
        LOG(f"{SUMMARY}/control_accuracy.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/control_accuracy.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=lambda w: control_technique_runs(),
        options=weight_options(),
        code=CODE("summarise_control.py", "control.tables", *techniques.modules()),
    script:
        "../workflow/scripts/summarise_control.py"


rule summarise_control_training:
    """Outcome of every training run of the control setup, and the learning rate it took."""
    input:
        histories=lambda w: control_training_paths("history.tsv"),
        records=lambda w: control_training_paths("final.provenance.json"),
    output:
        control_training=f"{SUMMARY}/control_training.tsv",
    log:
        LOG(f"{SUMMARY}/control_training.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/control_training.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=lambda w: control_trainings(),
        code=CODE("summarise_control.py", "control.tables"),
    script:
        "../workflow/scripts/summarise_control.py"


rule summarise_variants:
    """Table 4: the gradients' post-processing, scored on the validation tasks."""
    input:
        lambda w: variant_paths(),
    output:
        gradient_variants=f"{SUMMARY}/gradient_variants.tsv",
    log:
        LOG(f"{SUMMARY}/gradient_variants.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/gradient_variants.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=lambda w: variant_runs(),
        weights=paper_models(),
        code=CODE(
            "summarise_control.py", "control.tables", "localise.gradients.variants"
        ),
    script:
        "../workflow/scripts/summarise_control.py"


use rule figure_matrix as figure_control_accuracy with:
    """Figure 2: accuracy of the techniques where the right layers are known."""
    input:
        control_accuracy=rules.summarise_control.output.control_accuracy,
    output:
        picture("control_accuracy", "control_accuracy", "Accuracy"),
    log:
        LOG(f"{FIGURE}/control_accuracy.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/control_accuracy.tsv")
    params:
        kind="control_accuracy",
        names=lambda w: control_names(),
        code=CODE("figures.py", "figures.draw", "figures.control"),


use rule figure_matrix as figure_control_weights with:
    """Layer weights of one model where the right layers are known."""
    input:
        control_weights=rules.summarise_control.output.control_weights,
    output:
        picture(
            "control_weights_{model}",
            "control_weights",
            "Layer weights",
            model="{model}",
        ),
    log:
        LOG(f"{FIGURE}/control_weights_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/control_weights_{{model}}.tsv")
    params:
        kind="control_weights",
        names=lambda w: control_names(),
        code=CODE("figures.py", "figures.draw", "figures.control"),


use rule figure_matrix as figure_gradient_variants with:
    """Figure 21: what each step of post-processing does to the gradients' norms."""
    input:
        runs=lambda w: variant_paths(),
        norms=lambda w: variant_paths("gradient_norms.tsv"),
    output:
        picture(
            "gradient_variants_{model}",
            "gradient_variants",
            "Gradient post-processing",
            model="{model}",
        ),
    log:
        LOG(f"{FIGURE}/gradient_variants_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/gradient_variants_{{model}}.tsv")
    params:
        kind="gradient_variants",
        names=lambda w: control_names(),
        runs=lambda w: variant_runs(),
        code=CODE("figures.py", "figures.draw", "figures.control"),
