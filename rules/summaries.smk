"""
Tables over tasks, models and seeds, in the folder summary.

In: the tables of every run, of every task and model, and of the control models.
Out: results/summary/*.tsv.
"""


rule summarise:
    """Layer weights and M-CoG of every task, model and technique, over seeds."""
    input:
        tables=[path for name in STUDY.techniques for path in STUDY.table_paths(name)],
        examples=STUDY.example_paths(),
        training=PLACES.summary("training"),
    output:
        layer_weights=PLACES.summary("layer_weights"),
        mcog=PLACES.summary("mcog"),
        one_layer=PLACES.summary("one_layer"),
        probe_f1=PLACES.summary("probe_f1"),
        label_f1=PLACES.summary("label_f1"),
    log:
        LOG(f"{PLACES.results}/summary/weights"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/weights")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=PARAMS.technique_runs(),
        options=PARAMS.weight_options(),
        code=CODE("summarise_weights.py", *techniques.modules()),
    script:
        "../workflow/scripts/summarise_weights.py"


rule summarise_training:
    """Outcome of every training run."""
    input:
        histories=[
            PLACES.run(STUDY.history(run["labels"])).format(**run)
            for run in STUDY.trainings()
        ],
        records=[
            PLACES.run("{labels}/final.provenance.json").format(**run)
            for run in STUDY.trainings()
        ],
    output:
        training=PLACES.summary("training"),
    log:
        LOG(f"{PLACES.results}/summary/training"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/training")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=STUDY.trainings(),
        code=CODE("summarise_training.py"),
    script:
        "../workflow/scripts/summarise_training.py"


EVERY_DRAW = [*STUDY.task_names, *STUDY.anew]  # the tasks, and the tasks perturbed anew
WITH_CENTROIDS = STUDY.run_list() if "centroids" in STUDY.stages else []
WITH_PROBES = STUDY.run_list() if "probing" in STUDY.techniques else []


rule summarise_events:
    """Layers at which noisy examples turn and classes come apart, over seeds and class pairs."""
    input:
        centroids=[
            PLACES.run("centroid_events.tsv").format(**run) for run in WITH_CENTROIDS
        ],
        probes=[PLACES.run("probes.tsv").format(**run) for run in WITH_PROBES],
    output:
        PLACES.summary("events"),
    log:
        LOG(f"{PLACES.results}/summary/events"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/events")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        centroid_runs=WITH_CENTROIDS,
        probe_runs=WITH_PROBES,
        code=CODE("summarise_events.py"),
    script:
        "../workflow/scripts/summarise_events.py"


rule summarise_centroids:
    """Where clean and noisy examples lie between two classes' centroids, by layer."""
    input:
        STUDY.run_paths(PLACES.run("centroids.tsv")),
    output:
        PLACES.summary("centroids"),
    log:
        LOG(f"{PLACES.results}/summary/centroids"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/centroids")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=STUDY.run_list(),
        code=CODE("summarise_centroids.py"),
    script:
        "../workflow/scripts/summarise_centroids.py"


rule summarise_sensitivity:
    """How the order of tasks by depth moves with choices of the analysis."""
    input:
        tables=[path for name in STUDY.techniques for path in STUDY.table_paths(name)],
        examples=STUDY.example_paths(),
        training=[PLACES.summary("training")],
        centroids=[PLACES.run("centroids.tsv").format(**run) for run in WITH_CENTROIDS],
    output:
        PLACES.summary("sensitivity"),
    log:
        LOG(f"{PLACES.results}/summary/sensitivity"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/sensitivity")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=PARAMS.technique_runs(),
        centroid_runs=WITH_CENTROIDS,
        options=PARAMS.weight_options(),
        code=CODE("summarise_sensitivity.py", *techniques.modules()),
    script:
        "../workflow/scripts/summarise_sensitivity.py"


rule summarise_generalisation:
    """Generalisation score and validation accuracy of every task and model."""
    input:
        tables=STUDY.pair_paths("generalisation.tsv"),
        halves=STUDY.pair_paths("generalisation_halves.tsv"),
        histories=STUDY.run_paths(
            PLACES.run(f"{config['generalisation']['labels']}/history.tsv")
        ),
        data=[PLACES.data.format(task=task) for task in STUDY.task_names],
    output:
        PLACES.summary("generalisation"),
    log:
        LOG(f"{PLACES.results}/summary/generalisation"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/generalisation")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        pairs=STUDY.pair_list(),
        runs=STUDY.run_list(),
        tasks=STUDY.task_names,
        labels=config["generalisation"]["labels"],
        code=CODE("summarise_generalisation.py"),
    script:
        "../workflow/scripts/summarise_generalisation.py"


rule summarise_detection:
    """How well noisy rows of every task and model are told from clean ones."""
    input:
        STUDY.pair_paths("detection.tsv"),
    output:
        PLACES.summary("detection"),
    log:
        LOG(f"{PLACES.results}/summary/detection"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/detection")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        pairs=STUDY.pair_list(),
        code=CODE("summarise_detection.py"),
    script:
        "../workflow/scripts/summarise_detection.py"


rule summarise_progression:
    """M-CoG, centroid events and accuracies of every task and model by epoch."""
    input:
        tables=[
            STUDY.progression.path(run) for run in STUDY.progression.technique_runs()
        ],
        events=[STUDY.progression.path(run) for run in STUDY.progression.event_runs()],
        histories=STUDY.run_paths(PLACES.run("perturbed/history.tsv")),
        training=PLACES.summary("training"),
    output:
        PLACES.summary("progression"),
    log:
        LOG(f"{PLACES.results}/summary/progression"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/progression")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        tables=STUDY.progression.technique_runs(),
        events=STUDY.progression.event_runs(),
        histories=STUDY.run_list(),
        code=CODE("summarise_progression.py"),
    script:
        "../workflow/scripts/summarise_progression.py"


rule summarise_examples:
    """Examples of all runs, how many need how much of a model, and which are hardest to revert."""
    input:
        STUDY.run_paths(PLACES.run("examples.tsv")),
    output:
        examples=PLACES.summary("examples"),
        example_shares=PLACES.summary("example_shares"),
        example_ranks=PLACES.summary("example_ranks"),
    log:
        LOG(f"{PLACES.results}/summary/examples"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/examples")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(2000),
        runtime=minutes(10),
    params:
        runs=STUDY.run_list(),
        code=CODE("summarise_examples.py"),
    script:
        "../workflow/scripts/summarise_examples.py"


rule summarise_components:
    """Layer weights when attention or feed-forward blocks are swapped apart."""
    input:
        [
            path
            for name in STUDY.components
            for path in STUDY.run_paths(STUDY.component_table(name))
        ],
    output:
        components=PLACES.summary("components"),
        component_mcog=PLACES.summary("component_mcog"),
    log:
        LOG(f"{PLACES.results}/summary/components"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/components")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=[
            run for name in STUDY.components for run in STUDY.run_list(component=name)
        ],
        code=CODE("summarise_components.py"),
    script:
        "../workflow/scripts/summarise_components.py"


rule summarise_no_noise:
    """Errors of swapping beside those of swapping between two models that saw no noise."""
    input:
        swapped=STUDY.run_paths(PLACES.run("swap.tsv")),
        mixed=STUDY.run_paths(PLACES.run("no_noise.tsv")),
    output:
        PLACES.summary("no_noise"),
    log:
        LOG(f"{PLACES.results}/summary/no_noise"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/no_noise")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=STUDY.run_list(),
        code=CODE("summarise_no_noise.py"),
    script:
        "../workflow/scripts/summarise_no_noise.py"


rule summarise_variance:
    """How much of the variance of M-CoG is due to the task, its noise and the model seed."""
    input:
        tables=[
            path
            for name in STUDY.techniques
            for path in STUDY.table_paths(name, tasks=EVERY_DRAW)
        ],
        histories=STUDY.run_paths(PLACES.run("perturbed/history.tsv"), tasks=EVERY_DRAW),
        records=STUDY.run_paths(
            PLACES.run("perturbed/final.provenance.json"), tasks=EVERY_DRAW
        ),
    output:
        PLACES.summary("variance"),
    log:
        LOG(f"{PLACES.results}/summary/variance"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/variance")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(20),
    params:
        runs=PARAMS.technique_runs(EVERY_DRAW),
        trainings=STUDY.run_list(tasks=EVERY_DRAW, labels="perturbed"),
        options=PARAMS.weight_options(),
        code=CODE("summarise_variance.py", *techniques.modules()),
    script:
        "../workflow/scripts/summarise_variance.py"


rule summarise_heads:
    """Errors when single attention heads are swapped, over seeds."""
    input:
        STUDY.run_paths(PLACES.run("swap-heads.tsv")),
    output:
        PLACES.summary("heads"),
    log:
        LOG(f"{PLACES.results}/summary/heads"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/heads")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=STUDY.run_list(),
        code=CODE("summarise_heads.py"),
    script:
        "../workflow/scripts/summarise_heads.py"


rule summarise_edits:
    """Windows over seeds, and as edits: what noise each undoes, and what accuracy it costs."""
    input:
        tables=[
            path
            for name in STUDY.window_techniques
            for path in STUDY.table_paths(name)
        ],
        histories=STUDY.run_paths(PLACES.run(STUDY.history("perturbed"))),
    output:
        edits=PLACES.summary("edits"),
        windows=PLACES.summary("windows"),
    log:
        LOG(f"{PLACES.results}/summary/edits"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/edits")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=[
            run
            for name in STUDY.window_techniques
            for run in STUDY.run_list(technique=name)
        ],
        trainings=STUDY.run_list(),
        code=CODE("summarise_edits.py"),
    script:
        "../workflow/scripts/summarise_edits.py"


rule summarise_control:
    """How often each technique points at the layers that memorised, over tasks: accuracy@1 and @2."""
    input:
        lambda w: CONTROL.technique_paths(),
    output:
        control_accuracy=PLACES.summary("control_accuracy"),
        control_techniques=PLACES.summary("control_techniques"),
        control_weights=PLACES.summary("control_weights"),
    log:
        LOG(f"{PLACES.results}/summary/control_accuracy"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/control_accuracy")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=lambda w: CONTROL.technique_runs(),
        options=PARAMS.weight_options(),
        seed=STUDY.data_seed,
        code=CODE("summarise_control.py", *techniques.modules()),
    script:
        "../workflow/scripts/summarise_control.py"


rule summarise_control_training:
    """Outcome of every training run of the control setup, and the learning rate it took."""
    input:
        histories=lambda w: CONTROL.training_paths("history.tsv"),
        records=lambda w: CONTROL.training_paths("final.provenance.json"),
    output:
        control_training=PLACES.summary("control_training"),
    log:
        LOG(f"{PLACES.results}/summary/control_training"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/control_training")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=lambda w: CONTROL.trainings(),
        code=CODE("summarise_control_training.py"),
    script:
        "../workflow/scripts/summarise_control_training.py"


rule summarise_variants:
    """Table 4: the gradients' post-processing, scored on the validation tasks."""
    input:
        lambda w: CONTROL.variant_paths("gradients.tsv"),
    output:
        gradient_variants=PLACES.summary("gradient_variants"),
    log:
        LOG(f"{PLACES.results}/summary/gradient_variants"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/gradient_variants")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=lambda w: CONTROL.variant_runs(),
        weights=CONTROL.paper_models(),
        code=CODE("summarise_variants.py"),
    script:
        "../workflow/scripts/summarise_variants.py"


rule correlate:
    """Rank correlations: techniques, models, depth with generalisation, events, Appendices B and C."""
    input:
        unpack(lambda w: STUDY.correlated_tables()),
        layer_weights=rules.summarise.output.layer_weights,
        mcog=rules.summarise.output.mcog,
    output:
        PLACES.summary("correlations"),
    log:
        LOG(f"{PLACES.results}/summary/correlations"),
    benchmark:
        BENCHMARK(f"{PLACES.results}/summary/correlations")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(20),
    params:
        seed=STUDY.data_seed,
        code=CODE("correlate.py"),
    script:
        "../workflow/scripts/correlate.py"
