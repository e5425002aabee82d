"""All twelve data sets of the paper from a local mirror, where there is one."""

import os
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from memloc.data.perturb import perturb_file
from memloc.data.retrieve import retrieve
from memloc.study.sources import local_files
from memloc.study.tasks import load_task, task_params
from shipped import ROOT, SHIPPED, TABLE_1

MIRROR = Path(os.environ.get("MEMLOC_TASKS_DIR", ROOT.parent / "shared" / "data"))

pytestmark = pytest.mark.skipif(
    not (MIRROR / "rte").is_dir(), reason=f"no mirror of the data sets at {MIRROR}"
)


@pytest.mark.parametrize("name", [*TABLE_1, "trec-binary", "implicithate-binary"])
def test_retrieved_perturbed_and_of_table_1s_size(name, tmp_path):
    task = load_task(name, [SHIPPED], MIRROR)
    table, output = tmp_path / "t.parquet", tmp_path / "perturbed.parquet"
    retrieve(task_params(task), local_files(task), table, tmp_path / "m.json")
    perturb_file(
        table,
        output,
        task=name,
        labels=task["labels"],
        share=task["split"].get("share"),
        natural=False,
        ratio=0.15,
        data_seed=0,
    )
    frame = pd.read_parquet(output)
    train = frame[frame["split"] == "train"]
    if name in TABLE_1:
        assert (train["original_label"].nunique(), len(train)) == TABLE_1[name]
    per_class = Counter(train["original_label"])
    noisy = Counter(train.loc[train["noisy"], "original_label"])
    assert noisy == {label: int(0.15 * n) for label, n in per_class.items()}
