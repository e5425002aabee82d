"""Section Setup: which tasks, models, seeds and settings; sizes, noise and lengths of the tasks."""

import yaml

from memloc.report_parts import Part, Section, renamed, table
from memloc.report_records import facts_of, software
from memloc.tables import read_tsv

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


def build(content):
    """Which tasks, models, seeds and settings, and the tasks' sizes."""
    settings = content.settings
    training, perturbation = settings.get("training", {}), settings.get("perturbation", {})
    tuning = (
        f"{training.get('epochs')} epochs, learning rate {training.get('learning_rate')}, "
        f"batch size {training.get('batch_size')}"
    )
    facts = [
        ("Tasks", ", ".join(map(content.task_label, content.tasks))),
        ("Models", ", ".join(map(content.model_label, content.models))),
        ("Model seeds", ", ".join(map(str, settings.get("model_seeds", [])))),
        ("Perturbed labels", f"{perturbation.get('ratio', 0):.0%} of each class"),
        ("Fine-tuning", tuning),
        ("Precision", settings.get("precision", "float32")),
        ("Device", ", ".join(facts_of(content, "device")) or "not recorded"),
        ("Software", software(content)),
    ]
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
    texts = [{"title": "The whole configuration", "text": text}]
    return Section([_tasks(content), Part(texts=texts)], facts=facts)


def _tasks(content):
    """Sizes and noise of the tasks, then duplicates and lengths."""
    if not content.has("tasks"):
        return Part("Tasks", tables=[table(content, "tasks", "Tasks")])
    frame = read_tsv(content.tables["tasks"])
    sizes = frame[SIZES].drop_duplicates()  # the same for every model
    first = table(content, "tasks", "Sizes and noise", frame=sizes, note=SIZES_NOTE)
    title = "Duplicates and lengths, by each model's tokenizer"
    second = table(content, "tasks", title, columns=LENGTHS, note=LENGTHS_NOTE)
    return Part("Tasks", tables=[first, renamed(second, "tasks-lengths")])
