"""Layers as they lie in a checkpoint's files: how far they are apart, without building a model.

Importing torch and transformers, and building three models, takes ten times as long as the norms
do. What files alone can't tell (adapters, names or types that only transformers knows) is left to
the models themselves, in `changes`.

Imports neither torch nor transformers.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from memloc.localise.weight_change.weights import change_row
from memloc.store.files import read_record, reading

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
ADAPTER = "adapter_config.json"
MANIFEST = "manifest.json"  # of a pre-trained model: how many layers it has, and their size
TYPES = {"F16", "F32", "F64"}  # those that NumPy knows, too
NUMBER = re.compile(r"\.(\d+)\.")
REMEDY = "Delete the folder to have the model made anew."


@dataclass(frozen=True)
class StoredLayers:
    """The weights of each layer: by their name within the layer, file and name in the file."""

    folder: Path
    places: list[dict[str, tuple[Path, str]]]
    shapes: list[dict[str, tuple[int, ...]]]

    @property
    def sizes(self) -> set[int]:
        """How many parameters layers have: one number where all are alike."""
        return {sum(int(np.prod(shape)) for shape in layer.values()) for layer in self.shapes}

    def read(self, layer: int, name: str) -> np.ndarray:
        """A weight of a layer (from 0), as float64."""
        path, full = self.places[layer][name]
        with reading(self.folder, REMEDY), safe_open(path, framework="numpy") as file:
            return file.get_tensor(full).astype(np.float64)


def stored_layers(folder: str | Path, n_layers: int) -> StoredLayers | None:
    """The `n_layers` layers in a folder's safetensors; None where files alone don't show them."""
    folder = Path(folder)
    found: dict[str, tuple[Path, tuple[int, ...], str]] = {}
    for path in _files(folder):
        with reading(folder, REMEDY), safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 (no mapping)
                part = file.get_slice(name)
                if name in found:
                    return None
                found[name] = (path, tuple(part.get_shape()), part.get_dtype())
    stack = _stack(found, n_layers)
    if stack is None:
        return None
    places: list[dict[str, tuple[Path, str]]] = [{} for _ in range(n_layers)]
    shapes: list[dict[str, tuple[int, ...]]] = [{} for _ in range(n_layers)]
    numbered = re.compile(rf"{re.escape(stack)}\.(\d+)\.(.+)")
    for name, (path, shape, kind) in found.items():
        if match := numbered.fullmatch(name):
            number, own = int(match[1]), match[2]
            if kind not in TYPES or own[0].isdigit():  # a list of lists is none of layers
                return None
            places[number][own], shapes[number][own] = (path, name), shape
    return StoredLayers(folder, places, shapes)


def _files(folder: Path) -> list[Path]:
    """The files that transformers reads of a folder; none where it has an adapter, or others."""
    if (folder / ADAPTER).exists():
        return []
    if (folder / WHOLE).exists():
        return [folder / WHOLE]
    shards = (read_record(folder / INDEX, REMEDY) or {}).get("weight_map", {})
    return [folder / name for name in sorted(set(shards.values()))]


def _stack(names: Iterable[str], n_layers: int) -> str | None:
    """The one list of layers: what is before the numbers 0 to `n_layers` - 1 in weights' names.

    Lists inside a layer don't count, as in `models.layers.find_layers`. None where there is none,
    or more than one.
    """
    numbers: dict[str, set[int]] = {}
    for name in names:
        for match in NUMBER.finditer(name):
            numbers.setdefault(name[: match.start()], set()).add(int(match[1]))
    lists = [place for place, held in numbers.items() if held == set(range(n_layers))]
    outer = [p for p in lists if not any(re.match(rf"{re.escape(o)}\.\d+\.", p) for o in lists)]
    return outer[0] if len(outer) == 1 else None


def stored_changes(
    memorised: str, references: Mapping[str, str], pretrained: str
) -> list[dict[str, Any]] | None:
    """Rows of weight_change.tsv (COLUMNS): distances of theta_M2's layers from each reference's.

    memorised, and the references by name: folders; pretrained: that of theta_P, whose manifest says
    what a layer is. None where files alone don't show the layers, or not all alike; the models
    themselves then say what is wrong, if anything is. Raises MemlocError for files that can't be
    read and for a reference layer of zeros.
    """
    said = read_record(Path(pretrained) / MANIFEST, REMEDY) or {}
    if not {"n_layers", "layer_parameters"} <= said.keys():
        return None
    ours = stored_layers(memorised, said["n_layers"])
    theirs = {name: stored_layers(place, said["n_layers"]) for name, place in references.items()}
    for stored in (ours, *theirs.values()):
        # Buffers have names as well, but no parameter's share of a layer.
        if stored is None or ours is None or stored.shapes != ours.shapes:
            return None
        if stored.sizes != {said["layer_parameters"]}:
            return None
    return [
        change_row(name, layer + 1, *_norms(ours, stored, layer), said["layer_parameters"])
        for name, stored in theirs.items()
        if ours is not None and stored is not None
        for layer in range(said["n_layers"])
    ]


def _norms(ours: StoredLayers, theirs: StoredLayers, layer: int) -> tuple[float, float]:
    """L2 norms of a layer's difference from another, and of that other."""
    distance = norm = 0.0
    for name in ours.places[layer]:
        reference = theirs.read(layer, name)
        distance += float(np.square(ours.read(layer, name) - reference).sum())
        norm += float(np.square(reference).sum())
    return distance**0.5, norm**0.5
