"""Ways in which a file of partial state can be other than it was written."""

import shutil
from pathlib import Path


def _flipped(share: float):
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[min(int(share * len(content)), len(content) - 1)] ^= 1 << 4
        path.write_bytes(content)

    return damage


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "stray").touch()


DAMAGE = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "braces": lambda path: path.write_bytes(b"{}"),
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "first bit": _flipped(0),
    "early bit": _flipped(0.1),
    "middle bit": _flipped(0.5),
    "last bit": _flipped(1),
    "missing": lambda path: path.unlink(),
    "folder": _folder,
}


def file_instead(folder: Path) -> None:
    """A file in the place of a folder."""
    shutil.rmtree(folder)
    folder.write_text("{}")
