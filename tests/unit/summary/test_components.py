"""Swapped layers and blocks, each summarised for itself."""

import numpy as np
import pytest

from memloc.localise.weights import normalise
from memloc.store.tables import read_tsv, write_tsv
from memloc.summary.components import COLUMNS, summarise_components
from synthetic import windows


def test_components_are_summarised_each_for_itself(tmp_path):
    paths, runs, errors = [], [], {}
    for number, component in enumerate(("layer", "attention", "mlp")):
        for seed in (1, 2):
            frame = windows(number, seed, 4)
            frame["noisy_error"] *= 1 - 0.3 * number
            frame["noisy_error_normalised"] = normalise(frame)
            paths.append(tmp_path / f"{component}{seed}.tsv")
            write_tsv(frame, paths[-1])
            runs.append({"task": "rte", "model": "bert", "seed": seed, "component": component})
            errors.setdefault(component, []).append(frame["noisy_error"].max())
    outputs = {name: tmp_path / f"{name}.tsv" for name in COLUMNS}
    summarise_components(paths, runs, outputs)
    centres = read_tsv(outputs["component_mcog"]).set_index("component")
    weights = read_tsv(outputs["components"])
    assert len(weights) == 3 * 4 and set(weights["n_seeds"]) == {2}
    for component, found in errors.items():
        assert centres.loc[component, "error_all"] == pytest.approx(np.mean(found))
