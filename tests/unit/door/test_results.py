"""What results carry: M-CoG, how far to trust it, pictures; and how the door is loaded."""

import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd
import pytest
import yaml

import memloc
from memloc.door.results import Centroids, Layers, Windows
from memloc.door.settings import PROBE_SEEDS, PROBING, RETRAINING
from memloc.explain.centroids import COLUMNS as CENTROID_COLUMNS
from memloc.windows import all_windows, window_name
from shipped import ROOT

N_NOISY = 8


def windows(holding=1, n_layers=4, accuracy=1.0):
    """A model whose one layer holds everything: exactly the windows that include it revert."""
    rows, kept = [], {"index": range(N_NOISY)}
    for start, end in all_windows(n_layers):
        reverts = start <= holding <= end
        rows.append((start, end, float(reverts), 0.0, N_NOISY, N_NOISY, float(reverts)))
        kept[window_name((start, end))] = [not reverts] * N_NOISY
    columns = ["start", "end", "noisy_error", "clean_error", "n_noisy", "n_clean"]
    table = pd.DataFrame(rows, columns=[*columns, "noisy_error_normalised"])
    return Windows(
        "swapping", table, {}, noisy_accuracy=accuracy, kept=pd.DataFrame(kept), n_layers=n_layers
    )


def test_the_centre_of_one_layer_that_holds_everything_is_the_end_of_what_is_attainable():
    first, last = windows(1), windows(4)
    assert first.mcog == pytest.approx(first.centre["attainable_low"])
    assert last.mcog == pytest.approx(last.centre["attainable_high"])
    assert first.layers["weight"].iloc[0] == 1.0
    assert first.centre["leans"] == "lower" and last.centre["leans"] == "upper"
    assert f"M-CoG {first.mcog:.2f} of layers 1 to 4" in repr(first)


def test_nothing_found_is_said():
    found = windows(accuracy=0.0)
    assert found.centre["found"] == "no" and "nothing found" in repr(found)


def test_pictures_go_to_the_axis_that_is_given_and_change_nothing_else():
    settings, backend = dict(matplotlib.rcParams), matplotlib.get_backend()
    _, (one, two, three) = plt.subplots(1, 3)
    table = pd.DataFrame({"reference": "theta_O", "layer": [1, 2], "relative_change": [0.5, 1.0]})
    assert windows().plot(one) is one and one.get_xlabel() == "layer"
    drawn = Layers("weight-change", table, {}, {"reference": "theta_O"}).plot(two)
    assert drawn.lines[0].get_ydata().tolist() == [0.5, 1.0]
    assert windows().plot_layers(three).lines[0].get_xdata().tolist() == [1, 2, 3, 4]
    assert windows().plot() is not one
    numbers = dict.fromkeys(CENTROID_COLUMNS, 0.5)
    rows = [
        numbers | {"source": "trained", "layer": layer, "class_a": a, "class_b": b, "n_noisy": 9}
        for layer in (1, 2)
        for a, b in (("a", "b"), ("all", "all"))
    ]
    places = Centroids(pd.DataFrame(rows), pd.DataFrame(), {})
    assert places.plot().get_ylabel().startswith("place between")
    with pytest.raises(memloc.MemlocError, match="source 'middle'"):
        places.plot(source="middle")
    assert "1 pairs of classes, 2 layers" in repr(places)
    plt.close("all")
    assert dict(matplotlib.rcParams) == settings and matplotlib.get_backend() == backend


def test_defaults_are_the_configurations():
    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    assert {key: config["retraining"][key] for key in RETRAINING} == RETRAINING
    assert {key: config["probing"][key] for key in PROBING} == PROBING
    assert list(PROBE_SEEDS) == config["probing"]["seeds"]
    assert set(config["retraining"]) - set(RETRAINING) == {"batch", "moments"}
    assert set(config["probing"]) - set(PROBING) == {"seeds", "states", "batch_tokens"}


def test_importing_memloc_is_light_and_names_are_known():
    code = (
        "import sys, memloc; heavy = {'torch', 'transformers', 'pandas', 'numpy', 'matplotlib'};"
        "assert 'swap' in dir(memloc) and not heavy & set(sys.modules), heavy & set(sys.modules);"
        "assert not hasattr(memloc, 'swop');"
        "sys.modules['torch'] = None\n"
        "try: memloc.swap\n"
        "except ImportError as error: print(error)"
    )
    said = subprocess.check_output(
        [sys.executable, "-c", code], text=True, env={"PYTHONPATH": str(ROOT / "workflow")}
    )
    assert "pip install 'memloc[models,figures]'" in said


def test_every_name_of_the_door_is_documented():
    for name in memloc._DOOR:
        assert (getattr(memloc, name).__doc__ or "").strip(), name
