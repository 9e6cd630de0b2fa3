"""The reduction in another order than depth-first: several parts of its tree in turn.

Rules.  The search lends parts to itself, as it would to workers, and runs one execution of each in turn.  So the
branches at the first places are begun early, and a search that its budget ends has been everywhere a little.  Each part
sleeps on what was begun before it, so a trace is still run once: when all are run, there are as many executions as
traces.

Limits.  No part plans ahead (`_search`, in parts), so there are more executions that turn out to repeat a trace; they
are ended there and not counted.
"""

from __future__ import annotations

from typing import Any

from toolrt.sim.engine._execution import Execution
from toolrt.sim.policies._policy import Policy
from toolrt.sim.strategies.dpor._continuation import RandomContinuation
from toolrt.sim.strategies.dpor._search import DPORSearch

# So many parts take turns.
_PARTS = 32


class SpreadSearch(DPORSearch):
    """One exploration by `DPOR(branches="random")`.

    Args:
        declared: as `DPORSearch` takes it; so is `samples`.
        seed: draws what executions do where nothing is planned.
    """

    def __init__(self, declared: bool, samples: int | None, seed: int) -> None:
        super().__init__(declared, samples, RandomContinuation(seed))
        # True once this search divides itself; not where workers share it.
        self._takes_turns = False
        # The parts, those that have yet to run an execution in this round, and the one that was asked last.
        self._parts: list[DPORSearch] = []
        self._round: list[DPORSearch] = []
        self._turn: DPORSearch | None = None

    def policy(self) -> Policy | None:
        """Give the policy of the next execution, or None when there is none."""
        if self._is_part or not self.divisible or (self._is_divided and not self._takes_turns):
            # A part, or what is run as if by itself, or workers share the search.
            return super().policy()
        if not self._is_divided:
            super().divide()
            self._takes_turns = True
        if self._turn is not None and self._turn.is_pending:
            # It raised `Redundant`, and still has its turn.
            policy = self._turn.policy()
            if policy is not None:
                return policy
        while True:
            if not self._round:
                self._gather()
                self._parts = [part for part in self.lend(_PARTS) if isinstance(part, DPORSearch)]
                self._round = list(self._parts)
                if not self._parts:
                    return None
            self._turn = self._round.pop()
            policy = self._turn.policy()
            if policy is not None:
                return policy

    def learn(self, execution: Execution) -> None:
        """Take in the execution of the policy given last."""
        if self._turn is None:
            super().learn(execution)
        else:
            self._turn.learn(execution)

    def claim(self, executions: int, distinct: int) -> str:
        """Say how many traces were run, and what the claim rests on."""
        self._gather()
        return super().claim(executions, distinct)

    def unfinished(self) -> str | None:
        """Say why not every trace was run; None: every known one was."""
        self._gather()
        return super().unfinished()

    def _gather(self) -> None:
        """Take back what is left of the parts, the oldest last: it is lent first."""
        parts, self._parts, self._round, self._turn = self._parts, [], [], None
        for part in parts:
            self.take_back(part)
        self._back.reverse()

    def _part(self, tree: Any, above: tuple[int, ...]) -> DPORSearch:
        part = super()._part(tree, above)
        if isinstance(part, SpreadSearch):
            part._parts, part._round, part._turn = [], [], None
        return part
