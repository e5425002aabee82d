"""Every benchmark still runs, at a size that takes seconds."""

import importlib
import os
import subprocess
from types import SimpleNamespace

import pytest

import warm
from shipped import ROOT

FOLDER = ROOT / "benchmarks"
SMALL = "--layers 2 --width 64"
OPTIONS = {
    "centroids": f"{SMALL} --rows 60 --tokens 8 --classes 2 --cells 2 --repeats 1",
    "exam": SMALL,
    "heads": f"{SMALL} --rows 2 --tokens 8",
    "gpu": "--tiny",  # runs probing, stacks and processes as well
    "gradients": f"{SMALL} --tokens 8 --examples 4 --repeats 1",
    "launches": "--tiny",
    "packed": "--tiny",  # of both ways, three kinds of steps
    "null_claims": "--studies 1 --parts lean probes coverage level",
    "probing": None,
    "processes": None,
    "retraining": f"{SMALL} --tokens 8 --steps 1 --repeats 1",
    "rows": "--rows 200",
    "stacks": None,
    "training": f"{SMALL} --rows 16 --tokens 8 --repeats 1",
    "swapping": f"{SMALL} --rows 2 --tokens 8",
}


def test_every_benchmark_runs(tmp_path):
    assert set(OPTIONS) == {path.stem for path in FOLDER.glob("*.py")} - {"common", "sizes"}
    (tmp_path / "all.py").write_text(
        "\n".join(
            f"import {name}" + (f"; {name}.main({options.split()})" if options else "")
            for name, options in OPTIONS.items()
        )
    )
    places = os.pathsep.join([str(FOLDER), str(ROOT / "workflow")])
    done = subprocess.run(
        [warm.python(), tmp_path / "all.py"],
        env=os.environ | {"PYTHONPATH": places},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr


@pytest.fixture
def launches(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("launches")


def per_layer(count, size, *arguments):
    """Kernels that one more layer adds."""
    two, three = (count(SimpleNamespace(**vars(size) | {"layers": n}), *arguments) for n in (2, 3))
    return three.total - two.total


def test_bfloat16_costs_a_layer_no_kernel_per_weight(launches):
    """A BERT layer has 12 parameters that products read: rounding each, and its gradient, is 24.

    And query, key and value are one product: a layer has 51 kernels where they are three.
    """
    plain, rounded = (
        per_layer(launches.alone, launches.TINY, precision) for precision in ("float32", "bfloat16")
    )
    assert plain <= 43 and rounded - plain < 10


def test_windows_share_the_kernels_of_their_clip(launches):
    few, many = (launches.retraining(launches.TINY, "float32", windows) for windows in (2, None))
    for name in ("linalg_vector_norm", "mul_", "_fused_adamw_"):
        assert few.kernels[name] == many.kernels[name] > 0


def test_a_layer_of_all_windows_has_no_more_kernels_than_it_had(launches):
    """113 in float32 and 138 in bfloat16, where windows' own and shared layers go apart."""
    for precision, most in (("float32", 115), ("bfloat16", 140)):
        assert per_layer(launches.retraining, launches.TINY, precision) <= most


def test_products_that_add_and_norms_that_are_trained_take_a_kernel_more(launches):
    assert launches.kernels_of("baddbmm", (), {}) == 2
    assert launches.kernels_of("baddbmm", (), {"beta": 0, "alpha": 2.0}) == 1
    for mask, kernels in (([True, False, False], 1), ([True, True, True], 2)):
        assert launches.kernels_of("native_layer_norm_backward", (None, mask), {}) == kernels
