"""The cost model: sizes and what they rest on, work of stages, rates, and the budget's figures."""

import json
import math
import os
import subprocess
import sys

import pytest
import yaml
from pandas import DataFrame

from demo_record import later_half, read_record
from memloc.budget import adapters, devices, space, speed, stages, work
from memloc.budget import text as budget_text
from memloc.budget.budget import COLUMNS, make_budget, refusal, table
from memloc.budget.finished import compare, finished_jobs
from memloc.budget.model import CostModel, Job
from memloc.budget.sizes import KNOWN_MODELS, Sizes, layer_size
from memloc.store.tables import read_tsv
from memloc.study.params import lora_of
from memloc.study.tasks import load_task
from memloc.summary.budget import write_actual, write_budget
from memloc.windows import all_windows
from rule_list import rules
from shipped import ROOT

A100 = "NVIDIA A100-SXM4-40GB"


@pytest.fixture(scope="module")
def config():
    return yaml.safe_load((ROOT / "config.yaml").read_text())


@pytest.fixture(scope="module")
def tasks(config):
    names = [*config["tasks"], "bbc", "snippets"]
    return {name: load_task(name, [ROOT / "workflow/tasks"]) for name in names}


@pytest.fixture
def sizes(config, tasks, tmp_path):
    return Sizes(config, tasks, tmp_path / "results", tmp_path / "resources")


def run(rule, task="trec", model="bert", seed="1", **more):
    return Job(rule, {"task": task, "model": model, "seed": seed}, **more)


def study(config, gpus=1):
    """Training and swapping of every task and model, seed 1, with the swaps' dependencies."""
    jobs = []
    for model in config["models"]:
        for task in config["tasks"]:
            both = [("final", False)]
            jobs.append(run("train_original", task, model, gpus=gpus, outputs=tuple(both)))
            jobs.append(run("train_perturbed", task, model, gpus=gpus, outputs=tuple(both)))
            needs = (len(jobs) - 2, len(jobs) - 1)
            jobs.append(run("swap", task, model, gpus=gpus, needs=needs))
    return jobs


# --- sizes -----------------------------------------------------------------------------------


def test_known_models_are_as_large_as_they_are(sizes):
    bert, large = sizes.model("bert"), sizes.model("opt-1.3b")
    assert (bert.layers, bert.width, bert.basis) == (12, 768, "known")
    assert bert.layer_parameters == 7_087_872  # of transformers' BertLayer
    assert bert.parameters == pytest.approx(108.3e6, rel=0.02)
    assert large.layers == 24 and large.parameters == pytest.approx(1.316e9, rel=0.02)


def test_a_retrieved_model_is_counted(sizes):
    folder = sizes.resources / "models/bert"
    folder.mkdir(parents=True)
    facts = {"n_layers": 3, "width": 8, "layer_parameters": 100, "parameters": 1000}
    (folder / "manifest.json").write_text(json.dumps(facts))
    assert sizes.model("bert").layers == 3 and sizes.model("bert").basis == "counted"


def test_a_model_folder_is_read(config, tasks, tmp_path):
    facts = {"n_layer": 2, "n_embd": 32, "n_inner": None, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps(facts))
    source = {"mine": {"folder": str(tmp_path)}, "package": {"package": "unheard-of==1"}}
    sizes = Sizes({**config, "model_sources": source}, tasks, "results", "resources")
    assert sizes.model("mine").layer_parameters == layer_size(32)
    assert sizes.model("package").basis == "assumed"


LLAMA = {  # Llama-3.1-8B's
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_act": "silu",
    "vocab_size": 128256,
}


@pytest.fixture
def billions(config, tasks, tmp_path):
    """Sizes of a decoder of 8 billion parameters, of which there is a config.json alone."""
    folder = tmp_path / "llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    lora = {"r": 8, "base": "bfloat16"}
    sources = {"llama": {"folder": str(folder), "training": {"lora": lora, "epochs": 10}}}
    changed = {**config, "models": ["llama"], "model_sources": sources, "tasks": ["trec"]}
    return Sizes(changed, tasks, tmp_path / "results", tmp_path / "resources")


def test_a_decoder_of_billions_is_planned_by_its_adapters(billions):
    """By hand: layers of 218 million parameters, adapters of r (inputs + outputs) per map."""
    model = billions.model("llama")
    maps = [(4096, 4096)] * 2 + [(4096, 1024)] * 2 + [(4096, 14336)] * 3
    assert model.layer_parameters == pytest.approx(sum(n * m for n, m in maps), rel=0.01)
    assert model.parameters == pytest.approx(7.5e9, rel=0.01)
    adapter = 8 * sum(n + m for n, m in maps)
    settings = billions.settings("llama")
    assert adapters.adapter_parameters(model, lora_of(settings)) == pytest.approx(adapter, rel=0.1)
    trained = run("train_perturbed", model="llama", gpus=1, outputs=(("final", False),))
    retrained = run("retrain", model="llama", gpus=1)
    retrained.wildcards["windows"] = "all"
    budget = make_budget([trained, retrained], CostModel(billions), [1])
    said = budget_text.budget_text(budget, billions.config)
    assert "llama: 15.0 GB for the base" in said and "all 528 windows' adapters" in said
    windows = 16 * 32 * 33 * 34 / 6 * adapter  # bytes, of windows of 1 to 32 layers
    facts = work.Facts(retrained.wildcards, billions)
    assert space.device_bytes(facts)["windows"] == pytest.approx(windows, rel=0.1)
    assert 0 < budget.gpu_hours < float("inf")
    assert space.model_bytes(facts, "final") < 0.01 * space.model_bytes(facts, "llama")
    assert space.window_memory(facts) < 100e3  # MB of the host


def test_a_step_by_adapters_costs_two_thirds_of_a_whole_one(billions):
    whole = {**billions.config["model_sources"]["llama"], "training": {"epochs": 10}}
    other = {**billions.config, "model_sources": {"llama": whole}}
    wildcards = {"task": "trec", "model": "llama"}
    plain = work.Facts(wildcards, Sizes(other, billions.tasks, "results", "resources"))
    facts = work.Facts(wildcards, billions)
    assert plain.backward == 2
    assert (1 + facts.backward) / (1 + plain.backward) == pytest.approx(2 / 3, abs=0.01)
    assert space.training_state(facts) < 0.01 * space.training_state(plain)


def test_rows_come_from_the_best_record(sizes):
    assert sizes.task("trec").train == 5452 and sizes.task("trec").rows_basis == "task file"
    expected = sizes.task("implicithate")
    assert expected.train == int(0.8 * 6346) and expected.validation == (6346 - expected.train) // 2
    manifest = sizes.resources / "tasks/rte.manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"rows": {"train": 100, "heldout": 20}}))
    assert (sizes.task("rte").train, sizes.task("rte").rows_basis) == (100, "counted")
    record = sizes.results / "wic/perturbed.parquet.provenance.json"
    record.parent.mkdir(parents=True)
    rows = {"train": 7, "validation": 2, "test": 2}
    record.write_text(json.dumps({"rows": rows, "max_train": None, "max_heldout": None}))
    assert (sizes.task("wic").train, sizes.task("wic").noisy) == (7, 1)


def test_a_record_of_other_limits_is_not_used(config, tasks, tmp_path):
    limited = {**config, "data": {**config["data"], "max_train": 50}}
    sizes = Sizes(limited, tasks, tmp_path, tmp_path)
    record = tmp_path / "wic/perturbed.parquet.provenance.json"
    record.parent.mkdir()
    rows = {"train": 5428, "validation": 2, "test": 2}
    record.write_text(json.dumps({"rows": rows, "max_train": None, "max_heldout": None}))
    assert sizes.task("wic").train == 50


def test_counted_tokens_replace_typical_ones(sizes):
    assert sizes.task("trec", "bert").tokens_basis == "typical"
    fresh = Sizes(sizes.config, sizes.tasks, sizes.results, sizes.resources)
    fresh.results.mkdir(parents=True)
    columns = "task\tmodel\ttokens_median\ttokens_p95\n"
    (fresh.results / "tasks.tsv").write_text(f"{columns}trec\tbert\t20\t40\n")
    counted = fresh.task("trec", "bert")
    assert (counted.median, counted.tokens_basis) == (20, "counted")
    assert counted.spread == pytest.approx(math.log(2) / 1.645, rel=1e-3)
    assert 20 < counted.mean < counted.padded(8) < counted.padded(32) <= counted.longest


# --- work ------------------------------------------------------------------------------------


def test_packed_tokens_leave_padding_to_attention_alone(sizes):
    packed = Sizes({**sizes.config, "packed": True}, sizes.tasks, sizes.results, sizes.resources)
    facts = [work.Facts({"task": "trec", "model": "bert"}, each) for each in (sizes, packed)]
    task, model = facts[0].task, facts[0].model
    long, short = task.padded(8), task.mean
    padded, real = (work.passes(each, 1, 8, 1, mixed=True).flops for each in facts)
    assert real == pytest.approx(2 * short * model.layer_parameters + 4 * long**2 * model.width)
    assert padded - real == pytest.approx(2 * (long - short) * model.layer_parameters)
    assert work.prediction(facts[0], 100) == work.prediction(facts[1], 100)


def test_training_work_by_hand(sizes):
    facts = work.Facts({"task": "trec", "model": "bert"}, sizes)
    task, model = facts.task, facts.model
    long, short = task.padded(8), task.mean
    a_layer = {n: 2 * model.layer_parameters + 4 * n * model.width for n in (long, short)}
    step = 3 * task.train * long * 12 * a_layer[long]
    look = (task.train + task.validation) * short * 12 * a_layer[short]
    assert work.training(facts).flops == pytest.approx(50 * (step + look))
    assert work.head_training(facts).flops == pytest.approx(50 * (step / 3 + look))
    steps = math.ceil(task.train / 8)
    looks = math.ceil((task.train + task.validation) / 64)
    ours, evaluating = work.training(facts).steps
    assert (ours.kind, ours.count, ours.layers) == ("step", 50 * steps, 12)
    assert ours.trained == 12 * model.layer_parameters
    assert (evaluating.kind, evaluating.count, evaluating.layers) == ("forward", 50 * looks, 12)
    (frozen, _) = work.head_training(facts).steps
    assert (frozen.kind, frozen.trained) == ("forward", 0)


def test_a_sweep_of_twelve_layers_is_376_layer_passes():
    assert work.swapped_layers(12) == 376
    # one window at a time: 78 x 12 = 936
    windows = all_windows(12)
    assert len(windows) == 78 and work.window_layers(windows, 12) == (11, 364, 286)


def test_windows_of_all_jobs_cost_what_one_job_of_all_does(sizes):
    def own(spec):
        facts = work.Facts({"task": "rte", "model": "bert", "windows": spec}, sizes)
        return work.retraining(facts).flops

    apart = sum(own(f"from-{start}") for start in range(1, 13))
    # apart, each job passes through its prefix again
    assert own("all") < apart < 1.2 * own("all")


def test_every_rule_has_a_cost():
    missing = sorted(name for name in rules() if stages.stage_of(name) is None)
    assert not missing, f"add an entry to STAGES in workflow/memloc/budget/stages.py for {missing}"


@pytest.mark.parametrize("stage", sorted(stages.STAGES))
def test_every_stage_has_finite_figures(stage, sizes):
    facts = work.Facts({"task": "boolq", "model": "opt", "seed": "1"}, sizes)
    entry = stages.STAGES[stage]
    needed = entry.work(facts)
    assert 0 < needed.duration(speed.default_rate(A100, "float32")) < 1e6
    assert (needed.flops > 0) == entry.on_device
    assert 0 < entry.megabytes(facts) < 64_000 and 0 <= entry.scratch(facts) < 1e11
    assert 0 < entry.bytes_of(facts, "final") < 1e10


def test_planning_imports_neither_torch_nor_pandas():
    code = (
        "import sys, memloc.budget.finished, memloc.budget.text; "
        "sys.exit(bool({'torch', 'pandas', 'transformers'} & sys.modules.keys()))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow")}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


# --- rates -----------------------------------------------------------------------------------


def test_devices_are_known_by_their_names():
    assert devices.card("NVIDIA GeForce GTX 1080 Ti").name == "1080 Ti"
    assert devices.card("Tesla V100-SXM2-32GB").name == "V100"
    assert devices.card("NVIDIA H100 80GB HBM3").name == "H100"
    assert devices.card("NVIDIA L40S") is None or devices.card("NVIDIA L40S").name == "L40"
    assert devices.same_device(A100, "NVIDIA A100 80GB PCIe")
    assert not devices.same_device(A100, "CPU (2 threads)")
    assert (
        devices.same_device("CPU (2 threads)", "CPU")
        and devices.cpu_threads("CPU (2 threads)") == 2
    )


def test_bfloat16_is_faster_where_the_device_has_it():
    fast = speed.default_rate(A100, "bfloat16")
    assert fast.flops[0] > 5 * speed.default_rate(A100, "float32").flops[0]
    assert speed.default_rate(A100, "auto") == fast
    old = "NVIDIA GeForce RTX 2080 Ti"
    assert speed.default_rate(old, "auto") == speed.default_rate(old, "float32")


def finished(job, seconds, device=A100, ended=0.0):
    return (job, device, seconds, ended)


def test_default_rates_say_so_and_span_a_wide_interval(sizes):
    factor = CostModel(sizes, A100).estimate(run("swap")).factor
    assert (factor.value, factor.basis, factor.n) == (1.0, "default", 0)
    assert factor.interval(1) == factor.interval(1000) == 3


def test_measured_jobs_set_the_rate(sizes):
    base = CostModel(sizes, A100).estimate(run("swap", "rte")).seconds
    jobs = [
        finished(run("swap", "rte", seed=str(s)), 2 * base * f) for s, f in [(1, 0.9), (2, 1.1)]
    ]
    model = CostModel(sizes, A100, jobs)
    estimate = model.estimate(run("swap", "rte", seed="3"))
    assert estimate.seconds == pytest.approx(2 * base, rel=0.02)
    assert (estimate.factor.basis, estimate.factor.n) == ("measured here", 2)
    assert 1 < estimate.factor.interval(36) < estimate.factor.interval(1) < 3


def test_a_model_with_two_jobs_of_its_own_keeps_its_own_rate(sizes):
    slow, quick = run("swap", model="opt"), run("swap", model="bert")
    base = CostModel(sizes, A100)
    jobs = [finished(slow, 4 * base.base_seconds(slow))] * 2
    jobs += [finished(quick, base.base_seconds(quick))] * 2
    model = CostModel(sizes, A100, jobs)
    assert model.estimate(slow).factor.value == pytest.approx(4)
    assert model.estimate(run("swap", model="pythia")).factor.value == pytest.approx(2)


def test_other_stages_and_other_devices_are_second_best(sizes):
    job = run("train_original")
    cpu = CostModel(sizes, "CPU")
    away = [finished(job, 1.5 * cpu.base_seconds(job), "CPU (1 threads)")]
    scaled = CostModel(sizes, A100, away).estimate(job)
    assert scaled.factor.basis == "scaled from another device"
    assert scaled.seconds == pytest.approx(1.5 * CostModel(sizes, A100).base_seconds(job))
    assert scaled.factor.interval(100) >= 2
    here = [finished(job, 3 * CostModel(sizes, A100).base_seconds(job))]
    other = CostModel(sizes, A100, away + here).estimate(run("swap"))
    assert other.factor.basis == "measured on other stages"
    assert other.factor.value == pytest.approx(3)


def test_the_device_is_the_one_named_or_met(sizes, monkeypatch):
    latest = [finished(run("swap"), 9, "Tesla T4", 5.0), finished(run("swap"), 9, A100, 2.0)]
    assert CostModel(sizes, "NVIDIA L4", latest).device == "NVIDIA L4"
    assert CostModel(sizes, None, latest).device == "Tesla T4"
    assert CostModel(sizes).device == devices.UNNAMED_GPU
    monkeypatch.setattr(devices, "local_gpu", lambda: None)
    assert CostModel(sizes, local=True).device == "CPU"


def test_host_jobs_are_not_scaled_by_device_jobs(sizes):
    job = run("train_original")
    model = CostModel(sizes, A100, [finished(job, 1e6)])
    assert model.estimate(Job("report", {})).factor.basis == "default"


# --- the budget ------------------------------------------------------------------------------


def test_sums_agree(config, sizes):
    jobs = study(config)
    budget = make_budget(jobs, CostModel(sizes, A100), [1, 8, 64])
    assert budget.jobs == len(jobs) == sum(row.jobs for row in budget.rows)
    one, eight, many = budget.makespans
    assert one.hours == pytest.approx(budget.gpu_hours)
    assert one.hours > eight.hours > many.hours >= budget.chain_hours
    assert [job.rule for job in budget.chain] == ["train_original", "swap"]
    low, high = budget.interval
    assert low == pytest.approx(budget.gpu_hours / 3) and high == pytest.approx(
        3 * budget.gpu_hours
    )
    assert budget.disk > 96 * 4e8


def test_the_papers_gpu_lands_in_the_papers_account(config, sizes):
    jobs = [job for job in study(config) if job.rule.startswith("train")]
    budget = make_budget(jobs, CostModel(sizes, "GeForce RTX 2080 Ti"), [1])
    low, high = budget.interval
    # 1 to 6 hours a run; our interval must overlap with theirs
    assert low < 6 * len(jobs) and high > len(jobs)


def test_the_papers_account_counts_its_runs(config, sizes):
    budget = make_budget(study(config), CostModel(sizes, A100), [1])
    main, control, retraining = budget_text.account(budget, 4)
    assert (main.runs, control.runs, retraining.runs) == (336, 308, 11_232)
    assert (main.low, main.high) == (336, 2016)
    assert (retraining.low, retraining.high) == (pytest.approx(561.6), 8424)
    assert (main.jobs, control.jobs) == (96, 0)


def test_the_text_says_it_all(config, sizes):
    budget = make_budget(study(config), CostModel(sizes, A100), [1, 8, 64])
    text = budget_text.budget_text(budget, config, refusal(budget, 1))
    for part in ("on 1 GPU:", "on 64 GPUs:", "longest chain", "device: NVIDIA A100", "REFUSED"):
        assert part in text
    assert "11,232" in text
    assert "REFUSED" not in budget_text.budget_text(budget, config)
    other = {**config, "tasks": ["trec"]}
    assert "paper" not in budget_text.budget_text(budget, other)


def test_a_plan_of_nothing_has_a_budget(config, sizes):
    text = budget_text.budget_text(make_budget([], CostModel(sizes), [1]), {**config, "tasks": []})
    assert text.startswith("Budget: 0 jobs")


def test_refusal_names_the_limit(config, sizes):
    budget = make_budget(study(config), CostModel(sizes, A100), [1])
    assert refusal(budget, None) is None and refusal(budget, budget.gpu_hours + 1) is None
    assert "budget.max_gpu_hours = 0.5" in refusal(budget, 0.5)


def test_a_rule_without_a_cost_takes_what_it_asks_for(config, sizes):
    budget = make_budget([Job("my_rule", {}, minutes=90, gpus=1)], CostModel(sizes, A100), [1])
    assert budget.gpu_hours == 1.5 and budget.rows[0].factor.basis == "requested runtime"


def test_resources_follow_the_cost(sizes):
    model = CostModel(sizes, A100)
    short, long = run("train_original", "trec"), run("train_original", "boolq")
    assert model.minutes(long) > model.minutes(short) >= 10
    assert 60 * model.minutes(long) > 3 * model.estimate(long).seconds
    windows = {"task": "trec", "model": "opt", "seed": "1", "windows": "all"}
    # 364 layers: 41 GB on the device, and their two moments on the host when they are saved
    assert 24_000 < model.megabytes(Job("retrain", windows)) < 32_000
    assert model.megabytes(run("train_original", model="opt-1.3b")) > 20_000
    assert 3_000 < model.megabytes(short) < 12_000


# --- files -----------------------------------------------------------------------------------


def benchmark(path, seconds):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"s\th:m:s\tcpu_time\n{seconds}\t0:00:01\t1.0\n")


PATTERNS = {
    "swap": (
        "benchmarks/results/{task}/{model}/seed{seed}/swap.tsv",
        ["results/{task}/{model}/seed{seed}/swap.tsv.provenance.json"],
    )
}


def test_finished_jobs_are_read_from_their_benchmarks(tmp_path):
    for seed in (1, 2):
        benchmark(tmp_path / f"benchmarks/results/trec/bert/seed{seed}/swap.tsv", 10 * seed)
    record = tmp_path / "results/trec/bert/seed2/swap.tsv.provenance.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"device": "CPU (2 threads)", "seconds": 33.0}))
    (tmp_path / "benchmarks/results/trec/bert/seed3").mkdir()
    (tmp_path / "benchmarks/results/trec/bert/seed3/swap.tsv").write_text("s\n-\n")
    first, second = finished_jobs(PATTERNS, root=tmp_path)
    assert first[0] == run("swap", seed="1") and first[1:3] == (None, 10.0)
    # of a resumed job the benchmark knows the last attempt only
    assert (second[0].threads, second[1], second[2]) == (2, "CPU (2 threads)", 33.0)
    assert len(finished_jobs(PATTERNS, at_most=1, root=tmp_path)) == 1


def test_predicted_against_actual(config, sizes, tmp_path, monkeypatch):
    jobs = [run("swap", seed=str(seed), gpus=1) for seed in (1, 2, 3)]
    rows = table(make_budget(jobs, CostModel(sizes, A100), [1]))
    each = rows[0]["hours"] / 3
    done = [finished(job, 2 * 3600 * each) for job in jobs[:2]]
    (row,) = compare(rows, done)
    assert (row["jobs"], row["finished"]) == (3, 2) and row["ratio"] == pytest.approx(2)
    assert row["predicted_hours"] == pytest.approx(2 * each)
    monkeypatch.chdir(tmp_path)
    DataFrame(rows)[COLUMNS].to_csv("budget.tsv", sep="\t", index=False, na_rep="nan")
    benchmark(tmp_path / "benchmarks/results/trec/bert/seed1/swap.tsv", 3600 * each)
    write_actual("actual.tsv", "budget.tsv", PATTERNS)
    assert read_tsv("actual.tsv").ratio.tolist() == pytest.approx([1])


def test_the_table_has_a_row_per_stage_span_and_chain(config, tasks, tmp_path):
    plan = [
        (j.rule, dict(j.wildcards), [list(o) for o in j.outputs], list(j.needs), j.gpus, j.threads)
        for j in study(config)
    ]
    folders = {"results": str(tmp_path), "resources": str(tmp_path)}
    output = tmp_path / "budget.tsv"
    write_budget(output, plan, config, tasks, folders, {}, [1, 8], A100)
    frame = read_tsv(output, COLUMNS)
    counts = frame.kind.value_counts().to_dict()
    assert counts == {"stage": 3 * 4, "total": 1, "makespan": 2, "chain": 1}
    stages = frame[frame.kind == "stage"]
    total = frame[frame.kind == "total"].iloc[0]
    assert stages.gpu_hours.sum() == pytest.approx(total.gpu_hours)
    assert frame[frame.kind == "makespan"].gpus.tolist() == [1, 8]


# --- calibrated by its first half, the second half within 30 % ---------------------------------


@pytest.mark.parametrize("by_stage", [True, False])
def test_the_later_half_of_a_recorded_demo_is_predicted(by_stage):
    predicted, actual = later_half(read_record(), by_stage)["all"]
    assert predicted == pytest.approx(actual, rel=0.3)


def test_known_models_cover_the_configuration(config):
    for name, source in config["model_sources"].items():
        known = str(source.get("hub", source.get("package", ""))).rpartition("/")[2]
        assert known.partition("==")[0].lower() in KNOWN_MODELS, name


def test_finished_jobs_that_the_configuration_does_not_describe_calibrate_nothing(sizes):
    known = [(run("swap", "trec", "bert"), A100, 100.0, 1.0)]
    foreign = [
        (run("swap", "gone", "bert"), A100, 9.0, 2.0),
        (run("swap", "trec", "renamed"), A100, 9.0, 3.0),
    ]
    alone, beside = (CostModel(sizes, A100, jobs) for jobs in (known, known + foreign))
    job = run("swap", "rte", "bert")
    assert beside.estimate(job) == alone.estimate(job)
    sizes.tasks = {name: task for name, task in sizes.tasks.items() if name != "rte"}
    control = (Job("control_original", {"task": "trec", "model": "bert", "pair": "layers1-2"}),)
    assert not CostModel(sizes, A100, [(*control, A100, 9.0, 4.0)]).measured


def test_what_a_trial_of_few_epochs_took_is_scaled_to_the_epochs_planned(sizes):
    record = {"recipe": {"epochs": 5, "batch_size": 8}}
    trial = run("train_perturbed", "trec", "bert", record=record)
    planned = run("train_perturbed", "trec", "bert")
    estimate = CostModel(sizes, A100, [(trial, A100, 60.0, 1.0)]).estimate(planned)
    assert estimate.seconds == pytest.approx(60 * sizes.config["training"]["epochs"] / 5, rel=0.1)


def test_jobs_at_other_lengths_or_row_limits_calibrate_nothing(sizes):
    short = run("swap", "trec", "bert", record={"reading": {"max_length": 16}})
    assert not CostModel(sizes, A100, [(short, A100, 1.0, 1.0)]).measured
    folder = sizes.results / "trec"
    folder.mkdir(parents=True)
    facts = {"max_train": 60, "max_heldout": None, "rows": {"train": 60}}
    (folder / "perturbed.parquet.provenance.json").write_text(json.dumps(facts))
    assert not CostModel(sizes, A100, [(run("swap"), A100, 1.0, 1.0)]).measured


def test_jobs_of_every_subject_are_found(tmp_path):
    subjects = ["seed1", "seed2/epoch3", "control/layers11-12"]
    for subject in [*subjects, "control/frozen", "halves", "seed1/epoch"]:
        path = tmp_path / f"b/toy/tiny/{subject}/swap.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("s\n2.5\n")
    found = finished_jobs({"swap": ("b/{task}/{model}/{subject}/swap.tsv", [])}, root=tmp_path)
    assert sorted(job.wildcards["subject"] for job, *_ in found) == sorted(subjects)
    assert {(job.wildcards["task"], job.wildcards["model"]) for job, *_ in found} == {
        ("toy", "tiny")
    }


@pytest.mark.parametrize("name", ["cpu", "CPU (2 threads)"])
def test_a_processor_is_known_in_any_spelling(name, sizes):
    assert CostModel(sizes, name).base_seconds(run("swap")) > 1000


@pytest.mark.parametrize("name", ["banana", "NVIDIA A1000", "rtx 4060 laptop"])
def test_an_unknown_device_is_said_to_be(name):
    device, basis = devices.expected_device(name, [], local=False)
    assert device == name and "unknown, taken for an NVIDIA A100" in basis and "H100" in basis
    assert devices.expected_device("nvidia h100", [], False) == ("nvidia h100", "budget.device")
