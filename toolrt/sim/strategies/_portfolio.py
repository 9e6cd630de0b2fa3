"""A portfolio: runs several samplers side by side, because no single one wins.

Theory.  Each sampler has bugs that it all but never finds.  A plain random walk meets the end of the longer of
two uneven tasks once in 2**25; PCT at small depths never makes tasks alternate; URW depends on the lengths it has
measured, POS on what steps report that they touch.  Measured on one set of programs, every single one missed some
within 500 executions; the mixture misses none.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import attrs

from toolrt.sim.engine._execution import Execution
from toolrt.sim.policies._choices import Choices
from toolrt.sim.policies._fifo import Fifo
from toolrt.sim.policies._pct import PCT
from toolrt.sim.policies._policy import Policy
from toolrt.sim.policies._pos import POS
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.policies._seeds import seeds_of, stream_of
from toolrt.sim.policies._urw import URW
from toolrt.sim.strategies._random import Random
from toolrt.sim.strategies._strategy import Search, Shared, check_executions, check_seed

# Whose turn it is among ten executions: four of URW, two of POS, one each of PCT at depths 1 to 3, one random walk.
_TURNS = (0, 2, 0, 1, 3, 0, 4, 1, 0, 5)

# The first two are no draw.
_FIXED = 2


@attrs.frozen
class Portfolio:
    """A sample of `n` executions by several policies in turn: `URW`, `POS`, `PCT` and `RandomWalk`.

    The first goes on with the same task whenever it can, the second is `Fifo`: the two schedules a person would
    try.

    Example:
        ``sim.Portfolio(500, seed=1)``
    """

    #: How many executions, 1 or more.
    n: int = attrs.field(default=1_000, validator=check_executions)
    #: An integer; each seed is another sample.
    seed: int = attrs.field(default=0, validator=check_seed)

    def begin(self) -> Search:
        """Begin the sample."""
        return _Turns(self.n, self.seed)


class _Turns(Shared):
    """The samplers in turn; a part has some of them, each with all its executions, because they measure as they go."""

    asks_nobody = True
    divisible = False

    def __init__(self, n: int, seed: int) -> None:
        self._n, self._seed = n, seed
        # A seed of its own for each, or two of them would draw alike.
        urw, pos, first, second, third, walk = seeds_of(seed, 6)
        made: list[tuple[Callable[..., Policy], tuple[int, ...]] | None] = [
            (URW, (urw,)),
            (POS, (pos,)),
            (PCT, (1, first)),
            (PCT, (2, second)),
            (PCT, (3, third)),
            (RandomWalk, (walk,)),
            None,
        ]
        self._strands = [_Strand(policy, number, n) for number, policy in enumerate(made)]
        self.index: int = -1
        # All strands are here and in order: nothing was lent yet.
        self._whole = True

    def policy(self) -> Policy | None:
        if self._whole:
            index = self.index + 1
            if index == self._n:
                return None
            strand = self._strands[-1 if index < _FIXED else _TURNS[(index - _FIXED) % len(_TURNS)]]
        else:
            strand = min(self._strands, key=_index)
            index = strand.index
            if index >= self._n:
                return None
        self.index, self.chance = index, stream_of(self._seed, index)
        return strand.policy()

    def learn(self, execution: Execution) -> None:
        """Nothing: each policy learns from its own executions."""

    def place(self, execution: Execution) -> tuple[int, ...]:
        return (self.index,)

    def lend(self, parts: int) -> list[Shared]:
        # Those that have most to do first, or the last to end would keep all others waiting.
        left = sorted((strand for strand in self._strands if strand.index < self._n), key=_Strand.left, reverse=True)
        self._strands, self._whole = left[parts:], False
        return [self._part(strand) for strand in left[:parts]]

    def _part(self, strand: _Strand) -> _Turns:
        part = copy.copy(self)
        part._strands = [strand]
        return part

    def take_back(self, part: Shared) -> None:
        assert isinstance(part, _Turns)
        self._strands += part._strands

    def expected(self, executions: int, lent: Sequence[Shared]) -> float | None:
        return float(self._n)

    def at_most(self, executions: int) -> None:
        self._n = min(self._n, executions)


class _Strand:
    """One sampler of the portfolio, and which executions are its.

    Args:
        made: what makes its policy, when its first turn comes, and the arguments; None: its two are no draw.
        number: its own, as in `_TURNS`.
        n: how many executions there are in all.
    """

    def __init__(self, made: tuple[Callable[..., Policy], tuple[int, ...]] | None, number: int, n: int) -> None:
        self._policy_made = made
        self._search: Search | None = None
        self._turns = [turn for turn, whose in enumerate(_TURNS) if whose == number]
        self._n = n
        # How many it has run.
        self._made = 0

    @property
    def index(self) -> int:
        """Its next execution's place among all."""
        if self._policy_made is None:
            # No others follow.
            return self._made if self._made < _FIXED else self._n
        rounds, turn = divmod(self._made, len(self._turns))
        return _FIXED + rounds * len(_TURNS) + self._turns[turn]

    def left(self) -> int:
        """About how many executions it has yet to run."""
        if self._policy_made is None:
            return _FIXED - self._made
        return (self._n - self.index) * len(self._turns) // len(_TURNS) + 1

    def policy(self) -> Policy | None:
        self._made += 1
        if self._policy_made is None:
            return Choices() if self._made == 1 else Fifo()
        if self._search is None:
            make, arguments = self._policy_made
            self._search = Random(make(*arguments), self._n).begin()
        return self._search.policy()


def _index(strand: _Strand) -> int:
    return strand.index
