"""
Where single noisy examples sit, and which part of a layer holds them.

In: tables of swapped windows, by layer and by component, and by example. Out: examples.tsv of every
setup, results/summary/{examples,example_shares,example_ranks,components,component_mcog}.tsv.
"""


rule locate_examples:
    """The smallest window whose swap reverts each noisy example."""
    input:
        examples=f"{SETUP}/swap_examples.parquet",
        memorised=f"{SETUP}/swap_memorised.parquet",
    output:
        f"{SETUP}/examples.tsv",
    log:
        LOG(f"{SETUP}/examples.log"),
    benchmark:
        BENCHMARK(f"{SETUP}/examples.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        code=CODE("examples.py", "summary.examples"),
    script:
        "../workflow/scripts/examples.py"


rule summarise_examples:
    """Examples of all runs, how many need how much of a model, and which are hardest to revert."""
    input:
        run_paths(f"{RUN}/examples.tsv"),
    output:
        examples=f"{SUMMARY}/examples.tsv",
        example_shares=f"{SUMMARY}/example_shares.tsv",
        example_ranks=f"{SUMMARY}/example_ranks.tsv",
    log:
        LOG(f"{SUMMARY}/examples.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/examples.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(2000),
        runtime=minutes(10),
    params:
        runs=run_list(),
        code=CODE("examples.py", "summary.examples"),
    script:
        "../workflow/scripts/examples.py"


rule summarise_components:
    """Layer weights when attention or feed-forward blocks are swapped apart."""
    input:
        [path for name in COMPONENTS for path in run_paths(component_table(name))],
    output:
        components=f"{SUMMARY}/components.tsv",
        component_mcog=f"{SUMMARY}/component_mcog.tsv",
    log:
        LOG(f"{SUMMARY}/components.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/components.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=[run for name in COMPONENTS for run in run_list(component=name)],
        code=CODE("components.py", "summary.components"),
    script:
        "../workflow/scripts/components.py"


use rule figure_matrix as figure_component_matrix with:
    """Matrices of swapped attention and feed-forward blocks."""
    input:
        runs=lambda w: run_paths(
            component_table(w.component), models=[w.model], tasks=[w.task]
        ),
    output:
        picture(
            "swap-{component}_{task}_{model}",
            "component_matrix",
            "Window matrices",
            component="{component}",
            task="{task}",
            model="{model}",
        ),
    log:
        LOG(f"{FIGURE}/swap-{{component}}_{{task}}_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/swap-{{component}}_{{task}}_{{model}}.tsv")
    params:
        kind="component_matrix",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.components"),


use rule figure_matrix as figure_components with:
    """Errors by layer when whole layers, attention or feed-forward blocks are swapped."""
    input:
        components=rules.summarise_components.output.components,
    output:
        picture("components_{model}", "components", "Components", model="{model}"),
    log:
        LOG(f"{FIGURE}/components_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/components_{{model}}.tsv")
    params:
        kind="components",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.components"),


use rule figure_matrix as figure_examples with:
    """Smallest windows that revert single examples, and single layers that do."""
    input:
        example_shares=rules.summarise_examples.output.example_shares,
    output:
        picture("examples_{model}", "examples", "Examples", model="{model}"),
    log:
        LOG(f"{FIGURE}/examples_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/examples_{{model}}.tsv")
    params:
        kind="examples",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.examples"),
