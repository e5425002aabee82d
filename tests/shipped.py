"""Task files that memloc ships, and Table 1 of the paper."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "workflow" / "tasks"


TABLE_1 = {
    "wic": (2, 5428),
    "rte": (2, 2490),
    "mrpc": (2, 3668),
    "cola": (2, 8551),
    "boolq": (2, 9427),
    "sst2": (2, 6920),
    "sst5": (5, 8544),
    "emotion": (6, 16000),
    "implicithate": (7, int(0.8 * 6346)),
    "stormfront": (2, int(0.8 * 10703)),
    "reuters": (8, 5031),
    "trec": (6, 5452),
}
