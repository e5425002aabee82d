"""Whose a benchmark file is."""

from collections import Counter

import demo_record
from memloc.budget.finished import WILDCARD, finished_jobs

NOWHERE = "{checkpoint,(?!)}"  # no model was given
VALUES = {
    "task": "bbc", "model": "minilm", "seed": "1", "subject": "seed1", "labels": "original",
    "windows": "3-5", "half": "1", "component": "mlp", "technique": "swapping", "measure": "mcog",
    "pair": "layers1-2",
}  # fmt: skip


def test_every_file_counts_for_the_one_rule_that_writes_it(tmp_path):
    """Swapped heads lie at swap-heads, which swap-{component} would take, were it free."""
    found = demo_record.demo_patterns().items()
    patterns = {rule: at for rule, at in found if NOWHERE not in at[0]}
    assert len(patterns) > 40
    for rule, (benchmark, _) in patterns.items():
        path = tmp_path / WILDCARD.sub(lambda found: VALUES[found[1]], benchmark)
        assert not path.exists(), rule
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("s\n1.0\n")
    found = finished_jobs(patterns, at_most=None, root=tmp_path)
    assert Counter(job.rule for job, *_ in found) == Counter(list(patterns))
    (component,) = (job for job, *_ in found if job.rule == "swap_component")
    assert component.wildcards["component"] == "mlp"
