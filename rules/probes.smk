"""Probing.

In: theta_M2 of one seed and theta_F of its task and model. Out: probes.tsv, F1 of noise probes and
of probes for both kinds of labels, by layer (0..L of theta_M2, 1 of theta_F) and probe seed.
"""


rule probe:
    """Train all probes of one fine-tuned model together."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        memorised=ancient(checkpoint("theta_M2")),
        memorised_digest=checkpoint("theta_M2", ".sha256"),
        frozen=ancient(checkpoint("theta_F")),
        frozen_digest=checkpoint("theta_F", ".sha256"),
    output:
        f"{SETUP}/probes.tsv",
    log:
        LOG(f"{SETUP}/probe.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/probe.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=cost_mb("probe"),
        runtime=cost_minutes("probe"),
        gpu=1,
    params:
        recipe=probe_recipe(),
        seeds=config["probing"]["seeds"],
        states=config["probing"]["states"],
        reading=reading,
        precision=config["precision"],
        code=CODE("probe.py", "localise.probes.run"),
    script:
        "../workflow/scripts/probe.py"
