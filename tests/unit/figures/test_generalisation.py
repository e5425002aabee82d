"""Memorisation maps and the scores' figure."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import synthetic
from figure_checks import check_texts
from memloc.figures.generalisation import generalisation, memorisation_map
from memloc.figures.style import save
from memloc.generalise.scores import EXAMPLE_COLUMNS

CHANCE = 1 / 6


def examples(n, never=0):
    draw = np.random.default_rng(0)
    noisy = draw.random(n) < 0.15
    held = np.where(noisy, draw.beta(0.6, 3, n), draw.beta(4, 0.6, n))
    trained = held + (1 - held) * draw.beta(5, 1.2, n)
    frame = pd.DataFrame({"index": np.arange(n), "noisy": noisy, "n_heldout": 15, "n_trained": 15})
    frame["generalisation"], frame["training_memorisation"] = held, trained
    frame.loc[: never - 1, ["n_heldout", "generalisation"]] = 0, np.nan
    frame["counterfactual_memorisation"] = trained - frame["generalisation"]
    above = np.where(held > CHANCE, "yes", "no")
    frame["above_chance"] = np.where(frame["n_heldout"] > 0, above, "none")
    return frame[EXAMPLE_COLUMNS]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("n, never", [(12, 0), (240, 9), (16_000, 0)])
def test_a_map_has_every_example_at_its_place_and_legible_text(tmp_path, n, never):
    frame = examples(n, never)
    figure = memorisation_map(frame, CHANCE, "Implicit Hate", "OPT-1.3B")
    figure.canvas.draw()
    check_texts({"map": figure})
    axes = next(axes for axes in figure.axes if axes.get_xlabel())
    found = np.concatenate([points.get_offsets() for points in axes.collections])
    columns = ["training_memorisation", "generalisation"]
    wanted = frame.dropna()[columns].to_numpy()
    assert len(found) == n - never
    assert np.allclose(np.sort(found, axis=0), np.sort(wanted, axis=0))
    assert all(points.get_rasterized() for points in axes.collections)
    counted = f"of {n - never:,} examples" + (f"; {never} not drawn" if never else "")
    assert counted in figure.get_suptitle()
    save(figure, [tmp_path / "map.pdf", tmp_path / "map.png"])
    assert (tmp_path / "map.pdf").stat().st_size < 400_000
    assert (tmp_path / "map.png").stat().st_size < 150_000


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        figure = memorisation_map(examples(200), CHANCE, "RTE", "BERT")
        save(figure, [tmp_path / f"{name}.pdf", tmp_path / f"{name}.png"])
    for kind in ("pdf", "png"):
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


@pytest.mark.parametrize("only", [None, 1])
def test_scores_of_all_tasks_and_models_stand_in_their_columns(only):
    tasks = dict(list(synthetic.TASKS.items())[: only and 2])
    models = dict(list(synthetic.MODELS.items())[:only])
    frame = synthetic.generalisation_scores(tasks, models)
    figure = generalisation(frame, tasks, models)
    figure.canvas.draw()
    check_texts({"generalisation": figure})
    shown = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in shown] == [m["label"] for m in models.values()]
    for axes, model in zip(shown, models, strict=True):
        drawn = {round(float(x), 6) for line in axes.lines for x in np.atleast_1d(line.get_xdata())}
        assert set(frame.loc[frame["model"] == model, "score"].round(6)) <= drawn
