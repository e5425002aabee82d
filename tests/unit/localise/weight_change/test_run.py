"""Weight changes equal NumPy's norms of the layers' parameters."""

import numpy as np
import pandas as pd
import pytest

from memloc.errors import MemlocError
from memloc.localise.weight_change.run import layer_changes, run
from memloc.localise.weight_change.weights import ORIGINAL, PRETRAINED, change_weights
from memloc.models.layers import find_layers
from memloc.store.files import read_json
from tiny import FAMILIES, N_LAYERS, tiny_model
from window_models import pair

pytestmark = pytest.mark.usefixtures("one_thread", "determinism_restored")

READING = dict(class_names=["no", "so", "yes"], separator=None, max_length=16)


@pytest.mark.parametrize("family", FAMILIES)
def test_weight_changes_equal_numpy(family, tmp_path):
    model, original = pair(family)
    pretrained = tiny_model(family, seed=3)
    models = {"theta_M2": model, "theta_O": original, "theta_P": pretrained}
    for name, found in models.items():
        found.save_pretrained(tmp_path / name)
    inputs, output = {name: str(tmp_path / name) for name in models}, tmp_path / "changes.tsv"
    run(inputs, {"table": str(output)}, {"reading": READING}, 0)
    table = pd.read_csv(output, sep="\t")
    assert read_json(f"{output}.provenance.json")["device"].startswith("CPU")
    assert len(table) == 2 * N_LAYERS
    for name, reference in ((ORIGINAL, original), (PRETRAINED, pretrained)):
        weights = change_weights(table, name)
        assert list(weights["layer"]) == list(range(1, N_LAYERS + 1))
        for number, weight in enumerate(weights["weight"]):
            ours, theirs = (
                np.concatenate(
                    [p.detach().numpy().ravel() for p in find_layers(m)[number].parameters()]
                ).astype(float)
                for m in (model, reference)
            )
            expected = np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)
            assert weight == pytest.approx(expected, rel=1e-9)


def test_weight_change_refuses_zeros_and_an_unknown_reference():
    model, zeros = pair("bert")
    for parameter in find_layers(zeros)[2].parameters():
        parameter.data.zero_()
    with pytest.raises(MemlocError, match="layer 3 of theta_O are 0"):
        layer_changes(model, zeros, ORIGINAL)
    with pytest.raises(MemlocError, match="no 'theta_F'; it has theta_O"):
        change_weights(pd.DataFrame(layer_changes(model, tiny_model("bert"), ORIGINAL)), "theta_F")
