"""Probing: from which layer on noisy examples can be told apart (section 3.1, Appendix).

Noise probes tell noisy from clean training examples by their hidden state at the pooling
position; label probes predict the perturbed or the original label from it. Every layer x probe
seed x kind trains at once; a probe's split, order, dropout and start follow from its probe seed.
"""

import itertools
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from memloc.data.tokens import Examples
from memloc.errors import MemlocError
from memloc.localise.probes.classifiers import UNKNOWN, ProbeRecipe, ProbeStack, probe_f1
from memloc.localise.probes.weights import COLUMNS
from memloc.machine.memory import free_on_gpu
from memloc.progress import progress
from memloc.seeds import derive
from memloc.store.tables import read_parquet

logger = logging.getLogger(__name__)

TRAIN_SHARE, VALIDATION_SHARE = 0.7, 0.1  # the rest, 20 %, is the test part
SHUFFLES = 100  # shuffled label orders behind the random baseline
CPU_PLACES = 2  # places per stack on a CPU: more outgrow the caches, fewer leave more overhead
GPU_SHARE = 0.6  # share of a GPU's free memory that probes trained together may fill
PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Place:
    """Where probes look: layer `layer` of model `source`, states (n, width) on any device."""

    source: str
    layer: int
    states: torch.Tensor


@dataclass(frozen=True)
class Targets:
    """What probes of each kind predict: labels[kind] (n,), UNKNOWN where not known."""

    noisy: torch.Tensor
    labels: dict[str, torch.Tensor]
    n_classes: dict[str, int]

    @property
    def kinds(self) -> list[str]:
        return list(self.labels)


def probe_targets(train: Examples, original: torch.Tensor, n_classes: int) -> Targets:
    """Targets from training examples with perturbed labels and from `original` labels (n,).

    A kind without a single known label (natural noise that nobody corrected) is left out.
    """
    labels = {"noise": train.noisy.long(), "perturbed": train.labels, "original": original}
    if not (original != UNKNOWN).any():
        logger.warning("no original label is known: no probes for original labels")
        del labels["original"]
    sizes = {kind: 2 if kind == "noise" else n_classes for kind in labels}
    return Targets(train.noisy, labels, sizes)


def original_labels(
    path: str | Path, index: torch.Tensor, class_names: Sequence[str]
) -> torch.Tensor:
    """Original class ids (n,) of the rows `index` of a perturbed.parquet; UNKNOWN where null."""
    frame = read_parquet(path, ["index", "original_label"]).set_index("index")
    names = frame.loc[index.tolist(), "original_label"]
    class_ids = {name: i for i, name in enumerate(class_names)}
    strange = sorted(set(names.dropna()) - set(class_ids))
    if strange:
        raise MemlocError(
            f"{path}: original_label {strange[0]!r} is not among the task's {list(class_names)}"
        )
    return torch.tensor([class_ids.get(name, UNKNOWN) for name in names])


def probe_split(targets: Targets, seed: int) -> dict[str, torch.Tensor]:
    """Rows of the train (70 %), validation (10 %) and test (20 %) part, shuffled by `seed`.

    Stratified by noisy x perturbed label: rows in the order of strata, and at random within,
    are dealt out in a fixed rhythm, which no stratum misses by more than one or two rows.
    """
    generator = torch.Generator().manual_seed(derive(seed, "probe", "split"))
    rows = torch.randperm(len(targets.noisy), generator=generator)
    n_classes = targets.n_classes["perturbed"]
    place = torch.randperm(n_classes, generator=generator)  # rare classes: a fresh turn per seed
    strata = place[targets.labels["perturbed"][rows]] + n_classes * (~targets.noisy[rows]).long()
    rows = rows[strata.argsort(stable=True)]
    in_train = _turns(torch.arange(len(rows)), TRAIN_SHARE)
    rest = (~in_train).cumsum(0) - 1
    in_validation = ~in_train & _turns(rest, VALIDATION_SHARE / (1 - TRAIN_SHARE))
    parts = (in_train, in_validation, ~in_train & ~in_validation)
    split = {name: rows[chosen] for name, chosen in zip(PARTS, parts, strict=True)}
    _check_classes(targets, split, seed)
    return split


def _turns(number: torch.Tensor, share: float) -> torch.Tensor:
    """Whether each number is one of a `share` of all, evenly spread."""
    number = number.double()
    return ((number + 1) * share + 1e-9).floor() > (number * share + 1e-9).floor()


def _check_classes(targets: Targets, split: dict[str, torch.Tensor], seed: int) -> None:
    """A noise probe needs both classes in each part, a label probe some label; rest is said."""
    for kind, labels in targets.labels.items():
        for part, rows in split.items():
            counts = torch.zeros(targets.n_classes[kind], dtype=torch.long)
            found, number = labels[rows].unique(return_counts=True)
            counts[found[found != UNKNOWN]] = number[found != UNKNOWN]
            absent = (counts == 0).nonzero().flatten().tolist()
            if not counts.any() or (kind == "noise" and absent):
                raise MemlocError(
                    f"probing: the {part} part ({len(rows)} examples, probe seed {seed}) lacks "
                    f"{'noisy or clean examples' if kind == 'noise' else f'{kind} labels'}; the "
                    "task is too small to probe: raise data.max_train or perturbation.ratio"
                )
            if absent:
                logger.warning(
                    "probe seed %d: the %s part has no example whose %s label is class %s",
                    seed, part, kind, ", ".join(map(str, absent)),
                )  # fmt: skip


class Probing:
    """All probes of some places: every place x seed x kind."""

    def __init__(
        self,
        targets: Targets,
        seeds: Sequence[int],
        recipe: ProbeRecipe,
        device: torch.device,
    ):
        if not 0 <= recipe.choose_after < recipe.epochs:
            raise MemlocError(
                f"probing.choose_after {recipe.choose_after} leaves no epoch to choose from: it "
                f"must be less than probing.epochs {recipe.epochs}"
            )
        self.targets, self.seeds, self.recipe, self.device = targets, list(seeds), recipe, device
        splits = [probe_split(targets, seed) for seed in self.seeds]
        self.rows = {part: torch.stack([split[part] for split in splits]) for part in PARTS}
        self.labels = {part: self._labels(self.rows[part]).to(device) for part in PARTS}
        self.example_weights = self._example_weights().to(device)

    def _labels(self, rows: torch.Tensor) -> torch.Tensor:
        """Labels (seeds, kinds, rows) of rows (seeds, rows)."""
        return torch.stack([self.targets.labels[kind][rows] for kind in self.targets.kinds], 1)

    def _example_weights(self) -> torch.Tensor:
        """Weights in the loss (seeds, kinds, rows) of the train part: noisy ones count more in
        noise probes, those of unknown label nothing."""
        labels = self.labels["train"]
        weights = (labels != UNKNOWN).float()
        noise = self.targets.kinds.index("noise")
        share = self.recipe.noise_weight
        weights[:, noise] = torch.where(labels[:, noise] == 1, share, 1 - share)
        return weights

    def run(self, places: Sequence[Place]) -> pd.DataFrame:
        """Train and score the probes of all places: a frame with probe_weights.COLUMNS."""
        groups = self._groups(places)
        epochs = range(1, self.recipe.epochs + 1)
        with _each_in_a_thread(self.device) as each:
            for epoch in progress(epochs, len(epochs), "probing"):
                course = self._course(epoch, places[0].states.shape[-1])
                each(lambda group: group.run_epoch(epoch, *course), groups)  # noqa: B023
        random = self._random_scores()
        rows = [row for group in groups for row in group.score(random)]
        return pd.DataFrame(rows)[COLUMNS]

    def _groups(self, places: Sequence[Place]) -> list["_Group"]:
        """Places trained as one stack, in shares as even as can be."""
        if self.device.type == "cuda":
            free = free_on_gpu(self.device)
            most = max(1, int(GPU_SHARE * free / self._bytes_per_place(places[0])))
            number = math.ceil(len(places) / most)
        else:
            turn = torch.get_num_threads() * CPU_PLACES
            number = math.ceil(len(places) / turn) * torch.get_num_threads()
        number = min(number, len(places))
        bounds = [len(places) * i // number for i in range(number + 1)]
        return [_Group(self, places[i:j]) for i, j in itertools.pairwise(bounds)]

    def _bytes_per_place(self, place: Place) -> int:
        n, width = place.states.shape
        hidden, probes = self.recipe.hidden, len(self.seeds) * len(self.targets.kinds)
        weights = probes * hidden * (width + hidden + 16)
        # Weight, gradient, two moments, best weight; states, and two copies of the train part.
        return 4 * (5 * weights + n * width * (1 + 2 * len(self.seeds)))

    def _course(self, epoch: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Order (seeds, rows) of the train part in one epoch, and dropout factors (seeds, rows,
        width) in that order."""
        orders, factors = [], []
        keep, n = 1 - self.recipe.dropout, self.rows["train"].shape[1]
        for seed in self.seeds:
            generator = torch.Generator().manual_seed(derive(seed, "probe", "order", epoch))
            orders.append(torch.randperm(n, generator=generator))
            generator = torch.Generator(self.device)
            generator.manual_seed(derive(seed, "probe", "dropout", epoch))
            drawn = torch.empty(n, width, device=self.device).bernoulli_(keep, generator=generator)
            factors.append(drawn.div_(keep))
        return torch.stack(orders), torch.stack(factors)

    def _random_scores(self) -> dict[tuple[int, str, str], float]:
        """F1 of shuffled test labels by (probe seed, kind, examples), mean over SHUFFLES."""
        scores = {}
        for number, seed in enumerate(self.seeds):
            for kind in self.targets.kinds:
                for examples, labels in self.tested(number, kind):
                    generator = torch.Generator().manual_seed(derive(seed, "probe", "shuffle"))
                    labels = labels[labels != UNKNOWN]
                    orders = torch.rand(SHUFFLES, len(labels), generator=generator).argsort()
                    size = self.targets.n_classes[kind]
                    drawn = probe_f1(labels.expand(SHUFFLES, -1), labels[orders], size, kind)
                    scores[seed, kind, examples] = drawn.mean().item()
        return scores

    def tested(self, number: int, kind: str) -> list[tuple[str, torch.Tensor]]:
        """Names of the test subsets that a kind is scored on, and their labels (rows of the test
        part of seed `number`; UNKNOWN outside the subset)."""
        rows = self.rows["test"][number]
        labels, noisy = self.targets.labels[kind][rows], self.targets.noisy[rows]
        if kind == "noise":
            return [("all", labels)]
        return [
            ("all", labels),
            ("noisy", labels.where(noisy, UNKNOWN)),
            ("clean", labels.where(~noisy, UNKNOWN)),
        ]


class _Group:
    """Probes of a few places, trained as one stack."""

    def __init__(self, probing: Probing, places: Sequence[Place]):
        self.probing, self.places = probing, places
        device, targets = probing.device, probing.targets
        # On a GPU states move once; on a CPU they stay in their file.
        self.states = [place.states.to(device) for place in places]
        self.stack = ProbeStack(
            len(places),
            probing.seeds,
            [targets.n_classes[kind] for kind in targets.kinds],
            places[0].states.shape[-1],
            probing.recipe,
            device,
        )

    def run_epoch(self, epoch: int, order: torch.Tensor, factors: torch.Tensor) -> None:
        """Train for one epoch, and from `choose_after` on keep what validates best."""
        self.train_epoch(order, factors)
        if epoch > self.probing.recipe.choose_after:
            self.choose(epoch)

    def train_epoch(self, order: torch.Tensor, factors: torch.Tensor) -> None:
        """One pass over the train part in `order`, with dropout `factors` on the inputs."""
        probing, size = self.probing, self.probing.recipe.batch_size
        inputs = self._inputs(probing.rows["train"].gather(1, order))
        inputs.view(len(self.places), *factors.shape).mul_(factors)
        labels = self._for_all(_reorder(probing.labels["train"], order))
        weights = _reorder(probing.example_weights, order)
        shares = self._for_all(_shares(weights, size))
        total = torch.zeros((), device=probing.device)
        for start in range(0, order.shape[1], size):
            part = slice(start, start + size)
            total += self.stack.step(inputs[:, part], labels[:, part], shares[:, part])
        if not total.isfinite():
            raise MemlocError("a probe's loss is not finite; lower probing.learning_rate")

    def choose(self, epoch: int) -> None:
        """Keep the weights of the probes whose validation F1 is their best so far."""
        predicted = self.stack.predict(self._inputs(self.probing.rows["validation"]))
        labels = self._for_all(self.probing.labels["validation"]).view_as(predicted)
        targets = self.probing.targets
        scores = [
            probe_f1(labels[:, k], predicted[:, k], targets.n_classes[kind], kind)
            for k, kind in enumerate(targets.kinds)
        ]
        self.stack.keep_best(torch.stack(scores, 1), epoch)

    def score(self, random: dict[tuple[int, str, str], float]) -> list[dict]:
        """One row per probe and test subset."""
        probing, seeds = self.probing, self.probing.seeds
        predicted = self.stack.predict(self._inputs(probing.rows["test"]), chosen=True).cpu()
        epochs, best = self.stack.best_epoch.tolist(), self.stack.best_score.tolist()
        rows = []
        for pair in range(self.stack.pairs):
            place, number = self.places[pair // len(seeds)], pair % len(seeds)
            for k, kind in enumerate(probing.targets.kinds):
                size = probing.targets.n_classes[kind]
                for examples, labels in probing.tested(number, kind):
                    known = labels[labels != UNKNOWN]
                    rows.append(
                        {
                            "kind": kind,
                            "examples": examples,
                            "source": place.source,
                            "probe_seed": seeds[number],
                            "layer": place.layer,
                            "f1": probe_f1(labels, predicted[pair, k], size, kind).item(),
                            "f1_random": random[seeds[number], kind, examples],
                            "best_epoch": epochs[pair][k],
                            "validation_f1": best[pair][k],
                            "n_examples": len(known),
                            "n_classes": len(known.unique()),
                        }
                    )
        return rows

    def _inputs(self, rows: torch.Tensor) -> torch.Tensor:
        """States (places * seeds, rows, width) in float32 of rows (seeds, rows)."""
        flat = rows.flatten().to(self.probing.device)
        states = torch.stack([states[flat] for states in self.states]).float()
        return states.view(-1, rows.shape[1], states.shape[-1])

    def _for_all(self, values: torch.Tensor) -> torch.Tensor:
        """(seeds, kinds, rows) repeated for every place: (places * seeds * kinds, rows)."""
        return values.flatten(0, 1).repeat(len(self.places), 1)


@contextmanager
def _each_in_a_thread(device: torch.device) -> Iterator[Callable[..., None]]:
    """``each(work, items)``: on a CPU a thread per core works off the items.

    A step's products are too small to be shared by cores, which would mostly wait for each other.
    """
    threads = torch.get_num_threads()
    if device.type == "cuda" or threads == 1:
        yield lambda work, items: [work(item) for item in items]
        return
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield lambda work, items: list(pool.map(work, items))
    finally:
        torch.set_num_threads(threads)


def _reorder(values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """(seeds, kinds, rows) with the rows of each seed in its own order (seeds, rows)."""
    return values.gather(2, order.to(values.device)[:, None].expand_as(values))


def _shares(weights: torch.Tensor, batch_size: int) -> torch.Tensor:
    """Weights (seeds, kinds, rows) scaled to sum to 1 in every batch (or stay 0)."""
    parts = weights.split(batch_size, dim=-1)
    return torch.cat([part / part.sum(-1, keepdim=True).clamp_min(1e-12) for part in parts], -1)
