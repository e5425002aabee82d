"""The page on task, noise and model seed: a table with numbers of runs, or how to get it."""

import numpy as np
import pandas as pd

from memloc.report.parts import Absent, Content
from memloc.report.sections.setup import build
from memloc.report.variance import variance_part
from memloc.store.tables import write_tsv
from memloc.summary.variance import COLUMNS


def content(tables, **settings):
    models = {"bert": {"label": "BERT"}}
    return Content("t", tables, [], models=models, tasks={}, settings=settings, templates="")


def test_variances_stand_on_the_page_with_their_numbers(tmp_path):
    row = ["swapping", "bert", "task", 0.25, 0.5, 0.8, 12, 11, 108, 0, ""]
    few = ["swapping", "bert", "data_seed", np.nan, np.nan, np.nan, 1, 0, 108, 0, "it takes two"]
    path = tmp_path / "variance.tsv"
    write_tsv(pd.DataFrame([row, few], columns=COLUMNS), path)
    part = variance_part(content({"variance": str(path)}))
    (shown,) = part.tables
    texts = [[cell["text"] for cell in line["cells"]] for line in shown.rows]
    assert texts[0][1:3] == ["BERT", "task"]
    assert "108" in texts[0] and "it takes two" in texts[1] and "–" in texts[1]
    assert "first data seed" in part.intro


def test_where_tasks_were_perturbed_once_the_page_says_so():
    part = variance_part(content({}))
    assert isinstance(part.tables[0], Absent) and not part.intro
    facts = [
        dict(build(content({}, **s)).parts[0].facts)
        for s in ({"data_seed": 0}, {"data_seeds": [4, 7]})
    ]
    assert facts[0]["Data seed"] == "0"
    assert facts[1]["Data seed"] == "4 (the same rows are perturbed anew by 7)"
