"""What every kind of figure is drawn from, of a synthetic study of any tasks and models."""

from functools import cached_property
from itertools import product

import numpy as np
import pandas as pd

import centroid_tables
import synthetic
from memloc.control.scores import accuracy_at
from memloc.explain.centroid_events import centroid_events
from memloc.explain.events import run_events, summarise_curves, summarise_events
from memloc.figures.draw import Given
from memloc.localise.gradients.variants import VARIANTS
from memloc.store.tables import write_tsv
from memloc.study.control import design_of, pair_of
from memloc.study.techniques import TECHNIQUES
from memloc.summary.correlations import correlations
from memloc.summary.edits import edit_table
from memloc.summary.progression import ACCURACY, EVENT, MCOG
from memloc.summary.training import summarise_training
from memloc.summary.weights import summarise_runs

PAIRS = ("layers1-2", "layers3-4", "layers5-6", "layers2-5")
SERIES = list(product(("theta_M1", "theta_F"), ("noisy", "clean", "difference")))


class Frames(Given):
    """Given whose tables are frames, and no files."""

    def read(self, name):
        return self.tables[name]


class Study:
    """Tasks, models and techniques by their names, of models of `n_layers` layers and two seeds."""

    def __init__(self, tasks, models, techniques=tuple(TECHNIQUES), n_layers=12):
        self.tasks, self.models, self.localising = tasks, models, techniques
        self.n_layers, self.seeds = n_layers, (1, 2)
        self.model = list(models)[-1]

    def given(self, kind, folder):
        """The drawer's argument for a figure of a kind; its last task, model and technique."""
        tables, runs = getattr(self, kind)(folder)
        windows = [name for name in self.localising if TECHNIQUES[name].windows]
        words = {"task": list(self.tasks)[-1], "model": self.model, "technique": windows[-1]}
        words |= {"component": "attention", "measure": "mcog"}
        tasks = self.tasks | (self.binary if kind == "binarised" else {})
        return Frames(tables, tasks, self.models, words, runs)

    @property
    def binary(self):
        """Binary variants of the last four tasks."""
        return {f"{name}-binary": self.tasks[name] for name in list(self.tasks)[-4:]}

    # --- tables -------------------------------------------------------------------------

    @cached_property
    def summary(self):
        every = (self.tasks, self.models, self.seeds, self.localising, self.n_layers)
        return summarise_runs(synthetic.runs(*every))

    @cached_property
    def centroid_runs(self):
        """task, model, seed and centroids.tsv of every run."""
        return [
            (dict(task=task, model=model, seed=seed),
             centroid_tables.centroids(number, seed, self.n_layers))
            for (number, task), model, seed in product(
                enumerate(self.tasks), self.models, self.seeds
            )
        ]  # fmt: skip

    @cached_property
    def centres(self):
        """The summary's tables centroids and events."""
        number = {task: i for i, task in enumerate(self.tasks)}
        runs = []
        for run, table in self.centroid_runs:
            runs.append((run, run_events(centroid_events(table))))
            runs.append((run, centroid_tables.probing(number[run["task"]])))
        curves = summarise_curves(self.centroid_runs)
        return {"centroids": curves, "events": summarise_events(runs)}

    @cached_property
    def correlated(self):
        """correlations.tsv, with all that a study can have."""
        scores = synthetic.generalisation_scores(self.tasks, self.models)
        frames = self.summary["layer_weights"], self.summary["mcog"]
        return correlations(*frames, 0, self.centres["events"], scores)

    def windows(self, tasks):
        """Runs of some tasks of the model, and their tables of windows."""
        runs = [dict(task=t, model=self.model, seed=s) for t in tasks for s in self.seeds]
        number = {task: i for i, task in enumerate(self.tasks)}
        frames = [synthetic.windows(number[r["task"]], r["seed"], self.n_layers) for r in runs]
        return {"runs": frames}, runs

    def rows(self, **columns):
        """A frame with a row per task, model and layer; `columns` are functions of a generator."""
        keys = product(self.tasks, self.models, range(1, self.n_layers + 1))
        frame = pd.DataFrame(keys, columns=["task", "model", "layer"])
        draw = np.random.default_rng(0)
        return frame.assign(**{name: make(draw, len(frame)) for name, make in columns.items()})

    def named(self, *names):
        return {name: self.summary[name] for name in names}, ()

    # --- what each kind is drawn from ---------------------------------------------------

    def training(self, folder):
        keys, histories, records = synthetic.training_runs(self.tasks, [self.model], self.seeds)
        paths = [folder / f"history{i}.tsv" for i in range(len(keys))]
        for frame, path in zip(histories, paths, strict=True):
            write_tsv(frame, path)
        outcomes = summarise_training(histories, records, keys)
        return {"histories": paths, "training": outcomes}, keys

    def matrix(self, folder):
        return self.windows(self.tasks)

    component_matrix = reverted = matrix

    def task_matrix(self, folder):
        return self.windows(list(self.tasks)[-1:])

    def layer_weights(self, folder):
        return self.named("layer_weights", "probe_f1", "mcog")

    def techniques(self, folder):
        return self.named("layer_weights", "mcog")

    def one_layer(self, folder):
        return self.named("one_layer", "mcog")

    def mcog(self, folder):
        return self.named("mcog", "layer_weights")

    mcog_averages = mcog

    def label_probes(self, folder):
        kinds = (("perturbed", "noisy"), ("original", "noisy"), ("original", "clean"))
        rows = self.rows(f1=lambda d, n: d.random(n), sd=lambda d, n: 0.1 * d.random(n))
        return {"label_f1": pd.concat(rows.assign(labels=a, examples=b) for a, b in kinds)}, ()

    def components(self, folder):
        rows = self.rows(weight_raw=lambda d, n: d.random(n), sd_raw=lambda d, n: 0.1 * d.random(n))
        names = ("layer", "attention", "mlp")
        return {"components": pd.concat(rows.assign(component=name) for name in names)}, ()

    def heads(self, folder):
        rows = self.rows(noisy_error=lambda d, n: d.random(n))
        return {"heads": pd.concat(rows.assign(head=head) for head in range(1, 13))}, ()

    def edits(self, folder):
        tables, runs = self.windows(self.tasks)
        names = [name for name in self.localising if TECHNIQUES[name].windows]
        keyed = [
            (run | {"technique": name}, frame.assign(validation_error=0.1 + 0.02 * i * frame.index))
            for run, frame in zip(runs, tables["runs"], strict=True)
            for i, name in enumerate(names)
        ]
        own = {(run["task"], run["model"], run["seed"]): 0.1 for run in runs}
        return {"edits": edit_table(keyed, own)}, ()

    def examples(self, folder):
        layers = [str(layer) for layer in range(1, self.n_layers + 1)]
        values = [("length", value) for value in (*layers, "none")]
        values += [("layer", value) for value in layers]
        rows = [
            dict(task=task, model=model, kind=kind, value=value, share=1.0 if i == 0 else 0.004 * i)
            for task, model in product(self.tasks, self.models)
            for i, (kind, value) in enumerate(values)
        ]
        return {"example_shares": pd.DataFrame(rows)}, ()

    def correlations(self, folder):
        return {"correlations": self.correlated}, ()

    depth_correlations = correlations

    def binarised(self, folder):
        mcog, events = self.summary["mcog"], self.centres["events"]
        both = [
            pd.concat([frame, frame.assign(task=frame["task"] + "-binary")])
            for frame in (mcog, events)
        ]
        return dict(zip(("mcog", "events"), both, strict=True)), ()

    def centroids(self, folder):
        chosen = [(run, table) for run, table in self.centroid_runs if run["model"] == self.model]
        return self.centres | {"runs": [t for _, t in chosen]}, [run for run, _ in chosen]

    def task_centroids(self, folder):
        tables, runs = self.centroids(folder)
        return tables | {"runs": tables["runs"][-2:]}, runs[-2:]

    def swapped_halves(self, folder):
        return self.centres, ()

    events = swapped_halves

    def generalisation(self, folder):
        return {"generalisation": synthetic.generalisation_scores(self.tasks, self.models)}, ()

    def detection(self, folder):
        return {"detection": synthetic.detection_scores(self.tasks, self.models)}, ()

    def memorisation_map(self, folder):
        runs = [dict(task=task, model=self.model) for task in self.tasks]
        halves = [pd.DataFrame({"chance": [0.5]})] * len(runs)
        return {"examples": [synthetic.example_scores(300, 7)] * len(runs), "halves": halves}, runs

    def task_memorisation_map(self, folder):
        tables, runs = self.memorisation_map(folder)
        return {name: frames[-1:] for name, frames in tables.items()}, runs[-1:]

    @cached_property
    def control(self):
        """The summary's tables of the control setup, of models of six layers."""
        draw, accuracies, weights = np.random.default_rng(0), [], []
        for technique, task, pair in product(self.localising, self.tasks, PAIRS):
            scores = draw.random(6)
            role = "validation" if task == next(iter(self.tasks)) else "test"
            key = dict(task=task, model=self.model, technique=technique, pair=pair, role=role)
            kinds = ("weights", "one-layer")[: 2 if TECHNIQUES[technique].windows else 1]
            weights += [
                key | dict(layer=i + 1, weight=s, weight_raw=s) for i, s in enumerate(scores)
            ]
            accuracies += [
                key | dict(k=k, accuracy=accuracy_at(scores, pair_of(pair), k), scores=kind)
                for k, kind in product((1, 2), kinds)
            ]
        tables = {"control_accuracy": accuracies, "control_weights": weights}
        frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
        return {
            name: frame.assign(n_layers=6, chance=1 / 3, design=frame["pair"].map(design_of))
            for name, frame in frames.items()
        }

    def control_accuracy(self, folder):
        return self.control, ()

    control_weights = control_accuracy

    def gradient_variants(self, folder):
        runs = [
            dict(task=task, model=self.model, pair=pair, role="validation")
            for task in list(self.tasks)[:2]
            for pair in PAIRS
        ]
        layers = range(1, self.n_layers + 1)
        weights = pd.DataFrame(
            dict(norm=n, clean=c, frozen=f, layer=layer, weight=0.2, weight_raw=float(layer))
            for n, c, f in VARIANTS.values()
            for layer in layers
        )
        norms = pd.DataFrame(
            dict(model=model, examples=examples, norm="L1", layer=layer, value=float(layer))
            for model, examples in SERIES
            for layer in layers
        )
        return {"runs": [weights] * len(runs), "norms": [norms] * len(runs)}, runs

    def progression(self, folder):
        names = [(MCOG, name) for name in self.localising]
        names += [(ACCURACY, "noisy_accuracy"), (ACCURACY, "clean_accuracy")]
        names += [(EVENT, "crossing"), (EVENT, "initiation")]
        rows = [
            dict(task=task, model=self.model, epoch=epoch, measure=measure, name=name, sd=0.1,
                 value=0.1 + (0.2 if measure == ACCURACY else 2.0) * i + 0.02 * j)
            for j, task in enumerate(self.tasks)
            for measure, name in names
            for i, epoch in enumerate((1, 2, 5, 10))
        ]  # fmt: skip
        return {
            "progression": pd.DataFrame(rows),
            "layer_weights": self.summary["layer_weights"],
        }, ()
