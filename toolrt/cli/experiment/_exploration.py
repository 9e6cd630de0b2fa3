"""The exploration of a recorded batch: a search bounded by count, wall time or Ctrl-C.

Rules.  How long an execution takes is measured on the first, which belongs to the sample; when the time is up no
further one begins.  The first Ctrl-C ends the sample, and what was seen is there.
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs

from toolrt import invariants, sim
from toolrt._plain import counted
from toolrt.cli.experiment._experiment import Experiment
from toolrt.cli.screen._screen import Screen
from toolrt.sim.exploring._executors import ClusterClient
from toolrt.sim.exploring._interrupts import one_interrupt_noted

#: So many schedules are run twice, for the law that one schedule has one trace.
_TWICE = 10

#: The first execution is the slowest, as all is new to it, so the time of so many is measured, unless the first takes
#: so many wall seconds.
_MEASURED, _LONG = 20, 0.5


@attrs.frozen
class _UntilInterrupted(sim.Strategy):
    """A strategy whose search has no further policy once Ctrl-C was pressed."""

    strategy: sim.Strategy
    is_interrupted: Callable[[], bool]

    def begin(self) -> sim.Search:
        search = self.strategy.begin()
        policy = search.policy
        search.policy = lambda: None if self.is_interrupted() else policy()  # type: ignore[method-assign]
        return search


class Exploration:
    """One exploration and its clock: a check for `toolrt.sim`, and what it says while it runs."""

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
        # Whether `toolrt.sim` divides the strategy's work, and answers Ctrl-C.
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
        self._is_measured = False
        # Not while a simpler schedule is looked for.
        self._exploring = True
        self._began = 0.0

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
        strategy = self._strategy
        if not self._is_divided:
            strategy = _UntilInterrupted(strategy, lambda: self.interrupted)
        with nullcontext() if self._is_divided else one_interrupt_noted(self._interrupt):
            self.report = sim.explore(
                self.experiment.program,
                strategy,
                self._check,
                self._executions,
                jobs=self.jobs if self._cluster is None else self._cluster,
                step_limit=self.experiment.step_limit,
                **self.experiment.variation.actors,
                seconds=None if self.seconds == math.inf else self.seconds,
                progress=self._draw,
                checkpoint=self._checkpoint,
                made_from=self.experiment.identity,
            )
        self.interrupted |= self.report.interrupted
        self.took = time.perf_counter() - self._began
        self._exploring = False
        self._screen.wipe()

    def _interrupt(self) -> bool:
        """End the sample at the first Ctrl-C: what was seen is reported."""
        before, self.interrupted = self.interrupted, True
        return before

    def _check(self, execution: sim.Execution) -> list[invariants.Violation]:
        if self._is_remote or not self._exploring:
            return self.experiment.check(execution)
        # Not the first, whose time is measured; but on a cluster only that one is run here.
        twice = execution.index < _TWICE if self._cluster is not None else 0 < execution.index <= _TWICE
        if twice:
            self._twice[execution.index - 1] = 1
        found = self.experiment.check(execution, twice)
        self._judged += 1
        if not self._is_measured:
            self._measure(execution)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Give what a cluster's worker needs for the check."""
        return {"experiment": self.experiment, "_is_remote": True}

    def _draw(self, progress: sim.ExplorationProgress) -> None:
        self._earlier = progress.earlier
        if self._screen.is_live:
            self._screen.draw(f"{progress.executions:,} of {counted(self._executions, 'execution')}")

    def _measure(self, execution: sim.Execution) -> None:
        """Say how long all would take: by the first where it is a long one or all there is to go by, else by some."""
        spent = time.perf_counter() - self._began
        if self._judged == 1:
            if execution.index != 0:
                self._is_measured = True  # another process has measured the first
                return
            is_enough = self._executions < _MEASURED or self._is_divided or spent > min(_LONG, self.seconds / 4)
        else:
            is_enough = self._judged == _MEASURED or spent > self.seconds / 4
        if not is_enough:
            return
        self._is_measured = True
        seconds = spent / self._judged
        predicted = seconds * self._executions / self.jobs
        text = f"one execution: {counted(len(execution.choices), 'step')}, {seconds:,.3f} s"
        if predicted > self.seconds:
            fits = max(1, int(self.seconds * self.jobs / seconds))
            all_of_them = f"{self._executions:,} would take about {predicted:,.0f} s"
            text += f"; {all_of_them}, so about {fits:,} are sampled in {self.seconds:g} s"
        self._screen.say(text)
