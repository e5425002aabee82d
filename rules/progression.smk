"""
Progression: how memorisation moves while models memorise (training.keep_epochs; beyond the paper).

In: tables of swapping, gradients and centroid analysis at the epochs kept and at the end of
training. Out: results/summary/progression.tsv and a figure per model.
"""


rule summarise_progression:
    """M-CoG, centroid events and accuracies of every task and model by epoch."""
    input:
        tables=[progressing_path(run) for run in progressing_runs()],
        events=[progressing_path(run) for run in progressing_events()],
        histories=run_paths(f"{RUN}/perturbed/history.tsv"),
    output:
        f"{SUMMARY}/progression.tsv",
    log:
        LOG(f"{SUMMARY}/progression.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/progression.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        tables=progressing_runs(),
        events=progressing_events(),
        histories=run_list(),
        code=CODE("progression.py", "summary.progression"),
    script:
        "../workflow/scripts/progression.py"


use rule figure_matrix as figure_progression with:
    """Depth of memorisation by epoch."""
    input:
        progression=rules.summarise_progression.output[0],
        layer_weights=rules.summarise.output.layer_weights,
    output:
        picture("progression_{model}", "progression", "Progression", model="{model}"),
    log:
        LOG(f"{FIGURE}/progression_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/progression_{{model}}.tsv")
    params:
        kind="progression",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.progression"),
