"""Executions keep records where a check reads them; else the program runs again for one that is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from trio.lowlevel import checkpoint

from toolrt import probe, sim
from toolrt.teaching.litmus import LITMUS

# Whether each execution so far has reported what its steps touch.
_reported: list[bool] = []


async def counted() -> int:
    """Two tasks race, and one notes whether steps report."""
    _reported.append(probe.sink is not None)
    return int(await LITMUS["lost_update_2x1"].program())


def _report(reads_from: int | None, strategy: sim.Strategy) -> sim.Report:
    """Explore with a check that reads the executions of this number and above; None: it reads none."""
    _reported.clear()

    def check(execution: sim.Execution) -> bool:
        if reads_from is not None and execution.index >= reads_from:
            assert execution.trace.steps
        return execution.outcome is not None

    return sim.explore(counted, strategy, check)


_WALK = sim.Random(sim.RandomWalk(seed=1), 12)


def test_executions_keep_no_record_that_is_not_read() -> None:
    """But the first, and its second run at the end."""
    _report(None, _WALK)
    assert [_reported[0], _reported[-1]] == [True, True]
    assert not any(_reported[1:-1])


def test_executions_keep_records_that_are_read() -> None:
    """From the first on: the program does not run again for them."""
    without = len(_reported) if _report(None, _WALK) else 0
    _report(0, _WALK)
    assert all(_reported)
    assert len(_reported) == without


def test_program_runs_again_for_a_record_once() -> None:
    """The check reads it after others that it did not read; all that follow keep their own."""
    without = len(_reported) if _report(None, _WALK) else 0
    _report(5, _WALK)
    assert len(_reported) == without + 1
    assert all(_reported[-5:])


def _told(report: sim.Report) -> Any:
    failures = [(each.schedule.to_json(), each.trace.to_json(), each.violations) for each in report.failures]
    return str(report), report.outcomes, report.distinct, failures


@pytest.mark.parametrize("name", ["dining_3", "cleanup", "work_queue", "sleep_tie", "merge_mutant"])
@pytest.mark.parametrize("strategy", [sim.Portfolio(20), sim.Bounded(1)])
def test_reports_and_failures_are_the_same(name: str, strategy: sim.Strategy) -> None:
    """Whether the check reads every record, none, or those of failures alone."""
    one = LITMUS[name]

    def check(execution: sim.Execution, when: str) -> bool:
        fails = execution.error is not None or (len(execution.choices) + execution.index) % 3 == 0
        if when == "always" or (when == "failures" and fails):
            assert len(execution.trace.steps) == len(execution.choices)
        return not fails

    told = [
        _told(sim.explore(one.program, strategy, lambda execution, when=when: check(execution, when), 40))
        for when in ("always", "failures", "never")
    ]
    assert told[0] == told[1] == told[2]


def test_kept_executions_have_their_records_at_once() -> None:
    """What the program is later changes nothing of them."""
    checkpoints, kept = 2, []

    async def program() -> None:
        probe.event("begun", of=checkpoints)
        for _ in range(checkpoints):
            await checkpoint()

    def check(execution: sim.Execution) -> bool:
        if execution.index == 3:
            kept.append(execution)
        return True

    sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 6), check)
    checkpoints = 5
    assert len(kept[0].trace.steps) == 3
    assert [event.fields["of"] for event in kept[0].trace.of_kind("begun")] == [2]


def test_record_of_another_run_is_not_shown() -> None:
    """Where the program does something else the second time, the check has nothing to judge."""
    runs = 0

    async def program() -> None:
        nonlocal runs
        runs += 1
        # The fourth is run again for its record.
        for _ in range(1 + (runs == 7)):
            await checkpoint()

    def check(execution: sim.Execution) -> bool:
        return execution.index != 3 or len(execution.trace.steps) == 2

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 4), check)
    assert report.verdict is sim.INCONCLUSIVE
    assert report.undecided == 1
    assert "the simulator does not control" in str(report)
