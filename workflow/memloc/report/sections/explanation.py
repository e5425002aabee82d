"""Section Explanation: centroid analysis and its events (section 5, Figures 10 to 12, 15)."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from memloc.budget.words import number_of
from memloc.explain.centroid_events import CROSSING, INITIATION, LEAST, NONE
from memloc.explain.probing_events import PROBING_INITIATION, PROBING_MEMORISATION
from memloc.report.parts import Absent, Content, Part, Section, Table
from memloc.report.pictures import pictures
from memloc.report.tables import Cell, absent, renamed, table, worded

EVENTS = {  # columns of the overview
    CROSSING: "crossing",
    INITIATION: "initiation",
    PROBING_MEMORISATION: "probes: memorisation » generalisation",
    PROBING_INITIATION: "probes: 90 %",
}
Events = dict[tuple[str, str], dict[str, Any]]  # (source, event) -> a row of events.tsv
HALVES = {"bottom": "crossing, bottom half from θ_O", "top": "crossing, top half from θ_O"}
PAIRS = "crossing, mean of pairs"
HEADS = {
    "n_pairs": "pairs", "n_pairs_none": "pairs: never", "n_pairs_few": "pairs left out",
    "few_share": "their share of noisy examples",
}  # fmt: skip
NOTE = (
    "Mean layer over seeds, with the examples of all ordered pairs of classes pooled, as in the "
    "authors' code. An event that never happens counts as layer L + 1; in brackets, in how many "
    "seeds it never does; none: in none it does. n/a: it can't be told. The mean of pairs is over "
    f"pairs and seeds with at least {LEAST} noisy examples, which count alike."
)


def build(content: Content) -> Section:
    """The section's figures and tables, after what they say."""
    if not content.has("centroids"):
        title = "Layers of events, of probes alone"
        missing = [absent(content, "centroids", "Centroid analysis")]
        return Section([Part(tables=[_all_events(content, title)])], absent=missing)
    title = "All events: layer, in how many seeds they happen (n) and never do (n none)"
    parts = [
        Part(
            "When noisy examples turn, and when classes come apart",
            figures=pictures(content, "events"),
            tables=[overview(content), _all_events(content, title)],
        ),
        Part("Half of the layers from θ_O", figures=pictures(content, "swapped_halves")),
        Part("Centroid analysis", figures=pictures(content, "centroids")),
        Part("Curves in numbers", tables=[_curves(content)]),
    ]
    return Section([part for part in parts if part], intro=" ".join(_sentences(content)))


def _all_events(content: Content, title: str) -> Table | Absent:
    """events.tsv as it is."""
    note = (
        "layer, sd and n are over seeds, all pairs pooled, never being layer L + 1; pair mean is "
        "over pairs and seeds with enough examples."
    )
    frame = content.read("events").rename(columns=HEADS)
    return table(content, "events", title, frame=frame, note=note, folded=True)


def _curves(content: Content) -> Table | Absent:
    """centroids.tsv without the clean means, which are 0 and 1 by construction."""
    title = "Places between centroids, all pairs of classes pooled, mean over seeds"
    frame = content.read("centroids").drop(columns=["clean_a_mean", "clean_b_mean"])
    return table(content, "centroids", title, frame=frame.rename(columns=HEADS), folded=True)


# --- In words and at a glance ----------------------------------------------------------


def _events_by_run(content: Content) -> dict[tuple[str, str], Events]:
    """Rows of events.tsv by (task, model), in the page's order."""
    found: dict[tuple[str, str], Events] = {}
    for row in content.read("events").to_dict("records"):
        found.setdefault((row["task"], row["model"]), {})[row["source"], row["event"]] = row
    return found


def _sentences(content: Content) -> Iterator[str]:
    """What events.tsv says about this run, in plain sentences that name what they rest on."""
    events = content.read("events")
    trained = events[events["source"].eq("trained") & events["event"].isin([CROSSING, INITIATION])]
    wide = trained.pivot(index=["task", "model"], columns="event", values=["layer", "n"]).dropna()
    if wide.empty:
        yield "In no task could both be told: whether noisy examples cross and classes come apart."
    else:
        yield from _order(wide, content.read("centroids").groupby("model")["layer"].max())
    yield from _halves(events)
    yield from _few(events)


def _order(wide: pd.DataFrame, depths: pd.Series) -> Iterator[str]:
    """Which comes first, crossing or initiation: of cases (rows) in models of so many layers."""
    cross, apart = wide["layer"][CROSSING], wide["layer"][INITIATION]
    cases = number_of(len(wide), "case")
    if depths.nunique() == 1:  # layers of models of other depths are no common scale
        yield (
            "On average, noisy examples cross to the class of their perturbed label at layer "
            f"{cross.mean():.1f} of {depths.max()}, and classes are apart from layer "
            f"{apart.mean():.1f} on (n = {cases}, task × model; never counts as layer "
            f"{depths.max() + 1})."
        )
    yield (
        f"In {(cross > apart).sum()} of {cases} (task × model) classes are apart before "
        "noisy examples cross: generalisation first, memorisation second."
    )
    never = wide["n"][CROSSING].eq(0).sum()
    if never:
        yield f"In {never} of {cases} noisy examples never cross, in any seed."


def _halves(events: pd.DataFrame) -> Iterator[str]:
    """In how many runs noisy examples still cross with half of the layers taken from theta_O."""
    crossings = events[events["event"] == CROSSING].groupby("source")[["n", "n_none"]].sum()
    for half in HALVES:
        n, none = crossings.loc[half] if half in crossings.index else (0, 0)
        if n + none:
            yield (
                f"With the {half} half of the layers taken from θ_O, noisy examples still cross in "
                f"{n} of {number_of(n + none, 'run')} (task × model × seed)."
            )


def _few(events: pd.DataFrame) -> Iterator[str]:
    """How many pairs of classes have too few noisy examples, and what becomes of them."""
    rows = events[events["source"].eq("trained") & events["event"].eq(CROSSING)]
    few, of = rows["n_pairs_few"].sum(), rows[["n_pairs_few", "n_pairs"]].sum().sum()
    if few:
        yield (
            f"{few} of {of} ordered pairs of classes (in each run) have fewer than {LEAST} noisy "
            f"examples: they count by these in the pooled layers, and are left out of means of "
            f"pairs (column reason of events.tsv)."
        )


def _told(row: dict[str, Any] | None) -> bool:
    """Whether an event's layer, or that it never happens, can be told."""
    return row is not None and bool(row["n"] + row["n_none"])


def overview(content: Content) -> Table | Absent:
    """events.tsv with a row per task and model, and a column per event."""
    heads: list[Cell] = [{"title": title, "number": False} for title in ("task", "model")]
    columns = [("trained", event) for event in EVENTS] + [(half, CROSSING) for half in HALVES]
    found = _events_by_run(content)
    columns = [key for key in columns if any(key in events for events in found.values())]
    heads += [
        {"title": EVENTS[event] if source == "trained" else HALVES[source], "number": True}
        for source, event in columns
    ]
    heads.append({"title": PAIRS, "number": True})
    rows = []
    for (task, model), events in found.items():
        names = content.task_label(task), content.model_label(model)
        cells: list[Cell] = [{"text": name, "value": name, "number": False} for name in names]
        cells += [_cell(events.get(key)) for key in columns]
        cells.append(_pair_cell(events.get(("trained", CROSSING))))
        rows.append({"cells": cells, "low": False})
    shown = worded(content, "events", "Layers of events, 1 to L", heads, rows, NOTE)
    return renamed(shown, "events-overview")


def _cell(row: dict[str, Any] | None) -> Cell:
    """A pooled layer in words, sorted by its value."""
    if row is None or not _told(row):
        return {"text": "–" if row is None else "n/a", "value": "nan", "number": True}
    of = row["n"] + row["n_none"]
    never = f" ({row['n_none']} of {of} none)" if row["n_none"] else ""
    text = f"{row['layer']:.1f}{never}" if row["n"] else NONE
    return {"text": text, "value": repr(row["layer"]), "number": True}


def _pair_cell(row: dict[str, Any] | None) -> Cell:
    """The mean over pairs with enough examples, how many they are, and how many were left out."""
    if row is None or not row["n_pairs"]:
        text = "too few examples" if row and row["n_pairs_few"] else "–"
        return {"text": text, "value": "nan", "number": True}
    few = f", {row['n_pairs_few']} too few" if row["n_pairs_few"] else ""
    text = f"{row['pair_mean']:.1f} (n = {row['n_pairs']}{few})"
    return {"text": text, "value": repr(row["pair_mean"]), "number": True}
