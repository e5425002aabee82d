"""Memorisation maps and the scores' figure, and what the page says of them."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import synthetic
from figure_checks import check_texts
from memloc.figures import generalisation as figures_generalisation
from memloc.figures.style import save
from memloc.generalise.scores import COLUMNS, EXAMPLE_COLUMNS
from memloc.report.parts import Content
from memloc.report.sections import generalisation as report_generalisation
from memloc.store.tables import write_tsv
from memloc.study.figures import KINDS

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


def summary(tasks, models):
    rows = []
    for i, task in enumerate(tasks):
        for j, model in enumerate(models):
            score = 0.5 + 0.035 * i + 0.02 * j
            rows.append(
                {
                    "task": task, "model": model, "score": score, "sd": 0.02,
                    "validation_accuracy": 0.6, "validation_scaled": 0.08 * i - 0.05,
                    "n_examples": 100, "n_halves": 30, "score_clean": score + 0.05,
                    "score_noisy": 0.04 + 0.01 * i, "validation_sd": np.nan,
                    "n_never_heldout": 0, "chance": 0.5,
                }
            )  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("n, never", [(12, 0), (240, 9), (16_000, 0)])
def test_a_map_has_every_example_at_its_place_and_legible_text(tmp_path, n, never):
    frame = examples(n, never)
    figure = figures_generalisation.memorisation_map(frame, CHANCE, "Implicit Hate", "OPT-1.3B")
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
        figure = figures_generalisation.memorisation_map(examples(200), CHANCE, "RTE", "BERT")
        save(figure, [tmp_path / f"{name}.pdf", tmp_path / f"{name}.png"])
    for kind in ("pdf", "png"):
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


@pytest.mark.parametrize("only", [None, 1])
def test_scores_of_all_tasks_and_models_stand_in_their_columns(only):
    tasks = dict(list(synthetic.TASKS.items())[: only and 2])
    models = dict(list(synthetic.MODELS.items())[:only])
    frame = summary(tasks, models)
    figure = figures_generalisation.generalisation(frame, tasks, models)
    figure.canvas.draw()
    check_texts({"generalisation": figure})
    shown = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in shown] == [m["label"] for m in models.values()]
    for axes, model in zip(shown, models, strict=True):
        drawn = {round(float(x), 6) for line in axes.lines for x in np.atleast_1d(line.get_xdata())}
        assert set(frame.loc[frame["model"] == model, "score"].round(6)) <= drawn


def test_every_kind_is_registered():
    for kind in figures_generalisation.DRAW:
        assert KINDS[kind].module == "figures.generalisation"


def content(tmp_path, frame, labels="perturbed", models=("bert",)):
    write_tsv(frame, tmp_path / "generalisation.tsv", COLUMNS)
    return Content(
        title="",
        tables={"generalisation": str(tmp_path / "generalisation.tsv")},
        pictures=[],
        models={m: {"label": m.upper()} for m in models},
        tasks={t: synthetic.TASKS[t] for t in ("rte", "trec")},
        settings={"generalisation": {"labels": labels}},
        templates="",
        folder=str(tmp_path),
    )


def test_the_page_reads_the_result_in_one_sentence(tmp_path):
    frame = summary(("rte", "trec"), ("bert",))
    section = report_generalisation.build(content(tmp_path, frame))
    assert "50% (RTE) to 54% (TREC) of the training examples; for noisy" in section.intro
    assert section.intro.endswith("for 4% (RTE) to 5% (TREC).") and not section.notices
    (table,) = section.parts[0].tables
    assert "θ_M2" in table.note and len(table.rows) == 2
    original = report_generalisation.build(content(tmp_path, frame, "original"))
    assert "noisy" not in original.intro and "θ_O" in original.parts[0].tables[0].note


def test_the_page_says_how_many_were_never_held_out(tmp_path):
    frame = summary(("rte", "trec"), ("bert",)).assign(n_never_heldout=[0, 1200])
    section = report_generalisation.build(content(tmp_path, frame))
    (notice,) = section.notices
    assert "1,200" in notice and "splits: pairs" in notice
    assert [row["low"] for row in section.parts[0].tables[0].rows] == [False, True]
    alone = summary(("rte",), ("bert",)).assign(score=np.nan, score_noisy=np.nan)
    assert "an unknown share" in report_generalisation.build(content(tmp_path, alone)).intro
