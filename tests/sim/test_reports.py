"""What is reported while nobody is shown an execution, and what is left when one follows another at once."""

from __future__ import annotations

import gc
import weakref

import trio
from trio.lowlevel import checkpoint

from toolrt import probe, sim
from toolrt.sim._trio_internals import _reports
from toolrt.trace import Access


async def _race(cell: sim.Cell[int]) -> None:
    async def add() -> None:
        seen = cell.get()
        await checkpoint()
        cell.set(seen + 1)

    cell.set(0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    assert cell.get() == 2


def test_sample_that_nobody_looks_at_reports_nothing_but_its_first() -> None:
    """The first execution and its second run report accesses, those between them, run twice or not, do not."""
    seen: list[bool] = []

    async def program() -> None:
        seen.append(probe.sink is not None)
        await checkpoint()

    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 30))
    assert report.verdict is sim.PASS
    # Those of number 1, 2, 4, 8 and 16 are run twice.
    assert seen == [True, *[False] * (29 + 5), True]


def test_everything_is_reported_to_checks_and_policies_that_read_it() -> None:
    """One check reads traces, and POS and DPOR read what steps touch."""
    seen: list[bool] = []

    async def program() -> None:
        seen.append(probe.sink is not None)
        await checkpoint()

    sim.explore(program, sim.Random(sim.RandomWalk(0), 5), lambda execution: bool(execution.trace.steps))
    sim.explore(program, sim.Random(sim.POS(0), 5))
    sim.explore(program, sim.DPOR(samples=0))
    assert all(seen)


def test_failure_of_a_sample_says_what_its_steps_touched() -> None:
    """Each failure that is kept has the accesses that its replay has, whether they were reported when it was found."""
    cell = sim.Cell(0, name="x")

    async def program() -> None:
        await _race(cell)

    report = sim.explore(program, sim.Random(sim.RandomWalk(0), 30))
    assert report.verdict is sim.FAIL
    assert 1 < len(report.failures) == report.failed
    for failure in report.failures:
        touched = [access for step in failure.schedule.steps for access in step.accesses]
        assert Access(("cell", "x"), True) in touched
        assert failure.schedule == sim.replay(program, failure.schedule).schedule


def test_trio_is_itself_again_after_executions_that_reported_nothing() -> None:
    """What reports is taken out when nobody wants to know, put in again for who does, and gone in the end."""
    real = trio.Event.set
    replaced: list[bool] = []

    async def program() -> None:
        replaced.append(trio.Event.set is not real)
        await checkpoint()

    sim.explore(program, sim.Random(sim.RandomWalk(0), 60))
    assert replaced[0]
    assert not replaced[-2]
    assert replaced[-1]
    assert trio.Event.set is real


def test_execution_leaves_nothing_for_the_garbage_collector() -> None:
    """What an execution was made of is gone when the next one begins, though no garbage was collected."""
    tasks: list[weakref.ref[trio.lowlevel.Task]] = []
    alive: list[int] = []

    async def program() -> None:
        alive.append(sum(task() is not None for task in tasks))
        tasks.append(weakref.ref(trio.lowlevel.current_task()))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(checkpoint)
            nursery.start_soon(checkpoint)

    collecting = gc.isenabled()
    gc.disable()
    try:
        sim.explore(program, sim.Random(sim.RandomWalk(0), 50))
    finally:
        if collecting:
            gc.enable()
    # The first is kept, to be held against another run of it, so is one that is run twice, and one may be on its way
    # out.
    assert max(alive) <= 3


def test_tasks_of_many_executions_are_named_alike() -> None:
    """Paths are shared by executions; a task's path says who spawned it, whatever ran before."""
    names: set[tuple[str, ...]] = set()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(checkpoint)

    def note(execution: sim.Execution) -> bool:
        names.add(tuple(sorted(set(execution.schedule.tasks))))
        return True

    sim.explore(program, sim.Random(sim.RandomWalk(0), 30), note)
    assert names == {("main", "main.0", "main.1", "main.2")}


def test_sample_that_nobody_looks_at_draws_what_one_with_a_check_draws() -> None:
    """Whether anybody is shown the executions changes neither the schedules nor what comes of them."""
    cell = sim.Cell(0, name="x")

    async def program() -> None:
        await _race(cell)

    alone = sim.explore(program, sim.Random(sim.RandomWalk(3), 200))
    shown = sim.explore(program, sim.Random(sim.RandomWalk(3), 200), lambda execution: None)
    assert (alone.claim, alone.outcomes, alone.failed) == (shown.claim, shown.outcomes, shown.failed)
    assert [failure.schedule for failure in alone.failures] == [failure.schedule for failure in shown.failures]


def test_task_that_never_had_a_turn_is_named_whether_anybody_looks_or_not() -> None:
    """A step limit that starved a task decides nothing, and says so, in executions that keep no lists of names."""

    async def program() -> None:
        async def poll() -> None:
            for _ in range(100):
                await checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            for _ in range(30):
                nursery.start_soon(checkpoint)

    walk = sim.Random(sim.RandomWalk(1), 20)
    alone = sim.explore(program, walk, step_limit=8)
    shown = sim.explore(program, walk, lambda execution: None, step_limit=8)
    assert alone.undecided == shown.undecided > 10


def test_verdict_equals_its_word() -> None:
    """A verdict is the word it is written with, and is told as that word."""
    report = sim.explore(checkpoint, sim.Exhaustive())
    assert report.verdict is sim.PASS
    assert report.verdict == "PASS"
    assert [str(verdict) for verdict in sim.Verdict] == ["PASS", "FAIL", "INCONCLUSIVE"]
    assert f"{report.verdict}: {report.claim}" == str(report).splitlines()[0]
    assert report.verdict not in ("FAIL", "pass")


def test_verdict_is_lower_case_in_json() -> None:
    """Its value, which is what JSON has, is the word in lower case, and names it."""
    assert [verdict.value for verdict in sim.Verdict] == ["pass", "fail", "inconclusive"]
    assert all(sim.Verdict(verdict.value) is verdict for verdict in sim.Verdict)


async def test_notebook_shows_the_report_and_the_story_of_its_first_failure() -> None:
    """As text that no name of a program can break; inside a Trio loop, where nothing can be run again, the schedule."""

    async def program() -> None:
        order: list[str] = []

        async def note(name: str) -> None:
            await checkpoint()
            order.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(note, "<b>")
            nursery.start_soon(note, "c")
        assert order == ["<b>", "c"], "<script>"

    def explored() -> str:
        return sim.explore(program, sim.Exhaustive())._repr_html_()

    shown = await trio.to_thread.run_sync(explored)
    assert shown.startswith("<pre>FAIL: exhaustive")
    assert "failures[0].explain() shows one.</pre><pre>" in shown
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    report = await trio.to_thread.run_sync(lambda: sim.explore(program, sim.Exhaustive()))
    assert report.failures[0].schedule.short in report._repr_html_()
    passing = await trio.to_thread.run_sync(lambda: sim.explore(checkpoint, sim.Exhaustive()))
    assert passing._repr_html_().count("<pre>") == 1


def test_a_check_that_simulates_leaves_the_reports_of_the_search_alone() -> None:
    """Each simulation has a reporter for itself, also one that begins while another is between two executions."""

    async def leaves_something() -> int:
        event = trio.Event()
        count = 0

        async def bump() -> None:
            nonlocal count
            await event.wait()
            count += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(bump)
            nursery.start_soon(bump)
            event.set()
        trio.lowlevel.spawn_system_task(trio.sleep_forever)
        return count

    def simulates(execution: sim.Execution) -> None:
        assert sim.run(leaves_something).value == 2

    alone = sim.explore(leaves_something, sim.DPOR(), max_executions=200)
    nested = sim.explore(leaves_something, sim.DPOR(), simulates, max_executions=200)
    assert (nested.verdict, nested.claim, nested.executions) == (alone.verdict, alone.claim, alone.executions)
    assert len(set(map(id, _reports._spare))) == len(_reports._spare)
