"""Sampling: every execution follows a policy that draws its choices at random."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._execution import Execution
from toolrt.sim.policies._fifo import Fifo
from toolrt.sim.policies._pct import PCT
from toolrt.sim.policies._policy import Policy
from toolrt.sim.policies._pos import POS
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.policies._seeds import stream_of
from toolrt.sim.policies._urw import URW
from toolrt.sim.strategies._strategy import Search, Shared, check_executions

# Those that are no code of the user's.
_OWN = (Fifo, RandomWalk, PCT, POS, URW)


@attrs.frozen
class Random:
    """A sample of `n` executions, each with a stream of random numbers of its own for the program.

    Example:
        ``sim.Random(sim.RandomWalk(seed=1), 500)``
    """

    #: The policy; one with ``derive(index)`` gives each execution its own seed.
    policy: Policy = attrs.field()
    #: How many executions, 1 or more.
    n: int = attrs.field(validator=check_executions)

    @policy.validator
    def _check_policy(self, _: object, value: object) -> None:
        if isinstance(value, type) or not callable(getattr(value, "choose", None)):
            raise DefinitionRefused("Random(policy, n)", "a policy, such as RandomWalk(seed=1)", value)

    def begin(self) -> Search:
        """Begin the sample."""
        return _Sample(self.policy, self.n)


class _Sample(Shared):
    """The executions from one index to another; a policy that measures needs all those before."""

    def __init__(self, policy: Policy, n: int) -> None:
        fresh = getattr(policy, "sample", None)
        if type(policy) is RandomWalk:
            # Draws that were made with it before do not matter.
            policy = RandomWalk(policy.seed)
        self._policy: Policy = policy if fresh is None else fresh()
        self._seed = getattr(policy, "seed", 0)
        self._derives = hasattr(self._policy, "derive")
        # The index after its last execution's, and after the last of all.
        self._n = self._last = n
        self._given = 0
        self.index: int = -1
        self.asks_nobody = type(policy) in _OWN
        # Each execution can be drawn without those before.
        self.divisible = type(policy) in _OWN and fresh is None
        # What is still to be run besides: ranges of indices.
        self._back: list[tuple[int, int]] = []

    def policy(self) -> Policy | None:
        index = self._given
        if index == self._n:
            return None
        self.index = index
        self._given += 1
        self.chance = stream_of(self._seed, index)
        return self._policy.derive(index) if self._derives else self._policy  # type: ignore[attr-defined]

    def place(self, execution: Execution) -> tuple[int, ...]:
        return (self.index,)

    def lend(self, parts: int) -> list[Shared]:
        if self._given < self._n:
            self._back.append((self._given, self._n))
        ranges, self._back, self._given = self._back, [], self._n
        while self.divisible and len(ranges) < parts:
            low, high = max(ranges, key=lambda pair: pair[1] - pair[0], default=(0, 0))
            if high - low < 2:
                break
            ranges.remove((low, high))
            ranges += [(low, (low + high) // 2), ((low + high) // 2, high)]
        ranges.sort()
        self._back = ranges[parts:]
        return [self._part(low, high) for low, high in ranges[:parts]]

    def _part(self, low: int, high: int) -> _Sample:
        part = copy.copy(self)
        part._given, part._n, part._back = low, high, []
        return part

    def take_back(self, part: Shared) -> None:
        assert isinstance(part, _Sample)
        if part._given < part._n:
            self._back.append((part._given, part._n))
        # It may have measured.
        self._policy = part._policy

    def expected(self, executions: int, lent: Sequence[Shared]) -> float | None:
        return float(self._last)

    def at_most(self, executions: int) -> None:
        self._n = self._last = min(self._n, executions)

    def claim(self, executions: int, distinct: int) -> str:
        bound = getattr(self._policy, "bound", "")
        return f"sampled(n={executions}, distinct={distinct}{', ' if bound else ''}{bound})"
