"""What the reduction takes for one trace is held against samples of it."""

from __future__ import annotations

from types import ModuleType

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim


def _fine(execution: sim.Execution) -> bool:
    return True


def _hidden(reports_too: bool = True, tasks: int = 2):
    """Tasks that update a plain dict, in steps that report something else."""

    async def program() -> int:
        shared = {"n": 0}

        async def add(number: int) -> None:
            own = sim.Cell(0, name=f"own {number}")
            seen = shared["n"]
            if reports_too:
                own.set(1)
            await checkpoint()
            shared["n"] = seen + 1
            if reports_too:
                own.set(2)

        async with trio.open_nursery() as nursery:
            for number in range(tasks):
                nursery.start_soon(add, number)
        return shared["n"]

    return program


@pytest.mark.parametrize("tasks", [2, 3, 4])
@pytest.mark.parametrize("jobs", [1, 2])
def test_reduction_that_hides_a_race_is_no_pass(tasks: int, jobs: int) -> None:
    """A step that touches more than it reports makes it INCONCLUSIVE by default, and two steps are named."""
    report = sim.explore(_hidden(tasks=tasks), sim.DPOR(), _fine, jobs=jobs)
    assert (report.verdict, report.complete) == (sim.INCONCLUSIVE, False)
    assert "main.0" in str(report.unfinished)
    assert "writes cell own" in str(report.unfinished)
    assert "touches what it does not report" in str(report)


def test_rare_race_is_seen_with_few_samples() -> None:
    """Two steps among many whose order matters: one sample in which they are not ordered is enough."""

    async def program() -> str:
        order: list[str] = []

        async def work(name: str) -> None:
            cell = sim.Cell(0, name=name)
            for number in range(12):
                cell.set(number)
                if number == 6 and name in "ae":
                    order.append(name)
                await checkpoint()
            cell.set(-1)

        async with trio.open_nursery() as nursery:
            for name in "abcde":
                nursery.start_soon(work, name)
        return "".join(order)

    report = sim.explore(program, sim.DPOR(samples=2), _fine)
    assert report.verdict is sim.INCONCLUSIVE
    assert "writes cell a" in str(report.unfinished)
    assert "writes cell e" in str(report.unfinished)


def test_sample_that_fails_is_a_failure() -> None:
    """Some search found a schedule that breaks the check."""
    report = sim.explore(_hidden(), sim.DPOR(), lambda execution: execution.value == 2)
    assert report.verdict is sim.FAIL
    assert report.failures[0].reproduced


def test_samples_are_no_traces(programs: ModuleType) -> None:
    """A reduction that holds is told as before: 762 executions for three tasks in two rounds."""
    program, _ = programs.lost_update(3, 2)
    report = sim.explore(program, sim.DPOR(), _fine)
    assert (report.verdict, report.claim, report.executions) == (sim.PASS, "exhaustive(traces=762)", 762)
    assert sum(report.outcomes.values()) == 762


def test_steps_that_report_nothing_are_no_contradiction() -> None:
    """They conflict with all others, so nothing is hidden."""
    report = sim.explore(_hidden(reports_too=False), sim.DPOR(), _fine)
    assert report.verdict is sim.PASS
    assert set(report.outcomes) == {1, 2}


def test_no_samples_when_none_are_wanted() -> None:
    """The caller may do without, and gets what was always given."""
    assert sim.explore(_hidden(), sim.DPOR(samples=0), _fine).claim == "exhaustive(traces=1)"


def test_choices_within_steps_are_kept() -> None:
    """A sample whose steps choose values is put into another order as a whole."""

    async def program() -> tuple[int, ...]:
        cells = [sim.Cell(0, name=name) for name in "ab"]

        async def draw(cell: sim.Cell[int]) -> None:
            cell.set(sim.choose(2))
            await checkpoint()
            cell.set(cell.get() + 2 * sim.choose(2))

        async with trio.open_nursery() as nursery:
            for cell in cells:
                nursery.start_soon(draw, cell)
        return tuple(cell.get() for cell in cells)

    report = sim.explore(program, sim.DPOR(), _fine)
    assert (report.verdict, len(report.outcomes)) == (sim.PASS, 16)
