"""A report that is INCONCLUSIVE names the one reason, with its remedy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim


async def polls_the_clock() -> None:
    """Wait for a time that no deadline brings."""
    while trio.current_time() < 5:
        await checkpoint()


async def keeps_the_clock_from_a_deadline() -> None:
    """Go on, and write, while a deadline is pending."""
    rounds = sim.Cell(0, name="rounds")
    with trio.move_on_after(5):
        while True:
            rounds.set(rounds.get() + 1)
            await checkpoint()


async def swallows_a_refusal() -> str:
    """Go on although a step was refused."""
    try:
        await trio.lowlevel.wait_readable(0)
    except Exception:
        return "swallowed"
    return "read"


class _Unsure:
    undecided = True

    def __str__(self) -> str:
        return "7 states were looked at"


_CASES: dict[str, tuple[Callable[[], Awaitable[Any]], Callable[[sim.Execution], Any], str]] = {
    "clock": (polls_the_clock, lambda execution: None, "let the loop sleep"),
    "deadline": (keeps_the_clock_from_a_deadline, lambda execution: None, "let them sleep"),
    "refusal": (swallows_a_refusal, lambda execution: True, 'sim.leave_real("files")'),
    "check": (checkpoint, lambda execution: _Unsure(), "7 states were looked at"),
}
_OTHERS = {name: remedy for name, (_, _, remedy) in _CASES.items()}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", _CASES)
def test_undecided_execution_has_one_reason(name: str, jobs: int) -> None:
    """The report has the reason that holds, and none of the others."""
    program, check, remedy = _CASES[name]
    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 2), check, jobs=jobs, step_limit=200)
    assert report.verdict is sim.INCONCLUSIVE
    assert list(report.reasons.values()) == [2]
    assert [other for other, words in _OTHERS.items() if words in str(report)] == [name]
    assert remedy in next(iter(report.reasons))
