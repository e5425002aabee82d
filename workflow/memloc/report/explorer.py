"""What the first screen draws: the map of windows and the techniques by layer, and their data.

Both are drawn here for one task, model and technique, so that the page shows them on paper and
where no script runs; the page's script draws any other choice with the same numbers. They are plain
SVG and table cells: the numbers of the paper's whole study are smaller than the script of a
plotting library would be.
"""

import json
import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.colors import to_hex, to_rgb

from memloc.budget.words import percent
from memloc.report.parts import Content
from memloc.report.pointing import trust
from memloc.report.reverted import reverted
from memloc.report.smallest import ACTS
from memloc.study.techniques import TECHNIQUES
from memloc.summary.windows import LITTLE, MOST
from memloc.windows import window_name

STEPS = 40  # of the colour scale from 0 to 1
EVEN = 0.179  # luminance on which black and white have the same contrast
WIDTH, TALLEST = 372.0, 290.0  # of the map of windows, without its axis, in its own units
NOTHING = "nothing found"
FRAME = f"undoes {percent(MOST)} of those memorised at a clean error of at most {percent(LITTLE)}."
FRAMED = {
    "yes": f"The framed one is the smallest window that {FRAME}",
    "no": f"No window {FRAME}",
}
Json = dict[str, Any]


def explorer(content: Content) -> Json:
    """What the template shows and the script redraws; empty without layer weights."""
    if not content.has("layer_weights"):
        return {}
    weights = content.read("layer_weights")
    windows = content.read("windows") if content.has("windows") else weights.iloc[:0]
    data: Json = {
        "ramp": ramp(),
        "white": white_from(ramp()),
        "framed": FRAMED,
        "act": {name: ACTS.get(name, "changing") for name in TECHNIQUES},
        "labels": {
            "task": {n: content.task_label(n) for n in dict.fromkeys(weights["task"])},
            "model": {n: content.model_label(n) for n in dict.fromkeys(weights["model"])},
            "technique": {n: _label(n) for n in _ordered(windows["technique"])},
        },
        "layers": weights.groupby("model")["layer"].max().astype(int).to_dict(),
        "windows": dict(_windows(windows)),
        "weights": dict(_weights(content, weights)),
        "reverted": reverted(content),
    }
    lead = next(iter(data["labels"]["technique"]), "")
    first = next(key for key in data["windows"] or data["weights"] if key.endswith(lead))
    task, model = first.split("|")[:2]
    best = data["windows"].get(first, {}).get("best")
    return {
        "data": in_json(data),
        "labels": data["labels"],
        "task": task,
        "model": model,
        "maps": [_map(n, data, first) for n in sorted(set(data["layers"].values()))]
        if data["windows"]
        else [],
        "rows": _rows(content, data, f"{task}|{model}"),
        "layers": data["layers"][model],
        "framed": FRAMED["yes" if best else "no"],
        "source": os.path.relpath(content.tables["windows"], content.folder)
        if data["windows"]
        else "",
        "tested": content.has("control_techniques"),
    }


def in_json(data: Any) -> str:
    """Data for a script element of the page, which nothing in them can end."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def ramp() -> list[str]:
    """Colours from 0 to 1; each is darker than the one before, so that they tell apart in grey."""
    colours = matplotlib.colormaps["YlGnBu"]
    return [to_hex(colours(step / STEPS)) for step in range(STEPS + 1)]


def white_from(colours: list[str]) -> int:
    """The first of ever darker colours on which white can be read better than black."""
    return next(i for i, colour in enumerate(colours) if luminance(colour) < EVEN)


def luminance(colour: str) -> float:
    """Relative luminance of a colour, 0 to 1, as WCAG 2 defines it."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _label(name: str) -> str:
    return TECHNIQUES[name].label if name in TECHNIQUES else name


def _ordered(techniques: Iterable[str]) -> list[str]:
    """Techniques as they are listed, each once; unlisted ones last."""
    found = list(dict.fromkeys(techniques))
    return [n for n in TECHNIQUES if n in found] + [n for n in found if n not in TECHNIQUES]


def _round(value: float, digits: int = 3) -> float | None:
    return None if math.isnan(value) else round(float(value), digits)


def _windows(frame: pd.DataFrame) -> Iterator[tuple[str, Json]]:
    """Key task|model|technique: counts and, by window, [undone, normalised, clean error]."""
    if frame.empty:
        return
    for key, part in frame.groupby(["task", "model", "technique"], sort=False):
        first = part.iloc[0]
        yield (
            "|".join(key),
            {
                "n": [int(first[name]) for name in ("n_noisy", "n_clean", "n_seeds")],
                "memorised": _round(first["memorised"]),
                "best": "".join(_name(r) for _, r in part[part["smallest"] == "yes"].iterrows()),
                "of": {
                    _name(row): [_round(row[c]) for c in ("undone", "error", "clean_error")]
                    for _, row in part.iterrows()
                },
            },
        )


def _name(row: pd.Series) -> str:
    return window_name((row["start"], row["end"]))


def _weights(content: Content, frame: pd.DataFrame) -> Iterator[tuple[str, Json]]:
    """Key task|model: by technique the layers' weights over their largest, and M-CoG in words."""
    centres = content.read("mcog") if content.has("mcog") else frame.iloc[:0].assign(mcog=0.0)
    keys = ["task", "model", "technique"]
    said = {tuple(r[k] for k in keys): _centre(r) for r in centres.to_dict("records")}
    for (task, model), pair in frame.groupby(["task", "model"], sort=False):
        found: Json = {}
        for technique in _ordered(pair["technique"]):
            rows = pair[pair["technique"] == technique].sort_values("layer")
            own = rows["weight"] if rows["weight"].notna().any() else rows["weight_raw"]
            top = own.max()
            scaled = [_round(w / top) if top > 0 else 0 for w in own]
            place, words = said.get((task, model, technique), (None, ""))
            shown = [] if words == NOTHING else scaled  # what was found nowhere has no place
            found[technique] = {"w": shown, "at": place, "said": words}
        yield f"{task}|{model}", found


def _centre(row: Json) -> tuple[float | None, str]:
    """M-CoG of a row of mcog.tsv: its place and in words."""
    if row["found"] == "no":
        return None, NOTHING
    if math.isnan(row["mcog"]):
        return None, "undefined"
    text = f"{row['mcog']:.1f}"
    if not math.isnan(row["ci_low"]):
        text += f" [{row['ci_low']:.1f}, {row['ci_high']:.1f}]"
    return _round(row["mcog"]), text


def _rows(content: Content, data: Json, pair: str) -> list[Json]:
    """Rows of the table of techniques: name, label, cells by layer, M-CoG and trust."""
    known, rows = trust(content), []
    for name in _ordered(name for pair in data["weights"].values() for name in pair):
        own = data["weights"][pair].get(name, {"w": [], "at": None, "said": "not run"})
        rows.append(
            {
                "name": name,
                "label": _label(name),
                "cells": [{"layer": i, "fill": _fill(data, w), "title": f"layer {i}: {w}"}
                          for i, w in enumerate(own["w"], 1)],
                "at": own["at"],
                "said": own["said"],
                "trust": known.get(name, "not tested"),
            }
        )  # fmt: skip
    return rows


def _fill(data: Json, value: float | None) -> str:
    """The colour of a share; none for what is undefined."""
    if value is None:
        return "none"
    return data["ramp"][_step(value)]


def _step(value: float) -> int:
    """Where a share is on the colour scale."""
    return round(STEPS * min(1.0, max(0.0, value)))


def _map(n_layers: int, data: Json, first: str) -> Json:
    """The map of windows of a model of so many layers: a cell stands above the layers it covers."""
    wide = WIDTH / n_layers
    high = max(11.0, min(30.0, TALLEST / n_layers))
    shown = data["windows"][first] if data["layers"][first.split("|")[1]] == n_layers else None
    of, best = (shown["of"], shown["best"]) if shown else ({}, "")
    cells = []
    for length in range(1, n_layers + 1):
        for start in range(1, n_layers - length + 2):
            name = window_name((start, start + length - 1))
            value = of.get(name, [None])[0]
            cells.append(
                {
                    "window": name,
                    "x": round((start - 1 + (length - 1) / 2) * wide, 1),
                    "y": round((n_layers - length) * high, 1),
                    "fill": _fill(data, value),
                    "dark": value is not None and _step(value) >= data["white"],
                    "text": "" if value is None else f"{100 * value:.0f}",
                    "best": best == name,
                }
            )
    cells.sort(key=lambda cell: cell["best"])  # the framed one on top of its neighbours
    return {
        "layers": n_layers, "cells": cells, "wide": round(wide, 1), "high": round(high, 1),
        "width": WIDTH, "height": round(n_layers * high, 1), "shown": shown is not None,
        "legend": [] if wide >= 22 else [_fill(data, share / 4) for share in range(5)],
    }  # fmt: skip
