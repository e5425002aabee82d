"""Windows of consecutive layers: layer swapping.

In: theta_M2 and theta_O of one seed. Out: one row per window (swap.tsv), and for every noisy
example whether each window kept its label (swap_examples.parquet).
"""


rule swap:
    """Swap every window of theta_M2 for theta_O's layers, in one sweep."""
    input:
        data=RESULTS + "/{task}/perturbed.parquet",
        memorised=ancient(RUN + "/perturbed/final"),
        memorised_digest=RUN + "/perturbed/final.sha256",
        original=ancient(RUN + "/original/final"),
        original_digest=RUN + "/original/final.sha256",
    output:
        table=RUN + "/swap.tsv",
        examples=RUN + "/swap_examples.parquet",
    params:
        clean_examples=config["swapping"]["clean_examples"],
        batch_tokens=config["swapping"]["batch_tokens"],
        reading=reading,
        precision=config["precision"],
        seed=config["data_seed"],
        code=CODE("swapping"),
    threads: config["threads"]
    resources:
        mem_mb=mem(12000),
        runtime=minutes(60),
        gpu=1,
    log:
        "logs/" + RUN + "/swap.log",
    benchmark:
        "benchmarks/" + RUN + "/swap.tsv"
    script:
        "../workflow/scripts/swap.py"
