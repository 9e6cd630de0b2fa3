"""Every Mazurkiewicz trace of a program, each once: optimal dynamic partial-order reduction.

Rules.
- Two steps are *dependent* when they are one task's, when both touch one resource and one of them writes it, or
  when one of them may have done anything.  Executions that differ only in the order of independent steps are one
  trace; one execution of each is run.
- A step that reported nothing may have done anything, unless the caller vouches with ``accesses="declared"``.
- What a step wakes, spawns or joins comes after it, and so does everything after a moment at which nothing could
  run: no choice could turn that round.
- A step may touch different things in different schedules, as what it reads says: an attempt that goes on when the lock
  is held.  One that touches different things although nothing it reported or could know was different does not say
  all: then the space is gone through again, each step taken to touch all it ever has, until nothing is new.
- A cancel, an early move of the clock and a value that is chosen are steps with accesses of their own: a cancel writes
  the scope, which every step under it reads; an early clock writes the time, and the scopes whose deadlines it meets; a
  value belongs to the step that asks, and every one is tried.
- Whatever the reduction relies on and did not find (a task that should have been able to step and was not, a step
  limit, system tasks that ran in between) is said (`Report.unfinished`), and then nothing is complete.

Theory.  Abdulla, Aronis, Jonsson, Sagonas: Optimal dynamic partial order reduction (POPL 2014).  The search itself
is `_dpor_tree`'s; here are its contract with an exploration and its claims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from toolrt._plain import stable_text
from toolrt.errors import DefinitionRefused, ReplayDiverged, StepLimit
from toolrt.sim._execution import Execution
from toolrt.sim._paths import task_of
from toolrt.sim.policies._policy import Policy, RunInfo
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.strategies._dpor_tree import Tree
from toolrt.sim.strategies._strategy import Redundant, Search

if TYPE_CHECKING:
    from toolrt.sim._hook import Scheduler

__all__ = ["DPOR", "DPORSearch"]


@attrs.frozen
class DPOR:
    """One execution of each Mazurkiewicz trace.

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def program():
        ...     cells = [sim.Cell(0), sim.Cell(0)]
        ...     async def add(cell):
        ...         seen = cell.get()
        ...         await trio.lowlevel.checkpoint()
        ...         cell.set(seen + 1)
        ...     async with trio.open_nursery() as nursery:
        ...         for cell in cells:
        ...             nursery.start_soon(add, cell)
        ...     return tuple(cell.get() for cell in cells)
        >>> sim.explore(program, sim.DPOR()).claim
        'exhaustive(traces=1)'
    """

    #: "reported": a step that reported nothing may have done anything.  "declared": the caller's word that such a
    #: step did nothing others could see.
    accesses: str = attrs.field(default="reported")
    #: With "declared", so many random schedules are run as well; an outcome among them that no trace had shows that
    #: the word was wrong.  0 or more.
    samples: int = attrs.field(default=100, kw_only=True)

    @accesses.validator
    def _check_accesses(self, _: object, value: object) -> None:
        if value not in ("reported", "declared"):
            raise DefinitionRefused("DPOR(accesses)", '"reported" or "declared"', value)

    @samples.validator
    def _check_samples(self, _: object, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise DefinitionRefused("DPOR(samples)", "a number of executions, 0 or more", value)

    def begin(self) -> DPORSearch:
        """Begin an exploration."""
        declared = self.accesses == "declared"
        return DPORSearch(declared, self.samples if declared else 0)


class DPORSearch(Search):
    """One exploration by `DPOR`."""

    def __init__(self, declared: bool, samples: int) -> None:
        self._declared = declared
        self._samples = samples
        self._tree = Tree(declared)
        #: How many traces were run; in a pass after the first, at most.
        self.traces = 0
        #: How often the whole space was gone through.
        self.passes = 1
        #: How many executions turned out to be of a trace that had been run, and were ended there.
        self.redundant = 0
        #: Why what was run may not be all there is.
        self.doubts: set[str] = set()
        self._given: _Follow | None = None
        self._outcomes: set[str] = set()
        self._sampled = 0
        # Asked for the text of a value otherwise.
        self.asks_nobody = not samples

    def policy(self) -> Policy | None:
        """Give the policy of the next execution, or None when there is none."""
        given, tree = self._given, self._tree
        if given is not None and given.scheduler is not None:
            # It raised `Redundant`.
            self.redundant += 1
            tree.take_in(given.scheduler, given.offered)
            self._given = None
        if tree.done and tree.again:
            # A reduction by what steps withheld may have missed a trace: once more, by all that each step touched.
            self.passes += 1
            self.traces = 0
            tree = self._tree = Tree(self._declared, tree)
        if not tree.done:
            self._given = _Follow(tree)
            return self._given
        if self._sampled < self._samples and not self.doubts:
            self._sampled += 1
            return RandomWalk(self._sampled)
        return None

    def learn(self, execution: Execution) -> None:
        """Be told what came of the policy given last."""
        given, self._given = self._given, None
        if given is None or given.scheduler is None:
            if stable_text(execution.outcome) not in self._outcomes:
                self.doubts.add("a random schedule had an outcome that no trace had")
            return
        self.traces += 1
        if self._samples:
            self._outcomes.add(stable_text(execution.outcome))
        if given.diverged:
            self.doubts.add("a step had an effect it did not report")
        if given.scheduler.others_ran:
            self.doubts.add("system tasks or callbacks ran")
        if isinstance(execution.error, StepLimit):
            self.doubts.add("the step limit ended an execution")
        self._tree.take_in(given.scheduler)

    def claim(self, executions: int, distinct: int) -> str:
        """Say how many traces were run, and what the claim rests on."""
        notes = [f"traces{'=' if self.passes == 1 else '<='}{self.traces}"]
        if self._declared:
            notes.append("accesses=declared")
        if self._sampled:
            notes.append(f"sampled={self._sampled}")
        return f"{'exhaustive' if self.complete() else 'incomplete'}({', '.join(notes)})"

    def complete(self) -> bool:
        """Say whether every trace was run."""
        return self.unfinished() is None

    def unfinished(self) -> str | None:
        """Say why not every trace was run, as far as anybody can tell."""
        if self.doubts:
            return "; ".join(sorted(self.doubts))
        if not self._tree.done or self._tree.again or self._sampled < self._samples:
            return "the budget ran out"
        return None


class _Follow:
    """Step the tasks that the tree says, then whoever is not asleep."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._tasks, self._known, self._planned = tree.path
        self._sleep = tree.sleep_at(self._known)
        #: The execution, once it has begun.
        self.scheduler: Scheduler | None = None
        #: True when a task could not step where the reduction says it can.
        self.diverged = False
        #: Who could have stepped, all asleep, where it was given up.
        self.offered: tuple[str, ...] = ()
        # True when one that need not step could not: what was planned after it may not be possible.
        self._is_free = False
        # How many of the steps were choices within another, or the rest of it; and where the step before began.
        self._within = 0
        self._begun = 0
        # What the running step has chosen, and whether its rest comes next.
        self._chosen: tuple[int, ...] = ()
        self._goes_on = False

    def attach(self, scheduler: Scheduler) -> None:
        """Keep the execution: what its steps touched is asked for afterwards."""
        self.scheduler = scheduler

    def start(self, info: RunInfo) -> None:
        """Do nothing: the place is the step's index."""

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        """Pick the task whose turn it is.

        Raises:
            Redundant: whoever steps now, the trace has been run.
            ReplayDiverged: the steps so far were the same as in an earlier execution, and the tasks that can run
                are not: the program depends on something that no schedule holds.
        """
        if self._goes_on:
            self._goes_on = False
            return 0
        if "=" in enabled[0]:
            return self._choose_within(enabled, step)
        begun, self._begun = self._begun, step
        index = step - self._within
        sleep, known = self._sleep, self._known
        if sleep and index > known:
            assert self.scheduler is not None
            sleep = self._sleep = self._tree.still_asleep(sleep, self.scheduler, begun)
        if self._within:
            self._chosen = ()
        if index < len(self._tasks) and not self._is_free:
            task = self._tasks[index]
            if task in enabled:
                if not (sleep and index > known and task in sleep):
                    return enabled.index(task)
                # Only what need not happen can be new here.
                self._is_free = True
            elif index < known:
                raise ReplayDiverged(step, task, f"one of {', '.join(enabled)}")
            else:
                self._is_free = True
                self.diverged = not self._tree.need_not_step(task)
        if not sleep:
            return 0
        for choice, task in enumerate(enabled):
            if task not in sleep:
                return choice
        self.offered = enabled
        raise Redundant

    def _choose_within(self, enabled: tuple[str, ...], step: int) -> int:
        """Choose what the tree says, or else the first that was not chosen here."""
        index = step - 1 - self._within
        self._within += 2
        self._goes_on = True
        begin = self._chosen
        planned = () if self._is_free else self._planned.get(index, ())
        if len(begin) < len(planned):
            choice = planned[len(begin)]
            if choice < len(enabled) and (index < self._known or not self._sleeps(enabled, choice)):
                self._chosen = (*begin, choice)
                return choice
            if index < self._known:
                raise ReplayDiverged(step, f"choice {choice}", f"one of {', '.join(enabled)}")
        for choice in range(len(enabled)):
            if not self._sleeps(enabled, choice):
                self._chosen = (*begin, choice)
                return choice
        raise Redundant

    def _sleeps(self, enabled: tuple[str, ...], choice: int) -> bool:
        return (task_of(enabled[choice]), (*self._chosen, choice)) in self._sleep
