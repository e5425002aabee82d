"""Windows computed again from the checkpoints of results, and compared with their tables.

The stages' own functions do it, with the settings that the table's record of making says.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from memloc.budget.words import align
from memloc.data.examples import Reading
from memloc.errors import MemlocError
from memloc.localise import swap
from memloc.localise.retrain.group import RetrainingRecipe
from memloc.localise.retrain.run import retrain_checkpoints
from memloc.machine.device import device_name, pick_device
from memloc.store.files import read_record
from memloc.store.provenance import versions
from memloc.store.records import check
from memloc.store.tables import COLUMNS, read_tsv
from memloc.study.places import Places
from memloc.windows import Window, parse_window, window_name

SHOWN = ("noisy_error", "clean_error", "noisy_error_normalised")
COUNT = {"noisy_error": "n_noisy", "clean_error": "n_clean", "noisy_error_normalised": "n_noisy"}
# On another device, or with other versions, rounding alone may turn this share of examples.
ROUNDING = {"swap": 0.01, "retrain": 0.05}
LACKING = "what it was made of didn't come along"


@dataclass(frozen=True)
class Asked:
    """Which windows, and of which tables; None: any."""

    windows: str
    table: str | None = None
    task: str | None = None
    model: str | None = None
    seed: str | None = None


@dataclass(frozen=True)
class Run:
    """A seed's run, and where all results and resources are."""

    places: Places
    words: dict[str, str]

    @property
    def folder(self) -> Path:
        """Of its tables."""
        return Path(self.places.subject("").format(**self.words))

    @property
    def data(self) -> Path:
        """The task's examples."""
        return Path(self.places.data.format(**self.words))

    def checkpoint(self, theta: str) -> Path:
        """A checkpoint that its windows are made of."""
        return Path(self.places.checkpoint(theta, self.words))


def compute_again(results: Path, resources: Path, asked: Asked) -> tuple[list[str], bool]:
    """Compare windows of one run with its tables: lines to read, and whether all are the same."""
    run = _run(results, resources, asked)
    tables = [
        (name, compute)
        for name, compute in COMPUTE.items()
        if (run.folder / f"{name}.tsv").exists()
        and (asked.table is None or Path(asked.table).name == f"{name}.tsv")
    ]
    if not tables:
        if asked.table:
            raise MemlocError(
                f"{asked.table} can't be computed again: name swap.tsv or retrain.tsv of a run"
            )
        raise MemlocError(f"{run.folder} has neither swap.tsv nor retrain.tsv to compare with")
    lines, same = [], True
    for name, compute in tables:
        told, equal = _compared(run, name, compute, asked.windows)
        lines += told
        same &= equal
    return lines, same


def _run(results: Path, resources: Path, asked: Asked) -> Run:
    """The run that is asked for; MemlocError unless it is one alone."""
    runs = sorted(
        {path.parent for name in COMPUTE for path in results.glob(f"*/*/seed*/{name}.tsv")}
    )
    words = {place: place.relative_to(results).parts for place in runs}
    if asked.table:
        wanted = Path(asked.table).parent.parts[-3:]
        runs = [place for place in runs if words[place] == wanted]
    said = (asked.task, asked.model, asked.seed and f"seed{asked.seed}")
    runs = [
        place
        for place in runs
        if all(want in (None, have) for want, have in zip(said, words[place], strict=True))
    ]
    if len(runs) != 1:
        names = ", ".join("/".join(words[place]) for place in runs[:10]) or "none"
        raise MemlocError(
            f"{results}: windows of one run can be computed at a time, and these are asked for: "
            f"{names}. Name one with --task, --model and --seed, or its table with --table"
        )
    named = dict(zip(("task", "model", "subject"), words[runs[0]], strict=True))
    return Run(Places(str(results), str(resources)), named)


def _compared(
    run: Run, name: str, compute: Callable[..., Any], asked: str
) -> tuple[list[str], bool]:
    """One table's windows beside the same computed again."""
    table = read_tsv(run.folder / f"{name}.tsv", COLUMNS["windows"]).set_index(["start", "end"])
    n_layers = int(table.index.get_level_values("end").max())
    windows = [parse_window(word.strip(), n_layers) for word in asked.split(",")]
    if lacking := [window_name(window) for window in windows if window not in table.index]:
        raise MemlocError(
            f"{run.folder / name}.tsv has no window {', '.join(lacking)}: name some that it has"
        )
    made = _made(run, name, windows[0])
    _same_threads(made)
    with tempfile.TemporaryDirectory(prefix="memloc-") as scratch:
        again = compute(run, windows, made, Path(scratch))
    is_alike, remark = _remark(made)
    rows, same = [], True
    for window, column in ((window, column) for window in windows for column in SHOWN):
        was, now = float(table.loc[window, column]), float(again.loc[window, column])
        n = int(table.loc[window, COUNT[column]])
        equal = was == now or (was != was and now != now)
        most = 0.0 if is_alike else rounding(name, n)
        same &= equal or abs(now - was) <= most
        rows.append([window_name(window), column, f"{was:.6g}", f"{now:.6g}",
                     "0" if equal else f"{now - was:+.6g}", f"{n}"])  # fmt: skip
    head = ["window", "number", "in the table", "again", "difference", "n"]
    verdict = "the same" if same and is_alike else "within rounding" if same else "NOT THE SAME"
    title = f"{'/'.join(run.folder.parts[-3:])}/{name}.tsv: {verdict}{remark}"
    return [title, *align([head, *rows], (0, 1)), ""], same


def rounding(name: str, n: int) -> float:
    """By how much rounding alone may move an error of n examples: by one of them at least; but not
    where there is one alone, since then anything would pass."""
    return max(1, ROUNDING[name] * n) / n if n > 1 else 0.0


def _made(run: Run, name: str, window: Window) -> Mapping[str, Any]:
    """What a table's provenance says; of retraining, that of the job which retrained the window."""
    names = [f"{name}.tsv"]
    if name == "retrain":
        jobs = ("all", f"from-{window[0]}", window_name(window))
        names = [f"retrain/{job}.tsv" for job in jobs]
    for table in names:
        place = run.folder / f"{table}.provenance.json"
        check(place)
        if found := read_record(place, "Bring it anew", ("reading", "precision", "device")):
            return found
    raise MemlocError(f"{run.folder / names[0]}.provenance.json is missing: {LACKING}")


def _needed(*paths: Path) -> list[str]:
    """Paths of what is read, once it has been compared with its records."""
    for path in paths:
        if not path.exists():
            raise MemlocError(
                f"{path} is missing: {LACKING}. Pack it too (memloc bundle --checkpoints final "
                "--resources yes --texts yes)"
            )
        check(path)
    return [str(path) for path in paths]


def _swap(run: Run, windows: list[Window], made: Mapping[str, Any], scratch: Path) -> pd.DataFrame:
    """All windows, in one sweep."""
    paths = _needed(run.data, run.checkpoint("theta_M2"), run.checkpoint("theta_O"))
    outputs = {"table": str(scratch / "swap.tsv"), "examples": str(scratch / "swap.parquet")}
    keys = ("reading", "precision", "clean_examples", "seed", "component")
    inputs = dict(zip(("data", "theta_M2", "theta_O"), paths, strict=True))
    settings = {key: made[key] for key in keys} | {"packed": made.get("packed", False)}
    swap.run(inputs, outputs, settings, made["batch_tokens"])
    return read_tsv(outputs["table"]).set_index(["start", "end"])


def _retrain(
    run: Run, windows: list[Window], made: Mapping[str, Any], scratch: Path
) -> pd.DataFrame:
    """Each window alone, normalised by the table's window of all layers."""
    data, memorised, pretrained = _needed(
        run.data, run.checkpoint("theta_M2"), run.checkpoint("theta_P")
    )
    parts = []
    for name in map(window_name, windows):
        retrain_checkpoints(
            data=data,
            memorised=memorised,
            pretrained=pretrained,
            whole=run.folder / "retrain.tsv",
            table=scratch / f"{name}.tsv",
            examples=scratch / f"{name}.parquet",
            scratch=scratch / name,
            windows=name,
            reading=Reading(**made["reading"]),
            recipe=RetrainingRecipe(**made["recipe"]),
            precision=made["precision"],
            packed=made.get("packed", False),
            seed=made["seed"],
            heldout_seed=made["heldout_seed"],
            memory_mb=None,
            code="",
        )
        parts.append(read_tsv(scratch / f"{name}.tsv"))
    return pd.concat(parts).set_index(["start", "end"])


COMPUTE: dict[str, Callable[..., pd.DataFrame]] = {"swap": _swap, "retrain": _retrain}


def _same_threads(made: Mapping[str, Any]) -> None:
    """Sum in the order that the table's own run had on a processor."""
    if found := re.fullmatch(r"CPU \((\d+) threads\)", made["device"]):
        torch.set_num_threads(int(found[1]))


def _remark(made: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether the same bits can be expected, and else why not."""
    here = device_name(pick_device())
    return next(_reasons(made, here), None) is None, "".join(_reasons(made, here))


def _reasons(made: Mapping[str, Any], here: str) -> Iterator[str]:
    if here != made["device"]:
        yield f"; made on {made['device']}, computed again on {here}"
    now = versions()
    for name in ("torch", "transformers"):
        if (was := made.get("versions", {}).get(name)) != now.get(name):
            yield f"; made with {name} {was}, computed again with {now.get(name)}"
