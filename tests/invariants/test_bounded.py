"""How few preemptions show that a broken runtime is broken."""

from __future__ import annotations

import pytest

from toolrt import invariants, sim
from toolrt.invariants.mixes._mix import judged
from toolrt.invariants.predicates._equality import trace_digest

MUTANTS = [pytest.param(mutant, id=name) for name, mutant in invariants.MUTANTS.items()]

#: Far more than any mutant of ours takes.
MOST = 5_000

STEP_LIMIT = 3_000


def preemptions_needed(mutant: invariants.Mutant) -> int | None:
    """The preemptions of the first schedule, fewest first, in which the mutant's law catches it alone."""
    law = invariants.LAWS[mutant.law]
    mutant.workload.oracle()
    search = sim.Bounded(preemptions=2).begin()
    with mutant.apply():
        for _ in range(MOST):
            policy = search.policy()
            if policy is None:
                return None
            execution = judged(mutant.workload, sim.run(mutant.workload.program(), policy, step_limit=STEP_LIMIT))
            search.learn(execution)
            again = sim.run(mutant.workload.program(), sim.Choices(execution.choices), step_limit=STEP_LIMIT)
            execution.trace.notes["replay_digest"] = trace_digest(again.trace)
            if law(execution.trace):
                return execution.schedule.switches
    return None


@pytest.mark.drawn(25)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_caught_with_at_most_two_preemptions(mutant: invariants.Mutant) -> None:
    """The schedules with the fewest come first, and one of them is enough."""
    needed = preemptions_needed(mutant)
    assert needed is not None
    assert needed <= 2
