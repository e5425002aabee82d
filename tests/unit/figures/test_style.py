"""Tasks are told apart everywhere, and files are the same every time."""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from PIL import Image

import synthetic
from colours import distance, lab
from memloc.figures import centroids, control, detection, heads, maps, style
from memloc.figures.matrices import matrices
from memloc.report.marks import outline
from memloc.study.techniques import TECHNIQUES


def test_every_task_has_its_own_look():
    tasks = synthetic.TASKS | synthetic.OWN
    tasks |= {f"{t}-binary": synthetic.TASKS[t] for t in ("sst5", "emotion", "trec", "reuters")}
    tasks |= {f"own{i}": {"category": "nlu", "label": f"own {i}"} for i in range(30)}
    styles = style.task_styles(tasks)
    looks = [(s.colour, s.marker) for s in styles.values()]
    assert len(set(looks)) == len(tasks)
    groups = [s.group for s in styles.values()]
    assert groups == sorted(groups, key=list(style.GROUPS).index)


@pytest.mark.parametrize("group", style.GROUPS)
def test_any_number_of_tasks_of_a_group_is_told_apart(group):
    """More than there are shades and markers, each drawn otherwise, on the page as well."""
    tasks = {f"own{i}": {"category": group, "label": str(i)} for i in range(120)}
    styles = style.task_styles(tasks)
    assert {s.group for s in styles.values()} == {group} and len(styles) == 120
    looks = {(s.colour, outline(s.marker)) for s in styles.values()}
    assert len(looks) == 120


def test_any_number_of_models_has_a_line_of_its_own():
    lines = style.model_lines([f"m{i}" for i in range(20)])
    assert len(lines) == len(set(lines.values())) == 20
    assert list(lines.values())[: len(style.LINES)] == list(style.LINES)


def test_paper_tasks_look_the_same_in_every_run():
    whole = style.task_styles(synthetic.TASKS)
    part = style.task_styles(synthetic.OWN | {"trec": synthetic.TASKS["trec"]})
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


def test_no_two_colours_are_near_each_other():
    """Of all shades that tasks have, and of all techniques; the formula by its authors' pairs."""
    assert distance((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert distance((50, 2.5, 0), (73, 25, -18)) == pytest.approx(27.1492, abs=1e-4)
    tasks = [shade for _, shades in style.GROUPS.values() for shade in shades]
    for colours in (tasks, [found.mark[0] for found in TECHNIQUES.values()]):
        for one, other in combinations(colours, 2):
            assert distance(lab(one), lab(other)) >= 12, (one, other)


def lightness(colour):
    return lab(colour)[0]


def test_figures_can_be_read_in_grey():
    """Marks of tasks, techniques and the like differ; where they don't, lightness does."""
    looks = {name: (s.colour, s.marker) for name, s in style.task_styles(synthetic.TASKS).items()}
    sets = [
        list(looks.values()),
        [(found.mark[0], *found.mark[1:]) for found in TECHNIQUES.values()],
        [*control.MARKS], [*control.PLACE_MARKS.values()], [*detection.MARKS.values()],
        [*centroids.GREYS.values()],
    ]  # fmt: skip
    for marks in sets:
        for (one, *form), (other, *also) in combinations(marks, 2):
            assert form != also or abs(lightness(one) - lightness(other)) >= 15, (form, also)


@pytest.mark.parametrize(
    "scale, parts",
    [(plt.get_cmap("YlGnBu"), [(0, 1)]), (maps.MEMORISED, [(0, 1)]),
     (plt.get_cmap("RdBu_r"), [(0, 0.5), (0.5, 1)])],
)  # fmt: skip
def test_scales_rise_or_fall_in_lightness(scale, parts):
    """Those of one direction all the way; that of correlations to each side of its middle."""
    for low, high in parts:
        steps = np.diff([lightness(scale(x)) for x in np.linspace(low, high, 64)])
        assert (steps > -0.05).all() or (steps < 0.05).all()


def test_a_task_keeps_its_colour_in_a_png(tmp_path):
    """However few pixels it has beside a map's."""
    table = synthetic.windows(0, 1, 12)
    styles = style.task_styles(synthetic.TASKS)
    frame = pd.concat(
        pd.DataFrame({"task": task, "model": "m", "head": head, "layer": range(1, 13),
                      "noisy_error": table["noisy_error"][head : head + 12]})
        for task in styles for head in range(1, 13)
    )  # fmt: skip
    style.save(heads.head_maps(frame, synthetic.TASKS, {}, "m"), [tmp_path / "heads.png"])
    with Image.open(tmp_path / "heads.png") as picture:
        found = [lab(np.array(c) / 255) for _, c in picture.convert("RGB").getcolors(256)]
    for name, look in styles.items():
        assert min(distance(lab(look.colour), colour) for colour in found) < 3, name


def test_files_are_the_same_every_time(tmp_path):
    for turn in ("a", "b"):
        figure = matrices({"rte": [synthetic.windows(0, 1, 3)]}, synthetic.TASKS, "OPT")
        style.save(figure, [tmp_path / f"{turn}.{kind}" for kind in ("pdf", "png", "svg")])
    for kind in ("pdf", "png", "svg"):
        first, second = ((tmp_path / f"{turn}.{kind}").read_bytes() for turn in ("a", "b"))
        assert first == second
        assert b"CreationDate" not in first and b"dc:date" not in first
        assert b"Matplotlib" not in first
