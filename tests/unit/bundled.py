"""A small tree of recorded results, such as a study leaves, and its bundle."""

from pathlib import Path

from memloc.bundle.contents import Choice
from memloc.bundle.pack import pack
from memloc.store.files import write_json
from memloc.store.records import FOLDER, made_with, recorded

RUN = "rte/bert/seed1"
CONFIG = {
    "results_dir": "results",
    "resources_dir": "resources",
    "tasks": ["rte"],
    "models": ["bert"],
}
RESULTS = {
    "rte/perturbed.parquet": b"texts",
    "report.html": b"<p>texts</p>",
    f"{RUN}/swap.tsv": b"start\tend\n1\t2\n",
    f"{RUN}/empty.tsv": b"",
    f"{RUN}/figures/Läufe größer 表.png": b"\x89PNG",
    f"{RUN}/original/final/model.safetensors": bytes(3000),
    f"{RUN}/perturbed/final/model.safetensors": bytes(range(256)) * 12,
    f"{RUN}/perturbed/memorised/model.safetensors": b"m1" * 500,
    f"{RUN}/epoch2/perturbed/final/model.safetensors": b"e2" * 500,
}
RESOURCES = {
    "models/bert/model.safetensors": b"theta_P" * 100,
    "models/bert.sha256": b"abc  bert/model.safetensors\n",
    "models/other/model.safetensors": b"another study's",
    "tasks/rte.parquet": b"texts",
    "tasks/rte.manifest.json": b"{}",
}


def result_of(name: str) -> str:
    """The result that a file is, or lies in."""
    return name.rpartition("/")[0] if name.endswith(".safetensors") else name


def write_tree(folder: Path) -> Path:
    """Results and resources with their records, and the settings; the folder that they are in."""
    for top, files in (("results", RESULTS), ("resources", RESOURCES)):
        for name, content in files.items():
            path = folder / top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with recorded([folder / top / result_of(name)], made_with({}, {"seed": 1})):
                path.write_bytes(content)
    (folder / "results/.scratch").mkdir()
    (folder / "results/.scratch/state").write_text("partial state")
    write_json(folder / "results" / FOLDER / "settings", CONFIG)
    return folder


def packed(folder: Path, to: str = "bundle.tar.gz", **choice) -> Path:
    """The bundle of a tree; the working folder is `folder`."""
    pack(Path("results"), folder / to, Choice(**choice))
    return folder / to
