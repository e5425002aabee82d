"""Windows of consecutive layers: layer swapping.

In: theta_M2 and theta_O of one seed. Out: one row per window (swap.tsv), and for every noisy
example whether each window kept its label (swap_examples.parquet).
"""


rule swap:
    """Swap every window of theta_M2 for theta_O's layers, in one sweep."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        memorised=ancient(f"{RUN}/perturbed/final"),
        memorised_digest=f"{RUN}/perturbed/final.sha256",
        original=ancient(f"{RUN}/original/final"),
        original_digest=f"{RUN}/original/final.sha256",
    output:
        table=f"{RUN}/swap.tsv",
        examples=f"{RUN}/swap_examples.parquet",
    log:
        f"logs/{RUN}/swap.log",
    benchmark:
        f"benchmarks/{RUN}/swap.tsv"
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
        memorised=ancient(f"{RUN}/perturbed/final"),
        memorised_digest=f"{RUN}/perturbed/final.sha256",
        pretrained=ancient(f"{RESOURCES}/models/{{model}}"),
        pretrained_digest=f"{RESOURCES}/models/{{model}}.sha256",
    output:
        table=f"{RUN}/retrain/{{windows}}.tsv",
        examples=f"{RUN}/retrain/{{windows}}.examples.parquet",
    log:
        f"logs/{RUN}/retrain/{{windows}}.log",
    benchmark:
        f"benchmarks/{RUN}/retrain/{{windows}}.tsv"
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
        heldout_seed=config["data_seed"],
        scratch=f"{RESULTS}/.scratch/{{task}}/{{model}}/seed{{seed}}/retrain-{{windows}}",
        code=CODE("retrain.py", "retrain_files"),
    script:
        "../workflow/scripts/retrain.py"


rule gather_retrained:
    """All retrained windows in one table, normalised by the window of all layers."""
    input:
        tables=retrained(".tsv"),
        examples=retrained(".examples.parquet"),
    output:
        table=f"{RUN}/retrain.tsv",
        examples=f"{RUN}/retrain_examples.parquet",
    log:
        f"logs/{RUN}/retrain.log",
    benchmark:
        f"benchmarks/{RUN}/retrain.tsv"
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
