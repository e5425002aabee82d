"""Every benchmark still runs, at a size that takes seconds."""

import os
import subprocess
import sys

from shipped import ROOT

FOLDER = ROOT / "benchmarks"
SMALL = "--layers 2 --width 64"
OPTIONS = {
    "centroids": f"{SMALL} --rows 60 --tokens 8 --classes 2 --cells 2 --repeats 1",
    "exam": SMALL,
    "heads": f"{SMALL} --rows 2 --tokens 8",
    "gpu": "--tiny",  # runs probing as well
    "gradients": f"{SMALL} --tokens 8 --examples 4 --repeats 1",
    "packed": "--tiny",  # of both ways, three kinds of steps
    "null_claims": "--studies 1 --parts lean probes coverage level",
    "probing": None,
    "retraining": f"{SMALL} --tokens 8 --steps 1 --repeats 1",
    "rows": "--rows 200",
    "swapping": f"{SMALL} --rows 2 --tokens 8",
}


def test_every_benchmark_runs():
    assert set(OPTIONS) == {path.stem for path in FOLDER.glob("*.py")} - {"common"}
    code = "\n".join(
        f"import {name}" + (f"; {name}.main({options.split()})" if options else "")
        for name, options in OPTIONS.items()
    )
    places = os.pathsep.join([str(FOLDER), str(ROOT / "workflow")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": places},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
