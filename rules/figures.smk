"""
Figures: one rule per kind, from the list in memloc.study.figures.

In: tables of runs and of the folder summary. Out: results/figures/*.{pdf,png}; the PNG goes into
Snakemake's own report too.
"""


def picture(figure):
    """A figure's two files."""
    words = re.findall(r"{(\w+)}", figure.name)
    shown = report(
        f"{PLACES.figure(figure.name)}.png",
        caption="../workflow/report/figure.rst",
        category=figure.section.capitalize(),
        subcategory=figure.title,
        labels={word: f"{{{word}}}" for word in words} or {"figure": figure.title},
    )
    return [f"{PLACES.figure(figure.name)}.pdf", shown]


def of_study(function):
    """Input or params function: what a figure's entry says for its wildcards."""
    return readable(lambda wildcards: function(_STUDY, wildcards))


for kind, figure in KINDS.items():

    rule:
        name:
            f"figure_{kind}"
        input:
            unpack(of_study(figure.inputs)),
        output:
            picture(figure),
        log:
            LOG(PLACES.figure(figure.name)),
        benchmark:
            BENCHMARK(PLACES.figure(figure.name))
        # Names may hold underscores: only the study's own tell where a task ends.
        wildcard_constraints:
            task="|".join(map(re.escape, STUDY.task_names)),
            model="|".join(map(re.escape, STUDY.models)),
        group:
            "figures"
        conda:
            "../envs/memloc.yaml"
        threads: 1
        resources:
            mem_mb=mem(1000),
            runtime=minutes(10),
        params:
            drawer=figure.drawer,
            names=of_study(lambda study, w, figure=figure: study.figure_names(figure)),
            runs=of_study(figure.runs),
            caption=of_study(lambda study, w, figure=figure: figure.captioned(w)),
            code=CODE("figures.py", figure.drawer.partition(":")[0]),
        script:
            "../workflow/scripts/figures.py"

    workflow.get_rule(f"figure_{kind}").docstring = f"{figure.title}."
