"""Section Explanation: centroid analysis and its events (section 5, Figures 10 to 12, 15)."""

from collections.abc import Iterable, Iterator
from typing import Any

from memloc.explain.centroids import CROSSING, INITIATION, NONE
from memloc.explain.events import PROBING_INITIATION, PROBING_MEMORISATION, happened
from memloc.report.parts import Absent, Content, Part, Section, Table
from memloc.report.pictures import drawn, gallery, pictures
from memloc.report.tables import Cell, absent, renamed, table, worded

EVENTS = {  # columns of the overview
    CROSSING: "crossing",
    INITIATION: "initiation",
    PROBING_MEMORISATION: "probes: memorisation » generalisation",
    PROBING_INITIATION: "probes: 90 %",
}
Events = dict[tuple[str, str], dict[str, Any]]  # (source, event) -> a row of events.tsv
HALVES = {"bottom": "crossing, bottom half from θ_O", "top": "crossing, top half from θ_O"}
NOTE = (
    "Mean layer over the seeds and ordered pairs of classes in which the event happened; in "
    "brackets, the number of those in which it never did. n/a: no pair has a noisy example."
)


def build(content: Content) -> Section:
    """The section's figures and tables, after what they say."""
    if not content.has("centroids"):
        title = "Layers of events, of probes alone"
        missing = [absent(content, "centroids", "Centroid analysis")]
        return Section([Part(tables=[_all_events(content, title)])], absent=missing)
    title = "All events: layer, how often they happened (n) and never did (n none)"
    parts = [
        Part(
            "When noisy examples turn, and when classes come apart",
            figures=pictures(content, "events"),
            tables=[overview(content), _all_events(content, title)],
        ),
        Part("Half of the layers from θ_O", figures=pictures(content, "swapped_halves")),
        gallery(content, "Centroid analysis", drawn(content, "centroids"), wide=True),
        Part("Curves in numbers", tables=[_curves(content)]),
    ]
    return Section([part for part in parts if part], intro=" ".join(_sentences(content)))


def _all_events(content: Content, title: str) -> Table | Absent:
    """events.tsv with layers as numbers, so that they can be sorted and rounded."""
    frame = content.read("events")
    frame["layer"] = happened(frame["layer"])
    note = "sd is over the same seeds and pairs; n undefined counts pairs without a noisy example."
    return table(content, "events", title, frame=frame, note=note, folded=True)


def _curves(content: Content) -> Table | Absent:
    """centroids.tsv without the clean means, which are 0 and 1 by construction."""
    title = "Places between centroids, mean over seeds and pairs of classes"
    frame = content.read("centroids").drop(columns=["clean_a_mean", "clean_b_mean"])
    return table(content, "centroids", title, frame=frame, folded=True)


# --- In words and at a glance ----------------------------------------------------------


def _events_by_run(content: Content) -> dict[tuple[str, str], Events]:
    """Rows of events.tsv by (task, model), in the page's order."""
    found: dict[tuple[str, str], Events] = {}
    for row in content.read("events").to_dict("records"):
        found.setdefault((row["task"], row["model"]), {})[row["source"], row["event"]] = row
    return found


def _sentences(content: Content) -> Iterator[str]:
    """What events.tsv says about this run, in plain sentences."""
    rows = _events_by_run(content).values()
    depths = content.read("centroids").groupby("model")["layer"].max()
    both = [
        (_number(events.get(("trained", CROSSING))), _number(events.get(("trained", INITIATION))))
        for events in rows
    ]
    told = [(cross, apart) for cross, apart in both if cross is not None and apart is not None]
    if told and depths.nunique() == 1:  # layers of models of other depths are no common scale
        yield (
            "On average, noisy examples cross to the class of their perturbed label at layer "
            f"{_mean(cross for cross, _ in told)} of {depths.max()}, and classes are apart from "
            f"layer {_mean(apart for _, apart in told)} on."
        )
    n_later = sum(cross > apart for cross, apart in told)
    yield (
        f"In {n_later} of {len(told)} cases (task × model) classes are apart before noisy examples "
        "cross: generalisation first, memorisation second."
        if told
        else "In no task did noisy examples both cross and classes come apart."
    )
    for half in HALVES:
        crossed = [events[half, CROSSING] for events in rows if (half, CROSSING) in events]
        n, none = (sum(row[key] for row in crossed) for key in ("n", "n_none"))
        if n + none:
            yield (
                f"With the {half} half of the layers taken from θ_O, noisy examples still cross in "
                f"{n / (n + none):.0%} of the pairs of classes of all tasks and seeds."
            )


def _mean(layers: Iterable[float]) -> str:
    values = list(layers)
    return f"{sum(values) / len(values):.1f}"


def _number(row: dict[str, Any] | None) -> float | None:
    """The layer of a row of events.tsv; None where there is none."""
    if row is None or not row["n"]:
        return None
    return float(happened([row["layer"]])[0])


def overview(content: Content) -> Table | Absent:
    """events.tsv with a row per task and model, and a column per event."""
    heads = [{"title": title, "number": False} for title in ("task", "model")]
    columns = [("trained", event) for event in EVENTS] + [(half, CROSSING) for half in HALVES]
    found = _events_by_run(content)
    columns = [key for key in columns if any(key in events for events in found.values())]
    heads += [
        {"title": EVENTS[event] if source == "trained" else HALVES[source], "number": True}
        for source, event in columns
    ]
    rows = []
    for (task, model), events in found.items():
        names = content.task_label(task), content.model_label(model)
        cells: list[Cell] = [{"text": name, "value": name, "number": False} for name in names]
        cells += [_cell(events.get(key)) for key in columns]
        rows.append({"cells": cells, "low": False})
    shown = worded(content, "events", "Layers of events, 1 to L", heads, rows, NOTE)
    return renamed(shown, "events-overview")


def _cell(row: dict[str, Any] | None) -> Cell:
    """A layer in words, sorted by its value."""
    layer = _number(row)
    if layer is None:
        word = "–"
        if row is not None:
            word = NONE if row["n_none"] else "n/a"
        return {"text": word, "value": "nan", "number": True}
    never = f" ({row['n_none']} none)" if row and row["n_none"] else ""
    return {"text": f"{layer:.1f}{never}", "value": repr(layer), "number": True}
