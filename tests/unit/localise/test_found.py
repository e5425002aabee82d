"""Whether a technique found something, on tables by hand."""

import numpy as np
import pandas as pd
import pytest

import synthetic
from memloc.localise import found
from memloc.localise.found import Outcome, labels_undone, noise_unseen, nothing_found
from memloc.study.techniques import TECHNIQUES

REACHED, NOT = Outcome(1.0, True), Outcome(0.9, False)


def windows(error, n_noisy=100):
    rows = [(1, 1, 0.9), (1, 2, error), (2, 2, 0.9)]  # the window of all layers decides
    return pd.DataFrame(rows, columns=["start", "end", "noisy_error"]).assign(n_noisy=n_noisy)


@pytest.mark.parametrize("accuracy, error, wanted", [
    (1.0, 0.5, True), (1.0, 0.0, False), (0.4, 0.62, False), (0.4, 0.9, True), (0.0, 1.0, False),
])  # fmt: skip
def test_windows_undo_more_than_was_never_memorised(accuracy, error, wanted):
    assert labels_undone({1: windows(error)}, {1: Outcome(accuracy)}) == wanted


def test_a_difference_counts_once_it_leaves_its_band():
    # shares .10 and .05 of n: band 1.645 * sqrt((.09 + .0475) / n) = .061 of 100, .043 of 200
    outcome = Outcome(0.95)
    assert not labels_undone({1: windows(0.10)}, {1: outcome})
    assert labels_undone({s: windows(0.10) for s in (1, 2)}, {1: outcome, 2: outcome})


def test_what_reads_theta_m1_needs_it_in_some_seed():
    tables = {1: synthetic.gradients(), 2: synthetic.gradients()}
    gradients = TECHNIQUES["gradients"]
    assert nothing_found(gradients, tables, {1: NOT, 2: NOT}) == found.UNREACHED
    assert nothing_found(gradients, tables, {1: NOT, 2: REACHED}) == ""
    rewound = {1: synthetic.windows()}
    named = TECHNIQUES["rewinding-memorised"]
    assert nothing_found(named, rewound, {1: NOT}) == found.UNREACHED


def probes(gains):
    """A table of noise probes: gains over random labels, (probe seeds, layers)."""
    seeds, layers = (part.ravel() for part in np.indices(np.shape(gains)))
    frame = pd.DataFrame({"layer": layers + 1, "probe_seed": seeds, "f1_random": 0.2})
    frame = frame.assign(f1=0.2 + np.ravel(gains), kind="noise", examples="all", source="theta_M2")
    zero = frame.assign(layer=0, f1=0.9)  # the embeddings, a probe of theta_F and one for labels
    others = [frame.assign(f1=0.9, source="theta_F"), frame.assign(f1=0.9, kind="perturbed")]
    return pd.concat([frame, zero, *others])


def test_probes_are_judged_by_their_own_spread():
    # two layers: one-sided level .025 of t with 4 degrees is 2.776; sd .1 * sqrt(2.5), n 5
    noise = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])
    edge = 2.776 * 0.1 * np.sqrt(2.5) / np.sqrt(5)
    for shift, wanted in ((edge - 0.01, found.CHANCE), (edge + 0.01, "")):
        gains = np.column_stack([noise, noise + shift])
        assert noise_unseen({1: probes(gains)}) == wanted
    steady = np.full((5, 2), 0.03)  # little, and in every probe: no fixed margin stands against it
    assert noise_unseen({1: probes(steady)}) == ""


def test_one_probe_cannot_tell():
    assert noise_unseen({1: probes([[0.5, 0.6]])}) == found.ONE_PROBE
    assert noise_unseen({s: probes([[0.5, 0.6]]) for s in (1, 2)}) != found.ONE_PROBE
    assert nothing_found(TECHNIQUES["weight-change"], {1: synthetic.weight_change()}, {}) == ""
