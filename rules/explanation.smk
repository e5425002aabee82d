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
        code=CODE("events.py", "events"),
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
        code=CODE("events.py", "events"),
    script:
        "../workflow/scripts/events.py"
