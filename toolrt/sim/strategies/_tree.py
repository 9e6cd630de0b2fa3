"""Exhaustive search: every schedule, or every one with a bounded number of preemptions.

Rules.  The schedules of a program are a tree: a node is a step, its branches are the choices there.  A prefix of
choices is run and then choice 0 to the end; that run shows how wide each later node is, and every branch not taken
there is a prefix that is still to be run.  So each schedule is run exactly once.  The deepest is taken next, which
is a depth-first search, and what is still to be run shares the run it branches off from.

A *preemption* gives a step to another task although the one before could go on; in Trio's orders, where none could
within a pass, it is a step out of turn: the tasks of a pass have their turns by path.  `Bounded` takes all schedules
without one first, then those with one, and so on: prefixes that need one more wait for the next round.  A failure
it finds has the fewest preemptions there are.

Theory.  Few preemptions find most bugs, and with at most c of them the number of schedules is polynomial in the
number of steps: Musuvathi and Qadeer, "Iterative context bounding for systematic testing of multithreaded
programs" (PLDI 2007), whose queue of deferred prefixes this is.

How many schedules there are is foreseen from the share of the tree that was run, each branch of a node being as much
as any other: Kilby, Slaney, Thiébaux, Walsh, "Estimating search tree size" (AAAI 2006).

Limits.  A program that makes a step depend on what is not a choice would make the tree another one at each visit.
So what is enabled along a prefix is compared with what was enabled when the prefix was found; when it differs the
search ends, and is not finished.

In parts: a part has some of the prefixes, and all that branches off from them; what needs one more preemption it
gives back, because a round begins when all of the one before has been run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._execution import Execution
from toolrt.sim.policies._fair_tail import FairTail
from toolrt.sim.policies._policy import Policy, RunInfo
from toolrt.sim.strategies._strategy import Search, Shared, uncontrolled


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
        return _PrefixSearch(None)


@attrs.frozen
class Bounded:
    """Every schedule with at most `preemptions` preemptions, each once; those with fewer first.

    With ``order="trio"`` a preemption is a step out of turn, by path.

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
        return _PrefixSearch(self.preemptions)


#: A prefix to run: the choices and enabled lists of the run it branches off from, the step, the choice there.
_Branch = tuple[tuple[int, ...], tuple[tuple[str, ...], ...], int, int]


class _Prefix:
    """Makes the choices of a prefix, then choice 0, and in the second half of a long execution fair ones."""

    reads_accesses = False

    def __init__(self, choices: tuple[int, ...], branch_at: int, branch: int) -> None:
        self._choices = choices
        self._branch_at = branch_at
        self._branch = branch

    def start(self, info: RunInfo) -> None:
        self._tail = FairTail(info)

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        if step > self._branch_at:
            return 0 if step < self._tail.begins else self._tail.pick(enabled, range(len(enabled)))
        choice = self._choices[step] if step < self._branch_at else self._branch
        # Out of range only where the program does not do the same again, which `learn` sees.
        return choice if choice < len(enabled) else 0


class _PrefixSearch(Shared):
    asks_nobody = True
    repeats = False

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
        # Why not all can be run any more.
        self._lost: str | None = None
        # This is a part of another one.
        self._is_part = False
        # So many parts are lent out.
        self._lent = 0

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
        begin, in_passes = branch_at + 1, execution.order == "trio"
        if enabled[:begin] != expected[:begin]:
            step = next(step for step in range(begin) if enabled[step : step + 1] != expected[step : step + 1])
            now = ", ".join(enabled[step]) if step < len(enabled) else "its end"
            self._lost = uncontrolled(step, ", ".join(expected[step]), now)
            self._current = None
            return
        for step in range(begin, len(choices)):
            width = len(enabled[step])
            if width == 1:
                continue
            target = self._open
            if self._bound is not None and step and (in_passes or _preempts(choices, enabled, step)):
                if self._preemptions == self._bound:
                    self._cut = True
                    continue
                target = self._deferred
            taken = choices[step]
            target.extend((choices, enabled, step, choice) for choice in range(width - 1, -1, -1) if choice != taken)
        if not self._open and self._deferred and not self._is_part:
            self._begin_round()
        self._current = self._open.pop() if self._open else None

    def _begin_round(self) -> None:
        """Go on with the prefixes that have one preemption more, the lowest first, as within a round."""
        self._open, self._deferred = sorted(self._deferred, key=_prefix, reverse=True), []
        self._preemptions += 1

    def place(self, execution: Execution) -> tuple[int, tuple[int, ...]]:
        return self._preemptions, execution.choices

    def lend(self, parts: int) -> list[Shared]:
        if self._lost is not None:
            return []
        left = self._left()
        if not left and not self._lent and self._deferred:
            self._begin_round()
            left = self._open
        self._open, self._current = [], None
        lent: list[Shared] = []
        for first in range(min(parts, len(left))):
            part = _PrefixSearch(self._bound)
            part._open = left[first::parts]
            part._current = part._open.pop()
            part._preemptions = self._preemptions
            part._is_part = True
            lent.append(part)
        self._lent += len(lent)
        return lent

    def take_back(self, part: Shared) -> None:
        assert isinstance(part, _PrefixSearch)
        self._lent -= 1
        self._open += part._left()
        self._deferred += part._deferred
        self._cut |= part._cut
        self._lost = self._lost or part._lost

    def _left(self) -> list[_Branch]:
        return self._open if self._current is None else [*self._open, self._current]

    def expected(self, executions: int, lent: Sequence[Shared]) -> float | None:
        # Prefixes beyond the bound are not counted, so nothing can be estimated.
        if self._bound is not None:
            return None
        left = [*self._left(), *(branch for part in lent if isinstance(part, _PrefixSearch) for branch in part._left())]
        done = 1.0 - math.fsum(map(_weight, left))
        return executions / done if left and done > 0 else float(executions)

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
        return not (self._left() or self._deferred or self._lent or self._handed_out or self._lost is not None)

    def unfinished(self) -> str | None:
        if self._lost is not None:
            return self._lost
        if self.complete():
            return None
        left = len(self._left()) + len(self._deferred)
        return f"the budget ran out with {left} subtrees of schedules still to be run"


def _prefix(branch: _Branch) -> tuple[int, ...]:
    choices, _, step, choice = branch
    return (*choices[:step], choice)


def _weight(branch: _Branch) -> float:
    """Give how likely a walk that picks every branch with the same probability comes through this one."""
    _, enabled, step, _ = branch
    return 1.0 / math.prod(map(len, enabled[: step + 1]))


def _preempts(choices: tuple[int, ...], enabled: tuple[tuple[str, ...], ...], step: int) -> bool:
    """Say whether another choice at `step` leaves a task that could go on."""
    return enabled[step][0] == enabled[step - 1][choices[step - 1]]
