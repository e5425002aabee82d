"""The answer's first sentences: the smallest window of layers that undoes what was memorised.

Numbers are those of windows.tsv, where the window is marked. A few tasks and models have a sentence
each; many have one per group of tasks, which says the range.
"""

from collections.abc import Iterator

import pandas as pd

from memloc.budget.words import number_of, percent
from memloc.figures.style import GROUPS, group_of
from memloc.report.found_noise import finds_noise
from memloc.report.parts import Content
from memloc.study.techniques import TECHNIQUES
from memloc.summary.windows import LITTLE, MOST

ACTS = {
    "swapping": "swapping", "retraining": "retraining", "patching": "patching",
    "rewinding-pretrained": "rewinding", "rewinding-memorised": "rewinding",
}  # fmt: skip
SINGLY = 4  # up to so many tasks and models have a sentence each
ALL = 0.995  # a share of memorised labels that is written as 100 %
NO_LOSS = 0.0005  # a clean error that is written as 0.0 %


def layers(row: pd.Series, n_layers: int) -> str:
    """A window in words: "layers 1–2 of 6"."""
    if row["start"] == row["end"]:
        return f"layer {row['start']} of {n_layers}"
    return f"layers {row['start']}–{row['end']} of {n_layers}"


def sentences(content: Content) -> list[str]:
    """What the smallest window undoes, per task and model or per group; empty without windows."""
    if not content.has("windows"):
        return []
    frame = content.read("windows")
    found = set(frame["technique"])
    technique = next((name for name in TECHNIQUES if name in found), None)
    if technique is None:
        return []
    frame = frame[frame["technique"] == technique]
    pairs = [pair for _, pair in frame.groupby(["task", "model"], sort=False)]
    if len(pairs) <= SINGLY:
        lines = [_single(content, pair, technique) for pair in pairs]
    else:
        lines = list(_by_group(content, pairs, technique))
    return [line[0].upper() + line[1:] for line in lines]


def labels_of(content: Content) -> str:
    """What the noisy labels are called in the answer."""
    return "labels that count as noisy" if finds_noise(content) else "wrong labels"


def learnt(content: Content, row: pd.Series) -> str:
    """Of what a window undoes a share: "wrong labels that BERT had learnt", and how many of all."""
    share = "" if row["memorised"] >= ALL else f", which are {percent(row['memorised'])} of all"
    return f"{labels_of(content)} that {content.model_label(row['model'])} had learnt{share}"


def _counted(row: pd.Series) -> str:
    return (
        f"n = {row['n_noisy']:,} noisy and {row['n_clean']:,} clean examples, "
        f"{number_of(row['n_seeds'], 'seed')}"
    )


def _single(content: Content, pair: pd.DataFrame, technique: str) -> str:
    """The sentence of one task and model."""
    chosen, n_layers = pair[pair["smallest"] == "yes"], int(pair["end"].max())
    act, first = ACTS.get(technique, "changing"), pair.iloc[0]
    where = f"on {content.task_label(first['task'])}"
    if chosen.empty:
        return f"{where}, {_none(content, pair, act, n_layers)}"
    row = chosen.iloc[0]
    clean = row["clean_error"]
    loss = (
        "at no loss on the rest"
        if clean < NO_LOSS
        else f"at an error of {percent(clean, 1)} on clean examples"
    )
    return (
        f"{where}, {act} {layers(row, n_layers)} undoes {percent(row['undone'])} of the "
        f"{learnt(content, row)}, {loss} "
        f"({_counted(row)})."
    )


def _none(content: Content, pair: pd.DataFrame, act: str, n_layers: int) -> str:
    """What is said where no window will do: the most that is undone at little cost."""
    cheap = pair[pair["clean_error"] <= LITTLE]
    row = pair.iloc[0]
    if pair["undone"].isna().all():
        model = content.model_label(row["model"])
        return f"{model} had learnt none of the {labels_of(content)} ({_counted(row)})."
    lead = (
        f"{act} no window of layers undoes {percent(MOST)} of the {learnt(content, row)} at an "
        f"error of at most {percent(LITTLE)} on clean examples"
    )
    if cheap.empty:
        return f"{lead} ({_counted(row)})."
    best = cheap.loc[cheap["undone"].idxmax()]
    undone = percent(best["undone"])
    return f"{lead}; the most is {undone}, by {layers(best, n_layers)} ({_counted(best)})."


def _by_group(content: Content, pairs: list[pd.DataFrame], technique: str) -> Iterator[str]:
    """A sentence per group of tasks; of a group of one case it is that case's own."""
    for group, (title, _) in GROUPS.items():
        mine = [p for p in pairs if _group(content, p) == group]
        if len(mine) == 1:
            yield f"{title}: {_single(content, mine[0], technique)}"
        elif mine:
            yield _range(content, mine, title, ACTS.get(technique, "changing"))


def _group(content: Content, pair: pd.DataFrame) -> str:
    return group_of(content.tasks.get(pair.iloc[0]["task"], {}).get("category"))


def _range(content: Content, pairs: list[pd.DataFrame], title: str, act: str) -> str:
    """How large the smallest windows of a group are, and where the least and the largest lie."""
    rows = [p[p["smallest"] == "yes"].iloc[0] for p in pairs if (p["smallest"] == "yes").any()]
    depth = {(p.iloc[0]["task"], p.iloc[0]["model"]): int(p["end"].max()) for p in pairs}
    cases = f"{len(rows)} of {number_of(len(pairs), 'case')} (task × model)"
    what = (
        f"{percent(MOST)} of the {labels_of(content)} that were learnt are undone, at an error of "
        f"at most {percent(LITTLE)} on clean examples"
    )
    least = min(p["memorised"].min() for p in pairs)
    part = f" (of them all, {percent(least)} or more were learnt)" if least < ALL else ""
    if not rows:
        return f"{title}: by {act} windows of layers, in {cases} {what}{part}."
    share = pd.Series([(r["end"] - r["start"] + 1) / depth[r["task"], r["model"]] for r in rows])
    order = share.sort_values(kind="stable").index
    ends = [rows[order[0]], rows[order[-1]]]
    named = [
        f"{layers(r, depth[r['task'], r['model']])} ({content.task_label(r['task'])}, "
        f"{content.model_label(r['model'])}; {_counted(r)})"
        for r in ends
    ]
    span = named[0] if len(rows) == 1 else f"from {named[0]} to {named[1]}"
    return (
        f"{title}: by {act} {percent(share.median())} of the layers in the median, in {cases}, "
        f"{what}: {span}{part}."
    )
