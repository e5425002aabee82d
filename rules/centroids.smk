"""Centroid analysis: how noisy examples move from their own class to the perturbed one.

In: theta_M2 and theta_O of one seed. Out: centroids.tsv, places on the line between two classes'
centroids by pair of classes and layer, of theta_M2 and of it with half of theta_O's layers;
centroid_events.tsv, the layer at which each pair crosses and comes apart.
"""


rule centroids:
    """Project all training examples between all pairs of classes, layer by layer."""
    input:
        data=f"{RESULTS}/{{task}}/perturbed.parquet",
        memorised=ancient(checkpoint("theta_M2")),
        memorised_digest=checkpoint("theta_M2", ".sha256"),
        original=ancient(checkpoint("theta_O")),
        original_digest=checkpoint("theta_O", ".sha256"),
    output:
        table=f"{SETUP}/centroids.tsv",
        events=f"{SETUP}/centroid_events.tsv",
    log:
        LOG(f"{SETUP}/centroids.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/centroids.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: config["threads"]
    resources:
        mem_mb=cost_mb("centroids"),
        runtime=cost_minutes("centroids"),
        gpu=1,
    params:
        reading=reading,
        precision=config["precision"],
        code=CODE("centroids.py", "explain.run"),
    script:
        "../workflow/scripts/centroids.py"
