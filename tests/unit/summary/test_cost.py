"""Snakemake's benchmark files, summed by stage."""

import pandas as pd

from memloc.summary.cost import cost, starred


def test_cost_by_stage(tmp_path):
    for seed in (1, 2):
        path = tmp_path / "rte" / "opt" / f"seed{seed}" / "swap.tsv"
        path.parent.mkdir(parents=True)
        row = {"s": 2.5 * seed, "h:m:s": "0:00:02", "max_rss": 100.0 * seed, "cpu_time": 4.0}
        pd.DataFrame([row]).to_csv(path, sep="\t", index=False)
    found = cost(tmp_path, ["rte", "opt"]).iloc[0]
    assert found["stage"] == "*/*/*/swap" and found["jobs"] == 2
    assert found["seconds"] == 7.5 and found["longest_seconds"] == 5.0 and found["peak_mb"] == 200
    assert cost(tmp_path / "nothing", []).empty
    assert starred("b/summary/weights.tsv", "b", ["rte"]) == "summary/weights"
    figure = "b/figures/memorisation_map_rte_gpt-neo.tsv"
    assert starred(figure, "b", ["rte", "gpt-neo"]) == "figures/memorisation_map_*_*"
    assert starred("b/rte@2/opt/seed1/swap.tsv", "b", ["rte", "opt"]) == "*/*/*/swap"
