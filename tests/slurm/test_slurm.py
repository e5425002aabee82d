"""The slurm profile on a real Slurm: what jobs ask for, and what they survive.

Runs where `make test-slurm` or .ci/run asks for it: it starts a cluster of its own, as root.
"""

import json
import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from cluster import Cluster, Unavailable
from runs import (
    EPOCHS,
    QUICK,
    RUN,
    Driver,
    copy_of,
    disturbed_study,
    epochs_trained,
    results,
    rule_of,
    stop_drivers,
    submitted,
    wait_until,
    write_profile,
    write_slurm_study,
)

SWAP = f"{RUN}/swap.tsv"
FIGURES = ("matrix_swapping_tiny", "matrix_retraining_tiny", "mcog")
TARGETS = (
    *("results/summary/mcog.tsv", "results/toy/tiny/generalisation.tsv"),
    *(f"results/figures/{name}.png" for name in FIGURES),
)
ASKED = os.environ.get("MEMLOC_TEST_SLURM")
pytestmark = pytest.mark.skipif(
    not ASKED, reason="starts a Slurm cluster, as root: run `make test-slurm`"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A running cluster; where there can't be one, the tests are skipped with the reason."""
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.start()
    except Unavailable as reason:
        pytest.skip(f"no Slurm cluster here: {reason}")
    yield started
    stop_drivers()
    started.stop()


@pytest.fixture(scope="module")
def finished(cluster, tmp_path_factory):
    """A study from data to tables and figures through the profile as it is shipped, undisturbed."""
    folder = write_slurm_study(tmp_path_factory.mktemp("study") / "whole")
    options = [text for key, value in QUICK.items() for text in (f"--{key}", str(value))]
    options += ["--slurm-array-jobs", "retrain", "--"]
    Driver(folder, *options, *TARGETS, profile="slurm").finish()
    return folder


def plan(text: str) -> dict[str, dict[str, str]]:
    """What the driver said of each job: by its number, its rule and resources."""
    found = {}
    for block in re.split(r"\n\[[^\n]+\]\n", text):
        job = re.match(r"(localrule|rule) (\w+):", block)
        number = re.search(r"^ +jobid: (\d+)$", block, flags=re.M)
        resources = re.search(r"^ +resources: (.*)$", block, flags=re.M)
        if job and number and resources:
            asked = dict(part.split("=", 1) for part in resources[1].split(", "))
            found[number[1]] = {"kind": job[1], "rule": job[2], **asked}
    return found


def slurm_numbers(text: str) -> dict[str, str]:
    """Number of Snakemake's job -> number of Slurm's, for jobs submitted one by one."""
    return dict(re.findall(r"^Job (\d+) has been submitted with SLURM jobid (\d+)", text, re.M))


def minutes(limit: str) -> int:
    """Slurm's [days-]hours:minutes:seconds in minutes."""
    days, _, clock = limit.rpartition("-")
    hours, mins, _ = map(int, clock.split(":"))
    return (int(days or 0) * 24 + hours) * 60 + mins


def test_every_job_goes_through_slurm(cluster, finished):
    text = (finished / "driver.log").read_text()
    jobs = submitted(cluster.jobs(), finished)
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    planned = plan(text)
    local = {job["rule"] for job in planned.values() if job["kind"] == "localrule"}
    assert local <= {"retrieve_task", "retrieve_model", "split_half", "budget", "all"}
    ran = {rule_of(job) for job in jobs}
    expected = {job["rule"] for job in planned.values()} - local
    # figures are a group, which the driver's log may list by its name alone
    assert ran == {rule for rule in expected if not rule.startswith("figure_")} | {"figures"}


def test_jobs_ask_for_what_was_planned(cluster, finished):
    text = (finished / "driver.log").read_text()
    planned, numbers = plan(text), slurm_numbers(text)
    jobs = {job["JobId"]: job for job in submitted(cluster.jobs(), finished)}
    seen = set()
    for number, asked in planned.items():
        if number not in numbers:
            continue  # in a group, in an array, or local
        job = jobs[numbers[number]]
        assert rule_of(job) == asked["rule"]
        assert minutes(job["TimeLimit"]) == int(asked["runtime"]), job
        assert job["MinMemoryNode"] == f"{asked['mem_mb']}M", job
        assert job["Partition"] == asked["slurm_partition"] == ("gpu" if "gpu" in asked else "cpu")
        assert job.get("TresPerJob") == ("gres:gpu:1" if "gpu" in asked else None)
        seen.add(asked["rule"])
    assert {"perturb_task", "train_perturbed", "swap", "summarise"} <= seen


def test_like_jobs_share_an_array_or_a_job(cluster, finished):
    jobs = submitted(cluster.jobs(), finished)
    # Windows of a run become ready at once, but for that of all layers, which comes before them;
    # halves don't, as their splits end one by one.
    windows = [job for job in jobs if rule_of(job) == "retrain"]
    assert len(windows) == 3
    assert {"1", "2"} <= {job.get("ArrayTaskId") for job in windows}
    assert {job["Partition"] for job in windows} == {"gpu"}
    figures = [job for job in jobs if rule_of(job) == "figures"]
    assert len(figures) < len(FIGURES)


def test_jobs_leave_their_logs(finished):
    for rule in ("rule_train_perturbed", "rule_retrain", "rule_summarise", "group_figures"):
        assert list((finished / "logs/slurm").glob(f"{rule}*/**/*.log")), rule


def test_jobs_see_the_gpu_they_were_given(cluster, tmp_path):
    output = tmp_path / "seen"
    script = 'echo "$CUDA_VISIBLE_DEVICES"'
    cluster.run(
        *("sbatch", "--wait", "--partition=gpu", "--gpus=1", "--mem=500", "--time=1"),
        *("--chdir", str(tmp_path), "--output", str(output), "--wrap", script),
    )
    assert output.read_text().strip() in ("0", "1")


# --- several jobs on one GPU ---------------------------------------------------------------------

HALVES = "results/toy/tiny/halves"
SHARING = {
    "shards": {"rules": {"train_half": {"gpu": 0, "gres": "'shard:1'"}}},
    "group": {
        "rules": {"train_half": {"gpu": 0, "gres": "'gpu:1'"}},
        "groups": ["train_half=gpu"],
        "group-components": ["gpu=2"],
    },
}


@pytest.fixture(scope="module", params=SHARING)
def shared(request, cluster, finished, tmp_path_factory):
    """Both halves trained anew, each on a shard of a GPU, or as a group in one allocation."""
    folder = copy_of(finished, tmp_path_factory.mktemp("sharing") / request.param)
    halves = sorted((folder / HALVES).glob("*.parquet"))
    assert len(halves) == 2
    for half in halves:
        half.unlink()
    write_profile(folder, **SHARING[request.param])
    Driver(folder, *(str(half.relative_to(folder)) for half in halves)).finish()
    return request.param, folder


def test_jobs_that_share_a_gpu_give_what_they_give_alone(finished, shared):
    _, folder = shared
    for half in (finished / HALVES).glob("*.parquet"):
        again = folder / HALVES / half.name
        assert again.read_bytes() == half.read_bytes()
        assert json.loads(again.with_name(f"{half.name}.provenance.json").read_text())


def test_jobs_share_a_gpu_as_the_site_has_it(cluster, shared):
    how, folder = shared
    jobs = submitted(cluster.jobs(), folder)
    trained = [job for job in jobs if job["Partition"] == "gpu"]
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}
    if how == "shards":
        assert [job["TresPerNode"] for job in trained] == ["gres:shard:1"] * 2
        return
    (job,) = trained
    assert job["TresPerNode"] == "gres:gpu:1"


# --- troubles ------------------------------------------------------------------------------------


def struck(driver: Driver) -> int:
    """Wait for the trouble to strike; the process it struck."""
    mark = driver.folder / "struck"
    wait_until(lambda: mark.exists() or driver.process.poll() is not None, "a stroke of trouble")
    assert mark.exists(), driver.said()[-4000:]
    return int(mark.read_text())


def training_jobs(cluster: Cluster, folder: Path) -> list[dict[str, str]]:
    return submitted(cluster.jobs(), folder, "train_perturbed")


def over_time(cluster: Cluster, folder: Path) -> None:
    """A training job stops in its tracks, and runs into its time limit: a minute, to be quick."""
    driver = Driver(folder, SWAP)
    struck(driver)
    number = training_jobs(cluster, folder)[0]["JobId"]
    cluster.run("scontrol", "update", f"JobId={number}", "TimeLimit=1")
    driver.finish()


def over_memory(cluster: Cluster, folder: Path) -> None:
    """A training job takes more memory than it asked for."""
    Driver(folder, SWAP).finish()


def cancelled(cluster: Cluster, folder: Path) -> None:
    """Somebody cancels a training job."""
    driver = Driver(folder, SWAP)
    struck(driver)
    cluster.run("scancel", training_jobs(cluster, folder)[0]["JobId"])
    driver.finish()


def driver_killed(cluster: Cluster, folder: Path) -> str:
    """The driver dies while its job trains; started at once again it is refused, later it isn't."""
    driver = Driver(folder, SWAP)
    process = struck(driver)
    driver.process.kill()
    driver.wait()
    unlock = Driver(folder, "--unlock")
    unlock.finish()
    refused = Driver(folder, SWAP)
    assert refused.wait() != 0
    os.kill(process, signal.SIGCONT)
    number = training_jobs(cluster, folder)[0]["JobId"]
    wait_until(lambda: job_state(cluster, folder, number) == "COMPLETED", "the job left behind")
    Driver(folder, SWAP).finish()
    return refused.said()


def job_state(cluster: Cluster, folder: Path, number: str) -> str:
    jobs = {job["JobId"]: job["JobState"] for job in training_jobs(cluster, folder)}
    return jobs[number]


def node_lost(cluster: Cluster, daemon_only: Path, everything: Path) -> None:
    """slurmd dies with two jobs running, one of which dies with it; slurmd comes back."""
    drivers = [Driver(folder, SWAP) for folder in (daemon_only, everything)]
    survivor, victim = (struck(driver) for driver in drivers)
    number = training_jobs(cluster, everything)[0]["JobId"]
    cluster.kill_node()
    # All of it: what is left of a job would tidy up after itself while it runs again.
    processes = cluster.processes(number)
    assert victim in processes
    for process in processes:
        with suppress(ProcessLookupError):  # it ended with one before it
            os.kill(process, signal.SIGKILL)
    cluster.start_node()
    os.kill(survivor, signal.SIGCONT)
    for driver in drivers:
        driver.finish()


def preempted(cluster: Cluster, started_again: Path, ended: Path) -> None:
    """A job of more weight takes the node, from a partition that requeues and one that cancels."""
    drivers = [Driver(folder, SWAP) for folder in (started_again, ended)]
    for driver in drivers:
        struck(driver)
    whole = ("--exclusive", "--mem=0", "--time=5", "--output=/dev/null", "--wrap", "true")
    cluster.run("sbatch", "--wait", "--partition=urgent", *whole)
    for driver in drivers:
        driver.finish()


@pytest.fixture(scope="module")
def troubles(cluster, finished, tmp_path_factory):
    """Every trouble once, several at a time: folder and what came of it, by name."""
    place = tmp_path_factory.mktemp("troubles")
    gres = {"swap": {"gres": "gpu:1"}}  # the override for sites that know GPUs so alone
    profiles = {
        "over_time": {},
        "over_memory": {"rules": {"train_perturbed": {"mem_mb": "attempt * 1500"}}},
        "cancelled": {"rules": gres},
        "driver_killed": {},
        "daemon_killed": {},
        "node_lost": {},
        "preempted": {},
        "preempted_for_good": {"rules": {"train_perturbed": {"slurm_partition": "spot"}}},
    }
    folders = {
        name: disturbed_study(
            finished, place / name, "memory" if name == "over_memory" else "hang", **profile
        )
        for name, profile in profiles.items()
    }
    with ThreadPoolExecutor(4) as pool:
        first = {
            action.__name__: pool.submit(action, cluster, folders[action.__name__])
            for action in (over_time, over_memory, cancelled, driver_killed)
        }
    # by itself: no other job should start while slurmd is away
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(node_lost, cluster, folders["daemon_killed"], folders["node_lost"])
    with ThreadPoolExecutor(1) as pool:  # a preempting job takes the whole node
        two = (folders["preempted"], folders["preempted_for_good"])
        pushed = pool.submit(preempted, cluster, *two)
    outcomes = {**first, "daemon_killed": lost, "node_lost": lost}
    outcomes |= {"preempted": pushed, "preempted_for_good": pushed}
    return {name: (folders[name], outcome) for name, outcome in outcomes.items()}


@pytest.fixture
def after(request, troubles):
    """The study after one trouble, and what its action returned; its failure fails the test."""
    folder, outcome = troubles[request.param]
    return folder, outcome.result()


ALL_TROUBLES = (
    *("over_time", "over_memory", "cancelled"),
    *("driver_killed", "daemon_killed", "node_lost", "preempted", "preempted_for_good"),
)


@pytest.mark.parametrize("after", ALL_TROUBLES, indirect=True)
def test_results_are_those_of_an_undisturbed_run(finished, after):
    assert results(after[0]) == results(finished)


@pytest.mark.parametrize("after", ALL_TROUBLES, indirect=True)
def test_no_finished_epoch_is_trained_again(after):
    # An epoch that was logged but not yet saved when the process died is the one exception.
    trained = epochs_trained(after[0])
    assert sorted(set(trained)) == list(range(1, EPOCHS + 1))
    assert len(trained) <= EPOCHS + 1, trained


@pytest.mark.parametrize(
    ("after", "states"),
    [
        ("over_time", ["TIMEOUT", "COMPLETED"]),
        ("over_memory", ["FAILED", "COMPLETED"]),
        ("cancelled", ["CANCELLED", "COMPLETED"]),
        ("driver_killed", ["COMPLETED"]),
        ("daemon_killed", ["COMPLETED"]),
        ("node_lost", ["COMPLETED"]),
        ("preempted", ["COMPLETED"]),
        ("preempted_for_good", ["COMPLETED"]),
    ],
    indirect=["after"],
)
def test_trouble_costs_one_attempt_at_most(cluster, after, states):
    assert [job["JobState"] for job in training_jobs(cluster, after[0])] == states


def resumed(folder: Path) -> bool:
    logs = (folder / "logs/slurm/rule_train_perturbed").rglob("*.log")
    return any("resuming after epoch" in log.read_text() for log in logs)


@pytest.mark.parametrize(
    "after",
    ["over_time", "over_memory", "cancelled", "node_lost", "preempted", "preempted_for_good"],
    indirect=True,
)
def test_a_killed_job_resumes(after):
    assert resumed(after[0])


@pytest.mark.parametrize("after", ["driver_killed", "daemon_killed"], indirect=True)
def test_a_job_goes_on_without_its_driver_or_daemon(after):
    assert not resumed(after[0])


@pytest.mark.parametrize("after", ["over_memory"], indirect=True)
def test_a_new_attempt_asks_for_more_memory(cluster, after):
    jobs = training_jobs(cluster, after[0])
    assert [job["MinMemoryNode"] for job in jobs] == ["1500M", "3000M"]


@pytest.mark.parametrize("after", ["over_time"], indirect=True)
def test_a_new_attempt_asks_for_more_time(cluster, finished, after):
    (undisturbed,) = training_jobs(cluster, finished)
    again = training_jobs(cluster, after[0])[-1]
    assert minutes(again["TimeLimit"]) == 2 * minutes(undisturbed["TimeLimit"])


@pytest.mark.parametrize("after", ["node_lost", "preempted", "preempted_for_good"], indirect=True)
def test_slurm_starts_a_job_that_lost_its_place_again(cluster, after):
    assert training_jobs(cluster, after[0])[0]["Restarts"] == "1"


@pytest.mark.parametrize("after", ["driver_killed"], indirect=True)
def test_a_new_driver_names_the_jobs_of_a_dead_one(cluster, after):
    folder, refused = after
    job = training_jobs(cluster, folder)[0]
    assert f"in this folder: {job['JobId']}." in refused
    assert f"scancel --name={job['JobName']}" in refused


@pytest.mark.parametrize("after", ["cancelled"], indirect=True)
def test_gpus_can_be_asked_for_as_gres(cluster, after):
    (job,) = submitted(cluster.jobs(), after[0], "swap")
    assert job["JobState"] == "COMPLETED" and job["TresPerNode"] == "gres:gpu:1"
