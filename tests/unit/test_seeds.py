"""Seeds of purposes."""

import os
import subprocess
import sys

from memloc.seeds import derive
from shipped import ROOT


def test_seeds_differ_by_purpose_and_stay_the_same():
    purposes = [(1, "order", 1), (1, "order", 2), (1, "dropout", 1), (2, "order", 1), (1, "o", 11)]
    assert len({derive(*purpose) for purpose in purposes}) == len(purposes)
    assert all(0 <= derive(*purpose) < 2**63 for purpose in purposes)
    code = "from memloc.seeds import derive; print(derive(1, 'order', 1))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow"), "PYTHONHASHSEED": "77"}
    said = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert int(said) == derive(1, "order", 1)
