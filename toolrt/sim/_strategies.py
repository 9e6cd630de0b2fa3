"""Strategies: each picks the next execution of an exploration.

Rules.  `policies` gives the policy of each execution, one after the other.  `claim` says in words and figures
what was shown, and never more than that; `complete` is True only when the whole space of the claim was run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim.policies._policy import Policy

__all__ = ["Random", "Strategy"]


class Strategy(Protocol):
    """Picks the next execution; see the module's header for the contract."""

    def policies(self) -> Iterator[Policy]:
        """Give the policy of each execution, in order."""

    def claim(self, executions: int, distinct: int) -> str:
        """Say what `executions` executions, of which `distinct` had different schedules, have shown."""

    def complete(self, executions: int) -> bool:
        """Say whether the whole space of the claim was run."""


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

    def policies(self) -> Iterator[Policy]:
        """Give the policy of each execution, in order."""
        derive = getattr(self.policy, "derive", None)
        for index in range(self.n):
            yield self.policy if derive is None else derive(index)

    def claim(self, executions: int, distinct: int) -> str:
        """Say how many executions were sampled."""
        return f"sampled(n={executions}, distinct={distinct})"

    def complete(self, executions: int) -> bool:
        """Never: a sample is not the space it was taken from."""
        return False
