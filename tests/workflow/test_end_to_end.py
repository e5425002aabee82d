"""The whole workflow on a tiny model: results and partial re-runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import warm
from memloc.study.techniques import TECHNIQUES
from study import (
    N_LAYERS,
    PATIENCE,
    ROOT,
    copy_folder,
    planned,
    snakemake,
    surroundings,
    write_study,
)

RUN = Path("results/toy/tiny/seed1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The tiny study, run once."""
    folder = write_study(tmp_path_factory.mktemp("study"))
    snakemake(folder)
    return folder


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The tiny study before its first run."""
    return write_study(tmp_path_factory.mktemp("fresh"))


@pytest.fixture
def copy(finished, tmp_path):
    """A finished study of a test's own, times and Snakemake's records kept."""
    folder = tmp_path / "study"
    copy_folder(finished, folder)
    return folder


def test_a_second_run_has_nothing_to_do(finished):
    assert "Nothing to be done" in snakemake(finished, "--dry-run").stdout


def test_tables_keep_their_contract(finished):
    swap = pd.read_csv(finished / RUN / "swap.tsv", sep="\t")
    assert list(swap) == [
        *("start", "end", "noisy_error", "clean_error", "n_noisy", "n_clean"),
        *("noisy_error_normalised", "noise_minus_clean", "to_original", "n_original"),
        *("validation_error", "n_validation"),
    ]
    windows = [(s, e) for s in range(1, N_LAYERS + 1) for e in range(s, N_LAYERS + 1)]
    assert list(zip(swap.start, swap.end, strict=True)) == windows
    data = pd.read_parquet(finished / "results/toy/perturbed.parquet")
    train = data[data.split == "train"]
    assert (swap.n_noisy == train.noisy.sum()).all() and train.noisy.sum() == 2 * int(0.15 * 30)
    assert (train.noisy == (train.label != train.original_label)).all()
    examples = pd.read_parquet(finished / RUN / "swap_examples.parquet")
    assert list(examples) == ["index", *(f"{s}-{e}" for s, e in windows)]
    assert set(examples["index"]) == set(train[train.noisy]["index"])
    for row in swap.itertuples():
        assert row.noisy_error == pytest.approx(1 - examples[f"{row.start}-{row.end}"].mean())
    history = pd.read_csv(finished / RUN / "perturbed/history.tsv", sep="\t")
    assert list(history) == [
        *("epoch", "train_loss", "clean_accuracy", "noisy_accuracy", "validation_accuracy"),
        *("validation_macro_f1", "seconds"),
    ]
    assert list(history.epoch) == [1, 2, 3]
    mcog = pd.read_csv(finished / "results/summary/mcog.tsv", sep="\t")
    assert set(mcog.technique) == set(TECHNIQUES)
    # Probes that find nothing and rewinding that changes nothing have no centre of gravity: nan,
    # never a made-up number.
    may_be_undefined = mcog.technique.isin(["probing", "rewinding-memorised"])
    assert (mcog.mcog.between(1, N_LAYERS) | may_be_undefined).all()


def test_events_keep_their_contract(finished):
    events = pd.read_csv(finished / "results/summary/events.tsv", sep="\t")
    assert list(events) == [
        *("task", "model", "source", "event", "layer", "sd", "n", "n_none", "n_undefined"),
        *("n_noisy", "pair_mean", "pair_sd", "n_pairs", "n_pairs_none", "n_pairs_few"),
        *("few_share", "reason"),
    ]
    probing = events.event.str.startswith("probing")
    assert probing.sum() == 2 and (~probing).sum() == 3 * 3
    counted = events.n + events.n_none + events.n_undefined
    assert (counted == 1).all()  # one seed
    pairs = (events.n_pairs + events.n_pairs_few)[~probing]
    assert (pairs == 2).all()  # of two classes
    for technique in TECHNIQUES.values():
        table = pd.read_csv(finished / RUN / technique.table, sep="\t")
        assert list(table) == technique.columns, technique.name


@pytest.mark.parametrize("name", ["original/final", "perturbed/final", "perturbed/memorised"])
def test_checkpoints_are_read_by_from_pretrained(finished, name):
    folder = finished / RUN / name
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert model.config.id2label == {0: "yes", 1: "no"}
    assert model(**tokenizer("w1 w2", return_tensors="pt")).logits.shape == (1, 2)
    subprocess.run(
        ["sha256sum", "--check", f"{Path(name).name}.sha256"], cwd=folder.parent, check=True
    )
    assert not list(folder.glob("*.bin"))


def test_report_is_one_page(finished):
    page = (finished / "results/report.html").read_text()
    assert not re.search(r"""(src|href)=["'](https?:)?//""", page)
    for name in ("figures/mcog.pdf", "figures/mcog.png", "figures/matrix_swapping_tiny.png"):
        assert (finished / "results" / name).stat().st_size > 1000


def test_no_scratch_is_left(finished):
    assert not (finished / "results/.scratch").exists()
    hidden = {path.name for path in (finished / "results").rglob(".*") if path.is_dir()}
    assert hidden == {".records"}


def test_touching_everything_reruns_nothing(copy):
    paths = [path for path in copy.rglob("*") if ".snakemake/" not in str(path.relative_to(copy))]
    for path in sorted(paths, reverse=True):
        os.utime(path)
    assert planned(copy) == {}


def test_every_kind_of_file_that_decays_is_refused_by_name(copy):
    """A flipped bit, a cut end: by the check of every rule's inputs, and by a real job of each."""
    done = subprocess.run(
        [warm.python(), ROOT / "tests/chaos/rot.py", "--folder", copy],
        env=surroundings(PYTHONPATH=os.pathsep.join(sys.path)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0 and "all refused by name" in done.stdout, done.stdout + done.stderr


def edit(path: Path) -> None:
    path.write_text(path.read_text() + "\n\nEDITED = 1\n")


@pytest.mark.parametrize(
    ("module", "included", "excluded"),
    [
        (
            "localise/swap",
            {"swap"},
            {"train_perturbed", "perturb_task", "retrain", "gradients", "probe"},
        ),
        (
            "localise/gradients/gradients",
            {"gradients"},
            {"train_perturbed", "swap", "retrain", "probe"},
        ),
        ("localise/patch", {"patch"}, {"train_perturbed", "swap", "rewind_pretrained"}),
        ("training/loop", {"train_original", "train_perturbed"}, {"perturb_task", "retrieve_task"}),
        ("data/perturb", {"perturb_task"}, {"retrieve_task", "retrieve_model"}),
        (
            "explain/centroids",
            {"centroids", "summarise_events"},
            {"train_perturbed", "swap", "probe"},
        ),
        ("summary/weights", {"summarise"}, {"train_perturbed", "swap", "probe"}),
    ],
)
def test_an_edited_module_reruns_its_stage_and_what_depends(copy, module, included, excluded):
    edit(copy / f"workflow/memloc/{module}.py")
    plan = planned(copy)
    assert included | {"report"} <= plan.keys() and not plan.keys() & excluded, plan


def test_a_comment_reruns_nothing(copy):
    for path in (copy / "workflow/memloc").rglob("*.py"):
        path.write_text(f"# a remark\n{path.read_text()}")
    assert planned(copy) == {}


NEW_TECHNIQUE = '''"""A layer's number as its error, made up."""

import pandas as pd

from memloc.localise.weights import window_weights
from memloc.store.tables import read_parquet, write_tsv
from memloc.windows import all_windows

COLUMNS = ["start", "end", "noisy_error", "clean_error"]


def run(inputs, outputs, settings, batch_tokens):
    noisy = int(read_parquet(inputs["data"]).noisy.sum())
    rows = [(s, e, e * settings["factor"] / noisy, 0.0) for s, e in all_windows(2)]
    write_tsv(pd.DataFrame(rows, columns=COLUMNS), outputs["table"])


def weights(table):
    layers = table[table.start == table.end]
    return pd.DataFrame({"layer": layers.start, "weight": layers.noisy_error})
'''
NEW_ENTRY = """        Technique(
            "counting", "Counting", "Counting", "count.tsv", "localise.counting:weights",
            ("#123456", "d", "-"), rule=SubjectRule(
                "count", "Count examples.", "localise.counting:run", ("theta_M2",),
                {"table": "count.tsv"}, lambda study, w: {"factor": 2}, gpu=False, costs="swap",
            ),
        ),
"""


def test_a_new_technique_is_a_module_and_an_entry(copy):
    """CONTRIBUTING's checklist: it is run, weighed, correlated, drawn and on the page."""
    library = copy / "workflow/memloc"
    (library / "localise/counting.py").write_text(NEW_TECHNIQUE)
    registry = library / "study/techniques.py"
    last = "    )\n}  # fmt: skip\n"
    assert registry.read_text().count(last) == 1
    registry.write_text(registry.read_text().replace(last, NEW_ENTRY + last))
    change(copy, techniques=["swapping", "counting"], stages=[])
    plan = planned(copy)
    assert plan["count"] == 1 and not plan.keys() & {"train_perturbed", "swap", "probe"}
    snakemake(copy)
    weights = pd.read_csv(copy / "results/summary/layer_weights.tsv", sep="\t")
    ours = weights[weights.technique == "counting"].weight.tolist()
    assert ours == pytest.approx([2 / 8, 4 / 8])
    mcog = pd.read_csv(copy / "results/summary/mcog.tsv", sep="\t")
    assert mcog.set_index("technique").mcog["counting"] == pytest.approx(5 / 3)
    assert "Counting" in (copy / "results/report.html").read_text()


NEW_FIGURE = """
KINDS["counted"] = FigureKind(
    name="counted_{task}",
    drawer="figures.counted:counted_figure",
    section="techniques",
    title="Windows counted",
    alt="A bar for {names}.",
    inputs=lambda s, w: {"swap": s.table_paths("swapping", tasks=[w["task"]])},
    drawn_for=lambda s: [{"task": task} for task in s.task_names],
    caption="**Windows** of {{ task }}, counted.",
)
"""
NEW_DRAWER = """
from matplotlib.figure import Figure


def counted_figure(given):
    figure = Figure()
    figure.subplots().bar([given.task], [len(given.read("swap")[0])])
    return figure
"""


def test_a_new_figure_is_an_entry_and_a_drawer(copy):
    """CONTRIBUTING's checklist: the page shows it at the end of its section, the rest stays."""
    registry = copy / "workflow/memloc/study/figures.py"
    registry.write_text(registry.read_text() + NEW_FIGURE)
    (copy / "workflow/memloc/figures/counted.py").write_text(NEW_DRAWER)
    # the budget is that of all jobs, and a figure is one
    assert planned(copy).keys() == {"figure_counted", "budget", "report", "all"}
    snakemake(copy)
    assert (copy / "results/figures/counted_toy.pdf").stat().st_size > 1000
    page = (copy / "results/report.html").read_text()
    assert 'id="figure-counted_toy"' in page and "Windows</strong> of Toy, counted." in page


def test_how_figures_look_draws_them_again_and_computes_nothing(copy):
    settings, drawn = (copy / "study.yaml").read_text(), len(list(copy.rglob("figures/*.png")))
    for changed, also in [
        ({"width": "single", "font_size": 7}, {"report", "all"}),
        # the page shows all settings, and the budget is of a plan with more files
        ({"format": ["pdf", "png", "svg"]}, {"report", "budget", "all"}),
    ]:
        (copy / "study.yaml").write_text(settings)
        change(copy, figures=changed)
        left = {drawn: planned(copy)}
        snakemake(copy, f"results/figures/mcog.{changed.get('format', ['pdf'])[-1]}")  # one of all
        left[drawn - 1] = planned(copy)
        for count, plan in left.items():
            assert count == sum(n for name, n in plan.items() if name.startswith("figure_"))
            assert {name for name in plan if not name.startswith("figure_")} == also
    assert (copy / "results/figures/mcog.svg").stat().st_size > 1000
    (copy / "study.yaml").write_text(settings)
    assert planned(copy) == {}  # an SVG that nobody asks for any more draws nothing again


def change(folder: Path, **settings) -> None:
    """Change the study's settings; those of a section are laid over it."""
    study = yaml.safe_load((folder / "study.yaml").read_text())
    for key, value in settings.items():
        study[key] = study.get(key, {}) | value if isinstance(value, dict) else value
    (folder / "study.yaml").write_text(yaml.safe_dump(study))


def test_a_changed_setting_reruns_what_depends_on_it(copy):
    change(copy, swapping={"clean_examples": "equal"})
    plan = planned(copy)
    assert "swap" in plan and not plan.keys() & {"train_original", "train_perturbed"}


def test_what_changes_only_rounding_reruns_no_stage(copy):
    small = {key: {"batch_tokens": 64} for key in ("swapping", "gradients", "probing")}
    change(copy, evaluation_batch_size=7, devices={"jobs_per_gpu": 2}, **small)
    assert planned(copy).keys() <= {"budget", "report", "all"}


def test_the_threshold_of_theta_m1_is_no_business_of_theta_o(copy):
    change(copy, training={"memorised_above": 0.7})
    plan = planned(copy)
    assert "train_perturbed" in plan and not plan.keys() & {"train_original", "train_frozen"}


def test_changed_data_reruns_from_retrieval(copy):
    path = copy / "my-tasks/toy/train.csv"
    path.write_text(path.read_text() + "w0 w9 w8 w7,yes\n")
    assert {"retrieve_task", "perturb_task", "train_original", "swap"} <= planned(copy).keys()


def test_new_weights_under_an_old_name_are_noticed(copy):
    model = AutoModelForSequenceClassification.from_pretrained(copy / "tiny-bert")
    model.bert.pooler.dense.weight.data.mul_(2)
    model.save_pretrained(copy / "tiny-bert")
    assert {"retrieve_model", "train_original", "swap"} <= planned(copy).keys()


@pytest.mark.parametrize(
    ("target", "rules"),
    [
        ("resources/tasks/toy.parquet", {"retrieve_task"}),
        ("results/toy/perturbed.parquet", {"retrieve_task", "perturb_task"}),
        (
            "results/toy/tiny/frozen/final",
            {"retrieve_task", "perturb_task", "retrieve_model", "train_frozen"},
        ),
        (
            f"{RUN}/perturbed/memorised",
            {"retrieve_task", "perturb_task", "retrieve_model", "train_perturbed"},
        ),
        (
            f"{RUN}/swap.tsv",
            {"retrieve_task", "perturb_task", "retrieve_model", "train_original"}
            | {"train_perturbed", "swap"},
        ),
        (
            f"{RUN}/retrain/1-2.tsv",
            {"retrieve_task", "perturb_task", "retrieve_model", "train_perturbed", "retrain"},
        ),
        (
            f"{RUN}/gradients.tsv",
            {"retrieve_task", "perturb_task", "retrieve_model", "train_perturbed"}
            | {"train_frozen", "gradients"},
        ),
        *(
            (f"{RUN}/{name}.tsv", {"retrieve_task", "perturb_task", "retrieve_model"} | rules)
            for name, rules in {
                "swap-attention": {"train_original", "train_perturbed", "swap_component"},
                "swap-mlp": {"train_original", "train_perturbed", "swap_component"},
                "patch": {"train_original", "train_perturbed", "patch"},
                "rewind-pretrained": {"train_perturbed", "rewind_pretrained"},
                "rewind-memorised": {"train_perturbed", "rewind_memorised"},
                "weight_change": {"train_original", "train_perturbed", "weight_change"},
            }.items()
        ),
        (
            f"{RUN}/probes.tsv",
            {"retrieve_task", "perturb_task", "retrieve_model", "train_perturbed"}
            | {"train_frozen", "probe"},
        ),
        (
            f"{RUN}/centroids.tsv",
            {"retrieve_task", "perturb_task", "retrieve_model", "train_original"}
            | {"train_perturbed", "centroids"},
        ),
    ],
)
def test_single_targets_run_only_their_ancestors(fresh, target, rules):
    assert planned(fresh, target).keys() == rules


def test_one_window_alone_equals_its_row_of_all(copy):
    """Asked for by name, a window runs alone and gives its row of the whole table."""
    target = f"{RUN}/retrain/1-1.tsv"
    assert planned(copy, target) == {"retrain": 2}, "beside it the window of all layers"
    snakemake(copy, target)
    alone = pd.read_csv(copy / target, sep="\t").iloc[0]
    table = pd.read_csv(copy / RUN / "retrain.tsv", sep="\t").set_index(["start", "end"])
    for column in ("noisy_error", "clean_error", "n_noisy", "n_clean", "noisy_error_normalised"):
        assert alone[column] == pytest.approx(table.loc[(1, 1), column], nan_ok=True)


def test_settings_on_the_command_line_are_what_they_say(copy):
    arguments = ("--config", "training={epochs: 4, learning_rate: 1e-2}", "model_seeds=[1]")
    plan = planned(copy, f"{RUN}/swap.tsv", before=arguments)
    assert plan == {"train_original": 1, "train_perturbed": 1, "swap": 1}


def test_every_stage_is_planned_without_torch(tmp_path):
    """On the demo, which has all that the paper's study has; that one takes a minute to plan."""
    where = ("--configfile", ROOT / "profiles/demo/study.yaml", "--directory", tmp_path)
    script = (
        "import sys, runpy; sys.argv[0] = 'snakemake';"
        "import atexit; atexit.register(lambda: print('HEAVY', sorted({'torch', 'transformers'}"
        " & set(sys.modules)), flush=True)); runpy.run_module('snakemake', run_name='__main__')"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            script,
            "-n",
            "-c1",
            "--quiet",
            "all",
            *where,
            "--",
            "all",
            "control",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "HEAVY []" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
