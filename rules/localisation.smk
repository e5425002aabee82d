"""Localisation: every technique, swapped blocks and the centroid analysis, in one subject.

In: the checkpoints of a subject (a run, a run at a kept epoch, a control model) and its task's
examples. Out: a table per technique in the subject's folder, with a row per window, layer or probe;
for windows also, for every noisy example, whether each window kept its label.

The rules come from memloc.study.techniques; layer retraining has two of its own below.
"""

for localising in techniques.subject_rules():

    rule:
        name:
            localising.name
        input:
            **checkpoints(localising),
        output:
            **{key: PLACES.subject(name) for key, name in localising.outputs.items()},
        log:
            LOG(PLACES.subject(localising.stem)),
        benchmark:
            BENCHMARK(PLACES.subject(localising.stem))
        conda:
            "../envs/memloc.yaml"
        threads: config["threads"] if localising.gpu else 1
        resources:
            **({"gpu": 1} if localising.gpu else {}),
            mem_mb=COSTS.megabytes(localising.name),
            runtime=COSTS.minutes(localising.name),
        params:
            run=localising.run,
            settings=settings_of(localising),
            batch_tokens=list(localising.batch),
            code=CODE("localise.py", localising.module),
        script:
            "../workflow/scripts/localise.py"

    PART.rule(localising.name).docstring = localising.does


rule retrain:
    """Reset windows of theta_M2 to theta_P and retrain them on clean examples, side by side."""
    input:
        data=checked_windows,
        memorised=ancient(theta("theta_M2")),
        memorised_digest=theta("theta_M2", ".sha256"),
        pretrained=ancient(PLACES.pretrained()),
        pretrained_digest=PLACES.pretrained(".sha256"),
        whole=whole_window,
    output:
        table=PLACES.subject("retrain/{windows}.tsv"),
        examples=PLACES.subject("retrain/{windows}.examples.parquet"),
    log:
        LOG(PLACES.subject("retrain/{windows}")),
    benchmark:
        BENCHMARK(PLACES.subject("retrain/{windows}"))
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=COSTS.megabytes("retrain"),
        runtime=COSTS.minutes("retrain"),
        gpu=1,
    params:
        recipe=PARAMS.retraining_recipe,
        reading=PARAMS.reading,
        precision=config["precision"],
        packed=config["packed"],
        seed=PARAMS.subject_seed,
        heldout_seed=PARAMS.clean_seed,
        scratch=PLACES.scratch("{task}/{model}/{subject}/retrain-{windows}"),
        code=CODE("retrain.py"),
    script:
        "../workflow/scripts/retrain.py"


rule gather_retrained:
    """All retrained windows in one table, normalised by the window of all layers."""
    input:
        tables=retrained(".tsv"),
        examples=retrained(".examples.parquet"),
    output:
        table=PLACES.subject("retrain.tsv"),
        examples=PLACES.subject("retrain_examples.parquet"),
    log:
        LOG(PLACES.subject("retrain")),
    benchmark:
        BENCHMARK(PLACES.subject("retrain"))
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=COSTS.megabytes("gather_retrained"),
        runtime=COSTS.minutes("gather_retrained"),
    params:
        code=CODE("gather_retrain.py"),
    script:
        "../workflow/scripts/gather_retrain.py"


rule swap_no_noise:
    """Swap every window of one seed's theta_O for the next seed's: errors without any noise."""
    input:
        data=PLACES.data,
        theta_O=ancient(PLACES.run("original/final")),
        theta_O_digest=PLACES.run("original/final.sha256"),
        other=ancient(other_seed("original/final")),
        other_digest=other_seed("original/final.sha256"),
        base=ancient(base_of_adapters),
    output:
        table=PLACES.run("no_noise.tsv"),
    log:
        LOG(PLACES.run("no_noise")),
    benchmark:
        BENCHMARK(PLACES.run("no_noise"))
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        gpu=1,
        mem_mb=COSTS.megabytes("swap_no_noise"),
        runtime=COSTS.minutes("swap_no_noise"),
    params:
        run="localise.no_noise:run",
        settings=PARAMS.measuring,
        batch_tokens=["swapping", "batch_tokens"],
        code=CODE("localise.py", "localise.no_noise"),
    script:
        "../workflow/scripts/localise.py"


rule locate_examples:
    """The smallest window whose swap reverts each noisy example."""
    input:
        examples=PLACES.subject("swap_examples.parquet"),
        memorised=PLACES.subject("swap_memorised.parquet"),
    output:
        PLACES.subject("examples.tsv"),
    log:
        LOG(PLACES.subject("examples")),
    benchmark:
        BENCHMARK(PLACES.subject("examples"))
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        code=CODE("locate_examples.py"),
    script:
        "../workflow/scripts/locate_examples.py"
