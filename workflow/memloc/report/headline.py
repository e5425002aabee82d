"""The answer above the page's sections, put into words from the tables, and what limits it.

The page and the terminal say it by the same functions.

What is claimed was decided in the tables: which way a task leans (mcog.tsv, column leans) and
whether depth goes with generalisation (correlations.tsv, column claim). Every sentence says how
many tasks it rests on and how it was decided. Depth is compared with the middle of a model,
(L + 1) / 2, since models may differ in layers.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from memloc.budget.words import number_of, percent
from memloc.localise.centre import LOWER, UPPER
from memloc.report.limits import caveats, foremost
from memloc.report.parts import Content
from memloc.report.smallest import ALL, labels_of, sentences
from memloc.study.published import ONE_LAYER_ERROR
from memloc.study.techniques import TECHNIQUES, papers
from memloc.summary.centres import MIXED, judged, leanings
from memloc.summary.depth import over_techniques
from memloc.summary.spearman import CLAIM_LEAST, FEW, NEGATIVE, POSITIVE

WORDS = {
    LOWER: "leans to the lower layers", UPPER: "leans to the upper layers",
    MIXED: "leans to either side, as techniques or models disagree",
}  # fmt: skip
DECIDED = (
    "A side is named where more than half of the 95 % intervals ({kind} × models) leave out "
    "the middle, adjusted for {tasks}, and none does so on the other side; they come from "
    "resampling {basis}"
)
DEPTH_WORDS = {
    POSITIVE: "The better a model generalises to a task, the deeper it memorises",
    NEGATIVE: "The better a model generalises to a task, the less deep it memorises",
}
NOTHING = "No technique has found where the model memorises."
FEW_TOLD = 4  # up to so many tasks are named one by one
TOLD = r'<script type="application/json" id="told">(.*?)</script>'  # of the page's template
MCOG = "M-CoG, the mean layer with each weighted by how much it matters for memorisation, is"
QUESTION = "In which layers do fine-tuned language models memorise {labels}?"


def headline(content: Content) -> dict[str, Any]:
    """What stands above all sections.

    question; answer: its sentences; more: sentences on what the answer rests on; limit: what limits
    it most, in a line; caveats: all that limits it. Without any result the answer says so.
    """
    answer = [*sentences(content), *filter(None, [side(content)])]
    more = [line for line in (decided(content), alone(content), generalising(content)) if line]
    found = caveats(content)
    return {
        "question": QUESTION.format(labels=labels_of(content)),
        "answer": answer or ([] if more else [NOTHING]),
        "more": more,
        "limit": foremost(found),
        "caveats": found,
    }


def told(found: Mapping[str, Any]) -> list[str]:
    """A headline line by line, for a terminal: the answer, what it rests on, all that limits it."""
    return [*found["answer"], *found["more"], *found["caveats"]]


def said_on(page: Path) -> list[str]:
    """The lines of `told` that a page was written with."""
    found = re.search(TOLD, page.read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(found[1]) if found else [f"{page} says no answer: make it again."]


def decided(content: Content) -> str:
    """How it was decided to which side memorisation leans; empty without M-CoGs."""
    return f"{_decided(judged(content.read('mcog')))}." if side(content) else ""


def side(content: Content) -> str:
    """Which way memorisation leans, task by task, in a sentence; empty without M-CoGs."""
    if not (content.has("mcog") and content.has("layer_weights")):
        return ""
    table = content.read("mcog")
    frame = judged(table)
    if frame.empty:
        return ""
    sides = leanings(table)
    clauses = [
        f"on {_named(content, sides.index[sides == side], len(sides))} memorisation {words}"
        for side, words in WORDS.items()
        if (sides == side).any()
    ]
    others = sides.index[~sides.isin(list(WORDS))]
    if len(others):
        named = _named(content, others, len(sides))
        clauses.append(f"on {named} no side of the middle is shown")
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}: {_range(content, frame)}."


def _decided(frame: pd.DataFrame) -> str:
    """How a side was decided, and from how many intervals."""
    told = frame[frame["resampled"] != "none"]
    count = frame["task"].nunique()
    if told.empty:
        return (
            f"No side can be named for {number_of(count, 'task')}: there is one seed, and no table "
            "per example to make an interval from"
        )
    basis = ", or ".join(dict.fromkeys(told["resampled"]))
    return DECIDED.format(kind=f"{_kind(frame)}s", tasks=number_of(count, "task"), basis=basis)


def _named(content: Content, tasks: Sequence[str], count: int) -> str:
    if len(tasks) == count and count > FEW_TOLD:
        return f"all {count} tasks"
    labels = [content.task_label(task) for task in tasks]
    if len(labels) <= FEW_TOLD:
        return " and ".join([", ".join(labels[:-1]), labels[-1]] if labels[1:] else labels)
    return f"{len(labels)} of {count} tasks"


def _range(content: Content, frame: pd.DataFrame) -> str:
    """Lowest and highest M-CoG with their tasks, per number of layers; what could be reached."""
    layers_of = content.read("layer_weights").groupby("model")["layer"].max()
    parts = []
    for layers, part in frame.groupby(frame["model"].map(layers_of)):
        means = over_techniques(part)["mcog"].groupby(level="task", sort=False).mean()
        low, high = means.idxmin(), means.idxmax()
        counts = (part["technique"].nunique(), _kind(part)), (part["model"].nunique(), "model")
        over = [number_of(n, word) for n, word in counts if n > 1]
        mean = f", averaged over {' and '.join(over)}" if over else ""
        mean += f" ({_seeds(part['n_seeds'])})"
        span = f"{MCOG} {means[low]:.1f}"
        if low != high and f"{means[low]:.1f}" == f"{means[high]:.1f}":
            span += f" on {'both' if len(means) == 2 else f'all {len(means)}'} tasks,"
        elif low != high:
            span = (
                f"{MCOG} {means[low]:.1f} ({content.task_label(low)}) "
                f"to {means[high]:.1f} ({content.task_label(high)})"
            )
        ends = part["attainable_low"].max(), part["attainable_high"].min()
        reach = (
            "" if ends == (1, layers) else f" (windows can reach {ends[0]:.1f} to {ends[1]:.1f})"
        )
        middle = f"whose middle is {(layers + 1) / 2:g}"
        parts.append(f"{span} of layers 1 to {layers}{reach}, {middle}{mean}")
    return "; ".join(parts)


def _seeds(counts: pd.Series) -> str:
    """On how many seeds M-CoGs rest: "2 seeds", "1 to 3 seeds"."""
    least, most = int(counts.min()), int(counts.max())
    return number_of(most, "seed") if least == most else f"{least} to {most} seeds"


def _kind(part: pd.DataFrame) -> str:
    """What the averaged techniques are called, in the singular."""
    paper = all(TECHNIQUES[name].paper for name in set(part["technique"]) if name in TECHNIQUES)
    return "of the paper's technique" if paper else "technique"


def alone(content: Content) -> str:
    """What modifying one layer does at most; empty without windows."""
    if not content.has("one_layer"):
        return ""
    frame = content.read("one_layer").dropna(subset=["error"])
    frame = frame[frame["technique"].isin(papers(frame["technique"]))]
    if content.has("mcog"):
        keys = ["task", "model", "technique"]
        frame = frame.merge(judged(content.read("mcog"))[keys], on=keys)
    if frame.empty:
        return ""
    top = frame.loc[frame["error"].idxmax()]
    by = [TECHNIQUES[name].short.lower() for name in dict.fromkeys(frame["technique"])]
    lead = "No layer holds it alone" if top["error"] < 0.5 else "One layer can hold much of it"
    below = int((frame["error"] < ONE_LAYER_ERROR).sum())
    cases = (
        f", and less than {percent(ONE_LAYER_ERROR)} in {below} of {number_of(len(frame), 'case')} "
        "(task × model × technique)"
    )
    return (
        f"{lead}: modifying a single layer ({' or '.join(by)}) undoes {percent(top['error'])} of "
        f"the noisy labels at most, of what all layers together undo "
        f"({content.task_label(top['task'])}, {content.model_label(top['model'])}, layer "
        f"{top['layer']}; {number_of(top['n_seeds'], 'seed')}){cases if len(frame) > 1 else ''}; "
        f"as measured, without a test.{_unlearnt(content)}"
    )


def _unlearnt(content: Content) -> str:
    """What is said of normalised errors where a model hadn't learnt all noisy labels."""
    if not content.has("windows") or (content.read("windows")["memorised"] >= ALL).all():
        return ""
    return " Labels that a model had never learnt count as undone here."


def generalising(content: Content) -> str:
    """Whether depth goes with generalisation (Table 2); empty without such a correlation."""
    if not content.has("correlations"):
        return ""
    frame = content.read("correlations")
    chosen = frame["measure"].eq("generalisation") & frame["level"].eq("all")
    chosen &= frame["a"].eq("mcog") & frame["b"].eq("score") & frame["included"].eq("found")
    told = frame[chosen].dropna(subset=["rho"])
    if told.empty:
        return ""
    row = told.iloc[0]
    lead = DEPTH_WORDS.get(row["claim"], "Depth and generalisation are not shown to go together")
    if row["claim"] == FEW:
        lead = (
            f"Whether depth and generalisation go together can't be told from "
            f"{number_of(row['n'], 'task')}: it takes {CLAIM_LEAST} or more"
        )
    ends = [row["ci_low"], row["ci_high"]]
    interval = "" if pd.isna(ends).any() else f", 95 % interval {ends[0]:.2f} to {ends[1]:.2f}"
    return (
        f"{lead}: Spearman's ρ of M-CoG and generalisation score over tasks, mean over models, is "
        f"{row['rho']:.2f} (n = {number_of(row['n'], 'task')}{interval}; p = {row['p']:.2g} from "
        f"{row['decided']}, the models of a task kept together)."
    )
