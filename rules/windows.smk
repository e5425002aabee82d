"""Windows of consecutive layers: layer swapping.

In: theta_M2 and theta_O of one seed. Out: one row per window (swap.tsv), and for every noisy
example whether each window kept its label (swap_examples.parquet).
"""


rule swap:
    """Swap every window of theta_M2 for theta_O's layers, in one sweep."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        memorised=ancient(checkpoint("theta_M2")),
        memorised_digest=checkpoint("theta_M2", ".sha256"),
        original=ancient(checkpoint("theta_O")),
        original_digest=checkpoint("theta_O", ".sha256"),
    output:
        table=f"{SETUP}/swap.tsv",
        examples=f"{SETUP}/swap_examples.parquet",
    log:
        LOG(f"{SETUP}/swap.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/swap.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=cost_mb("swap"),
        runtime=cost_minutes("swap"),
        gpu=1,
    params:
        clean_examples=config["swapping"]["clean_examples"],
        batch_tokens=config["swapping"]["batch_tokens"],
        reading=reading,
        precision=config["precision"],
        seed=config["data_seed"],
        code=CODE("swap.py", "swap_files"),
    script:
        "../workflow/scripts/swap.py"


rule retrain:
    """Reset windows of theta_M2 to theta_P and retrain them on clean examples, side by side."""
    input:
        data=checked_windows,
        memorised=ancient(checkpoint("theta_M2")),
        memorised_digest=checkpoint("theta_M2", ".sha256"),
        pretrained=ancient(f"{RESOURCES}/models/{{model}}"),
        pretrained_digest=f"{RESOURCES}/models/{{model}}.sha256",
    output:
        table=f"{SETUP}/retrain/{{windows}}.tsv",
        examples=f"{SETUP}/retrain/{{windows}}.examples.parquet",
    log:
        LOG(f"{SETUP}/retrain/{{windows}}.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/retrain/{{windows}}.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=cost_mb("retrain"),
        runtime=cost_minutes("retrain"),
        gpu=1,
    params:
        recipe=retraining_recipe,
        reading=reading,
        precision=config["precision"],
        seed=setup_seed,
        heldout_seed=config["data_seed"],
        scratch=f"{RESULTS}/.scratch/{{task}}/{{model}}/{{setup}}/retrain-{{windows}}",
        code=CODE("retrain.py", "retrain_files"),
    script:
        "../workflow/scripts/retrain.py"


rule gather_retrained:
    """All retrained windows in one table, normalised by the window of all layers."""
    input:
        tables=retrained(".tsv"),
        examples=retrained(".examples.parquet"),
    output:
        table=f"{SETUP}/retrain.tsv",
        examples=f"{SETUP}/retrain_examples.parquet",
    log:
        LOG(f"{SETUP}/retrain.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/retrain.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=cost_mb("gather_retrained"),
        runtime=cost_minutes("gather_retrained"),
    params:
        code=CODE("gather_retrain.py", "retrain_files"),
    script:
        "../workflow/scripts/gather_retrain.py"
