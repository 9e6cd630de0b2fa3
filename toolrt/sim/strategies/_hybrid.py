"""Samples first, shrinks what it finds, then reduces around it.

Rules.  The first part of the budget is a `Portfolio`, up to the first failure.  The failing schedule is shrunk within
the search, by executions that count like any other.  The rest of the budget is the reduction of `DPOR`, begun at the
shrunk schedule: where nothing is planned it chooses as that schedule does, so what it runs first are the traces nearest
to the bug.  When the sample finds nothing, the reduction begins at many places (`DPOR` with random branches).

Theory.  Random sampling reaches deep states and misses narrow ones; systematic search has it the other way round.
"Hybrid" is the name for taking them in turn: Majumdar and Sen, "Hybrid concolic testing" (ICSE 2007).  Any first
execution keeps the reduction complete and optimal, so when it comes to its end within the budget, it has run one
execution of each trace, and the claim says so.

Limits.  It knows one failure: the first.  It learns from each execution for the next, so it is not divided.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from typing import Any

import attrs

from toolrt.sim.engine._execution import Execution
from toolrt.sim.policies._choices import Choices
from toolrt.sim.policies._policy import Policy
from toolrt.sim.strategies._portfolio import Portfolio
from toolrt.sim.strategies._simplify import shrink
from toolrt.sim.strategies._strategy import Search, check_executions, check_seed
from toolrt.sim.strategies.dpor._continuation import NearContinuation
from toolrt.sim.strategies.dpor._search import DPORSearch
from toolrt.sim.strategies.dpor._spread import SpreadSearch

# Of the budget one half at most is sampled; shrinking takes a tenth, and at most so many executions.
_SAMPLED, _SHRUNK, _SHRUNK_MOST = 2, 10, 100


@attrs.frozen
class Hybrid:
    """A sample of at most `n` / 2 executions, and a reduction around the first failure; `n` executions in all.

    Example:
        ``sim.Hybrid(500, seed=1)``
    """

    #: How many executions, 1 or more.
    n: int = attrs.field(default=1_000, validator=check_executions)
    #: An integer; each seed is another search.
    seed: int = attrs.field(default=0, validator=check_seed)

    def begin(self) -> Search:
        """Begin with the sample."""
        return _HybridSearch(self.n, self.seed)


class _HybridSearch(Search):
    asks_nobody = True
    minds_failures = True

    def __init__(self, n: int, seed: int) -> None:
        self._n, self._seed = n, seed
        self._sample: Search = Portfolio(max(1, n // _SAMPLED), seed).begin()
        self._sampled = self._run = 0
        # The first failure, while it is shrunk, and what it is shrunk to.
        self._shrinking: Generator[Policy, Any, Execution] | None = None
        self._candidate: Policy | None = None
        self._failure: Execution | None = None
        self._reduction: DPORSearch | None = None
        self._last: Execution | None = None

    def policy(self) -> Policy | None:
        if self._run >= self._n:
            return None
        if self._candidate is not None:
            return self._candidate
        if self._failure is None:
            policy = self._sample.policy()
            if policy is not None:
                self.chance = self._sample.chance
                return policy
            self.chance = 0
        if self._reduction is None:
            if self._failure is None:
                self._reduction = SpreadSearch(False, None, self._seed)
            else:
                self._reduction = DPORSearch(False, None, NearContinuation(self._failure.choices))
        return self._reduction.policy()

    def learn(self, execution: Execution) -> None:
        self._run += 1
        self._last = execution
        if self._reduction is not None:
            self._reduction.learn(execution)
        else:
            self._sampled += 1
            if self._candidate is None:
                self._sample.learn(execution)

    def judged(self, failed: bool) -> None:
        execution, self._last = self._last, None
        if self._reduction is not None or execution is None:
            return
        if self._shrinking is None:
            if failed and self._failure is None:
                # From now on its stream of random numbers is kept: `chance` is its.
                self._failure = execution
                most = max(1, min(_SHRUNK_MOST, self._n // _SHRUNK))
                self._shrinking = shrink(execution, _tried, most)
                self._go_on(None)
            return
        assert self._failure is not None
        fails = failed and type(execution.error) is type(self._failure.error)
        self._go_on(execution if fails else None)

    def _go_on(self, answer: Execution | None) -> None:
        """Give shrinking its answer, and take the next candidate, or the end."""
        assert self._shrinking is not None
        try:
            self._candidate = self._shrinking.send(answer)
        except StopIteration as stop:
            self._candidate, self._failure = None, stop.value

    def claim(self, executions: int, distinct: int) -> str:
        if self._reduction is None:
            return f"sampled(n={executions}, distinct={distinct})"
        if self.complete():
            return f"{self._reduction.claim(executions, distinct)} beside sampled(n={self._sampled})"
        return f"sampled(n={self._sampled}, reduced={executions - self._sampled}, distinct={distinct})"

    def complete(self) -> bool:
        return self._reduction is not None and self._reduction.complete()

    def unfinished(self) -> str | None:
        # A part of the space was all that was wanted; but what casts doubt on a schedule does so here.
        doubts = () if self._reduction is None else sorted(self._reduction.doubts)
        return "; ".join(doubts) or None

    def hold_against_samples(self, outcomes: Collection[Any]) -> Generator[Policy, Execution, str | None]:
        if self._reduction is None or not self._reduction.complete():
            return None
        self.reduces = True
        return (yield from self._reduction.hold_against_samples(outcomes))

    def reopens(self) -> bool:
        return self._run < self._n and self._reduction is not None and self._reduction.reopens()


def _tried(choices: tuple[int, ...]) -> Generator[Any, Any, Execution | None]:
    """Let the search run `choices`; it sends the execution if it fails the same way."""
    found: Execution | None = yield Choices(choices)
    return found
