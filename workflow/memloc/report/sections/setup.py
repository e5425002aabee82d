"""Section Setup: which tasks, models, seeds and settings; sizes, noise and lengths of the tasks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from memloc.budget.words import number_of, percent
from memloc.report.found_noise import chosen, finds_noise
from memloc.report.parts import Content, Part, Section
from memloc.report.records import facts_of, software
from memloc.report.tables import renamed, table
from memloc.store.records import read_checked
from memloc.store.tables import read_tsv
from memloc.study.admission import PASSED, REFUSED

SIZES = [
    "task", "category", "classes", "train", "validation", "test", "noisy", "clean",
    "noisy_uncorrected",
]  # fmt: skip
SIZES_NOTE = (
    "The columns noisy and clean count training examples. Where a noisy example's true label is "
    "unknown, the noise came with the data set and nobody has corrected it."
)
LENGTHS = [
    "task", "model", "dropped", "dropped_empty", "train_repeats", "heldout_in_train",
    "conflicting_before", "conflicting", "tokens_median", "tokens_p95", "share_cut", "n_cut",
]  # fmt: skip
LENGTHS_NOTE = (
    "A text with several labels counts once for each training example that has it; not all of "
    "these examples can be memorised. Perturbing labels can make such conflicts among repeated "
    "texts, and can resolve others. Share cut is the share of training examples that were cut "
    "before the model read them."
)
EXAM_NOTE = (
    "Before anything is trained, each model sits an exam on its real weights and with its own "
    "tokenizer: whether windows of layers that memloc exchanges equal those of a model whose "
    "weights were really exchanged, whether padding moves predictions, and more."
)
GIVEN_NOTE = (
    "The models were fine-tuned elsewhere: their checkpoints were examined and copied, and nothing "
    "was trained over them. What can run follows from the checkpoints that are there."
)
# Settings that change no result, and those that have a part of their own.
NO_MATTER = (
    "given",
    "results_dir",
    "resources_dir",
    "task_folders",
    "tasks_dir",
    "title",
    "budget",
    "threads",
)


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as {"data.max_length": 512, ...}."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        nested = isinstance(value, dict) and value
        found |= flat(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return found


def differences(content: Content) -> list[tuple[str, str, str]]:
    """[(setting, here, in the paper's study)] of all that can change a result."""
    ours, paper = content.settings, content.paper
    models = [*ours.get("models", []), *paper.get("models", [])]
    kept: list[dict[str, Any]] = []
    for settings in (ours, paper):
        sources = {m: s for m, s in settings.get("model_sources", {}).items() if m in models}
        used = settings | ({"model_sources": sources} if sources else {})
        kept.append(flat({k: v for k, v in used.items() if k not in NO_MATTER}))
    here, theirs = kept
    keys = dict.fromkeys([*theirs, *here])
    plain = [key for key in keys if not any(other.startswith(f"{key}.") for other in keys)]
    pairs = [(key, here.get(key, "–"), theirs.get(key, "–")) for key in plain]
    return [(key, _written(one), _written(two)) for key, one, two in pairs if one != two]


def _written(value: Any) -> str:
    """A setting in one line."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def build(content: Content) -> Section:
    """Which tasks, models, seeds and settings, and the tasks' sizes."""
    settings = content.settings
    training, perturbation = settings.get("training", {}), settings.get("perturbation", {})
    data = settings.get("data", {})
    tuning = (
        f"{training.get('epochs')} epochs, learning rate {training.get('learning_rate')}, "
        f"batch size {training.get('batch_size')}"
    )
    ratio = f"{percent(perturbation.get('ratio', 0))} of each class"
    if lora := training.get("lora"):
        tuning += f"; adapters of rank {lora.get('r')} in the place of whole layers"
    rows = "all" if data.get("max_train") is None else f"at most {data['max_train']} per task"
    facts = [
        ("Tasks", ", ".join(map(content.task_label, content.tasks))),
        ("Models", ", ".join(map(content.model_label, content.models))),
        ("Model seeds", ", ".join(map(str, settings.get("model_seeds", [])))),
        ("Data seed", _data_seeds(settings)),
        ("Noisy labels", f"those {chosen(content)}")
        if finds_noise(content)
        else ("Perturbed labels", "the data's own" if content.given else ratio),
        ("Inputs", f"cut at {data.get('max_length')} tokens (max_length)"),
        ("Training rows", f"{rows} (max_train)"),
        ("Fine-tuning", _fine_tuning(content, tuning)),
        ("Techniques", ", ".join(_run(content, "techniques"))),
        ("Further stages", ", ".join(_run(content, "stages")) or "none"),
        ("Precision", settings.get("precision", "float32")),
        ("Packed tokens", "yes" if settings.get("packed") else "no"),
        ("AdamW's moments", _moments(settings)),
        ("Device", _devices(content) or "not recorded"),
        ("Software", software(content)),
    ]
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    texts = [{"title": "The whole configuration", "text": text}]
    settings_part = Part("Settings", facts=facts, texts=texts)
    parts = [_differing(content), _models(content), _given(content), _tasks(content)]
    return Section([settings_part, *parts])


def _devices(content: Content) -> str:
    """What the runs were computed on, as their records name it."""
    return ", ".join(facts_of(content, "device")).replace("(1 threads)", "(1 thread)")


def _moments(settings: Mapping[str, Any]) -> str:
    """The type of AdamW's moments, and where it is another."""
    named = ("training", "retraining", "generalisation")
    found = {name: settings.get(name, {}).get("moments", "float32") for name in named}
    short = [name for name, kind in found.items() if kind != "float32"]
    return f"bfloat16 in {', '.join(short)}" if short else "float32"


def _fine_tuning(content: Content, tuning: str) -> str:
    """How models were trained; of given runs, only what `train_missing` names was."""
    if not content.given:
        return tuning
    trained = (content.settings.get("given") or [{}])[0].get("train_missing", [])
    return "given (see Given checkpoints)" + (
        f"; {' and '.join(trained)} trained here: {tuning}" if trained else ""
    )


def _run(content: Content, key: str) -> list[str]:
    """Those of a setting's techniques or stages that aren't left out for lack of a checkpoint."""
    out = {what for what, said in content.given if said.startswith("left out")}
    return [str(name) for name in content.settings.get(key, []) if name not in out]


def _given(content: Content) -> Part:
    """The checkpoints that were given, and what can be done with them."""
    if not content.given:
        return Part()
    title = "What the exam found: noisy training rows that are predicted as labelled, accuracies"
    shown = table(content, "given", title)
    return Part("Given checkpoints", GIVEN_NOTE, content.given, tables=[shown])


def _data_seeds(settings: Mapping[str, Any]) -> str:
    """The data seed, and which ones perturb the tasks anew."""
    first, *further = settings.get("data_seeds") or [settings.get("data_seed", "not recorded")]
    anew = f" (the same rows are perturbed anew by {', '.join(map(str, further))})"
    return f"{first}{anew if further else ''}"


def _models(content: Content) -> Part:
    """What the models are, and what came of their admission exams."""
    found = {m: read_checked(p) for m, p in content.manifests.items() if Path(p).exists()}
    facts = [(content.model_label(model), _described(facts)) for model, facts in found.items()]
    texts = [
        {
            "title": f"Admission exam of {content.model_label(model)}",
            "text": "\n".join(f"{o['outcome']}  {o['check']}: {o['measured']}" for o in exam),
        }
        for model, exam in ((model, facts.get("exam", [])) for model, facts in found.items())
        if exam
    ]
    return Part("Models", EXAM_NOTE if texts else "", facts, texts=texts) if found else Part()


def _described(facts: Mapping[str, Any]) -> str:
    """A retrieved model in one line."""
    exam = facts.get("exam", [])
    passed = sum(outcome["outcome"] == PASSED for outcome in exam)
    longest = facts.get("longest_input")
    reads = f"reads at most {longest} tokens" if longest else "reads inputs of any length"
    said = [
        f"{facts['architecture']}, {facts['n_layers']} layers, {reads}",
        f"passed {passed} of {len(exam)} checks",
        *facts.get("notes", []),
        *(f"not for {' and '.join(o['needed_by'])}" for o in exam if o["outcome"] == REFUSED),
    ]
    return "; ".join(said)


def _differing(content: Content) -> Part:
    """What differs from the paper's study."""
    if not content.paper:
        return Part()
    found = differences(content)
    if not found:
        return Part("Against the paper's study", "Nothing differs from the paper's configuration.")
    facts = [(key, f"{here} (paper: {paper})") for key, here, paper in found]
    intro = f"{number_of(len(found), 'setting')} not as in config.yaml, which is the paper's study."
    return Part("Against the paper's study", intro, facts)


def _tasks(content: Content) -> Part:
    """Sizes and noise of the tasks, then duplicates and lengths."""
    if not content.has("tasks"):
        return Part("Tasks", tables=[table(content, "tasks", "Tasks")])
    frame = read_tsv(content.tables["tasks"])
    sizes = frame[SIZES].drop_duplicates()  # the same for every model
    first = table(content, "tasks", "Sizes and noise", frame=sizes, note=SIZES_NOTE)
    title = "Duplicates and lengths, by each model's tokenizer"
    second = table(content, "tasks", title, columns=LENGTHS, note=LENGTHS_NOTE)
    return Part("Tasks", tables=[first, renamed(second, "tasks-lengths")])
