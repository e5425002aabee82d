"""At which epochs a study localises while its models memorise (training.keep_epochs)."""

from typing import Any

TECHNIQUES = ("swapping", "gradients")
EVENTS = "centroid_events.tsv"


class ProgressionPlan:
    """What the progression is made of: a table for each run and epoch that is kept."""

    def __init__(self, study: Any):
        self.study = study

    def technique_runs(self) -> list[dict[str, Any]]:
        """task, model, seed, epoch, last epoch and technique (name) of each technique's table."""
        chosen = [name for name in TECHNIQUES if name in self.study.techniques]
        runs = self.study.run_list()
        return [found for name in chosen for run in runs for found in self._epochs(run, name)]

    def event_runs(self) -> list[dict[str, Any]]:
        """The same for tables of centroid events, where centroids are analysed."""
        if "centroids" not in self.study.stages:
            return []
        return [found for run in self.study.run_list() for found in self._epochs(run, "events")]

    def path(self, run: dict[str, Any]) -> str:
        """Where one of these tables lies."""
        name = run["name"]
        table = EVENTS if name == "events" else self.study.techniques[name].table
        epoch = "" if run["epoch"] == run["last"] else f"epoch{run['epoch']}/"
        return self.study.places.run(f"{epoch}{table}").format(**run)

    def _epochs(self, run: dict[str, Any], name: str) -> list[dict[str, Any]]:
        """A run's facts at each epoch that is localised in: those kept, and the last one."""
        last = self.study.model_settings(run["model"])["training"]["epochs"]
        epochs = sorted({*self.study.kept_epochs, last})
        return [run | dict(epoch=epoch, last=last, name=name) for epoch in epochs]
