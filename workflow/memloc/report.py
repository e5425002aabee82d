"""results/report.html: one self-contained page of what was run, how it went, and what came out.

The page is put together from tables and pictures that exist already; it computes nothing but how
numbers are rounded. Sections are built one by one and know nothing of each other, so another
analysis adds a function to SECTIONS. What wasn't run is named with the target that would run it.
"""

import base64
import os
import struct
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pandas as pd
import yaml
from docutils.core import publish_parts
from markupsafe import Markup

from memloc.cost import COLUMNS as COST
from memloc.files import atomic, read_json
from memloc.summary import TECHNIQUES
from memloc.tables import read_tsv

NOISY_AT_END = 0.95  # below this share of noisy examples learnt, a run's localisation says little
ABOVE_RANDOM = 0.05  # noise probes whose best F1 isn't further above random guesses found nothing

TITLES = {  # heading of a column where its name alone doesn't say enough
    "mcog": "M-CoG",
    "sd": "sd over seeds",
    "n_seeds": "seeds",
    "memorised_epoch": "θ_M1 epoch",
    "validation_macro_f1": "validation macro F1",
    "weight_raw": "weight, not normalised",
    "sd_raw": "sd, not normalised",
    "error_raw": "error, not normalised",
    "f1": "F1",
    "f1_random": "F1 of random guesses",
    "noisy_uncorrected": "noisy, true label unknown",
    "dropped": "rows dropped",
    "dropped_empty": "of these empty",
    "train_repeats": "repeats in training",
    "heldout_in_train": "held-out texts in training",
    "conflicting_before": "text with several labels, before perturbing",
    "conflicting": "text with several labels, after perturbing",
    "tokens_median": "tokens, median",
    "tokens_p95": "tokens, 95th percentile",
    "n_cut": "examples cut",
    "layer": "layer",
    "rho": "Spearman's ρ",
    "ci_low": "95 % from",
    "ci_high": "to",
}

PIXELS = 1.6  # of a picture for one of the page: its text comes out a little below the page's
WORDS = {("memorised_epoch", "none"): "not reached"}  # how a page words a cell of a column


@dataclass(frozen=True)
class Picture:
    """A figure's files; `wildcards` fill its caption, `kind` names the caption and the section."""

    kind: str
    png: str
    pdf: str
    wildcards: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Content:
    """All that a page is made of.

    tables: summary name -> path; pictures; models: name -> {label, source, note}; tasks: name ->
    {label, category}; settings: the configuration; records: task -> paths or patterns of
    provenance files;
    absent: what wasn't run -> its target; templates: folder with the page and the captions.
    """

    title: str
    tables: dict[str, str]
    pictures: list[Picture]
    models: dict[str, dict]
    tasks: dict[str, dict]
    settings: dict[str, Any]
    templates: str
    records: dict[str, list[str]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    folder: str = "."


# --- Numbers and tables ----------------------------------------------------------------


def shown(value) -> str:
    """A table cell for reading: three significant digits, no exponent but for tiny values."""
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return "–"
    if isinstance(value, float):
        if value == 0 or abs(value) >= 100:
            return f"{value:.0f}"
        return f"{value:.1e}" if abs(value) < 0.001 else f"{value:#.3g}".rstrip(".")
    return str(value)


def _cell(column, value, number):
    value = value.item() if hasattr(value, "item") else value
    exact = "nan" if pd.isna(value) else repr(value) if number else str(value)
    text = WORDS.get((column, exact), shown(value))
    return {"text": text, "value": exact, "number": number}


def table(content, name, title, *, columns=None, low=None, note="", frame=None):
    """A table of the page, from its TSV (or `frame`, a part of it); `low` marks rows to look at."""
    path = content.tables.get(name)
    if path is None:
        target = content.absent.get(name, f"summary/{name}.tsv")
        return {"absent": True, "title": title, "path": target}
    frame = read_tsv(path) if frame is None else frame
    frame = frame[columns] if columns else frame
    numbers = [pd.api.types.is_numeric_dtype(frame[c]) for c in frame]
    heads = [
        {"title": TITLES.get(c, c.replace("_", " ")), "number": n}
        for c, n in zip(frame, numbers, strict=True)
    ]
    rows = [
        {
            "cells": [_cell(*cell) for cell in zip(frame, row, numbers, strict=True)],
            "low": bool(low is not None and low(dict(zip(frame, row, strict=True)))),
        }
        for row in frame.itertuples(index=False, name=None)
    ]
    return _described(content, name, title, heads, rows, note)


def _described(content, name, title, heads, rows, note=""):
    """What the template needs of a table whose cells are worded already."""
    path = content.tables[name]
    return {
        "absent": False, "name": name, "title": title, "path": path, "columns": heads,
        "rows": rows, "note": note, "link": os.path.relpath(path, content.folder),
    }  # fmt: skip


# --- Figures and captions --------------------------------------------------------------


def caption(templates, kind, wildcards) -> Markup:
    """A figure kind's caption as HTML; the same .rst file serves `snakemake --report`."""
    text = (Path(templates) / f"{kind}.rst").read_text(encoding="utf-8")
    snakemake = SimpleNamespace(wildcards=SimpleNamespace(**wildcards))
    source = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text)
    limits = {"raw_enabled": False, "file_insertion_enabled": False, "report_level": 4}
    parts = publish_parts(
        source.render(snakemake=snakemake), writer="html5", settings_overrides=limits
    )
    return Markup(parts["body"])


def png_size(data: bytes) -> tuple[int, int]:
    """Width and height in pixels, from a PNG's header."""
    return struct.unpack(">II", data[16:24])


ALT = {
    "matrix": "Heat map: mean memorisation error by window length and layer, for {names}.",
    "layer_weights": "Line plots: layer weight, or F1 of probes, against layer, for {names}.",
    "techniques": "Line plots: relative layer weight of each technique against layer, for {names}.",
    "one_layer": "Dot plot: largest memorisation error from modifying one layer, by model.",
    "mcog": "Dot plot: memorisation centre of gravity of each task, by technique and model.",
    "mcog_averages": "Dot plots: M-CoG of each task averaged over models and over techniques.",
    "training": "Line plots: noisy, clean and validation accuracy against epoch, for {names}.",
    "correlations": "Heat maps: Spearman's rho between techniques and between models ({names}).",
}


def picture(content, item):
    """What the template needs of one figure; numbers behind it are in the tables beside it."""
    data = Path(item.png).read_bytes()
    width, height = png_size(data)
    stem = Path(item.png).stem
    labels = content.models | content.tasks
    names = ", ".join(labels.get(v, {}).get("label") or v for v in item.wildcards.values())
    named = {k: labels.get(v, {}).get("label") or v for k, v in item.wildcards.items()}
    if "technique" in named:
        named["technique"] = TECHNIQUES[named["technique"]].label.lower()
    return {
        "id": f"figure-{stem}",
        "name": stem,
        "data": "data:image/png;base64," + base64.b64encode(data).decode(),
        "pdf": os.path.relpath(item.pdf, content.folder),
        "width": round(width / PIXELS),
        "height": round(height / PIXELS),
        "alt": ALT.get(item.kind, "{names}").format(names=names),
        "caption": caption(content.templates, item.kind, named),
    }


def part(title="", tables=(), figures=(), gallery=(), texts=(), caption=""):
    """A subsection."""
    return {
        "title": title, "tables": list(tables), "figures": list(figures),
        "gallery": list(gallery), "texts": list(texts), "caption": caption,
    }  # fmt: skip


def _pictures(content, kind):
    return [picture(content, item) for item in content.pictures if item.kind == kind]


# --- Sections --------------------------------------------------------------------------


def section(id, title, parts, *, intro="", facts=(), notices=(), absent=()):
    """A section of the page."""
    return {
        "id": id, "title": title, "parts": parts, "intro": intro, "facts": list(facts),
        "notices": list(notices), "absent": list(absent),
    }  # fmt: skip


def setup_section(content):
    """Which tasks, models, seeds and settings."""
    settings = content.settings
    training, perturbation = settings.get("training", {}), settings.get("perturbation", {})
    tuning = (
        f"{training.get('epochs')} epochs, learning rate {training.get('learning_rate')}, "
        f"batch size {training.get('batch_size')}"
    )
    facts = [
        ("Tasks", ", ".join(t.get("label") or n for n, t in content.tasks.items())),
        ("Models", ", ".join(m.get("label") or n for n, m in content.models.items())),
        ("Model seeds", ", ".join(map(str, settings.get("model_seeds", [])))),
        ("Perturbed labels", f"{perturbation.get('ratio', 0):.0%} of each class"),
        ("Fine-tuning", tuning),
        ("Precision", settings.get("precision", "float32")),
        ("Device", ", ".join(_facts(content, "device")) or "not recorded"),
        ("Software", _software(content)),
    ]
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    texts = [{"title": "The whole configuration", "text": text}]
    return section("setup", "Setup", [part(texts=texts)], facts=facts)


SIZES = [
    "task", "category", "classes", "train", "validation", "test", "noisy", "clean",
    "noisy_uncorrected",
]  # fmt: skip
SIZES_NOTE = (
    "Noisy and clean are training examples. Noise with an unknown true label came with the data "
    "set, without a correction."
)
LENGTHS = [
    "task", "model", "dropped", "dropped_empty", "train_repeats", "heldout_in_train",
    "conflicting_before", "conflicting", "tokens_median", "tokens_p95", "share_cut", "n_cut",
]  # fmt: skip
LENGTHS_NOTE = (
    "A text with several labels counts once for each training example that has it: not all of them "
    "can be memorised. Perturbing labels can make such conflicts among repeats and resolve others. "
    "Share cut is that of training examples longer than the model was given to read."
)


def tasks_section(content):
    """Sizes and noise of the tasks, then duplicates and lengths."""
    path = content.tables.get("tasks")
    if path is None:
        return section("tasks", "Tasks", [part(tables=[table(content, "tasks", "Tasks")])])
    frame = read_tsv(path)
    sizes = frame[SIZES].drop_duplicates()  # the same for every model
    first = table(content, "tasks", "Sizes and noise", frame=sizes, note=SIZES_NOTE)
    title = "Duplicates and lengths, by each model's tokenizer"
    second = table(content, "tasks", title, columns=LENGTHS, note=LENGTHS_NOTE)
    second["name"] = "tasks-lengths"
    return section("tasks", "Tasks", [part(tables=[first, second])])


def training_section(content):
    """Outcome of each training run."""
    notices, low = [], None
    path = content.tables.get("training")
    if path:
        frame = read_tsv(path)

        def low(row):
            return row["labels"] == "perturbed" and not row["noisy_accuracy"] >= NOISY_AT_END

        weak = sum(low(row) for row in frame.to_dict("records"))
        runs = int((frame["labels"] == "perturbed").sum())
        if weak:
            notice = (
                f"{weak} of {runs} runs on perturbed labels ended with a noisy accuracy below "
                f"{NOISY_AT_END:.0%} (marked): they memorised only in part, so where they memorise "
                "is less certain."
            )
            notices = [notice]
    title = "After each run's last epoch (θ_O or θ_M2); training accuracies against its own labels"
    parts = [
        part("Outcome per run", [table(content, "training", title, low=low)]),
        part("Accuracy per epoch", figures=_pictures(content, "training")),
    ]
    return section("training", "Training", parts, notices=notices)


def _matrices(content):
    """Galleries of matrices: a part per technique, a group per model."""
    parts = []
    for name, technique in TECHNIQUES.items():
        items = [
            p for p in content.pictures
            if p.kind == "matrix" and p.wildcards["technique"] == name
        ]  # fmt: skip
        if not items:
            continue
        groups = []
        for model in dict.fromkeys(p.wildcards["model"] for p in items):
            chosen = [picture(content, p) for p in items if p.wildcards["model"] == model]
            label = content.models.get(model, {}).get("label") or model
            groups.append({"title": f"{label}: {len(chosen)} tasks", "figures": chosen})
        all_of = {"task": "each task", "model": "model", "technique": technique.label.lower()}
        text = caption(content.templates, "matrix", all_of)
        parts.append(part(f"{technique.label}: window matrices", gallery=groups, caption=text))
    return parts


UNDEFINED = (
    "{count} M-CoG(s) rest on fewer seeds than the others (rows marked). A seed is left out where "
    "its weights are undefined: modifying all layers changed no noisy prediction, so there is "
    "nothing to normalise by, or all its weights are 0. The raw errors are in the tables."
)


NO_NOISE = (
    "{named}: probes find no noise here: their layer weights and M-CoG say little (the best "
    "layer's F1 is not more than {margin} above that of random guesses)."
)


def mcog_overview(content):
    """mcog.tsv with a row per task and model and a column per technique, to compare at a glance."""
    title = "M-CoG by technique, layers 1 to L: mean ± standard deviation over seeds"
    if "mcog" not in content.tables:
        return table(content, "mcog", title)
    frame, low = read_tsv(content.tables["mcog"]), _incomplete(content)
    found = set(frame["technique"])
    names = [n for n in TECHNIQUES if n in found] + sorted(found - set(TECHNIQUES))
    labels = [TECHNIQUES[n].label if n in TECHNIQUES else n for n in names]
    heads = [{"title": t, "number": False} for t in ("task", "model")]
    heads += [{"title": label, "number": True} for label in labels]
    rows = []
    for key, group in frame.groupby(["task", "model"], sort=False):
        by = {row["technique"]: row for row in group.to_dict("records")}
        cells = [{"text": name, "value": name, "number": False} for name in key]
        cells += [_mcog_cell(by.get(name), low) for name in names]
        rows.append({"cells": cells, "low": any(map(low, by.values()))})
    return _described(content, "mcog", title, heads, rows)


def _mcog_cell(row, low):
    """One M-CoG in words, sorted by its value; says so where seeds are missing."""
    if row is None or pd.isna(row["mcog"]):
        return {"text": "–", "value": "nan", "number": True}
    text = f"{row['mcog']:.2f}" + ("" if pd.isna(row["sd"]) else f" ± {row['sd']:.2f}")
    if low(row):
        text += f" ({row['n_seeds']} seed{'' if row['n_seeds'] == 1 else 's'})"
    return {"text": text, "value": repr(row["mcog"]), "number": True}


def _probes(content):
    """The part on noise probes; nothing where none were run."""
    if "probe_f1" not in content.tables:
        return []
    title = "F1 of noise probes, mean over probe seeds and seeds; layer 0 is the embeddings"
    return [part("Noise probes", [table(content, "probe_f1", title)])]


def _probes_notice(content):
    """Where probes did no better than guessing: a list of at most one sentence."""
    if "probe_f1" not in content.tables:
        return []
    frame = read_tsv(content.tables["probe_f1"])
    frame = frame[frame["layer"] >= 1]
    best = (frame["f1"] - frame["f1_random"]).groupby([frame["task"], frame["model"]], sort=False)
    weak = [" / ".join(key) for key, gain in best.max().items() if not gain > ABOVE_RANDOM]
    return [NO_NOISE.format(named=", ".join(weak), margin=ABOVE_RANDOM)] if weak else []


def _incomplete(content):
    """Whether a row of mcog.tsv rests on fewer seeds than others, as a function; None without."""
    path = content.tables.get("mcog")
    if path is None:
        return None
    most = read_tsv(path)["n_seeds"].max()
    return lambda row: row["n_seeds"] < most


def _undefined_notice(content):
    """What to say about seeds whose weights are undefined: a list of at most one sentence."""
    low = _incomplete(content)
    if low is None:
        return []
    count = sum(low(row) for row in read_tsv(content.tables["mcog"]).to_dict("records"))
    return [UNDEFINED.format(count=count)] if count else []


def techniques_section(content):
    """Where memorisation sits, by every technique that was run."""
    absent = [
        {"title": TECHNIQUES[name].label, "target": target}
        for name, target in content.absent.items()
        if name in TECHNIQUES
    ]
    averages = _pictures(content, "mcog_averages")
    parts = [
        part(
            "Memorisation centre of gravity",
            [mcog_overview(content)],
            [*_pictures(content, "mcog"), *averages],
        ),
        part("Techniques side by side", figures=_pictures(content, "techniques")),
        *_matrices(content),
        part(
            "Largest error from one layer",
            [table(content, "one_layer", "Layer whose modification alone errs most")],
            _pictures(content, "one_layer"),
        ),
        part(
            "Layer weights",
            [table(content, "layer_weights", "Layer weights, mean over seeds")],
            _pictures(content, "layer_weights"),
        ),
        *_probes(content),
    ]
    parts = [p for p in parts if any(p[k] for k in ("tables", "figures", "gallery", "texts"))]
    notices = _undefined_notice(content) + _probes_notice(content)
    return section("techniques", "Techniques", parts, absent=absent, notices=notices)


def correlations_section(content):
    """Agreement of techniques and of models."""
    intro = (
        "Spearman's ρ with a 95 % interval from resampling tasks. p-values take rows as "
        "independent, which layers of one task are not: trust the intervals. "
        "Below three pairs no number is given."
    )
    figures = _pictures(content, "correlations")
    title = "Pairs of techniques and of models"
    parts = [part(tables=[table(content, "correlations", title)], figures=figures)]
    return section("correlations", "Correlations", parts, intro=intro)


def cost_section(content):
    """What the study was planned to cost, and what its jobs took."""
    plan = table(
        content,
        "budget",
        "The plan before the run: hours by stage and model, the longest chain of jobs, and how "
        "long N GPUs take",
    )
    actual = table(content, "budget_actual", "Predicted against actual hours of finished jobs")
    taken = table(
        content,
        "cost",
        "Wall-clock seconds of the jobs of each stage, from Snakemake's benchmark files",
        columns=COST,
    )
    return section("cost", "Cost", [part(tables=[plan, actual, taken])])


def provenance_section(content):
    """What each result came from: the records of one task in one block."""
    texts = [
        {
            "title": f"Records of {content.tasks.get(task, {}).get('label') or task}: {len(found)}",
            "text": "\n".join(
                f"# {path}\n{yaml.safe_dump(record, allow_unicode=True)}" for path, record in found
            ),
        }
        for task, found in _records(content).items()
        if found
    ]
    intro = (
        "Parameters, seeds, versions and device as recorded beside each result."
        if texts
        else "No records were found beside the results."
    )
    return section("provenance", "Provenance", [part(texts=texts)], intro=intro)


SECTIONS = (
    setup_section,
    tasks_section,
    training_section,
    techniques_section,
    correlations_section,
    cost_section,
    provenance_section,
)


def _records(content):
    """The provenance files that exist, read: task -> [(path, record)]."""
    return {
        task: [(path, read_json(path)) for given in paths for path in _existing(given)]
        for task, paths in content.records.items()
    }


def _existing(path):
    """The path if it is a file, else the files that match it as a pattern."""
    return [path] if Path(path).is_file() else sorted(glob(path))


def _facts(content, key):
    """Distinct values of a key over all provenance files, in order."""
    records = [record for found in _records(content).values() for _, record in found]
    return list(dict.fromkeys(str(r[key]) for r in records if r.get(key) is not None))


def _software(content):
    """Versions of all records; a package with several is listed with each."""
    versions = {}
    for found in _records(content).values():
        for _, record in found:
            for name, version in record.get("versions", {}).items():
                versions.setdefault(name, set()).add(str(version))
    listed = (f"{name} {' and '.join(sorted(v))}" for name, v in sorted(versions.items()))
    return ", ".join(listed) or "not recorded"


def _summary(content):
    settings = content.settings
    seeds = len(settings.get("model_seeds", []))
    counts = [
        (len(content.tasks), "task"),
        (len(content.models), "model"),
        (seeds, "seed"),
    ]
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in counts) + "."


def _layers(content):
    """Number of layers by model, from the layer weights."""
    path = content.tables.get("layer_weights")
    return read_tsv(path).groupby("model")["layer"].max().to_dict() if path else {}


def render(content: Content) -> str:
    """The whole page as HTML."""
    folder = Path(content.templates)
    loader = jinja2.FileSystemLoader(folder)
    page = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    layers = _layers(content)
    models = [
        {
            "label": spec.get("label") or name,
            "source": spec.get("source", ""),
            "note": spec.get("note", ""),
            "layers": layers.get(name),
        }
        for name, spec in content.models.items()
    ]
    return page.get_template("page.html.jinja").render(
        title=content.title,
        summary=_summary(content),
        models=models,
        sections=[build(content) for build in SECTIONS],
        css=Markup((folder / "page.css").read_text()),
        js=Markup((folder / "page.js").read_text()),
    )


def write_report(output: str | Path, **content) -> None:
    """Write the page; keywords are those of Content, pictures as dicts."""
    content["pictures"] = [Picture(**item) for item in content.get("pictures", [])]
    html = render(Content(folder=str(Path(output).parent), **content))
    with atomic(output) as draft:
        draft.write_text(html, encoding="utf-8")
