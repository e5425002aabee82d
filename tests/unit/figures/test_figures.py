"""What figures must have: layers 1..L on their axes, tasks told apart, nothing on top of text."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import synthetic
from depth_tables import tables as depth_tables
from figure_checks import check_texts, in_view, visible_axes
from memloc.figures import correlations as figures_correlations
from memloc.figures import depth as figures_depth
from memloc.figures import layers as figures_layers
from memloc.figures import mcog as figures_mcog
from memloc.figures import style
from memloc.figures import training as figures_training
from memloc.localise.weights import mean_matrix
from memloc.study.techniques import TECHNIQUES
from memloc.summary.correlations import correlations
from memloc.summary.weights import summarise_runs, summarise_training

OWN = {
    "bbc": {"category": "topic", "label": "BBC News"},
    "snippets": {"category": "sentiment", "label": "Movie snippets"},
}
STUDIES = {
    "large": (synthetic.TASKS, synthetic.MODELS, (1, 2), ("swapping", "gradients"), 12),
    "small": (OWN, {"mini": {"label": "MiniLM-6"}}, (1,), ("swapping",), 6),
    "all": (synthetic.TASKS, synthetic.MODELS, (1, 2), tuple(TECHNIQUES), 12),
    "all-small": (OWN, {"mini": {"label": "MiniLM-6"}}, (1,), tuple(TECHNIQUES), 6),
    "deep": (OWN, {"opt-1.3b": {"label": "OPT-1.3B"}}, (1,), ("swapping", "probing"), 24),
}


def draw_all(tasks, models, seeds, techniques, n_layers):
    """All figures that a study of one model's detail has."""
    frames = summarise_runs(synthetic.runs(tasks, models, seeds, techniques, n_layers))
    weights, model = frames["layer_weights"], next(iter(models))
    keys, histories, records = synthetic.training_runs(tasks, models, seeds)
    outcomes = summarise_training(histories, records, keys)
    history = [h.assign(**key) for h, key in zip(histories, keys, strict=True)]
    table = correlations(weights, frames["mcog"], seed=0) if len(models) > 1 else None
    windows = [synthetic.windows(0, seed, n_layers) for seed in seeds]
    found = {
        "matrix": figures_layers.matrix(windows, "ImplicitHate", "OPT-1.3B", "Layer retraining"),
        "curves": figures_layers.layer_curves(weights, frames["probe_f1"], tasks, models, model),
        "techniques": figures_layers.technique_curves(weights, tasks, models, model),
        "one_layer": figures_layers.one_layer(frames["one_layer"], tasks, models),
        "mcog": figures_mcog.mcog(frames["mcog"], weights, tasks, models),
        "averages": figures_mcog.mcog_averages(frames["mcog"], weights, tasks, models),
        "training": figures_training.training(pd.concat(history), outcomes, tasks, models, model),
    }
    if table is not None:
        found["correlations"] = figures_correlations.correlation_maps(table, "mcog", tasks, models)
    for figure in found.values():
        figure.canvas.draw()
    return found


@pytest.fixture(scope="module", params=STUDIES)
def study(request):
    yield request.param, draw_all(*STUDIES[request.param])
    plt.close("all")


def test_axes_carry_layers(study):
    size, found = study
    n_layers = STUDIES[size][-1]
    wanted = [str(n) for n in range(1, n_layers + 1)]
    for name in ("matrix", "curves", "techniques"):
        axes = next(axes for axes in visible_axes(found[name]) if axes.get_xlabel())
        assert [t.get_text() for t in axes.get_xticklabels()] == wanted
    assert [t.get_text() for t in visible_axes(found["matrix"])[0].get_yticklabels()] == wanted
    for name in ("mcog", "averages"):
        for axes in visible_axes(found[name]):
            labels = [t.get_text() for t in in_view(axes.xaxis)]
            assert len(labels) >= 2 and set(labels) <= set(wanted)


def test_matrix_has_short_windows_on_top_and_true_values():
    windows = [synthetic.windows(0, seed, 4) for seed in (1, 2)]
    figure = figures_layers.matrix(windows, "RTE", "OPT", "Layer swapping")
    axes = figure.axes[0]
    assert axes.yaxis_inverted()
    values = axes.collections[0].get_array().reshape(4, 4)
    assert np.allclose(values, mean_matrix(windows)[0]) and np.allclose(values[-1], 1)
    assert [t.get_text() for t in axes.texts][-4:] == ["1"] * 4
    plt.close(figure)


def test_undefined_normalisation_is_said_in_the_figure():
    windows = synthetic.windows(0, 1, 3)
    windows.loc[(windows["start"] == 1) & (windows["end"] == 3), "noisy_error"] = 0.0
    windows["noisy_error_normalised"] = np.nan
    figure = figures_layers.matrix([windows], "RTE", "OPT", "Layer swapping")
    assert any("not normalised" in axes.get_ylabel() for axes in figure.axes)
    plt.close(figure)


def drawn(axes):
    """The y values of each line of axes, by line style and colour."""
    return {(line.get_linestyle(), line.get_color()): line.get_ydata() for line in axes.lines}


def test_probing_shows_f1_and_its_chance_level():
    runs = synthetic.runs(OWN, {"mini": {}}, (1, 2), ("swapping", "probing"), 6)
    frames = summarise_runs(runs)
    f1 = frames["probe_f1"]
    figure = figures_layers.layer_curves(
        frames["layer_weights"], f1, OWN, {"mini": {"label": "Mini"}}, "mini"
    )
    row = [axes for axes in figure.axes if axes.get_subplotspec().rowspan.start == 1]
    styles = style.task_styles(OWN)
    lines = {key: values for axes in row for key, values in drawn(axes).items()}
    assert len(lines) == 2 * len(OWN) and "F_1" in row[0].get_ylabel()
    for task in OWN:
        wanted = f1[(f1["task"] == task) & (f1["layer"] >= 1)]
        assert np.allclose(lines["-", styles[task].colour], wanted["f1"])
        assert np.allclose(lines[":", styles[task].colour], wanted["f1_random"])
    plt.close(figure)


def test_techniques_side_by_side_all_peak_at_one():
    frames = summarise_runs(synthetic.runs(OWN, {"mini": {}}, (1,), ("swapping", "gradients"), 6))
    weights = frames["layer_weights"]
    spike = (weights["technique"] == "gradients") & (weights["layer"] == 2)
    weights.loc[spike, "weight"] = 50.0
    figure = figures_layers.technique_curves(weights, OWN, {"mini": {}}, "mini")
    lines = [line.get_ydata() for axes in figure.axes for line in axes.lines]
    assert len(lines) == 4 and all(np.max(line) == 1 for line in lines)
    assert "= 1" in figure.get_supylabel()
    plt.close(figure)


def test_empty_cells_of_correlations_say_why():
    frames = summarise_runs(
        synthetic.runs(OWN, {"mini": {}}, (1,), ("swapping", "gradients", "probing"), 6)
    )
    table = correlations(frames["layer_weights"], frames["mcog"], seed=0)
    figure = figures_correlations.correlation_maps(table, "mcog", OWN, {"mini": {}})
    assert len(figure.axes) == 1  # one model: nothing to compare between models
    said = [" ".join(text.get_text().split()) for text in figure.axes[0].texts]
    assert said.count("n too small") == 6
    plt.close(figure)
    whole = figures_correlations.correlation_maps(table, "layer_weights", OWN, {"mini": {}})
    assert not any("small" in text.get_text() for text in whole.axes[0].texts)
    plt.close(whole)


def test_every_task_has_its_own_look():
    tasks = synthetic.TASKS | OWN
    tasks |= {f"{t}-binary": synthetic.TASKS[t] for t in ("sst5", "emotion", "trec", "reuters")}
    tasks |= {f"own{i}": {"category": "nlu", "label": f"own {i}"} for i in range(30)}
    styles = style.task_styles(tasks)
    looks = [(s.colour, s.marker) for s in styles.values()]
    assert len(set(looks)) == len(tasks)
    groups = [s.group for s in styles.values()]
    assert groups == sorted(groups, key=list(style.GROUPS).index)


def test_paper_tasks_look_the_same_in_every_run():
    whole = style.task_styles(synthetic.TASKS)
    part = style.task_styles(OWN | {"trec": synthetic.TASKS["trec"]})
    assert part["trec"] == whole["trec"]
    assert len({s.marker for s in whole.values()}) == 12
    assert style.task_styles({"x": {"category": "law"}})["x"].group == "other"


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_stand_out_from_white():
    for _, shades in style.GROUPS.values():
        for shade in shades:
            assert 1.05 / (luminance(shade) + 0.05) >= 2.9, shade


def test_files_are_the_same_every_time(tmp_path):
    for turn in ("a", "b"):
        figure = figures_layers.matrix([synthetic.windows(0, 1, 3)], "RTE", "OPT", "Layer swapping")
        style.save(figure, [tmp_path / f"{turn}.pdf", tmp_path / f"{turn}.png"])
    for kind in ("pdf", "png"):
        first, second = ((tmp_path / f"{turn}.{kind}").read_bytes() for turn in ("a", "b"))
        assert first == second
        assert b"Date" not in first and b"Matplotlib" not in first


@pytest.mark.parametrize("value,text", [(0.0, ".00"), (0.154, ".15"), (1.0, "1"), (1.26, "1.26")])
def test_short_numbers(value, text):
    assert figures_layers.short(value) == text


def test_depth_has_a_panel_per_level_with_the_papers_mark():
    weights, mcog, events, scores = depth_tables(models=("bert", "opt"))
    table = correlations(weights, mcog, 0, events, scores)
    figure = figures_depth.depth_correlations(table, synthetic.MODELS)
    figure.canvas.draw()
    panels = visible_axes(figure)
    assert [axes.get_title() for axes in panels] == ["all models", "BERT", "OPT"]
    for axes, level in zip(panels, ("all", "bert", "opt"), strict=True):
        part = table[(table["level"] == level) & table["family"].isin(figures_depth.FAMILIES)]
        for marker, column in (("o", "rho"), ("D", "paper_rho")):
            drawn = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == marker]
            assert np.allclose(sorted(drawn), sorted(part[column].dropna()))
    plt.close(figure)


def test_depth_says_where_there_are_too_few_tasks():
    frames = depth_tables(tasks=("wic", "trec"), models=("bert",))
    table = correlations(*frames[:2], 0, *frames[2:])
    figure = figures_depth.depth_correlations(table, synthetic.MODELS)
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert said.count("n too small") == 2 * 8
    plt.close(figure)


def test_no_text_overlaps_and_none_is_cut(study):
    check_texts(study[1])
