"""How long steps take on a device before anything has been measured there.

A step of a job is a row of kernels. The host launches them one by one while the GPU works, so that
a step takes the longer of the two: the launches, or what the GPU has to do. That is computing at
some share of its peak, and moving the bytes of what the optimiser changes. Jobs that share a GPU
launch side by side, each from a core of its own, and the GPU does the work of all. A processor
does both itself, one after the other. Planning imports this: no torch, no pandas.
"""

from dataclasses import dataclass
from functools import cache

from memloc.budget.devices import UNNAMED_GPU, card, is_cpu, memory_of
from memloc.budget.parts import Fit, Parts, fit
from memloc.groups import SHARE_OF_FREE

STEP, WINDOWS, FORWARD, PROBE = "step", "windows", "forward", "probe"
FLOAT32, TF32, BFLOAT16 = "float32", "tf32", "bfloat16"
# Kernels that a step of 12 layers launches, in float32 (or TF32) and under bfloat16's autocast.
# STEP and WINDOWS: counted by benchmarks/launches.py, a training step of BERT and a retraining step
# of all 78 windows side by side. FORWARD: 15 kernels a layer, and two casts for each of its six
# linear layers. PROBE: three layers forward and back, with dropout, loss, clip and AdamW.
LAUNCHES = {STEP: (521, 618), WINDOWS: (1614, 1912), FORWARD: (180, 325), PROBE: (75, 75)}
COUNTED_LAYERS = 12
# Further kernels of a layer where tokens are packed, for the ways into and out of attention, there
# and back. Estimated from models/packing.py: benchmarks/launches.py counts padded steps alone.
PACKING = {STEP: 10, WINDOWS: 20, FORWARD: 4, PROBE: 0}
# Seconds that the host takes to launch one: torch's own dispatch, autograd and modules included. A
# step of 647 kernels took 13 ms of one core; one under autocast has more and lighter ones. As one
# product, query, key and value spare a step a sixth of its kernels, and a tenth of this time.
HOST_LAUNCH = {FLOAT32: 20e-6, TF32: 20e-6, BFLOAT16: 15e-6}
HEAVIER = {STEP: 1.1}
# Seconds that a kernel takes on the GPU however small it is, and how many small ones of several
# jobs can run side by side. Assumed, after NVIDIA's guides; benchmarks/gpu.py measures steps.
SHORTEST_KERNEL, SIDE_BY_SIDE = 2e-6, 5
# Shares of the peak that matrix products of such widths reach: of one job, whose batches of some
# hundred tokens leave multiprocessors idle, and where the GPU is filled (by other jobs' products,
# or by those of many windows). Assumed; benchmarks/gpu.py measures them.
SHARES = {FLOAT32: (0.45, 0.45), TF32: (0.30, 0.40), BFLOAT16: (0.20, 0.35)}
BANDWIDTH_SHARE = 0.8  # of the memory's, which long reads and writes reach
# Bytes that a step moves for each trained parameter: its gradient written by the backward pass (4),
# read for the norm (4), read and written by the clip (8); weight, gradient and two moments read and
# all but the gradient written by AdamW (16 + 12). Under autocast weights are read and written anew
# in 2 bytes (6), and gradients come in 2 and are widened (4).
MOVED = {FLOAT32: 44, TF32: 44, BFLOAT16: 54}
# Beside that, where moments are in bfloat16 (training/moments.py): both are widened (12 bytes),
# draws are added and what is too fine is cut off (32), and both are narrowed (12). Of kernels there
# are 12 for each parameter of a layer, some 16, or for each of the two sheets that windows have.
SHORT_MOVED = 56
SHORT_LAUNCHES = {STEP: 16 * 12, WINDOWS: 2 * 12}
CPU_FLOPS = 45e9  # a second and a thread, of small models on two cores of a virtual machine
CPU_BANDWIDTH = 10e9  # bytes a second and a thread
SAVING = 0.5e9  # bytes of partial state a second: from the device, with checksum, onto the disk


@dataclass(frozen=True)
class Steps:
    """`count` steps alike, each of `layers` layers' kernels of a kind; `flops` of all together.

    trained: parameters that the optimiser moves in each; parts: windows that needn't fit at once;
    packed: without padding; short: with moments in bfloat16.
    """

    kind: str
    count: float
    layers: float
    flops: float
    trained: float = 0.0
    parts: Parts | None = None
    packed: bool = False
    short: bool = False


@dataclass(frozen=True)
class Rate:
    """What a device does for one of the `jobs` that share it.

    flops: a second, of one job alone and where the device is filled; launch: seconds of the host
    for each kernel; kernel: the least seconds of the device for each; bandwidth: bytes a second;
    memory: bytes; overlapping: whether host and device work at the same time.
    """

    flops: tuple[float, float]
    launch: float
    kernel: float
    bandwidth: float
    memory: float
    precision: str = FLOAT32
    jobs: int = 1
    overlapping: bool = True

    def seconds(self, steps: Steps) -> float:
        """How long a job takes for these steps."""
        if not steps.count:
            return 0.0
        fitting = fit(steps.parts, self.room, self.precision == BFLOAT16) if steps.parts else Fit()
        launches = LAUNCHES[steps.kind][self.precision == BFLOAT16] * steps.layers / COUNTED_LAYERS
        launches += PACKING[steps.kind] * steps.layers * steps.packed
        launches *= fitting.more
        launches += SHORT_LAUNCHES.get(steps.kind, 0) * steps.layers * steps.short
        device = fitting.more * steps.flops / steps.count / self._flops(steps.kind)
        moved = MOVED[self.precision] + SHORT_MOVED * steps.short
        device += steps.trained * moved / self.bandwidth
        device = device / fitting.groups + launches * self.kernel
        host = launches * self.launch * HEAVIER.get(steps.kind, 1.0)
        each = max(host, self.jobs * device) if self.overlapping else host + device
        return steps.count * fitting.groups * each

    @property
    def room(self) -> float:
        """Bytes that a job may fill with windows."""
        return SHARE_OF_FREE * self.memory / self.jobs

    def _flops(self, kind: str) -> float:
        """Operations a second: of a GPU that more and more jobs fill, or many windows."""
        alone, filled = self.flops
        return filled if kind in (WINDOWS, PROBE) else filled - (filled - alone) / self.jobs


@cache
def default_rate(device: str, precision: str, threads: int = 1, jobs: int = 1) -> Rate:
    """The rate assumed before anything is measured; jobs: how many share a GPU."""
    if is_cpu(device):
        flops = CPU_FLOPS * threads
        bandwidth = CPU_BANDWIDTH * threads
        return Rate(
            (flops, flops), HOST_LAUNCH[FLOAT32], 0.0, bandwidth, float("inf"), overlapping=False
        )
    kind = used_precision(device, precision)
    found = card(device) or card(UNNAMED_GPU)
    assert found is not None  # UNNAMED_GPU is one of them
    peaks = {FLOAT32: found.float32, TF32: found.tf32 or found.float32, BFLOAT16: found.bfloat16}
    peak = 1e12 * peaks[kind]
    alone, filled = (share * peak for share in SHARES[kind])
    return Rate(
        flops=(alone, filled),
        launch=HOST_LAUNCH[kind],
        kernel=SHORTEST_KERNEL / min(jobs, SIDE_BY_SIDE),
        bandwidth=BANDWIDTH_SHARE * 1e12 * found.bandwidth,
        memory=memory_of(device),
        precision=kind,
        jobs=jobs,
    )


def used_precision(device: str, precision: str) -> str:
    """What a setting of the precision comes to on a device: "auto" is one of the others."""
    found = None if is_cpu(device) else card(device) or card(UNNAMED_GPU)
    if found and precision in (BFLOAT16, "auto") and found.bfloat16 > found.float32:
        return BFLOAT16
    return TF32 if found and found.tf32 and precision == TF32 else FLOAT32
