"""
Tables of the whole study, figures and the report.

In: swap.tsv (and the other techniques' tables) and history.tsv of every run.
Out: results/summary/*.tsv, results/figures/*.{pdf,png}, results/report.html.
"""


rule summarise:
    """Layer weights and M-CoG of every task, model and technique, over seeds."""
    input:
        [path for pattern in TECHNIQUE_TABLES.values() for path in run_paths(pattern)],
    output:
        layer_weights=f"{SUMMARY}/layer_weights.tsv",
        mcog=f"{SUMMARY}/mcog.tsv",
        one_layer=f"{SUMMARY}/one_layer.tsv",
        probe_f1=f"{SUMMARY}/probe_f1.tsv",
        label_f1=f"{SUMMARY}/label_f1.tsv",
    log:
        LOG(f"{SUMMARY}/weights.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/weights.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=[run for name in TECHNIQUE_TABLES for run in run_list(technique=name)],
        options=weight_options(),
        code=CODE("summarise.py", "summary.weights", *techniques.modules()),
    script:
        "../workflow/scripts/summarise.py"


rule summarise_training:
    """Outcome of every training run."""
    input:
        histories=[
            path
            for labels in ("original", "perturbed")
            for path in run_paths(f"{RUN}/{{labels}}/history.tsv", labels=labels)
        ],
        records=[
            path
            for labels in ("original", "perturbed")
            for path in run_paths(
                f"{RUN}/{{labels}}/final.provenance.json", labels=labels
            )
        ],
    output:
        training=f"{SUMMARY}/training.tsv",
    log:
        LOG(f"{SUMMARY}/training.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/training.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        runs=[
            run
            for labels in ("original", "perturbed")
            for run in run_list(labels=labels)
        ],
        code=CODE("summarise.py", "summary.weights"),
    script:
        "../workflow/scripts/summarise.py"


rule correlate:
    """Rank correlations: techniques, models, depth with generalisation, events, Appendices B and C."""
    input:
        unpack(lambda w: correlated_tables()),
        layer_weights=rules.summarise.output.layer_weights,
        mcog=rules.summarise.output.mcog,
    output:
        f"{SUMMARY}/correlations.tsv",
    log:
        LOG(f"{SUMMARY}/correlations.log"),
    benchmark:
        BENCHMARK(f"{SUMMARY}/correlations.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(20),
    params:
        seed=config["data_seed"],
        code=CODE("summarise.py", "summary.correlations"),
    script:
        "../workflow/scripts/summarise.py"


rule figure_matrix:
    """Figures 3 and 16: errors by window of layers, of one technique, task and model."""
    input:
        runs=lambda w: run_paths(
            TECHNIQUE_TABLES[w.technique], models=[w.model], tasks=[w.task]
        ),
    output:
        picture(
            "matrix_{technique}_{task}_{model}",
            "matrix",
            "Window matrices",
            technique="{technique}",
            task="{task}",
            model="{model}",
        ),
    log:
        LOG(f"{FIGURE}/matrix_{{technique}}_{{task}}_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/matrix_{{technique}}_{{task}}_{{model}}.tsv")
    # Names may hold underscores: only the study's own tell where a task ends.
    wildcard_constraints:
        task="|".join(map(re.escape, config["tasks"])),
        model="|".join(map(re.escape, MODELS)),
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(1000),
        runtime=minutes(10),
    params:
        kind="matrix",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.layers"),
    script:
        "../workflow/scripts/figures.py"


use rule figure_matrix as figure_training with:
    """Accuracies per epoch, noisy and clean apart."""
    input:
        histories=lambda w: run_paths(f"{RUN}/perturbed/history.tsv", models=[w.model]),
        training=rules.summarise_training.output.training,
    output:
        picture("training_{model}", "training", "Training", model="{model}"),
    log:
        LOG(f"{FIGURE}/training_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/training_{{model}}.tsv")
    params:
        kind="training",
        names=display_names(),
        runs=lambda w: run_list(models=[w.model], labels="perturbed"),
        code=CODE("figures.py", "figures.draw", "figures.training"),


use rule figure_matrix as figure_layer_weights with:
    """Figures 5 and 13: layer weights of every task, by category; of probes their F1."""
    input:
        layer_weights=rules.summarise.output.layer_weights,
        probe_f1=rules.summarise.output.probe_f1,
    output:
        picture(
            "layer_weights_{model}", "layer_weights", "Layer weights", model="{model}"
        ),
    log:
        LOG(f"{FIGURE}/layer_weights_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/layer_weights_{{model}}.tsv")
    params:
        kind="layer_weights",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.layers"),


use rule figure_matrix as figure_techniques with:
    """Techniques side by side: layer weights of one model."""
    input:
        layer_weights=rules.summarise.output.layer_weights,
    output:
        picture(
            "techniques_{model}",
            "techniques",
            "Techniques side by side",
            model="{model}",
        ),
    log:
        LOG(f"{FIGURE}/techniques_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/techniques_{{model}}.tsv")
    params:
        kind="techniques",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.layers"),


use rule figure_matrix as figure_one_layer with:
    """Figure 4: the largest memorisation error that one layer causes."""
    input:
        one_layer=rules.summarise.output.one_layer,
    output:
        picture("one_layer", "one_layer", "Largest error from one layer"),
    log:
        LOG(f"{FIGURE}/one_layer.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/one_layer.tsv")
    params:
        kind="one_layer",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.layers"),


use rule figure_matrix as figure_mcog with:
    """Figures 6 and 7: M-CoG per task and model."""
    input:
        mcog=rules.summarise.output.mcog,
        layer_weights=rules.summarise.output.layer_weights,
    output:
        picture("mcog", "mcog", "Memorisation centre of gravity"),
    log:
        LOG(f"{FIGURE}/mcog.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/mcog.tsv")
    params:
        kind="mcog",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.mcog"),


use rule figure_mcog as figure_mcog_averages with:
    """Figure 7: M-CoG averaged over models and over techniques."""
    output:
        picture(
            "mcog_averages",
            "mcog_averages",
            "Memorisation centre of gravity, averaged",
        ),
    log:
        LOG(f"{FIGURE}/mcog_averages.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/mcog_averages.tsv")
    params:
        kind="mcog_averages",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.mcog"),


use rule figure_matrix as figure_correlations with:
    """Figures 8 and 9: rank correlations between techniques and models."""
    input:
        correlations=rules.correlate.output[0],
    output:
        picture(
            "correlations_{measure}",
            "correlations",
            "Correlations",
            measure="{measure}",
        ),
    log:
        LOG(f"{FIGURE}/correlations_{{measure}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/correlations_{{measure}}.tsv")
    params:
        kind="correlations",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.correlations"),


use rule figure_matrix as figure_label_probes with:
    """Figure 14: how well probes read perturbed and original labels, of one model."""
    input:
        label_f1=rules.summarise.output.label_f1,
    output:
        picture(
            "label_probes_{model}",
            "label_probes",
            "Probes for labels",
            model="{model}",
        ),
    log:
        LOG(f"{FIGURE}/label_probes_{{model}}.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/label_probes_{{model}}.tsv")
    params:
        kind="label_probes",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.probes"),


use rule figure_matrix as figure_binarised with:
    """Figures 19 and 20: tasks with all their classes beside the same with two (Appendix C)."""
    input:
        unpack(
            lambda w: {k: v for k, v in correlated_tables().items() if k == "events"}
        ),
        mcog=rules.summarise.output.mcog,
    output:
        picture("binarised", "binarised", "Binarised tasks"),
    log:
        LOG(f"{FIGURE}/binarised.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/binarised.tsv")
    params:
        kind="binarised",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.binarised"),


use rule figure_matrix as figure_depth_correlations with:
    """Table 2 as a figure: depth of memorisation against generalisation, beside the paper's."""
    input:
        correlations=rules.correlate.output[0],
    output:
        picture("depth_correlations", "depth_correlations", "Correlations"),
    log:
        LOG(f"{FIGURE}/depth_correlations.log"),
    benchmark:
        BENCHMARK(f"{FIGURE}/depth_correlations.tsv")
    params:
        kind="depth_correlations",
        names=display_names(),
        code=CODE("figures.py", "figures.draw", "figures.depth"),


rule report:
    """The page of results: every table and figure of the run in one file."""
    input:
        unpack(lambda w: {name: f"{SUMMARY}/{name}.tsv" for name in page_tables()}),
        perturbed=page_content()["data"].values(),
        tasks=rules.task_table.output[0],
        budget=rules.budget.output[0],
        png=lambda w: page_files("png"),
        pdf=lambda w: page_files("pdf"),
    output:
        page=f"{RESULTS}/report.html",
        cost=f"{SUMMARY}/cost.tsv",
        actual=f"{SUMMARY}/budget_actual.tsv",
    log:
        LOG(f"{RESULTS}/report.log"),
    benchmark:
        BENCHMARK(f"{RESULTS}/report.tsv")
    conda:
        "../envs/memloc.yaml"
    threads: 1
    resources:
        mem_mb=mem(2000),
        runtime=minutes(10),
    params:
        content=lambda w: page_content(),
        pictures=lambda w: [
            {k: f[k] for k in ("kind", "wildcards")} for f in page_figures()
        ],
        tables=lambda w: [*page_tables(), "tasks"],
        records={
            task: [planning.local_copy(workflow, path) for path in paths]
            for task, paths in provenance_files().items()
        },
        benchmarks=planning.local_copy(workflow, BENCHMARK(RESULTS)),
        finished=lambda w: planning.benchmark_patterns(workflow),
        templates=template_digests(),
        code=CODE("report.py", "report.page", "budget.files"),
    script:
        "../workflow/scripts/report.py"
