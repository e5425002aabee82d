"""Windows of consecutive layers: swapping, rewinding, patching, retraining; and weight changes.

In: theta_M2 of a setup and what its windows are replaced by. Out: one row per window (swap.tsv),
and for every noisy example whether each window kept its label (swap_examples.parquet).
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
        memorised=f"{SETUP}/swap_memorised.parquet",
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
        measuring=measuring,
        component="layer",
        code=CODE("swap.py", "localise.sweep"),
    script:
        "../workflow/scripts/swap.py"


use rule swap as swap_component with:
    """Swap the attention or the feed-forward blocks of every window, and leave the rest."""
    output:
        table=f"{SETUP}/swap-{{component}}.tsv",
        examples=f"{SETUP}/swap-{{component}}_examples.parquet",
    log:
        LOG(f"{SETUP}/swap-{{component}}.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/swap-{{component}}.tsv")
    resources:
        mem_mb=cost_mb("swap_component"),
        runtime=cost_minutes("swap_component"),
        gpu=1,
    params:
        measuring=measuring,
        component=lambda w: w.component,
        code=CODE("swap.py", "localise.sweep"),


rule rewind_memorised:
    """Set every window of theta_M2 back to theta_M1."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        memorised=ancient(checkpoint("theta_M2")),
        memorised_digest=checkpoint("theta_M2", ".sha256"),
        earlier=ancient(checkpoint("theta_M1")),
        earlier_digest=checkpoint("theta_M1", ".sha256"),
    output:
        table=f"{SETUP}/rewind-memorised.tsv",
        examples=f"{SETUP}/rewind-memorised_examples.parquet",
    log:
        LOG(f"{SETUP}/rewind-memorised.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/rewind-memorised.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=cost_mb("rewind_memorised"),
        runtime=cost_minutes("rewind_memorised"),
        gpu=1,
    params:
        measuring=measuring,
        point="memorised",
        code=CODE("rewind.py", "localise.rewind"),
    script:
        "../workflow/scripts/rewind.py"


use rule rewind_memorised as rewind_pretrained with:
    """Set every window of theta_M2 back to theta_P."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        memorised=ancient(checkpoint("theta_M2")),
        memorised_digest=checkpoint("theta_M2", ".sha256"),
        earlier=ancient(f"{RESOURCES}/models/{{model}}"),
        earlier_digest=f"{RESOURCES}/models/{{model}}.sha256",
    output:
        table=f"{SETUP}/rewind-pretrained.tsv",
        examples=f"{SETUP}/rewind-pretrained_examples.parquet",
    log:
        LOG(f"{SETUP}/rewind-pretrained.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/rewind-pretrained.tsv")
    resources:
        mem_mb=cost_mb("rewind_pretrained"),
        runtime=cost_minutes("rewind_pretrained"),
        gpu=1,
    params:
        measuring=measuring,
        point="pretrained",
        code=CODE("rewind.py", "localise.rewind"),


rule patch:
    """Put what theta_O's layers add to the state in the place of theta_M2's, by windows."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        memorised=ancient(checkpoint("theta_M2")),
        memorised_digest=checkpoint("theta_M2", ".sha256"),
        original=ancient(checkpoint("theta_O")),
        original_digest=checkpoint("theta_O", ".sha256"),
    output:
        table=f"{SETUP}/patch.tsv",
        examples=f"{SETUP}/patch_examples.parquet",
    log:
        LOG(f"{SETUP}/patch.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/patch.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=cost_mb("patch"),
        runtime=cost_minutes("patch"),
        gpu=1,
    params:
        measuring=measuring,
        code=CODE("patch.py", "localise.patch"),
    script:
        "../workflow/scripts/patch.py"


rule weight_change:
    """Relative L2 distance of every layer of theta_M2 from theta_O and from theta_P."""
    input:
        memorised=ancient(checkpoint("theta_M2")),
        memorised_digest=checkpoint("theta_M2", ".sha256"),
        original=ancient(checkpoint("theta_O")),
        original_digest=checkpoint("theta_O", ".sha256"),
        pretrained=ancient(f"{RESOURCES}/models/{{model}}"),
        pretrained_digest=f"{RESOURCES}/models/{{model}}.sha256",
    output:
        f"{SETUP}/weight_change.tsv",
    log:
        LOG(f"{SETUP}/weight_change.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/weight_change.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=cost_mb("weight_change"),
        runtime=cost_minutes("weight_change"),
    params:
        reading=reading,
        code=CODE("weight_change.py", "localise.weight_change.run"),
    script:
        "../workflow/scripts/weight_change.py"


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
        code=CODE("retrain.py", "localise.retrain.run"),
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
        code=CODE("gather_retrain.py", "localise.retrain.gather"),
    script:
        "../workflow/scripts/gather_retrain.py"
