"""A finished run is joined by one on noise that a second data seed draws anew."""

import pandas as pd

from study import planned, snakemake, write_study

SWAPPED = "results/toy/tiny/seed1/swap.tsv"
TABLE = "results/summary/variance.tsv"
SEEDS = ("--config", "data_seeds=[0, 5]")


def test_a_further_data_seed_only_adds(tmp_path):
    folder = write_study(
        tmp_path,
        examined=True,
        techniques=["swapping"],
        swapping={"components": ["layer"]},
        stages=[],
    )
    snakemake(folder, SWAPPED)
    before = (folder / SWAPPED).read_bytes()
    added = dict.fromkeys(("perturb_task", "train_perturbed", "swap", "summarise_variance"), 1)
    assert planned(folder, TABLE, before=SEEDS) == added
    snakemake(folder, *SEEDS, "--", TABLE)
    assert (folder / SWAPPED).read_bytes() == before
    first, anew = (
        pd.read_parquet(folder / f"results/{name}/perturbed.parquet") for name in ("toy", "toy@5")
    )
    assert first["index"].equals(anew["index"]) and first["noisy"].sum() == anew["noisy"].sum()
    assert not first["noisy"].equals(anew["noisy"])
    assert not (folder / "results/toy@5/tiny/seed1/original").exists(), "theta_O is shared"
    rows = pd.read_csv(folder / TABLE, sep="\t").set_index("component")
    assert list(rows.index) == ["task", "data_seed", "model_seed", "residual"]
    assert (rows["n_runs"] + rows["n_left_out"] == 2).all()
    assert rows.loc["task", "note"] and pd.isna(rows.loc["task", "variance"])
    assert "Nothing to be done" in snakemake(folder, *SEEDS, "--", TABLE).stdout
