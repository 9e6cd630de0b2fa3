"""Looks for an execution that fails the same way with fewer preemptions than a shrunk one.

Shrinking finds a local minimum (`toolrt.sim.strategies._simplify`).  So all schedules with fewer preemptions than it
has are run after that, as far as they are few: those with none first.  The first that fails has the fewest there are.

Limits.  With a bounded number of executions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from toolrt.sim.engine._execution import Execution
from toolrt.sim.exploring._judge import Judgement
from toolrt.sim.policies._policy import Policy
from toolrt.sim.strategies._tree import Bounded

# How many executions may go into a search for fewer preemptions, and how many steps those may have altogether.
_MAX_EXECUTIONS = 250
_MAX_STEPS = 50_000


def fewer_preemptions(
    best: Execution,
    run: Callable[[Policy], Generator[Any, Execution, tuple[Execution, Judgement]]],
    same: Callable[[Execution, Judgement], bool],
) -> Generator[Any, Execution, tuple[Execution | None, bool]]:
    """Look for an execution that fails as `best` does with fewer preemptions.

    Args:
        best: what has been found so far.
        run: runs a policy and judges the execution.
        same: says whether that is the failure that is looked for.

    Returns:
        The execution, or None; and whether it is certain that none has fewer than it (or than `best`) has.
    """
    if not best.schedule.switches:
        return None, True
    search = Bounded(best.schedule.switches - 1).begin()
    steps_left = _MAX_STEPS
    for _ in range(_MAX_EXECUTIONS):
        policy = search.policy()
        if policy is None:
            return None, search.complete()
        execution, judgement = yield from run(policy)
        if same(execution, judgement):
            return execution, True
        search.learn(execution)
        steps_left -= len(execution.choices)
        if steps_left < 0:
            break
    return None, False
