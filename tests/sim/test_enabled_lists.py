"""Enabled lists are made when a reader asks for them, where the policy picks by number alone."""

from __future__ import annotations

import pytest

from toolrt import sim
from toolrt.teaching.litmus import LITMUS


@pytest.mark.parametrize(
    "name", ["dining_3", "bounded_buffer_2p2c", "cleanup", "poll", "work_queue", "progress", "sleep_tie"]
)
@pytest.mark.parametrize("cancel_at", [None, "any"])
def test_lists_made_later_are_those_that_the_choices_had(name: str, cancel_at: str | None) -> None:
    """The same choices by a policy that is handed every list."""
    program = LITMUS[name].program
    walked: list[sim.Execution] = []
    sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 10), walked.append, cancel_at=cancel_at)
    for execution in walked:
        again = sim.run(program, sim.Choices(execution.choices), cancel_at=cancel_at)
        assert execution.enabled == again.enabled
        assert execution.schedule == again.schedule
