"""Windows of a run computed again from its checkpoints, as the tables' records say they were made.

The stages' own functions do it, with the settings of the records.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from memloc.bundle.archive import ANEW
from memloc.data.examples import Reading
from memloc.errors import MemlocError
from memloc.localise import swap
from memloc.localise.retrain.group import RetrainingRecipe
from memloc.localise.retrain.run import retrain_checkpoints
from memloc.machine.device import device_name, pick_device
from memloc.store.files import read_record, reading
from memloc.store.provenance import versions
from memloc.store.records import check
from memloc.store.tables import COLUMNS, read_tsv
from memloc.study.places import Places
from memloc.windows import Window, window_name

LACKING = "what it was made of didn't come along"


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


def read_windows(path: str | Path) -> pd.DataFrame:
    """A table of windows, as numbers, by (start, end); MemlocError where it isn't one."""
    with reading(path, ANEW):
        table = read_tsv(path, COLUMNS["windows"])[COLUMNS["windows"]].astype(float)
        table = table.astype({"start": int, "end": int}).set_index(["start", "end"])
    if not table.index.is_unique:
        raise MemlocError(f"{path} has a window twice. {ANEW}")
    return table


def made_by(run: Run, name: str, window: Window) -> Mapping[str, Any]:
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
    return read_windows(outputs["table"])


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
        parts.append(read_windows(scratch / f"{name}.tsv"))
    return pd.concat(parts)


COMPUTE: dict[str, Callable[..., pd.DataFrame]] = {"swap": _swap, "retrain": _retrain}


def same_threads(made: Mapping[str, Any]) -> None:
    """Sum in the order that the table's own run had on a processor."""
    if found := re.fullmatch(r"CPU \((\d+) threads\)", made["device"]):
        torch.set_num_threads(int(found[1]))


def differences(made: Mapping[str, Any]) -> Iterator[str]:
    """What is another here than it was where a table was made, so that other bits are expected."""
    here = device_name(pick_device())
    if here != made["device"]:
        yield f"; made on {made['device']}, computed again on {here}"
    now = versions()
    for name in ("torch", "transformers"):
        if (was := made.get("versions", {}).get(name)) != now.get(name):
            yield f"; made with {name} {was}, computed again with {now.get(name)}"
