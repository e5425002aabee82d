"""Memorisation maps and the scores' figure."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import synthetic
from figure_checks import check_texts, fitted
from memloc.figures.generalisation import generalisation
from memloc.figures.maps import memorisation_map
from memloc.figures.style import save

CHANCE = 1 / 6


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("n, never", [(12, 0), (240, 9), (16_000, 0)])
def test_a_map_has_every_example_at_its_place_and_legible_text(tmp_path, n, never):
    frame = synthetic.example_scores(n, never)
    figure = memorisation_map(frame, CHANCE, "Implicit Hate", "OPT-1.3B")
    check_texts({"map": fitted(figure)})
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
        figure = memorisation_map(synthetic.example_scores(200), CHANCE, "RTE", "BERT")
        save(figure, [tmp_path / f"{name}.pdf", tmp_path / f"{name}.png"])
    for kind in ("pdf", "png"):
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


@pytest.mark.parametrize("only", [None, 1])
def test_scores_of_all_tasks_and_models_stand_in_their_columns(only):
    tasks = dict(list(synthetic.TASKS.items())[: only and 2])
    models = dict(list(synthetic.MODELS.items())[:only])
    frame = synthetic.generalisation_scores(tasks, models)
    figure = generalisation(frame, tasks, models)
    check_texts({"generalisation": fitted(figure)})
    shown = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in shown] == [m["label"] for m in models.values()]
    for axes, model in zip(shown, models, strict=True):
        drawn = {round(float(x), 6) for line in axes.lines for x in np.atleast_1d(line.get_xdata())}
        assert set(frame.loc[frame["model"] == model, "score"].round(6)) <= drawn
