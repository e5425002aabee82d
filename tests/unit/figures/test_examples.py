"""Heat maps of single examples."""

import numpy as np
import pytest

import example_tables
from memloc.figures.examples import example_maps
from memloc.store.tables import read_tsv


def test_figure_has_a_row_per_task_and_all_lengths(tmp_path):
    outputs = example_tables.study(tmp_path)
    figure = example_maps(
        read_tsv(outputs["example_shares"]), example_tables.TASKS, example_tables.MODELS, "bert"
    )
    left, right, _ = figure.axes
    assert [t.get_text() for t in left.get_yticklabels()] == ["RTE", "TREC"]
    assert [t.get_text() for t in left.get_xticklabels()] == ["1", "2", "3", "none"]
    assert [t.get_text() for t in right.get_xticklabels()] == ["1", "2", "3"]
    rows = left.collections[0].get_array().reshape(2, -1).sum(1)
    assert np.asarray(rows) == pytest.approx([1, 1])
