"""A short soak: a few kills of jobs and drivers, and the same tables in the end."""

from alike import differences
from soak import soak

STUDY = dict(
    examined=True,
    training={"epochs": 30, "learning_rate": 0.01, "memorised_above": 0.6},
    keep_checkpoints="none",
)
TABLE = "results/toy/tiny/seed1/swap.tsv"


def test_killed_jobs_and_drivers_end_in_the_same_tables(tmp_path):
    # the driver, then jobs; so soon after each other that one study has time for all of them
    tally = soak(tmp_path, kills=3, seed=1, study=STUDY, targets=[TABLE], pause=1.0)
    assert not tally.differences, str(tally)
    assert tally.kills == 3 and tally.jobs and tally.drivers and tally.restarts, str(tally)


def test_a_difference_is_seen(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder, value, seconds in ((one, "0.5", "1"), (other, "0.5", "2")):
        folder.mkdir()
        (folder / "a.tsv").write_text(f"value\tseconds\n{value}\t{seconds}\n")
    assert not list(differences(one, other))
    (other / "a.tsv").write_text("value\tseconds\n0.50\t1\n")
    (other / "b.sha256").write_text("0\n")
    assert [text.split(":")[0] for text in differences(one, other)] == ["b.sha256", "a.tsv"]
