"""Figures and report section of the centroid analysis, from synthetic tables."""

import numpy as np
import pandas as pd
import pytest

import synthetic
from memloc.explain.centroids import COLUMNS, centroid_events
from memloc.explain.events import run_events, summarise_curves, summarise_events
from memloc.figures import centroids as figures_centroids
from memloc.figures.draw import draw
from memloc.report.parts import Content, Picture
from memloc.report.sections.explanation import build
from memloc.store.tables import write_tsv

MODELS, TASKS = synthetic.MODELS, synthetic.TASKS


def centroids(number=0, seed=1, n_layers=12, classes=("a", "b", "c")):
    """A centroids.tsv: noisy examples of later tasks move later; one pair has none."""
    rng = np.random.default_rng([number, seed])
    rows = []
    for source in ("trained", "bottom", "top"):
        for a, b in [(a, b) for a in classes for b in classes if a != b]:
            moves = 3 + 0.6 * number + rng.normal(0, 0.6)
            for layer in range(1, n_layers + 1):
                place = 1 / (1 + np.exp(layer - moves))
                place = {"trained": place, "bottom": 0.8 + 0.2 * place, "top": max(place, 0.3)}
                spread = 0.9 * 0.8**layer
                mean = place[source] if (a, b) != ("c", "a") else np.nan
                rows.append(
                    dict(
                        source=source, class_a=a, class_b=b, layer=layer, noisy_mean=mean,
                        noisy_low=mean - spread, noisy_high=mean + spread, clean_a_mean=0.0,
                        clean_a_low=-spread, clean_a_high=spread, clean_b_mean=1.0,
                        clean_b_low=1 - spread, clean_b_high=1 + spread, distance=1.0,
                        n_clean_a=50, n_clean_b=50, n_noisy=0 if np.isnan(mean) else 9,
                    )
                )  # fmt: skip
    return pd.DataFrame(rows)[COLUMNS]


def probing(number):
    names = ["probing-memorisation", "probing-initiation"]
    layers = pd.Series([3 + number * 0.6 // 1, "none" if number % 3 == 0 else 4], dtype=object)
    return pd.DataFrame({"source": "trained", "event": names, "layer": layers})


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Tables on disk: {name: path}, and the runs' centroids.tsv by (task, model)."""
    folder = tmp_path_factory.mktemp("study")
    runs, curves, paths = [], [], {}
    for number, task in enumerate(TASKS):
        for shift, model in enumerate(MODELS):
            for seed in (1, 2):
                run = {"task": task, "model": model, "seed": seed}
                table = centroids(number, seed + 10 * shift)
                path = folder / f"{task}_{model}_{seed}.tsv"
                write_tsv(table, path)
                paths.setdefault((task, model), []).append(path)
                curves.append((run, table))
                runs += [(run, run_events(centroid_events(table))), (run, probing(number))]
    tables = {"events": folder / "events.tsv", "centroids": folder / "centroids.tsv"}
    write_tsv(summarise_events(runs), tables["events"])
    write_tsv(summarise_curves(curves), tables["centroids"])
    return folder, tables, paths


def drawn(study, kind, chosen, **inputs):
    folder, tables, _ = study
    outputs = [folder / f"{kind}.{end}" for end in ("pdf", "png")]
    draw(kind, outputs, tables | inputs, TASKS, MODELS, chosen)
    assert all(path.stat().st_size > 5000 for path in outputs)
    return Picture(kind, str(outputs[1]), str(outputs[0]), chosen)


def content(study, pictures=(), tables=None, **options):
    folder, every, _ = study
    tables = {name: str(path) for name, path in (every if tables is None else tables).items()}
    about = dict(models=MODELS, tasks=TASKS, settings={}, templates=str(synthetic.TEMPLATES))
    return Content("t", tables, list(pictures), folder=str(folder), **about, **options)


def test_every_kind_is_drawn_and_stands_in_the_section(study):
    chosen = {"task": "trec", "model": "opt"}
    pictures = [
        drawn(study, "centroids", chosen, runs=study[2]["trec", "opt"]),
        drawn(study, "swapped_halves", {"model": "opt"}),
        drawn(study, "events", {}),
    ]
    section = build(content(study, pictures))
    titles = [part.title for part in section.parts]
    assert titles[0].startswith("When noisy examples turn") and len(titles) == 4
    assert "TREC, OPT" in section.parts[2].gallery[0]["figures"][0].alt
    assert "{{" not in str(section.parts[2].caption) and "each task" in section.parts[2].caption
    assert "48 cases" in section.intro or "of 48" in section.intro
    assert "still cross in 0% of the pairs" in section.intro


def test_panels_say_how_many_pairs_never_cross(study):
    _, tables, paths = study
    given = figures_centroids
    events, curves = (pd.read_csv(tables[n], sep="\t") for n in ("events", "centroids"))
    runs = [pd.read_csv(path, sep="\t") for path in paths["rte", "bert"]]
    figure = given.centroid_curves(curves, runs, events, TASKS, MODELS, "rte", "bert")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[1].split("\n")[1] == "crossing none"
    assert titles[0].startswith("as trained\ncrossing 4")
    figure = given.events_by_task(events, curves, TASKS, MODELS)
    assert len(figure.axes) == 2 * (len(MODELS) + 1)


def test_noise_of_unknown_class_leaves_curves_of_clean_examples(study, tmp_path):
    table = centroids()
    table[["noisy_mean", "noisy_low", "noisy_high"]], table["n_noisy"] = np.nan, 0
    run = {"task": "trec", "model": "opt", "seed": 1}
    curves = summarise_curves([(run, table)])
    events = summarise_events([(run, run_events(centroid_events(table)))])
    assert len(curves) == 36 and (curves["n_pairs"] == 0).all()
    about = TASKS, {"opt": MODELS["opt"]}
    figure = figures_centroids.centroid_curves(curves, [table], events, *about, "trec", "opt")
    assert "n/a" in figure.axes[0].get_title()
    figures_centroids.swapped_halves(curves, *about, "opt")
    figures_centroids.events_by_task(events, curves, *about)
    paths = {"events": tmp_path / "events.tsv", "centroids": tmp_path / "centroids.tsv"}
    write_tsv(events, paths["events"])
    write_tsv(curves, paths["centroids"])
    section = build(content(study, tables=paths))
    assert section.intro == "In no task did noisy examples both cross and classes come apart."
    cells = [cell["text"] for cell in section.parts[0].tables[0].rows[0]["cells"]]
    assert cells[2] == "n/a" and cells[3] == "3.0"


def test_one_model_has_no_mean_over_models(study):
    events, curves = (pd.read_csv(study[1][n], sep="\t") for n in ("events", "centroids"))
    part = [frame[frame["model"] == "opt"] for frame in (events, curves)]
    part[0] = part[0][~part[0]["event"].str.startswith("probing")]
    figure = figures_centroids.events_by_task(*part, TASKS, {"opt": MODELS["opt"]})
    assert len(figure.axes) == 1


def test_overview_words_what_never_happens(study):
    table = build(content(study)).parts[0].tables[0]
    heads = [column["title"] for column in table.columns]
    assert heads[2] == "crossing" and heads[-1] == "crossing, top half from θ_O"
    assert len(table.rows) == 48 and table.id == "events-overview"
    cells = [cell["text"] for cell in table.rows[0]["cells"]]
    assert cells[:2] == ["WiC", "BERT"] and cells[-2] == "none"
    assert float(cells[2]) > 1 and "none" in cells


def test_without_centroids_the_section_names_the_command(study):
    absent = {"centroids": {"target": "summary/centroids.tsv", "command": "snakemake …"}}
    given = content(study, tables={"events": study[1]["events"]}, absent=absent)
    section = build(given)
    assert section.absent[0].command == "snakemake …" and section.parts[0].tables
