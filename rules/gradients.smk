"""Forgetting gradients.

In: theta_M1 of one seed and theta_F of its task and model. Out: gradients.tsv, the weight of every
layer under all eight variants of post-processing (norm x less clean x over frozen), and
gradient_norms.tsv, the norms of noisy and clean examples that they are made from.
"""


rule gradients:
    """Norms per layer of the gradient that would forget the noisy labels."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        memorised=ancient(checkpoint("theta_M1")),
        memorised_digest=checkpoint("theta_M1", ".sha256"),
        frozen=ancient(checkpoint("theta_F")),
        frozen_digest=checkpoint("theta_F", ".sha256"),
    output:
        table=f"{SETUP}/gradients.tsv",
        norms=f"{SETUP}/gradient_norms.tsv",
    log:
        LOG(f"{SETUP}/gradients.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/gradients.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=cost_mb("gradients"),
        runtime=cost_minutes("gradients"),
        gpu=1,
    params:
        objective=config["gradients"]["objective"],
        reading=reading,
        precision=config["precision"],
        seed=config["data_seed"],
        code=CODE("gradients.py", "localise.gradients.run"),
    script:
        "../workflow/scripts/gradients.py"
