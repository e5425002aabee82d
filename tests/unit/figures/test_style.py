"""Tasks are told apart everywhere, and files are the same every time."""

import pytest

import synthetic
from memloc.figures import style
from memloc.figures.layers import matrix
from memloc.report.marks import outline


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


def test_files_are_the_same_every_time(tmp_path):
    for turn in ("a", "b"):
        figure = matrix([synthetic.windows(0, 1, 3)], "RTE", "OPT", "Layer swapping")
        style.save(figure, [tmp_path / f"{turn}.pdf", tmp_path / f"{turn}.png"])
    for kind in ("pdf", "png"):
        first, second = ((tmp_path / f"{turn}.{kind}").read_bytes() for turn in ("a", "b"))
        assert first == second
        assert b"Date" not in first and b"Matplotlib" not in first
