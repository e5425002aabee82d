"""Which base an adapter belongs to: recorded by the hash of its weights, and looked for by it."""

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from memloc.errors import MemlocError
from memloc.models.adapter_files import BRING, CONFIG
from memloc.models.digests import weight_parts, weights_hash
from memloc.store.files import read_record, write_json

RECORD = "base.json"  # beside the adapter: weights_hash, folder (from there), dtype
FLOAT32 = "float32"

_known: list[Path] = []


def remember_base(folder: str | Path) -> None:
    """Look in this folder, before any other, for the base of every adapter of this process."""
    _known.insert(0, Path(folder))


def record_base(
    adapter: str | Path, base: str | Path, dtype: str = FLOAT32, place: str | Path | None = None
) -> None:
    """Note in an adapter's folder which base it belongs to.

    dtype: the type that base weights are kept in; place: where the folder will lie, if not there.
    """
    record = {
        "weights_hash": _hash(Path(base)),
        "folder": os.path.relpath(Path(base).absolute(), Path(place or adapter).absolute()),
        "dtype": dtype,
    }
    write_json(Path(adapter) / RECORD, record)


def base_of(adapter: str | Path, base: str | Path | None = None) -> tuple[Path, str]:
    """The folder of an adapter's base, and the type that its weights are kept in.

    Looked for in `base`, in folders remembered, where the adapter's record says, and where peft's
    adapter_config.json says. The record's hash decides; an adapter without a record takes the
    first folder there is. Raises MemlocError where none is the adapter's.
    """
    adapter = Path(adapter)
    record = read_record(adapter / RECORD, "Delete it, and name the base again", ("weights_hash",))
    named = (read_record(adapter / CONFIG, BRING) or {}).get("base_model_name_or_path")
    places = [
        p for p in _places(adapter, base, record or {}, named) if (p / "config.json").is_file()
    ]
    if not places:
        raise MemlocError(
            f"{adapter} holds an adapter, and its base ({named or 'unnamed'}) isn't there: put the "
            f"base model's folder in its place, or name it (base_model_name_or_path in {CONFIG})"
        )
    if record is None:
        return places[0], FLOAT32
    for place in places:
        if _hash(place) == record["weights_hash"]:
            return place, record.get("dtype", FLOAT32)
    raise MemlocError(
        f"{adapter} holds an adapter of another base: {places[0]} has weights of the hash "
        f"{_hash(places[0])[:12]}, and the adapter belongs to {record['weights_hash'][:12]} "
        f"({RECORD}); bring that base back, or train the adapter anew"
    )


def _places(
    adapter: Path, base: str | Path | None, record: dict[str, Any], named: str | None
) -> Iterator[Path]:
    if base is not None:
        yield Path(base)
    yield from _known
    if "folder" in record:
        yield adapter / record["folder"]
    if named:
        yield Path(named)
        yield adapter / named


def _hash(folder: Path) -> str:
    """weights_hash, once per content: gigabytes are read for it."""
    stats = ((part.name, part.stat()) for part in weight_parts(folder))
    stamps = tuple((name, said.st_mtime_ns, said.st_size) for name, said in stats)
    return _remembered(str(folder.resolve()), stamps)


@lru_cache
def _remembered(folder: str, stamps: tuple) -> str:
    return weights_hash(folder)
