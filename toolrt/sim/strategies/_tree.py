"""Every schedule, or every one with at most so many preemptions.

Rules.  The schedules of a program are a tree: a node is a step, its branches are the choices there.  A prefix of
choices is run and then choice 0 to the end; that run shows how wide each later node is, and every branch not taken
there is a prefix that is still to be run.  So each schedule is run exactly once.  The deepest is taken next, which
is a depth-first search, and what is still to be run shares the run it branches off from.

A *preemption* gives a step to another task although the one before could go on.  `Bounded` takes all schedules
without one first, then those with one, and so on: prefixes that need one more wait for the next round.  A failure
it finds has the fewest preemptions there are.

Theory.  Few preemptions find most bugs, and with at most c of them the number of schedules is polynomial in the
number of steps: Musuvathi and Qadeer, "Iterative context bounding for systematic testing of multithreaded
programs" (PLDI 2007), whose queue of deferred prefixes this is.

Limits.  A program that makes a step depend on what is not a choice would make the tree another one at each visit.
So what is enabled along a prefix is compared with what was enabled when the prefix was found; when it differs the
search ends, and is not finished.
"""

from __future__ import annotations

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim._execution import Execution
from toolrt.sim.policies._policy import Policy, RunInfo
from toolrt.sim.strategies._strategy import Search, uncontrolled

__all__ = ["Bounded", "Exhaustive"]


@attrs.frozen
class Exhaustive:
    """Every schedule, each once.

    How many that are, `toolrt.sim.estimate` tells before; `max_executions` of `toolrt.sim.explore` ends it early,
    which is then INCONCLUSIVE unless something failed.

    Example:
        ``sim.explore(program, sim.Exhaustive())``
    """

    def begin(self) -> Search:
        """Begin with the schedule of zeros."""
        return _Tree(None)


@attrs.frozen
class Bounded:
    """Every schedule with at most `preemptions` preemptions, each once; those with fewer first.

    Example:
        ``sim.explore(program, sim.Bounded(preemptions=2))``
    """

    #: How often a step may be given to another task although the one before could go on, 0 or more.
    preemptions: int = attrs.field()

    @preemptions.validator
    def _check(self, _: object, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise DefinitionRefused("Bounded(preemptions)", "a number of preemptions, 0 or more", value)

    def begin(self) -> Search:
        """Begin with the schedule of zeros, which has none."""
        return _Tree(self.preemptions)


#: A prefix to run: the choices and enabled lists of the run it branches off from, the step, the choice there.
_Branch = tuple[tuple[int, ...], tuple[tuple[str, ...], ...], int, int]


class _Prefix:
    """Makes the choices of a prefix, then choice 0."""

    def __init__(self, choices: tuple[int, ...], branch_at: int, branch: int) -> None:
        self._choices = choices
        self._branch_at = branch_at
        self._branch = branch

    def start(self, info: RunInfo) -> None:
        pass

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        if step > self._branch_at:
            return 0
        choice = self._choices[step] if step < self._branch_at else self._branch
        # Out of range only where the program does not do the same again, which `learn` sees.
        return choice if choice < len(enabled) else 0


class _Tree(Search):
    asks_nobody = True

    def __init__(self, bound: int | None) -> None:
        self._bound = bound
        self._open: list[_Branch] = []
        # Prefixes with one preemption more than those in `_open`.
        self._deferred: list[_Branch] = []
        self._preemptions = 0
        # Prefixes were left out because of the bound.
        self._cut = False
        self._current: _Branch | None = ((), (), -1, 0)
        self._handed_out = False
        self._diverged: str | None = None

    def policy(self) -> Policy | None:
        if self._handed_out:
            # Nothing was learned of the last one: it was not run to its end.
            return None
        if self._current is None:
            return None
        self._handed_out = True
        choices, _, branch_at, branch = self._current
        return _Prefix(choices, branch_at, branch)

    def learn(self, execution: Execution) -> None:
        assert self._current is not None
        self._handed_out = False
        _, expected, branch_at, _ = self._current
        choices, enabled = execution.choices, execution.enabled
        begin = branch_at + 1
        if enabled[:begin] != expected[:begin]:
            step = next(step for step in range(begin) if enabled[step : step + 1] != expected[step : step + 1])
            now = ", ".join(enabled[step]) if step < len(enabled) else "its end"
            self._diverged = uncontrolled(step, ", ".join(expected[step]), now)
            self._current = None
            return
        for step in range(begin, len(choices)):
            width = len(enabled[step])
            if width == 1:
                continue
            target = self._open
            if self._bound is not None and step and _preempts(choices, enabled, step):
                if self._preemptions == self._bound:
                    self._cut = True
                    continue
                target = self._deferred
            target.extend((choices, enabled, step, choice) for choice in range(width - 1, 0, -1))
        if not self._open and self._deferred:
            self._open, self._deferred = self._deferred, []
            self._preemptions += 1
        self._current = self._open.pop() if self._open else None

    def claim(self, executions: int, distinct: int) -> str:
        whole = self._bound is None or not self._cut
        if self.complete():
            if whole:
                return f"exhaustive(schedules={executions})"
            return f"bounded(preemptions<={self._bound}, schedules={executions})"
        if self._bound is None:
            return f"incomplete(schedules={executions})"
        # The rounds before this one are done.
        done = f", preemptions<={self._preemptions - 1} done" if self._preemptions else ""
        return f"incomplete(preemptions<={self._bound}, schedules={executions}{done})"

    def complete(self) -> bool:
        return self._current is None and self._diverged is None and not self._handed_out

    def unfinished(self) -> str | None:
        if self._diverged is not None:
            return self._diverged
        if self.complete():
            return None
        left = len(self._open) + len(self._deferred) + 1
        return f"the budget ran out with {left} subtrees of schedules still to be run"


def _preempts(choices: tuple[int, ...], enabled: tuple[tuple[str, ...], ...], step: int) -> bool:
    """Say whether any choice but 0 at `step` leaves a task that could go on."""
    return enabled[step][0] == enabled[step - 1][choices[step - 1]]
