"""
Why: events and curves of the centroid analysis and of probes, and their figures.

In: centroids.tsv, centroid_events.tsv and probes.tsv of every run.
Out: results/summary/{events,centroids}.tsv, figures.
"""


rule summarise_events:
    """Layers at which noisy examples turn and classes come apart, over seeds and class pairs."""
    input:
        centroids=(
            run_paths(f"{RUN}/centroid_events.tsv")
            if "centroids" in config["stages"]
            else []
        ),
        probes=(
            run_paths(TECHNIQUE_TABLES["probing"])
            if "probing" in TECHNIQUE_TABLES
            else []
        ),
    output:
        f"{SUMMARY}/events.tsv",
    log:
        LOG(f"{SUMMARY}/events.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/events.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        centroid_runs=run_list() if "centroids" in config["stages"] else [],
        probe_runs=run_list() if "probing" in TECHNIQUE_TABLES else [],
        code=CODE("events.py", "explain.events"),
    script:
        "../workflow/scripts/events.py"


rule summarise_centroids:
    """Where clean and noisy examples lie between two classes' centroids, by layer."""
    input:
        run_paths(f"{RUN}/centroids.tsv"),
    output:
        f"{SUMMARY}/centroids.tsv",
    log:
        LOG(f"{SUMMARY}/centroids.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/centroids.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=run_list(),
        code=CODE("events.py", "explain.events"),
    script:
        "../workflow/scripts/events.py"


use rule figure_matrix as figure_centroids with:
    """Figures 10 and 11: places between centroids by layer, of one task and model."""
    input:
        runs=lambda w: run_paths(
            f"{RUN}/centroids.tsv", models=[w.model], tasks=[w.task]
        ),
        centroids=rules.summarise_centroids.output[0],
        events=rules.summarise_events.output[0],
    output:
        picture(
            "centroids_{task}_{model}",
            "centroids",
            "Centroid analysis",
            task="{task}",
            model="{model}",
        ),
    log:
        LOG(f"{FIGURE}/centroids_{{task}}_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/centroids_{{task}}_{{model}}.tsv")
    params:
        kind="centroids",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.centroids"),


use rule figure_matrix as figure_swapped_halves with:
    """Figure 11: noisy examples of all tasks with half of the layers swapped."""
    input:
        centroids=rules.summarise_centroids.output[0],
    output:
        picture(
            "swapped_halves_{model}",
            "swapped_halves",
            "Half of the layers",
            model="{model}",
        ),
    log:
        LOG(f"{FIGURE}/swapped_halves_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/swapped_halves_{{model}}.tsv")
    params:
        kind="swapped_halves",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.centroids"),


use rule figure_matrix as figure_events with:
    """Figures 12, 15, 17 and 20: events of centroids and of probes."""
    input:
        events=rules.summarise_events.output[0],
        centroids=rules.summarise_centroids.output[0],
    output:
        picture("events", "events", "Events"),
    log:
        LOG(f"{FIGURE}/events.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/events.tsv")
    params:
        kind="events",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.centroids"),
