"""The answer above the page's sections, put into words from the tables, and what limits it.

What is claimed was decided in the tables: which way a task leans (mcog.tsv, column leans) and
whether depth goes with generalisation (correlations.tsv, column claim). Every sentence says how
many tasks it rests on and how it was decided. Depth is compared with the middle of a model,
(L + 1) / 2, since models may differ in layers.
"""

from collections.abc import Sequence

import pandas as pd

from memloc.budget.words import number_of
from memloc.localise.centre import LOWER, UPPER
from memloc.report.found_noise import caveat, finds_noise
from memloc.report.parts import Content
from memloc.report.sections.techniques import nothing_found
from memloc.report.sections.training import weak_runs
from memloc.study.published import ONE_LAYER_ERROR
from memloc.study.techniques import TECHNIQUES, papers
from memloc.summary.centres import MIXED, judged, leanings
from memloc.summary.depth import levelled_mean
from memloc.summary.spearman import CLAIM_LEAST, FEW, NEGATIVE, POSITIVE

WORDS = {
    LOWER: "leans to the lower layers", UPPER: "leans to the upper layers",
    MIXED: "leans to either side, as techniques or models disagree",
}  # fmt: skip
DECIDED = (
    "A side is named where more than half of the 95 % intervals (techniques × models) leave out "
    "the middle, adjusted for {tasks}, and none does so on the other side; they come from "
    "resampling {basis}"
)
DEPTH_WORDS = {
    POSITIVE: "The better a model generalises to a task, the deeper it memorises",
    NEGATIVE: "The better a model generalises to a task, the less deep it memorises",
}
NOTHING = "No technique has found where the model memorises."
FEW_TOLD = 4  # up to so many tasks are named one by one


def headline(content: Content) -> dict[str, list[str]]:
    """Sentences of the answer, and caveats."""
    answer = [line for line in (where(content), alone(content), generalising(content)) if line]
    return {"answer": answer, "caveats": caveats(content)}


def where(content: Content) -> str:
    """Which way memorisation leans by task, and how that was decided; empty without M-CoGs."""
    said = side(content)
    return f"{said} {_decided(judged(content.read('mcog')))}." if said else ""


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
    basis = " or ".join(dict.fromkeys(told["resampled"]))
    return DECIDED.format(tasks=number_of(count, "task"), basis=basis)


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
        wide = part.pivot(index=["task", "model"], columns="technique", values="mcog")
        means = levelled_mean(wide).groupby(level="task", sort=False).mean()
        low, high = means.idxmin(), means.idxmax()
        counts = (part["technique"].nunique(), "technique"), (part["model"].nunique(), "model")
        over = [number_of(n, word) for n, word in counts if n > 1]
        mean = f", in the mean over {' and '.join(over)}," if over else ""
        span = f"M-CoG{mean} {means[low]:.1f}"
        if low != high:
            span = (
                f"M-CoG{mean} from {means[low]:.1f} ({content.task_label(low)}) "
                f"to {means[high]:.1f} ({content.task_label(high)})"
            )
        ends = part["attainable_low"].max(), part["attainable_high"].min()
        reach = (
            "" if ends == (1, layers) else f" (windows can reach {ends[0]:.1f} to {ends[1]:.1f})"
        )
        middle = f"whose middle is {(layers + 1) / 2:g}"
        parts.append(f"{span} of layers 1 to {layers}{reach}, {middle}")
    return "; ".join(parts)


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
    below = (frame["error"] < ONE_LAYER_ERROR).mean()
    return (
        f"{lead}: modifying a single layer ({' or '.join(by)}) undoes {top['error']:.0%} of the "
        f"noisy labels at most ({content.task_label(top['task'])}, "
        f"{content.model_label(top['model'])}, layer {top['layer']}), and less than "
        f"{ONE_LAYER_ERROR:.0%} in {below:.0%} of the {len(frame)} cases (task × model × "
        f"technique, {number_of(frame['task'].nunique(), 'task')}); these are shares as measured, "
        "without a test."
    )


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
        f"{row['rho']:.2f} (n = {row['n']} tasks{interval}; p = {row['p']:.2g} from "
        f"{row['decided']}, the models of a task kept together)."
    )


def caveats(content: Content) -> list[str]:
    """What makes the answer less sure than it reads."""
    data = content.settings.get("data", {})
    seeds = content.settings.get("model_seeds", [])
    found = [f"{content.model_label(n)} is {m['note']}." for n, m in content.models.items()
             if m.get("note")]  # fmt: skip
    if data.get("max_train"):
        found.append(
            f"A trial: at most {data['max_train']} training rows per task, inputs cut at "
            f"{data.get('max_length')} tokens."
        )
    if finds_noise(content):
        found.append(caveat(content))
    few = [(len(content.tasks), "task"), (len(content.models), "model"), (len(seeds), "seed")]
    small = [number_of(n, word) for n, word in few if 0 < n < 3]
    if small:
        found.append(f"It rests on {', '.join(small)}: too few to speak of others.")
    weak, runs = weak_runs(content)
    if weak:
        found.append(f"{weak} of {runs} runs on perturbed labels memorised only in part.")
    found += [f"{line} Their M-CoG doesn't count above." for line in nothing_found(content)]
    return found
