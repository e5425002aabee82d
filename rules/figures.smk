"""
Figures: one rule per kind, from the list in memloc.study.figures.

In: tables of runs and of the folder summary. Out: results/figures/*.{pdf,png} (and svg); the PNG
goes into Snakemake's own report too.
"""

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
            names=names_of(figure),
            runs=runs_of(figure),
            page=[STUDY.config["figures"][key] for key in ("width", "font_size")],
            # for Snakemake's own report; an edited caption draws its figures again: seconds each
            caption=of_study(lambda study, w, figure=figure: figure.captioned(w)),
            code=CODE("figures.py", figure.drawer.partition(":")[0]),
        script:
            "../workflow/scripts/figures.py"

    PART.rule(f"figure_{kind}").docstring = figure.does
