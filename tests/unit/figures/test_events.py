"""The figure of events: a column per model, and their mean where there are several."""

import pytest

import centroid_tables
from memloc.figures.events import events_by_task
from memloc.store.tables import read_tsv
from synthetic import MODELS, TASKS


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    tables, _ = centroid_tables.study(tmp_path_factory.mktemp("study"))
    return read_tsv(tables["events"]), read_tsv(tables["centroids"])


def test_there_is_a_column_per_model_and_one_for_their_mean(frames):
    figure = events_by_task(*frames, TASKS, MODELS)
    assert len(figure.axes) == 2 * (len(MODELS) + 1)


def test_one_model_has_no_mean_over_models(frames):
    events, curves = (frame[frame["model"] == "opt"] for frame in frames)
    events = events[~events["event"].str.startswith("probing")]
    figure = events_by_task(events, curves, TASKS, {"opt": MODELS["opt"]})
    assert len(figure.axes) == 1


def test_events_that_cannot_be_found_are_left_out(tmp_path):
    table = centroid_tables.unknown_noise()
    _, events, curves = centroid_tables.of_one_run(table, tmp_path)
    assert events_by_task(events, curves, TASKS, {"opt": MODELS["opt"]}).axes
