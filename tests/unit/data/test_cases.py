"""Faulty inputs from public reports, in their smallest form, where there is a folder of them."""

import os
from pathlib import Path

import pytest

from memloc.data.perturb import perturb_file
from memloc.data.retrieve import retrieve
from memloc.errors import MemlocError
from memloc.store.files import read_json
from memloc.study.sources import local_files
from memloc.study.tasks import load_task, task_params
from shipped import ROOT

CASES = Path(os.environ.get("MEMLOC_CASES_DIR", ROOT.parent / "shared" / "cases"))

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason=f"no folder of cases at {CASES}")


def prepared(case, tmp_path):
    """Retrieve and perturb a case's task; rows of the perturbed table."""
    task = load_task("toy", [CASES / case])
    table, output = tmp_path / "toy.parquet", tmp_path / "perturbed.parquet"
    retrieve(task_params(task), local_files(task), table, tmp_path / "toy.manifest.json")
    perturb_file(
        table,
        output,
        task="toy",
        labels=task["labels"],
        share=task["split"].get("share"),
        natural="noisy" in task["columns"],
        ratio=0.15,
        data_seed=0,
    )
    record = read_json(tmp_path / "perturbed.parquet.provenance.json")
    return sum(record["rows"].values())


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("03-tsv-quotes-merge-rows", r"toy\.tsv: .* lines 12 to 15"),
        ("08-nan-scores", r"not a finite number: 'nan' \(.*toy_train\.csv lines 4, 7, 10"),
        ("09-json-key-twice", r"'answer' \(.*d\.jsonl lines 1, 11"),
        ("16-zip-password", r"d\.zip.*password"),
        ("16-zip-torn", r"d\.zip.*damaged"),
        ("31-parquet-column-twice", r"d\.parquet: has the columns 'answer' twice"),
    ],
)
def test_refused_in_one_line(case, words, tmp_path):
    with pytest.raises(MemlocError, match=words) as caught:
        prepared(case, tmp_path)
    assert len(str(caught.value)) < 1500 and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("case", "rows"),
    [("20-json-array", 3000), ("21-empty-header-cells", 60), ("30-bom-and-named-encoding", 60)],
)
def test_read_rightly(case, rows, tmp_path):
    assert prepared(case, tmp_path) == rows


def test_a_class_without_true_examples_is_told(tmp_path, caplog):
    """By the split of our own, four of the class's five true rows come to training."""
    prepared("33-class-without-true-example", tmp_path)
    assert "class no has 24 training rows, but only 4 known to be truly of it" in caplog.text
