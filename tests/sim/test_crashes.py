"""A crash as an actor: before which steps it comes, and what the next process finds."""

from __future__ import annotations

import pytest
import trio

from toolrt import sim, testing
from toolrt.errors import DefinitionRefused


async def saves() -> tuple[str, int]:
    """Saves two letters in two steps, and cleans up; says what the process before it left."""
    saved: list[str] = sim.durable("saved", list)
    counts: dict[str, int] = sim.durable("counts", dict)
    counts["starts"] = counts.get("starts", 0) + 1
    found = "".join(saved)
    try:
        saved.append("a")
        await trio.lowlevel.checkpoint()
        saved.append("b")
        await trio.lowlevel.checkpoint()
    finally:
        saved.clear()
    return found, counts["starts"]


@pytest.mark.parametrize("order", ["any", "trio"])
@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR()])
def test_a_crash_comes_before_every_step(strategy: sim.Strategy, order: str) -> None:
    """Each prefix of what the first process saved is found, and nothing of what it did while it unwound."""
    report = sim.explore(saves, strategy, crash_at="any", order=order)
    assert (report.verdict, report.complete) == (sim.PASS, True)
    assert set(report.outcomes) == {("", 1), ("a", 2), ("ab", 2)}
    assert "crash_at=any" in report.claim


def test_a_schedule_holds_its_crash() -> None:
    """A failure is replayed with its crash, and says how."""
    report = sim.explore(saves, sim.Exhaustive(), lambda one: one.value != ("ab", 2), crash_at="any")
    [failure] = report.failures
    assert sim.replay(saves, failure.schedule, crash_at="any").value == ("ab", 2)
    assert 'crash_at="any"' in failure.explain()


def test_how_a_dead_process_unwinds_is_no_choice() -> None:
    """Behind the crash each step of the first process is the only one that can come."""

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(trio.lowlevel.checkpoint)

    seen = []

    def alone(execution: sim.Execution) -> bool:
        steps = execution.schedule.steps
        crash = next(step.index for step in steps if step.task == "main.1")
        behind = [step for step in steps[crash + 1 :] if step.task.startswith("main.0")]
        seen.append(len(behind))
        return all(len(step.enabled) == 1 for step in behind)

    assert sim.explore(program, sim.Exhaustive(), alone, crash_at="any").verdict is sim.PASS
    assert max(seen) > 2


def test_a_crash_and_a_cancel_are_not_together() -> None:
    """At most one of the two comes in an execution, so both at once is refused; so is another moment."""
    with pytest.raises(DefinitionRefused, match="crash_at"):
        sim.explore(saves, crash_at="any", cancel_at="any")
    with pytest.raises(DefinitionRefused, match="crash_at"):
        sim.run(saves, crash_at="later")
    with pytest.raises(DefinitionRefused, match=r"sim\.durable"):
        sim.durable("x", None)  # type: ignore[arg-type]


def test_a_test_may_crash() -> None:
    """As under the marker of pytest; the estimate counts the crash among the branches."""
    found = set()

    @testing.explored(strategy="exhaustive", crash_at="any")
    async def test() -> None:
        found.add(await saves())

    test()
    assert found == {("", 1), ("a", 2), ("ab", 2)}
    assert sim.estimate(saves, crash_at="any").schedules > sim.estimate(saves).schedules
