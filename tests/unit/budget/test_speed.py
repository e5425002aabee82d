"""How long steps take: by hand, and what must hold whatever the constants are."""

import itertools
import math
import re
from dataclasses import replace

import pytest
import yaml

from memloc.budget import devices, knobs, room, space, speed, work
from memloc.budget.budget import make_budget
from memloc.budget.model import CostModel, Job
from memloc.budget.parts import Parts, fit
from memloc.budget.sizes import Sizes
from memloc.budget.speed import Rate, Steps, default_rate
from memloc.budget.text import budget_text
from memloc.groups import WindowCost
from memloc.study.tasks import load_task
from shipped import ROOT

H100 = "NVIDIA H100 80GB HBM3"
GPUS = [f"NVIDIA {card.name}" for card in devices.CARDS]
# A GPU of round numbers: 1 TFLOP/s alone and 2 when filled, 10 us and 1 us a kernel, 1 TB/s, 10 GB.
ROUND = Rate((1e12, 2e12), 10e-6, 1e-6, 1e12, 10e9)


@pytest.fixture(scope="module")
def config():
    return yaml.safe_load((ROOT / "config.yaml").read_text())


@pytest.fixture
def sizes(config, tmp_path):
    tasks = {name: load_task(name, [ROOT / "workflow/tasks"]) for name in config["tasks"]}
    return Sizes(config, tasks, tmp_path / "results", tmp_path / "resources")


def plan(config, rules=("train_original", "swap", "retrain", "probe")):
    """A job of each rule, task and model."""
    named = itertools.product(rules, config["tasks"], config["models"])
    return [Job(rule, {"task": task, "model": model}, gpus=1) for rule, task, model in named]


# --- by hand ---------------------------------------------------------------------------------


@pytest.fixture
def round_launches(monkeypatch):
    counts = {speed.STEP: (400, 650), speed.WINDOWS: (1700, 2600)}
    monkeypatch.setattr(speed, "LAUNCHES", speed.LAUNCHES | counts)
    monkeypatch.setattr(speed, "HEAVIER", {})


def test_a_step_takes_the_longer_of_its_launches_and_what_the_gpu_does(round_launches):
    launched = Steps(speed.STEP, 100, 12, flops=100 * 1e9)  # 400 x 10 us > 1 ms + 400 x 1 us
    assert ROUND.seconds(launched) == pytest.approx(100 * 4e-3)
    computed = replace(launched, flops=100 * 9e9)
    assert ROUND.seconds(computed) == pytest.approx(100 * (9e-3 + 0.4e-3))
    moved = replace(computed, trained=1e8)  # 4.4 GB at 1 TB/s
    assert ROUND.seconds(moved) == pytest.approx(100 * (9e-3 + 0.4e-3 + 4.4e-3))
    packed = replace(launched, flops=0.0, packed=True)  # 10 more kernels a layer
    assert ROUND.seconds(packed) == pytest.approx(100 * 520 * 10e-6)
    half_as_deep = replace(launched, layers=6, flops=0.0)
    assert ROUND.seconds(half_as_deep) == pytest.approx(100 * 2e-3)


def test_jobs_that_share_a_gpu_launch_side_by_side_and_wait_for_all_its_work(round_launches):
    steps = Steps(speed.STEP, 1, 12, flops=6e9)
    two = replace(ROUND, jobs=2)  # at 1.5 TFLOP/s: 4 ms and 0.4 ms of kernels, of both
    assert two.seconds(steps) == pytest.approx(2 * 4.4e-3)
    eight = replace(ROUND, jobs=8)
    small = replace(steps, flops=0.0)
    assert eight.seconds(small) == pytest.approx(max(4e-3, 8 * 0.4e-3))  # launches hide it


def windows_of(layer, activation=0.0, moments="float32"):
    """Steps of two windows of one layer, each of 20 bytes a parameter and its activations."""
    cost = WindowCost(12, layer, 0, activation, activation / 40, moments)
    parts = Parts(((1, 1), (2, 2)), cost, passed=46)
    return Steps(speed.WINDOWS, 10, 12, flops=10 * 80e9, trained=1e9, parts=parts)


def test_windows_that_do_not_fit_at_once_come_in_groups(round_launches):
    """17 GB on 8.5 GB that windows may fill: two groups, that launch twice and move the same."""
    whole, parted = windows_of(4.25e9 / 20), windows_of(8.5e9 / 20)
    assert ROUND.seconds(whole) == pytest.approx(10 * (40e-3 + 44e-3 + 1.7e-3))
    assert ROUND.seconds(parted) == pytest.approx(10 * (40e-3 + 44e-3 + 2 * 1.7e-3))


def test_windows_too_large_for_the_device_have_their_layers_computed_again(round_launches):
    """12 and 11 layers of 1 GB each don't fit 8.5 GB; of each, a group of its own does."""
    steps = windows_of(1e6, activation=1e9)
    assert fit(steps.parts, ROUND.room).recomputed == ((1, 1), (2, 2))
    more = 1 + (12 + 11) / 46
    expected = 10 * (more * 40e-3 + 44e-3 + fit(steps.parts, ROUND.room).groups * more * 1.7e-3)
    assert ROUND.seconds(steps) == pytest.approx(expected)
    assert fit(steps.parts, 13e9).recomputed == () == fit(steps.parts, 1e9).too_large[2:]
    assert fit(steps.parts, 1e9).too_large == ((1, 1), (2, 2))


def test_a_step_of_whole_windows_with_layers_computed_again_takes_a_third_more(sizes):
    """Where each window has all layers: four forward passes in place of three."""
    facts = work.Facts({"task": "boolq", "model": "bert", "windows": "1-12"}, sizes)
    parts = work.retraining(facts).steps[0].parts
    assert fit(parts, parts.cost.of((1, 12)) - 1).more == pytest.approx(4 / 3, rel=0.1)


def test_moments_in_bfloat16_are_cheaper_to_hold_and_dearer_to_move(sizes):
    """12 bytes a trained parameter in place of 16, and 8 in place of 12 in partial state."""

    def facts(moments):
        named = ("training", "retraining", "generalisation")
        changed = {name: {**sizes.config[name], "moments": moments} for name in named}
        return work.Facts({"task": "boolq", "model": "opt-1.3b"}, sizes.changed(**changed))

    plain, short = facts("float32"), facts("bfloat16")
    for stage in (work.training, work.retraining, work.half_training):
        one, other = stage(plain), stage(short)
        assert other.saves.size / one.saves.size == pytest.approx(8 / 12)
        rate = default_rate(H100, "bfloat16")
        assert rate.seconds(replace(one.steps[0], parts=None)) < rate.seconds(
            replace(other.steps[0], parts=None)
        )
    held = [space.device_bytes(each)["windows"] for each in (plain, short)]
    assert held[1] / held[0] == pytest.approx(12 / 16)
    for need in (space.training_device, space.training_state, space.window_device):
        assert need(short) < need(plain)
    groups = [fit(work.retraining(f).steps[0].parts, 68e9).groups for f in (plain, short)]
    assert groups[1] < groups[0]


def test_a_plan_says_in_how_many_groups_windows_retrain(config, sizes):
    jobs = [Job("retrain", {"task": "boolq", "model": "opt-1.3b"}, gpus=1)]
    said = budget_text(make_budget(jobs, CostModel(sizes, H100), [1]), {**config, "tasks": []})
    assert re.search(r"windows side by side: opt-1.3b in \d+ groups", said)
    small = budget_text(
        make_budget(jobs, CostModel(sizes, "NVIDIA L4"), [1]), {**config, "tasks": []}
    )
    assert re.search(r"\d+ windows with layers computed again, of which \d+ are too large", small)


def test_a_processor_launches_and_computes_in_turn():
    rate = default_rate("CPU (2 threads)", "float32", 2)
    steps = Steps(speed.FORWARD, 1, 12, flops=90e9)
    assert rate.seconds(steps) == pytest.approx(1 + 180 * 20e-6)


@pytest.mark.parametrize(
    ("lasting", "epochs", "count"),
    [
        (3600, 6, 5),  # epochs of ten minutes: all but the last
        (3600, 60, 5),  # of one: ten epochs between, and the 60th not
        (3600, 7, 3),  # of 8.6: every second of the first six
        (599, 50, 0),
        (0, 50, 0),
    ],
)
def test_partial_states_are_counted_by_hand(lasting, epochs, count):
    assert work.Saves(1e9, epochs, 600).count(lasting) == count


def test_what_is_saved_is_part_of_a_job_s_time():
    saves = work.Saves(5e9, 6, 600)
    steps = Steps(speed.STEP, 6, 0, flops=6 * 600e12)  # an hour
    found = work.Work((steps,), 4.0, saves)
    assert found.saved(ROUND) == 5 * 5e9
    assert found.duration(ROUND) == pytest.approx(3600 + 4 + 25e9 / speed.SAVING)


def test_saving_counts_as_the_loop_saves(monkeypatch):
    """The same as the clock of training.states would have it, for epochs of one length."""
    for epochs, length, seconds in itertools.product((1, 2, 7, 50), (30, 290, 700), (0, 600)):
        saved, since = 0, 0.0
        for _ in range(1, epochs):
            since += length
            if since >= seconds:
                saved, since = saved + 1, 0.0
        assert work.Saves(1, epochs, seconds).count(epochs * length) == saved


def test_memory_is_what_the_name_says_else_the_data_sheet():
    assert devices.memory_of(H100) == 80e9 == devices.memory_of("NVIDIA H100")
    assert devices.memory_of("NVIDIA A100-SXM4-40GB") == 40e9
    assert devices.memory_of("NVIDIA GeForce RTX 5090") == 32e9
    assert devices.memory_of("AMD Instinct MI300X") == 192e9


def test_every_parameter_s_bytes_are_counted_once():
    """Backward, norm, clip and AdamW, as the comment has it; autocast's casts besides."""
    assert speed.MOVED["float32"] == 4 + 4 + 8 + 16 + 12
    assert speed.MOVED["bfloat16"] == speed.MOVED["float32"] + 6 + 4


# --- whatever the constants ------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16", "auto"])
@pytest.mark.parametrize("gpu", [H100, "NVIDIA GeForce RTX 4090", "Tesla T4"])
def test_more_jobs_on_a_gpu_never_cost_more_gpu_hours(config, sizes, gpu, precision):
    """As far as they compute; that shares of memory are smaller can cost launches of windows."""
    kinds = [(job, 1) for job in plan(config, ("train_original", "swap", "probe", "train_half"))]
    base = CostModel(sizes.changed(precision=precision, save_minutes=1e9), gpu)
    hours = [knobs.gpu_hours(kinds, base.under(count)) for count in (1, 2, 3, 4, 6, 8)]
    assert hours == sorted(hours, reverse=True)
    one = [CostModel.estimate(base, job).seconds for job, _ in kinds]
    eight = [base.under(8).estimate(job).seconds for job, _ in kinds]
    assert all(alone <= shared * 1.0001 for alone, shared in zip(one, eight, strict=True))


@pytest.mark.parametrize("gpu", GPUS)
def test_reduced_precision_and_packing_are_never_slower_where_the_gpu_computes(sizes, gpu):
    steps = Steps(speed.WINDOWS, 1, 12, flops=1e15)
    full, tf32, bfloat16 = (
        default_rate(gpu, p).seconds(steps) for p in ("float32", "tf32", "bfloat16")
    )
    card = devices.card(gpu)
    if card.tf32 and card.tf32 > card.float32:
        assert tf32 < full
    assert speed.used_precision(gpu, "tf32") == ("tf32" if card.tf32 else "float32")
    if card.bfloat16 > 1.5 * card.float32:
        assert bfloat16 < full
    facts = [work.Facts({"task": "rte", "model": "bert"}, s) for s in (sizes, packed(sizes))]
    assert work.training(facts[1]).flops < work.training(facts[0]).flops


def packed(sizes):
    return sizes.changed(packed=True)


@pytest.mark.parametrize("gpu", GPUS)
def test_every_card_has_figures_that_can_be(gpu):
    card = devices.card(gpu)
    assert 4 < card.float32 <= (card.tf32 or math.inf) * 1.05 and card.float32 <= card.bfloat16
    assert 0.3 <= card.bandwidth <= 8 and 8 <= card.memory <= 192


def test_a_job_fits_as_often_as_its_memory_goes_into_the_gpu_s(config, sizes):
    jobs = plan(config)
    few, more = (room.jobs_that_fit(jobs, CostModel(sizes, n)) for n in ("NVIDIA L4", H100))
    assert 1 <= few < more <= room.MOST_JOBS
    assert room.jobs_that_fit(jobs, CostModel(sizes, H100), cores=3) == 3
    assert room.jobs_that_fit(jobs, CostModel(sizes, "CPU")) == 1
    assert room.jobs_that_fit(plan(config, ["retrain"]), CostModel(sizes, H100)) == 8


def test_a_plan_names_the_models_that_are_too_large_for_the_gpu(config, sizes):
    of = [{"task": "boolq", "model": model} for model in ("bert", "opt-1.3b")]
    named = [Job("train_perturbed", wildcards, gpus=1) for wildcards in of]
    for device, wanted in (("NVIDIA T4", True), ("NVIDIA B200", False), ("CPU", False)):
        text = budget_text(
            make_budget(named, CostModel(sizes, device), [1]), {**config, "tasks": []}
        )
        (line,) = re.findall("^device memory: .*", text, re.MULTILINE) or [""]
        assert ("opt-1.3b" in line) is wanted and "bert " not in line
        assert not wanted or ("16.0 GB" in line and "training.lora" in line)
    assert (
        room.too_large([Job("retrain", named[1].wildcards, gpus=1)], CostModel(sizes, "T4")) is None
    )


def test_what_jobs_held_when_they_ran_decides(config, sizes):
    jobs = plan(config, ["train_original"])
    expected = room._held(jobs[0], CostModel(sizes, H100))
    models = (
        CostModel(
            sizes,
            H100,
            [(replace(jobs[0], record={"device_bytes": share * expected}), H100, 9.0, 1.0)],
        )
        for share in (4, 2, 0.5)
    )
    counts = [room.jobs_that_fit(jobs, model) for model in models]
    assert counts == sorted(set(counts))


def test_a_job_that_shared_its_gpu_calibrates_as_such(sizes):
    """One of four on a GPU takes longer, and that is no reason to think the GPU slow."""
    job = Job("train_original", {"task": "rte", "model": "bert"}, gpus=1)
    shared = CostModel(sizes, H100, sharing=4)
    record = {"jobs_per_gpu": 4, "precision": "float32"}
    took = shared.base_seconds(job)
    model = CostModel(sizes, H100, [(replace(job, record=record), H100, took, 1.0)])
    assert model.estimate(job).factor.value == pytest.approx(1)


# --- in the plan -----------------------------------------------------------------------------


def test_the_plan_ends_with_the_cheapest_setting_it_knows(config, sizes):
    jobs = plan(config)
    text = budget_text(make_budget(jobs, CostModel(sizes, H100), [1, 8]), {**config, "tasks": []})
    last = text.splitlines()[-1]
    assert last.startswith("other settings, in GPU-hours: ") and "precision: tf32" in last
    found = last.partition("cheapest known: ")[2]
    assert "precision: bfloat16" in found and "devices.jobs_per_gpu: " in found
    on_cpu = budget_text(make_budget(jobs, CostModel(sizes, "CPU"), [1]), config)
    assert "cheapest" not in on_cpu


def test_the_cheapest_setting_costs_what_a_plan_under_it_says(config, sizes):
    jobs = plan(config)
    base = CostModel(sizes, H100)
    choices = knobs.all_knobs(base, room.jobs_that_fit(jobs, base))
    costs = {k: make_budget(jobs, k.model(base), [1]).gpu_hours for k in choices}
    line = knobs.knobs_line(jobs, base)
    assert f"cheapest known: {min(costs.values()):.3g} " in line or min(costs.values()) >= 100


def test_shared_gpus_have_shorter_makespans_and_the_same_gpus(config, sizes):
    jobs = plan(config, ["train_original"])
    base = CostModel(sizes.changed(precision="tf32"), H100)
    alone, shared = (make_budget(jobs, base.under(count), [1, 8]) for count in (1, 4))
    assert [span.gpus for span in shared.makespans] == [1, 8]
    assert shared.makespans[0].hours < alone.makespans[0].hours
    assert shared.gpu_hours < alone.gpu_hours
    assert shared.makespans[0].hours == pytest.approx(shared.gpu_hours, rel=0.1)
