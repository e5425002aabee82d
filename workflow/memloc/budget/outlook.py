"""How far a run is and what is left of it, its expectations corrected by what its jobs took."""

from collections import Counter
from dataclasses import dataclass

from memloc.budget.journal import DONE, FAILED, RUNNING, WAITING, Planned, Run
from memloc.budget.rates import MEASURED, Calibration, Measurement
from memloc.budget.schedule import Item, list_schedule
from memloc.budget.stages import on_device


@dataclass(frozen=True)
class Expected:
    """What is now expected of a job.

    seconds: how long it takes; off: by which factor that may be wrong, either way; measured:
    whether jobs of its stage have been.
    """

    seconds: float
    off: float
    measured: bool


class Outlook:
    """A run at a moment, its expectations corrected by the jobs that it has finished."""

    def __init__(self, run: Run, now: float):
        self.run, self.now = run, now
        done = [
            Measurement(job.stage, job.model, run.device, job.took, job.seconds, job.at)
            for job in run.jobs.values()
            if job.state == DONE and job.took > 0
        ]
        self.calibration = Calibration(done, run.device, on_device)
        self.alike = Counter(job.stage for job in run.jobs.values() if job.state != DONE)
        self.expected = {job.id: self._expected(job) for job in run.jobs.values()}
        self.blocked = self._blocked()

    def _expected(self, job: Planned) -> Expected:
        """This run's rates for the stage; else earlier runs', else this run's for other stages."""
        factor = self.calibration.factor(job.stage, job.model)
        seconds = job.seconds * factor.value
        if factor.basis == MEASURED:
            return Expected(seconds, factor.interval(self.alike[job.stage] or 1), True)
        if factor.n and not job.measured:
            return Expected(seconds, min(factor.interval(1), job.off), False)
        return Expected(job.seconds, job.off, job.measured)

    def _blocked(self) -> set[int]:
        """Jobs that wait for one that has failed."""
        found = {job.id for job in self.run.jobs.values() if job.state == FAILED}
        bad, more = set(found), True
        while more:
            waiting = (job for job in self.run.jobs.values() if job.id not in bad)
            reached = {job.id for job in waiting if bad & set(job.needs)}
            bad |= reached
            more = bool(reached)
        return bad - found

    def jobs(self, state: str) -> list[Planned]:
        """The jobs in a state, the earliest first."""
        found = [job for job in self.run.jobs.values() if job.state == state]
        return sorted(found, key=lambda job: (job.at, job.id))

    def elapsed(self, job: Planned) -> float:
        """Seconds since a job began, or was handed to a cluster."""
        return max(0.0, self.now - job.at)

    def rest(self, job: Planned, off: float = 1.0) -> float:
        """Seconds that a job still takes; `off`: an estimate's factor towards more or less."""
        seconds = self.expected[job.id].seconds * off
        runs = job.state == RUNNING and not self.run.queues
        return max(0.0, seconds - self.elapsed(job)) if runs else seconds

    @property
    def left(self) -> list[Planned]:
        """Jobs that run or can still run."""
        return [*self.jobs(RUNNING), *(j for j in self.jobs(WAITING) if j.id not in self.blocked)]

    @property
    def work_done(self) -> float:
        """Seconds of finished jobs, and of running ones as far as they are."""
        running = (self.expected[j.id].seconds - self.rest(j) for j in self.jobs(RUNNING))
        return sum(map(self.cost, self.jobs(DONE))) + sum(running)

    def cost(self, job: Planned) -> float:
        """Seconds that a finished job took; what was expected, where it doesn't say."""
        return job.took or self.expected[job.id].seconds

    @property
    def work_left(self) -> float:
        """Seconds of jobs that are left, one after another."""
        return sum(map(self.rest, self.left))

    @property
    def share_measured(self) -> float:
        """Of the work that is left, the share whose stage has been measured."""
        measured = sum(self.rest(job) for job in self.left if self.expected[job.id].measured)
        return measured / self.work_left if self.work_left else 1.0

    def time_left(self) -> tuple[float, float, float]:
        """Seconds until the last job ends: expected, least and most."""
        return self._makespan(0), self._makespan(-1), self._makespan(1)

    def _makespan(self, side: int) -> float:
        places = {job.id: place for place, job in enumerate(self.left)}
        items = [
            Item(
                self.rest(job, self.expected[job.id].off ** side),
                tuple(places[need] for need in job.needs if need in places),
                min(job.holds, self.run.room),
            )
            for job in self.left
        ]
        return list_schedule(items, self.run.room).makespan
