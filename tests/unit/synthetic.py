"""Synthetic tables of a whole study, shaped like real ones, for tests of summaries and figures."""

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

from memloc.figures import style
from memloc.figures.draw import draw
from memloc.generalise.detection import CLEANLAB, LOSS, MEMORISATION
from memloc.generalise.detection import COLUMNS as DETECTION
from memloc.generalise.scores import COLUMNS as GENERALISATION
from memloc.generalise.scores import EXAMPLE_COLUMNS
from memloc.localise.gradients.variants import COLUMNS as GRADIENTS
from memloc.localise.gradients.variants import VARIANTS
from memloc.localise.probes.weights import COLUMNS as PROBES
from memloc.localise.probes.weights import THETA_F, THETA_M2
from memloc.localise.weight_change.weights import COLUMNS as WEIGHT_CHANGES
from memloc.localise.weights import normalise
from memloc.report.page import write_report
from memloc.store.files import write_json
from memloc.store.tables import write_tsv
from memloc.study.figures import KINDS
from memloc.summary.correlations import correlations
from memloc.summary.cost import COLUMNS as COST
from memloc.summary.training import summarise_training
from memloc.summary.weights import TECHNIQUES, Run, summarise_runs
from memloc.summary.windows import window_table
from memloc.windows import all_windows

COARSE = {"pdf.fonttype": 3}  # letters as shapes: the same picture, sooner
TEMPLATES = Path(__file__).parents[2] / "workflow" / "report"

TASKS = {
    "wic": {"category": "nlu", "label": "WiC"},
    "rte": {"category": "nlu", "label": "RTE"},
    "mrpc": {"category": "nlu", "label": "MRPC"},
    "cola": {"category": "nlu", "label": "CoLA"},
    "boolq": {"category": "nlu", "label": "BoolQ"},
    "sst2": {"category": "sentiment", "label": "SST-2"},
    "sst5": {"category": "sentiment", "label": "SST-5"},
    "emotion": {"category": "sentiment", "label": "Emotion"},
    "implicithate": {"category": "hate", "label": "ImplicitHate"},
    "stormfront": {"category": "hate", "label": "Stormfront"},
    "reuters": {"category": "topic", "label": "Reuters"},
    "trec": {"category": "topic", "label": "TREC"},
}
MODELS = {
    "bert": {"label": "BERT"},
    "opt": {"label": "OPT"},
    "gpt-neo": {"label": "GPT-N"},
    "pythia": {"label": "Pythia"},
}

OWN = {  # tasks outside the paper
    "bbc": {"category": "topic", "label": "BBC News"},
    "snippets": {"category": "sentiment", "label": "Movie snippets"},
}


def windows(task_no=0, seed=1, n_layers=12):
    """A window table: longer windows err more, `task_no` moves the centre towards the top."""
    rng = np.random.default_rng([task_no, seed])
    strength = np.exp(-np.linspace(0, 2.2 - 0.25 * task_no, n_layers)) + 0.02 * rng.random(n_layers)
    strength *= 4 / strength.sum()
    rows = [
        (s, e, round((1 - np.exp(-strength[s - 1 : e].sum())) * 200) / 200, 0.003 * rng.random())
        for s, e in all_windows(n_layers)
    ]
    frame = pd.DataFrame(rows, columns=["start", "end", "noisy_error", "clean_error"])
    frame["n_noisy"], frame["n_clean"] = 200, 1000
    frame["noisy_error_normalised"] = normalise(frame)
    frame["noise_minus_clean"] = frame["noisy_error"] - frame["clean_error"]
    frame["to_original"], frame["n_original"] = 0.8 * frame["noisy_error"], 200
    frame["validation_error"], frame["n_validation"] = 0.1 + 0.05 * frame["noisy_error"], 100
    return frame


def given(task_no=0, seed=1, n_layers=12):
    """A table with one weight per layer."""
    rng = np.random.default_rng([7, task_no, seed])
    weight = (
        1 / n_layers + 0.02 * rng.random(n_layers) + np.linspace(0.05, 0.01 * task_no, n_layers)
    )
    return pd.DataFrame({"layer": np.arange(1, n_layers + 1), "weight": weight / weight.sum()})


def gradients(task_no=0, seed=1, n_layers=12):
    """A gradients.tsv: all eight variants have the weights of `given`."""
    variants = pd.DataFrame(VARIANTS.values(), columns=["norm", "clean", "frozen"])
    frame = variants.merge(given(task_no, seed, n_layers), how="cross")
    frame["weight_raw"], frame["n_noisy"], frame["n_clean"] = frame["weight"], 200, 200
    return frame[GRADIENTS]


def probes(task_no=0, seed=1, n_layers=12):
    """A probes.tsv of noise probes whose F1 rises from layer to layer by the weights of `given`."""
    f1 = np.concatenate([[0.0], given(task_no, seed, n_layers)["weight"].cumsum()])
    frame = pd.DataFrame({"layer": range(n_layers + 1), "f1": f1, "source": THETA_M2})
    frozen = pd.DataFrame({"layer": [1], "f1": [0.0], "source": THETA_F})
    frame = pd.concat([frame, frozen], ignore_index=True)
    frame = frame.assign(kind="noise", examples="all", f1_random=0.2, best_epoch=30)
    frame = frame.merge(pd.DataFrame({"probe_seed": range(1, 6)}), how="cross")
    return frame.assign(validation_f1=frame["f1"], n_examples=200, n_classes=2)[PROBES]


def weight_change(task_no=0, seed=1, n_layers=12):
    """A weight_change.tsv whose distances from theta_O are the weights of `given`."""
    frame = given(task_no, seed, n_layers).rename(columns={"weight": "relative_change"})
    frame = frame.assign(distance=2 * frame["relative_change"], norm=2.0, n_parameters=1000)
    other = frame.assign(reference="theta_P", relative_change=2 * frame["relative_change"])
    return pd.concat([frame.assign(reference="theta_O"), other])[WEIGHT_CHANGES]


MAKERS = dict.fromkeys([name for name, found in TECHNIQUES.items() if found.windows], windows)
MAKERS |= {"gradients": gradients, "probing": probes, "weight-change": weight_change}


def history(task_no=0, seed=1, epochs=12):
    """A perturbed run's history: clean accuracy first, noisy later; even tasks reach theta_M1."""
    rng = np.random.default_rng([9, task_no, seed])
    epoch = np.arange(1, epochs + 1)
    reach = 1.0 if task_no % 2 == 0 else 0.9
    noisy = reach / (1 + np.exp(-(epoch - 6 - rng.random())))
    noisy[-1] = reach
    clean = np.minimum(1.0, 0.6 + 0.1 * epoch)
    return pd.DataFrame(
        {
            "epoch": epoch,
            "train_loss": 1 / epoch,
            "clean_accuracy": clean,
            "noisy_accuracy": noisy,
            "validation_accuracy": 0.7 + 0.01 * epoch - 0.002 * epoch**2 / 2,
            "validation_macro_f1": 0.65 + 0.01 * epoch,
            "seconds": 10.0,
        }
    )


def runs(tasks, models, seeds, techniques, n_layers=12):
    """Runs of a whole study; tables of one task resemble each other, whatever the model.

    n_layers: of all models, or by model.
    """
    found = []
    for number, task in enumerate(tasks):
        for shift, model in enumerate(models):
            for seed in seeds:
                for name in techniques:
                    depth = n_layers[model] if isinstance(n_layers, dict) else n_layers
                    frame = MAKERS[name](number, seed + 10 * shift, depth)
                    found.append(Run(name, task, model, seed, frame))
    return found


def generalisation_scores(tasks, models):
    """A generalisation.tsv whose scores differ by task and model."""
    rows = []
    for i, task in enumerate(tasks):
        for j, model in enumerate(models):
            score = 0.5 + 0.035 * i + 0.02 * j
            rows.append(
                {
                    "task": task, "model": model, "score": score, "sd": 0.02,
                    "validation_accuracy": 0.6, "validation_scaled": 0.08 * i - 0.05,
                    "n_examples": 100, "n_halves": 30, "score_clean": score + 0.05,
                    "score_noisy": 0.04 + 0.01 * i, "validation_sd": np.nan,
                    "n_never_heldout": 0, "chance": 0.5, "n_classes": 2, "balance": 0.9,
                    "score_prior": 0.6, "score_above_prior": score - 0.1, "majority": 0.55,
                    "validation_above_majority": 0.1,
                }
            )  # fmt: skip
    return pd.DataFrame(rows, columns=GENERALISATION)


def example_scores(n, never=0, chance=1 / 6):
    """A generalisation.tsv of n examples, of which no half held out the first `never`."""
    draw = np.random.default_rng(0)
    noisy = draw.random(n) < 0.15
    held = np.where(noisy, draw.beta(0.6, 3, n), draw.beta(4, 0.6, n))
    trained = held + (1 - held) * draw.beta(5, 1.2, n)
    frame = pd.DataFrame({"index": np.arange(n), "noisy": noisy, "n_heldout": 15, "n_trained": 15})
    frame["generalisation"], frame["training_memorisation"] = held, trained
    frame.loc[: never - 1, ["n_heldout", "generalisation"]] = 0, np.nan
    frame["counterfactual_memorisation"] = trained - frame["generalisation"]
    above = np.where(held > chance, "yes", "no")
    frame["above_chance"] = np.where(frame["n_heldout"] > 0, above, "none")
    return frame[EXAMPLE_COLUMNS]


def detection_scores(tasks, models):
    """A detection.tsv whose three methods differ by task, and whose best one is perfect in none."""
    rows = []
    for i, task in enumerate(tasks):
        for model in models:
            for j, method in enumerate((MEMORISATION, LOSS, CLEANLAB)):
                area = 0.9 - 0.1 * j + 0.02 * i
                flagged = (np.nan,) * 3 if method == LOSS else (20, 0.6, 0.8)
                places = (area, area - 0.05, area + 0.03, area - 0.2)
                rows.append((task, model, method, *places, 15, 100, 8, *flagged))
    return pd.DataFrame(rows, columns=DETECTION)


def training_runs(tasks, models, seeds):
    """(runs, histories, records) of a study's runs on perturbed labels."""
    keys = [
        {"task": task, "model": model, "seed": seed, "labels": "perturbed"}
        for task in tasks
        for model in models
        for seed in seeds
    ]
    numbers = {task: number for number, task in enumerate(tasks)}
    histories = [history(numbers[key["task"]], key["seed"]) for key in keys]
    records = [
        {
            "memorised_epoch": None if numbers[key["task"]] % 2 else 9 + key["seed"],
            "n_train": 1200,
            "n_noisy": 200,
            "device": "CPU (2 threads)",
            "versions": {"python": "3.12", "torch": "2.13"},
        }
        for key in keys
    ]
    return keys, histories, records


def study(folder, tasks=TASKS, models=MODELS, seeds=(1, 2), techniques=("swapping",), **options):
    """Tables, figures and the page of a synthetic study below `folder`; the page's path.

    n_layers: see runs; absent, tables and data: more of what the page is made of.
    """
    folder = Path(folder)
    tables, matrices = _tables(folder, tasks, models, seeds, techniques, options)
    pictures = _pictures(folder, tables, matrices, tasks, models, techniques, seeds)
    tables |= options.get("tables", {})
    record = folder / "record.json"
    write_json(record, training_runs(tasks, models, seeds)[2][0])
    if "probing" not in techniques:
        del tables["label_f1"]
        del tables["probe_f1"]  # empty, as in a study without probes
    page = folder / "report.html"
    write_report(
        page,
        title="Where is memorisation?",
        tables={name: str(path) for name, path in tables.items()},
        pictures=pictures,
        models=models,
        tasks=tasks,
        settings={"model_seeds": list(seeds), "perturbation": {"ratio": 0.15}},
        templates=str(TEMPLATES),
        records={next(iter(tasks)): [str(record)]},
        absent=options.get("absent", {}),
        data=options.get("data", {}),
    )
    return page


def _tables(folder, tasks, models, seeds, techniques, options):
    found = runs(tasks, models, seeds, techniques, options.get("n_layers", 12))
    frames = summarise_runs(found)
    keys, histories, records = training_runs(tasks, models, seeds)
    frames["training"] = summarise_training(histories, records, keys)
    frames["cost"] = pd.DataFrame([("*/*/*/swap", 6, 12.5, 3.5, 20.0, 512.25)], columns=COST)
    if len(models) > 1:
        frames["correlations"] = correlations(frames["layer_weights"], frames["mcog"], seed=0)
    swept = [run for run in found if TECHNIQUES[run.technique].windows]
    if swept:
        names = ("task", "model", "seed", "technique")
        keyed = [({n: getattr(run, n) for n in names}, run.frame) for run in swept]
        frames["windows"] = window_table(keyed, {(r.task, r.model, r.seed): 1.0 for r in swept})
    tables = {name: folder / "summary" / f"{name}.tsv" for name in frames}
    for name, path in tables.items():
        write_tsv(frames[name], path)
    matrices = {}
    for run in found:
        if TECHNIQUES[run.technique].windows:
            path = folder / "runs" / f"{run.technique}_{run.task}_{run.model}_{run.seed}.tsv"
            write_tsv(run.frame, path)
            keys = {"task": run.task, "model": run.model, "seed": run.seed}
            matrices.setdefault((run.technique, run.model), []).append((path, keys))
    return tables, matrices


def _pictures(folder, tables, matrices, tasks, models, techniques, seeds):
    wanted = [
        ("matrix", {"technique": c, "model": m}, {"runs": [p for p, _ in of]}, [k for _, k in of])
        for (c, m), of in matrices.items()
    ]
    weights = {"layer_weights": tables["layer_weights"]}
    centres = weights | {"mcog": tables["mcog"]}
    curves = centres | {"probe_f1": tables["probe_f1"]}
    for model in models:
        keys, frames, _ = training_runs(tasks, [model], seeds)
        paths = [folder / "runs" / f"history_{model}_{i}.tsv" for i in range(len(keys))]
        for frame, path in zip(frames, paths, strict=True):
            write_tsv(frame, path)
        histories = {"histories": paths, "training": tables["training"]}
        wanted.append(("training", {"model": model}, histories, keys))
        wanted.append(("layer_weights", {"model": model}, curves, ()))
        if len(techniques) > 1:
            wanted.append(("techniques", {"model": model}, centres, ()))
    wanted.append(("one_layer", {}, {name: tables[name] for name in ("one_layer", "mcog")}, ()))
    wanted.append(("mcog", {}, centres, ()))
    if len(models) > 1:
        wanted.append(("mcog_averages", {}, centres, ()))
        for measure in ("mcog", "layer_weights"):
            given_table = {"correlations": tables["correlations"]}
            wanted.append(("correlations", {"measure": measure}, given_table, ()))
    pictures = []
    for kind, chosen, inputs, keys in wanted:
        name = "_".join([kind, *chosen.values()])
        pdf, png = (str(folder / "figures" / f"{name}.{end}") for end in ("pdf", "png"))
        with patch.dict(style.SAVED, COARSE):
            draw(KINDS[kind].drawer, [pdf, png], inputs, tasks, models, chosen, keys)
        pictures.append({"kind": kind, "png": png, "pdf": pdf, "wildcards": chosen})
    return pictures
