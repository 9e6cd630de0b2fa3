"""Counts which racing pairs of accesses came in which order, and samples for those that came in one order only.

Rules.  An access is a step of a task, what it does (read or write), and a resource; a step is known by its number among
the task's.  Two accesses of two tasks *race* when they
touch one resource, one writes, and nothing but the schedule orders them: neither task woke, started or joined the
other in between.  A pair that was seen in one order only is what a sample has not tried yet, or cannot have.

`Guided` runs a portfolio first.  Then every second execution is directed: it takes a pair that was seen in one order
only and was tried least often, stops the first task right before its access, and lets others go on until the second
task has made its own.  A pair that stays one-way after three such executions is left to chance.

Theory.  Coverage of orders as feedback: Lu, Jiang and Zhou, "A study of interleaving coverage criteria" (FSE 2007).
Stopping one side of a race: Sen, "Race directed random testing of concurrent programs" (PLDI 2008).

Limits.  An access that was not reported is in no pair.  Of each task only the last read and the last write before an
access are paired with it.  Whether a pair can come in the other order at all is not known.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs

from toolrt.sim.engine._execution import Execution
from toolrt.sim.policies._policy import Policy, RunInfo
from toolrt.sim.policies._seeds import seed_of
from toolrt.sim.strategies._portfolio import Portfolio
from toolrt.sim.strategies._strategy import Search, check_executions, check_seed
from toolrt.trace import stable_text

# So many executions come before the first that is directed.
_FIRST = 10

# A pair whose other order did not come in so many directed executions cannot have it, probably.
_TRIES = 3

# So many pairs are kept; a program with more is counted no further.
_MOST = 20_000

# So many pairs of one order are named in words.
_NAMED = 5


@attrs.frozen(order=True)
class RacingPair:
    """Two accesses to one resource by two tasks, in the order in which they came."""

    #: The resource, as text.
    resource: str
    #: The task whose access came first, the step's number among its steps (from 0), and whether it wrote.
    first: str
    first_step: int
    first_writes: bool
    #: The same of the second.
    second: str
    second_step: int
    second_writes: bool

    @property
    def reversed(self) -> RacingPair:
        """The other order."""
        first = (self.first, self.first_step, self.first_writes)
        second = (self.second, self.second_step, self.second_writes)
        return RacingPair(self.resource, *second, *first)

    def __str__(self) -> str:
        first, second = ("wrote" if writes else "read" for writes in (self.first_writes, self.second_writes))
        begin = f"step {self.first_step} of {self.first} {first} {self.resource}"
        return f"{begin} before step {self.second_step} of {self.second} {second} it"


class PairCoverage:
    """Which racing pairs some executions had, and in which orders.

    Example:
        >>> from toolrt import sim
        >>> from toolrt.teaching.litmus import LITMUS
        >>> pairs = sim.PairCoverage()
        >>> report = sim.explore(LITMUS["lost_update_3x2"].program, sim.Portfolio(30), pairs.noting())
        >>> len(pairs.both) > 0
        True
    """

    def __init__(self) -> None:
        self._seen: set[RacingPair] = set()

    @property
    def both(self) -> tuple[RacingPair, ...]:
        """The pairs that were seen in both orders; each in one of them."""
        return tuple(sorted(pair for pair in self._seen if pair.reversed in self._seen and pair <= pair.reversed))

    @property
    def one_way(self) -> tuple[RacingPair, ...]:
        """The pairs that were seen in one order only: in that one."""
        return tuple(sorted(pair for pair in self._seen if pair.reversed not in self._seen))

    def note(self, execution: Execution) -> int:
        """Take in an execution, and give how many pairs and orders were new."""
        before = len(self._seen)
        if before < _MOST:
            self._seen |= _pairs_of(execution)
        return len(self._seen) - before

    def noting(self, check: Callable[[Execution], Any] | None = None) -> Callable[[Execution], Any]:
        """Give a check that takes in each execution, and judges as `check` does; for `toolrt.sim.explore`.

        With several processes each has a coverage of its own.
        """

        def noting(execution: Execution) -> Any:
            self.note(execution)
            return None if check is None else check(execution)

        noting.leaves_out = getattr(check, "leaves_out", ())  # type: ignore[attr-defined]
        return noting

    def __str__(self) -> str:
        one_way = self.one_way
        text = f"racing pairs: {len(self.both)} seen in both orders, {len(one_way)} in one only"
        named = [str(pair) for pair in one_way[:_NAMED]]
        if len(one_way) > _NAMED:
            named.append(f"{len(one_way) - _NAMED} more")
        return text + (f" ({'; '.join(named)})" if named else "")


def _pairs_of(execution: Execution) -> set[RacingPair]:
    """Give the racing pairs of an execution, with the order they came in."""
    found: set[RacingPair] = set()
    # For each step the steps that had to come before it, as a bit each; and for each task its last step and its count.
    before: list[int] = []
    last: dict[str, int] = {}
    made: dict[str, int] = {}
    # For each resource the last read and the last write of each task: the step, and the task's count.
    uses: dict[Any, dict[tuple[str, bool], tuple[int, int]]] = {}
    execution._keep_record()
    for index, (actor, enabled, _, touched, _, causes) in enumerate(execution._raw_steps):
        task = actor.name
        known = 1 << index
        for cause in (*causes, *([last[task]] if task in last else ())):
            if 0 <= cause < index:
                known |= before[cause] | 1 << cause
        before.append(known)
        last[task] = index
        # The rest of a step, after it chose, is no step of its own.
        count = made[task] = made.get(task, -1) + ("=" not in enabled[0])
        for resource, write in touched:
            try:
                there = uses.setdefault(resource, {})
            except TypeError:
                continue
            for (other, wrote), (at, others_count) in there.items():
                if other != task and (write or wrote) and not known >> at & 1:
                    found.add(RacingPair(stable_text(resource), other, others_count, wrote, task, count, write))
            there[task, write] = index, count
    return found


@attrs.frozen
class Guided:
    """A sample of `n` executions that prefers racing pairs in orders that were not seen; the report names the others.

    Example:
        ``sim.explore(program, sim.Guided(500)).pairs``
    """

    #: How many executions, 1 or more.
    n: int = attrs.field(default=1_000, validator=check_executions)
    #: An integer; each seed is another sample.
    seed: int = attrs.field(default=0, validator=check_seed)

    def begin(self) -> Search:
        """Begin the sample."""
        return _GuidedSearch(self.n, self.seed)


class _GuidedSearch(Search):
    def __init__(self, n: int, seed: int) -> None:
        self._n, self._seed, self._run = n, seed, 0
        self._portfolio = Portfolio(n, seed).begin()
        self._is_directed = False
        # How often each pair was tried in the other order.
        self._tried: dict[RacingPair, int] = {}
        self.pairs = PairCoverage()

    def policy(self) -> Policy | None:
        if self._run >= self._n:
            return None
        pair = self._wanted() if self._run >= _FIRST and self._run % 2 else None
        if pair is not None:
            self._tried[pair] = self._tried.get(pair, 0) + 1
            self._is_directed = True
            return _Reverse(pair, seed_of(self._seed, self._run))
        self._is_directed = False
        policy = self._portfolio.policy()
        self.chance = self._portfolio.chance
        return policy

    def _wanted(self) -> RacingPair | None:
        """Give a pair of one order that was tried least often; None when all were tried in vain."""
        left = [pair for pair in self.pairs.one_way if self._tried.get(pair, 0) < _TRIES]
        return min(left, key=lambda pair: (self._tried.get(pair, 0), pair), default=None)

    def learn(self, execution: Execution) -> None:
        self._run += 1
        if not self._is_directed:
            self._portfolio.learn(execution)
        self.pairs.note(execution)


class _Reverse:
    """A random walk that stops the first task of a pair before its access until the second has made its own."""

    def __init__(self, pair: RacingPair, seed: int) -> None:
        self._held, self._awaited = pair.first, pair.second
        self._first, self._second = pair.first_step, pair.second_step
        self._random = random.Random(seed)

    def start(self, info: RunInfo) -> None:
        self._made = {self._held: 0, self._awaited: 0}

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        if "=" in enabled[0]:
            return self._random.randrange(len(enabled))
        made = self._made
        picks = list(range(len(enabled)))
        if made[self._held] >= self._first and made[self._awaited] <= self._second:
            picks = [pick for pick in picks if enabled[pick] != self._held] or picks
        pick = self._random.choice(picks)
        if enabled[pick] in made:
            made[enabled[pick]] += 1
        return pick
