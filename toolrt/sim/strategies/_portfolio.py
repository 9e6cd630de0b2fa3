"""Several samplers side by side, because no single one wins.

Theory.  Each sampler has bugs that it all but never finds.  A plain random walk meets the end of the longer of
two uneven tasks once in 2**25; PCT at small depths never makes tasks alternate; URW depends on the lengths it has
measured, POS on what steps report that they touch.  Measured on one set of programs, every single one missed some
within 500 executions; the mixture misses none.
"""

from __future__ import annotations

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim._execution import Execution
from toolrt.sim.policies._choices import Choices
from toolrt.sim.policies._fifo import Fifo
from toolrt.sim.policies._pct import PCT
from toolrt.sim.policies._policy import Policy
from toolrt.sim.policies._pos import POS
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.policies._seeds import checked_seed, seed_of
from toolrt.sim.policies._urw import URW
from toolrt.sim.strategies._random import Random
from toolrt.sim.strategies._strategy import Search

__all__ = ["Portfolio"]

# Whose turn it is among ten executions: four of URW, two of POS, one each of PCT at depths 1 to 3, one random walk.
_TURNS = (0, 2, 0, 1, 3, 0, 4, 1, 0, 5)


@attrs.frozen
class Portfolio:
    """A sample of `n` executions by several policies in turn: `URW`, `POS`, `PCT` and `RandomWalk`.

    The first goes on with the same task whenever it can, the second is `Fifo`: the two schedules a person would
    try.

    Example:
        ``sim.Portfolio(500, seed=1)``
    """

    #: How many executions, 1 or more.
    n: int = attrs.field(default=1_000)
    #: An integer; each seed is another sample.
    seed: int = attrs.field(default=0)

    @n.validator
    def _check_n(self, _: object, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise DefinitionRefused("Portfolio(n)", "a number of executions, 1 or more", value)

    @seed.validator
    def _check_seed(self, _: object, value: object) -> None:
        checked_seed("Portfolio(n, seed)", value)

    def begin(self) -> Search:
        """Begin the sample."""
        return _Turns(self.n, self.seed)


class _Turns(Search):
    asks_nobody = True

    def __init__(self, n: int, seed: int) -> None:
        self._n = n
        self._given = 0
        # A seed of its own for each, or two of them would draw alike.
        urw, pos, first, second, third, walk = (seed_of(seed, index) for index in range(6))
        policies = (URW(urw), POS(pos), PCT(1, first), PCT(2, second), PCT(3, third), RandomWalk(walk))
        self._searches = [Random(policy, n).begin() for policy in policies]

    def policy(self) -> Policy | None:
        index = self._given
        if index == self._n:
            return None
        self._given += 1
        if index < 2:
            return Fifo() if index else Choices()
        return self._searches[_TURNS[(index - 2) % len(_TURNS)]].policy()

    def learn(self, execution: Execution) -> None:
        """Nothing: each policy learns from its own executions."""
