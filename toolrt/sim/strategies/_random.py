"""A sample: every execution by a policy that draws its choices."""

from __future__ import annotations

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim.policies._fifo import Fifo
from toolrt.sim.policies._pct import PCT
from toolrt.sim.policies._policy import Policy
from toolrt.sim.policies._pos import POS
from toolrt.sim.policies._random_walk import RandomWalk
from toolrt.sim.policies._urw import URW
from toolrt.sim.strategies._strategy import Search

__all__ = ["Random"]

# Those whose `derive` is no code of the user's.
_OWN = (Fifo, RandomWalk, PCT, POS, URW)


@attrs.frozen
class Random:
    """A sample of `n` executions.

    Example:
        ``sim.Random(sim.RandomWalk(seed=1), 500)``
    """

    #: The policy; one with ``derive(index)`` gives each execution its own seed.
    policy: Policy = attrs.field()
    #: How many executions, 1 or more.
    n: int = attrs.field()

    @policy.validator
    def _check_policy(self, _: object, value: object) -> None:
        if isinstance(value, type) or not callable(getattr(value, "choose", None)):
            raise DefinitionRefused("Random(policy, n)", "a policy, such as RandomWalk(seed=1)", value)

    @n.validator
    def _check_n(self, _: object, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise DefinitionRefused("Random(policy, n)", "a number of executions, 1 or more", value)

    def begin(self) -> Search:
        """Begin the sample."""
        return _Sample(self.policy, self.n)


class _Sample(Search):
    def __init__(self, policy: Policy, n: int) -> None:
        fresh = getattr(policy, "sample", None)
        self._policy: Policy = policy if fresh is None else fresh()
        self._derive = getattr(self._policy, "derive", None)
        self._n = n
        self._given = 0
        self.asks_nobody = type(policy) in _OWN

    def policy(self) -> Policy | None:
        index = self._given
        if index == self._n:
            return None
        self._given += 1
        return self._policy if self._derive is None else self._derive(index)

    def claim(self, executions: int, distinct: int) -> str:
        bound = getattr(self._policy, "bound", "")
        return f"sampled(n={executions}, distinct={distinct}{', ' if bound else ''}{bound})"
