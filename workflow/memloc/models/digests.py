"""Hashes of checkpoints, whole models and adapters alike."""

import hashlib
from pathlib import Path

from memloc.models.adapter_files import WEIGHTS as ADAPTER
from memloc.models.adapter_files import is_adapter
from memloc.store.provenance import sha256

WEIGHTS = "model.safetensors"


def checkpoint_digest(folder: str | Path) -> str:
    """One line ``<sha256>  <folder name>/<weights>``, as ``sha256sum -c`` reads it.

    The weights are model.safetensors, or adapter_model.safetensors of an adapter.
    """
    folder = Path(folder)
    name = ADAPTER if is_adapter(folder) else WEIGHTS
    return f"{sha256(folder / name)}  {folder.name}/{name}\n"


def weights_hash(folder: str | Path) -> str:
    """One hash of all weight files of a folder, however many and in whichever format."""
    files = weight_parts(folder)
    return hashlib.sha256(" ".join(sha256(path) for path in files).encode()).hexdigest()


def weight_parts(folder: str | Path) -> list[Path]:
    """All weight files of a folder, in order."""
    return sorted(path for end in ("*.safetensors", "*.bin") for path in Path(folder).glob(end))
