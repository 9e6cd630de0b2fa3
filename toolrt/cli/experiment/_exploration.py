"""The exploration of a recorded batch: a search bounded by count, wall time or Ctrl-C.

Rules.  How long an execution takes is measured on the first, which belongs to the sample; when the time is up no
further one begins.  The first Ctrl-C ends the sample, and what was seen is there.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from toolrt import invariants, sim
from toolrt._plain import counted
from toolrt.cli.experiment._experiment import Experiment
from toolrt.cli.screen._screen import Screen
from toolrt.sim.exploring._executors import ClusterClient

#: So many schedules are run twice, for the law that one schedule has one trace.
_TWICE = 10

#: The first execution is the slowest, as all is new to it, and those that are run twice come next.  So the time of
#: these is measured, unless the first takes so many seconds.
_MEASURED = range(_TWICE + 1, _TWICE + 9)
_LONG = 0.5

#: Wall seconds between two lines of progress on a terminal.
_TICK = 0.2


class Exploration(sim.Search):
    """One exploration and its clock; with one job a strategy, its search and a check for `toolrt.sim`."""

    report: sim.Report

    def __init__(
        self,
        experiment: Experiment,
        strategy: sim.Strategy,
        executions: int,
        seconds: float,
        jobs: int,
        checkpoint: Path | None,
        screen: Screen,
        cluster: ClusterClient | None = None,
    ) -> None:
        self.experiment = experiment
        self.seconds = seconds
        #: How many processes share it, where that is known from the beginning.
        self.jobs = jobs
        self._cluster = cluster
        self._checkpoint = checkpoint
        # Whether `toolrt.sim` divides the strategy's work and minds the time.
        self._is_divided = jobs > 1 or checkpoint is not None or cluster is not None
        # Whether this is a copy on a cluster's worker.
        self._is_remote = False
        self._strategy = strategy
        self._executions = executions
        self._screen = screen
        #: Whether Ctrl-C ended it.
        self.interrupted = False
        #: Wall seconds from the first execution to the last.
        self.took = 0.0
        # Which of the schedules that are to be run twice were; other processes write here, too.
        self._twice: Any = multiprocessing.RawArray("b", _TWICE) if jobs > 1 else bytearray(_TWICE)
        # The executions of earlier sittings.
        self._earlier = 0
        # Executions so far in this process.
        self._judged = 0
        # Behind which execution the measured ones begin, and when that was; None: none are measured.
        self._since: tuple[int, float] | None = None
        # Not while a simpler schedule is looked for.
        self._exploring = True
        self._began = 0.0
        self._drawn = 0.0

    @property
    def goes_on(self) -> bool:
        """Whether there is something to go on with next time."""
        return self._checkpoint is not None and self._checkpoint.exists()

    @property
    def executed(self) -> int:
        """How many executions there were in this sitting."""
        return self.report.executions - self._earlier

    @property
    def rate(self) -> float:
        """Executions a second in this sitting."""
        return self.executed / max(self.took, 1e-9)

    @property
    def twice(self) -> int:
        """How many schedules were run twice."""
        return sum(self._twice)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The laws that were not checked on any execution."""
        once_only = ("same_schedule_same_trace",) if self.twice else ()
        return tuple(law for law in self.experiment.unchecked if law not in once_only)

    def run(self) -> None:
        """Explore until the count or the wall time is reached, or Ctrl-C is pressed."""
        # What it is compared with is not part of the time an execution takes.
        self.experiment.oracle  # noqa: B018
        self.experiment.serial  # noqa: B018
        self._began = time.perf_counter()
        program, limit = self.experiment.program, self.experiment.step_limit
        if self._is_divided:
            self.report = sim.explore(
                program,
                self._strategy,
                self._check,
                self._executions,
                jobs=self.jobs if self._cluster is None else self._cluster,
                step_limit=limit,
                **self.experiment.variation.actors,
                seconds=self.seconds,
                progress=self._draw,
                checkpoint=self._checkpoint,
                made_from=self.experiment.identity,
            )
            self.interrupted = self.report.interrupted
        else:
            with self._interruptible():
                self.report = sim.explore(
                    program, self, self._check, step_limit=limit, **self.experiment.variation.actors
                )
        self.took = time.perf_counter() - self._began
        self._exploring = False
        self._screen.wipe()

    def begin(self) -> sim.Search:
        """Begin the sample."""
        self._search = self._strategy.begin()
        self._given = 0
        self.minds_failures = self._search.minds_failures
        return self

    def policy(self) -> sim.Policy | None:
        """The strategy's, as long as one more execution fits into the number and the time."""
        if self._given >= self._executions:
            return None
        if self._given:
            spent = time.perf_counter() - self._began
            if self.interrupted or spent + spent / self._given > self.seconds:
                return None
        self._given += 1
        policy = self._search.policy()
        self.chance = self._search.chance
        return policy

    def learn(self, execution: sim.Execution) -> None:
        """Tell the strategy."""
        self._search.learn(execution)

    def judged(self, failed: bool) -> None:
        """Tell the strategy."""
        self._search.judged(failed)

    def claim(self, executions: int, distinct: int) -> str:
        """The strategy's."""
        return self._search.claim(executions, distinct)

    def complete(self) -> bool:
        """Whether all that the strategy wants was run."""
        return self._search.complete()

    def unfinished(self) -> str | None:
        """Why it was not; None for a sample, which is what was wanted."""
        return self._search.unfinished()

    def _check(self, execution: sim.Execution) -> list[invariants.Violation]:
        if self._is_remote or not self._exploring:
            return self.experiment.check(execution)
        # Not the first, whose time is measured; but on a cluster only that one is run here.
        twice = execution.index < _TWICE if self._cluster is not None else 0 < execution.index <= _TWICE
        if twice:
            self._twice[execution.index - 1] = 1
        found = self.experiment.check(execution, twice)
        self._judged += 1
        now = time.perf_counter()
        self._measure(execution, now)
        if self._is_divided:
            return found
        if self._screen.is_live and now - self._drawn > _TICK:
            self._drawn = now
            self._draw_count(self._judged)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Give what a cluster's worker needs for the check."""
        return {"experiment": self.experiment, "_is_remote": True}

    def _draw(self, progress: sim.Progress) -> None:
        self._earlier = progress.earlier
        if self._screen.is_live:
            self._draw_count(progress.executions)

    def _draw_count(self, executions: int) -> None:
        self._screen.draw(f"{executions:,} of {counted(self._executions, 'execution')}")

    def _measure(self, execution: sim.Execution, now: float) -> None:
        """Measure one execution: the first where it is a long one or all there is to go by, else some of the later."""
        if self._judged == 1 and execution.index == 0:
            took = now - self._began
            if took > min(_LONG, self.seconds / 4) or self._executions < _MEASURED.stop or self._is_divided:
                self._estimate(len(execution.choices), took)
            else:
                self._since = 0, now
        elif self._since is not None:
            index, began = self._since
            if execution.index == _MEASURED.stop or now - self._began > self.seconds / 4:
                self._estimate(len(execution.choices), (now - began) / (execution.index - index))
                self._since = None
            elif execution.index == _MEASURED.start:
                self._since = execution.index, now

    def _estimate(self, steps: int, seconds: float) -> None:
        """Say how long all would take if each takes so many `seconds`."""
        predicted = seconds * self._executions / self.jobs
        text = f"one execution: {counted(steps, 'step')}, {seconds:,.3f} s"
        if predicted > self.seconds:
            fits = max(1, int(self.seconds * self.jobs / seconds))
            all_of_them = f"{self._executions:,} would take about {predicted:,.0f} s"
            text += f"; {all_of_them}, so about {fits:,} are sampled in {self.seconds:g} s"
        self._screen.say(text)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """The first Ctrl-C ends the sample, and what was seen is reported; the second ends everything."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            if self.interrupted:
                raise KeyboardInterrupt
            self.interrupted = True

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
