"""The answer above the page's sections, put into words from the tables, and what limits it.

Depth is compared with the middle of a model, (L + 1) / 2, since models may differ in layers.
"""

from collections.abc import Sequence

import pandas as pd

from memloc.report.parts import Content
from memloc.report.sections.techniques import weak_probes
from memloc.report.sections.training import weak_runs
from memloc.study.published import ONE_LAYER_ERROR
from memloc.study.techniques import TECHNIQUES

MARGIN = 0.02  # of the layers' range: a centre of gravity nearer to the middle leans nowhere
WORDS = {"lower": "leans to the lower layers", "upper": "leans to the upper layers"}
FEW = 4  # up to so many tasks are named one by one


def headline(content: Content) -> dict[str, list[str]]:
    """Sentences of the answer, and caveats."""
    answer = [line for line in (where(content), alone(content), generalising(content)) if line]
    return {"answer": answer, "caveats": caveats(content)}


def centres(content: Content) -> pd.DataFrame:
    """mcog.tsv with the side of the middle each lies on, without probes that found nothing."""
    frame = studied(content.read("mcog").dropna(subset=["mcog"]))
    layers = content.read("layer_weights").groupby("model")["layer"].max()
    frame = frame.assign(layers=frame["model"].map(layers))
    runs = pd.Series(list(zip(frame["task"], frame["model"], strict=True)), frame.index)
    frame = frame[~((frame["technique"] == "probing") & runs.isin(weak_probes(content)))]
    away = (frame["mcog"] - (frame["layers"] + 1) / 2) / (frame["layers"] - 1).clip(lower=1)
    side = pd.cut(away, [-1, -MARGIN, MARGIN, 1], labels=["lower", "middle", "upper"])
    return frame.assign(side=side.astype(str))


def studied(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows of the paper's techniques; of all, where none of those was run."""
    papers = frame[
        frame["technique"].map(lambda name: name in TECHNIQUES and TECHNIQUES[name].paper)
    ]
    return frame if papers.empty else papers


def where(content: Content) -> str:
    """Which way memorisation leans, task by task; empty without M-CoGs."""
    if not (content.has("mcog") and content.has("layer_weights")):
        return ""
    frame = centres(content)
    if frame.empty:
        return ""
    sides = frame.groupby("task", sort=False)["side"].agg(lambda s: "/".join(sorted(set(s))))
    clauses = [
        f"on {_named(content, sides.index[sides == side], len(sides))} memorisation {words}"
        for side, words in WORDS.items()
        if (sides == side).any()
    ]
    others = sides.index[~sides.isin(list(WORDS))]
    if len(others):
        clauses.append(
            f"on {_named(content, others, len(sides))} techniques or models disagree, or it lies "
            "at the middle"
        )
    text = "; ".join(clauses)
    return f"{text[0].upper()}{text[1:]}: {_range(content, frame)}."


def _named(content: Content, tasks: Sequence[str], count: int) -> str:
    if len(tasks) == count and count > FEW:
        return f"all {count} tasks"
    labels = [content.task_label(task) for task in tasks]
    if len(labels) <= FEW:
        return " and ".join([", ".join(labels[:-1]), labels[-1]] if labels[1:] else labels)
    return f"{len(labels)} of {count} tasks"


def _range(content: Content, frame: pd.DataFrame) -> str:
    """Lowest and highest M-CoG with their tasks, per number of layers."""
    techniques = frame["technique"].nunique()
    parts = []
    for layers, part in frame.groupby("layers"):
        means = part.groupby("task", sort=False)["mcog"].mean()
        low, high = means.idxmin(), means.idxmax()
        over = [f"{n} {w}s" for n, w in ((techniques, "technique"),
                (part["model"].nunique(), "model")) if n > 1]  # fmt: skip
        mean = f", in the mean over {' and '.join(over)}," if over else ""
        if low == high:
            span = f"M-CoG{mean} {means[low]:.1f}"
        else:
            span = (
                f"M-CoG{mean} from {means[low]:.1f} ({content.task_label(low)}) "
                f"to {means[high]:.1f} ({content.task_label(high)})"
            )
        parts.append(f"{span} of layers 1 to {layers}, whose middle is {(layers + 1) / 2:g}")
    return "; ".join(parts)


def alone(content: Content) -> str:
    """What modifying one layer does at most; empty without windows."""
    if not content.has("one_layer"):
        return ""
    frame = studied(content.read("one_layer").dropna(subset=["error"]))
    if frame.empty:
        return ""
    top = frame.loc[frame["error"].idxmax()]
    by = [TECHNIQUES[name].short.lower() for name in dict.fromkeys(frame["technique"])]
    lead = "No layer holds it alone" if top["error"] < 0.5 else "One layer can hold much of it"
    below = (frame["error"] < ONE_LAYER_ERROR).mean()
    return (
        f"{lead}: modifying a single layer ({' or '.join(by)}) undoes {top['error']:.0%} of the "
        f"memorised labels at most ({content.task_label(top['task'])}, "
        f"{content.model_label(top['model'])}, layer {top['layer']}), and less than "
        f"{ONE_LAYER_ERROR:.0%} in "
        f"{below:.0%} of the cases."
    )


def generalising(content: Content) -> str:
    """Whether depth goes with generalisation (Table 2); empty without such a correlation."""
    if not content.has("correlations"):
        return ""
    frame = content.read("correlations")
    chosen = frame[(frame["measure"] == "generalisation") & (frame["level"] == "all")]
    chosen = chosen[(chosen["a"] == "mcog") & (chosen["b"] == "score")].dropna(subset=["rho"])
    if chosen.empty:
        return ""
    row = chosen.iloc[0]
    sure = row["p_holm"] < 0.05 if "p_holm" in row else row["p"] < 0.05
    way = "deeper" if row["rho"] > 0 else "less deep"
    lead = f"The better a model generalises to a task, the {way} it memorises"
    return (
        f"{lead if sure else 'Depth and generalisation are not shown to go together'}: Spearman's "
        f"ρ of M-CoG and generalisation score is {row['rho']:.2f} (n = {row['n']}, "
        f"p = {row['p']:.2g})."
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
    few = [(len(content.tasks), "task"), (len(content.models), "model"), (len(seeds), "seed")]
    small = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in few if 0 < n < 3]
    if small:
        found.append(f"It rests on {', '.join(small)}: too few to speak of others.")
    weak, runs = weak_runs(content)
    if weak:
        found.append(f"{weak} of {runs} runs on perturbed labels memorised only in part.")
    vain = weak_probes(content)
    if vain:
        named = [f"{content.task_label(t)} / {content.model_label(m)}" for t, m in vain]
        shown = ", ".join(named) if len(named) <= FEW else f"{len(named)} of the runs"
        found.append(f"Probes found no noise in {shown}; their M-CoG doesn't count above.")
    return found
