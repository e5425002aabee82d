"""What a press on a window lists: the examples that it reverts, however small others are."""

import pandas as pd

import example_tables
from memloc.report.parts import Content
from memloc.report.reverted import MOST, reverted
from memloc.store.tables import write_tsv
from memloc.summary.examples import COLUMNS, locate, summarise_locations


def content(folder, *seeds):
    """Content with a run per seed of (windows that revert each example, whether memorised)."""
    paths = [folder / f"{i}.tsv" for i in range(len(seeds))]
    for path, found in zip(paths, seeds, strict=True):
        write_tsv(locate(*example_tables.tables(*found)), path)
    runs = [{"task": "rte", "model": "bert", "seed": seed} for seed in range(len(seeds))]
    outputs = {name: str(folder / f"{name}.tsv") for name in COLUMNS}
    summarise_locations(paths, runs, outputs)
    index = [10 + 3 * i for i in range(len(seeds[0][0]))]
    data = pd.DataFrame({"split": "train", "index": index, "noisy": True, "label": "yes"})
    data = data.assign(original_label="no", text=[f"text {i}" for i in index])
    data.sample(frac=1, random_state=0).to_parquet(folder / "rte.parquet")
    tasks, models = example_tables.TASKS, example_tables.MODELS
    texts = {"rte": str(folder / "rte.parquet")}
    return Content("T", outputs, [], models, tasks, {}, "", data=texts)


def listed(found, window):
    of = found["of"]["rte|bert"]
    held = int(of["rows"].get(window, "0x0"), 16)
    return {words[0] for i, words in enumerate(found["texts"]["rte"]) if held >> i & 1}


def test_all_that_a_window_reverts_is_listed_and_counted(tmp_path):
    one = [{"1-1", "1-2"}, {"1-2"}, {"1-3"}, {"1-2"}], [True, True, True, False]
    found = reverted(content(tmp_path, one))
    assert listed(found, "1-2") == {"text 10", "text 13"} and listed(found, "1-1") == {"text 10"}
    of = found["of"]["rte|bert"]
    assert of["n"] == 3 and of["count"] == {"1-1": 1, "1-2": 2, "1-3": 1}


def test_one_seed_is_enough(tmp_path):
    seeds = ([{"1-1"}, set()], None), ([{"2-2"}, {"2-2"}], [True, False])
    found = reverted(content(tmp_path, *seeds))
    assert listed(found, "1-1") == listed(found, "2-2") == {"text 10"}
    assert found["of"]["rte|bert"]["n"] == 2


def test_of_many_examples_some_are_on_the_page_and_all_are_counted(tmp_path):
    found = reverted(content(tmp_path, ([{"1-3"}] * (MOST + 40), None)))
    assert len(listed(found, "1-3")) == MOST
    assert found["of"]["rte|bert"]["count"]["1-3"] == MOST + 40
