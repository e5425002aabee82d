"""
The compute budget of the whole study, whatever is finished and whatever was asked for.

In: the configuration and the plan. Out: results/budget.tsv.
"""


rule budget:
    """What the whole study will cost, by stage and model, and how long it takes on N GPUs."""
    output:
        f"{RESULTS}/budget.tsv",
    log:
        LOG(f"{RESULTS}/budget.log"),
    benchmark:
        BENCHMARK(f"{RESULTS}/budget.tsv")
    localrule: True
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        settings=lambda wildcards: whole_study(),
        code=CODE("budget.py", "budget.files"),
    script:
        "../workflow/scripts/budget.py"
