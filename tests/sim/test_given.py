"""Programs under a constraint on schedules: what they would do with a lock, an event or a shield, as they stand."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import sim
from toolrt.errors import Deadlock, DefinitionRefused

STRATEGIES = [sim.Exhaustive(), sim.DPOR(), sim.Random(sim.RandomWalk(seed=1), 100), sim.Bounded(preemptions=2)]


def _line_of(function: Any, text: str) -> int:
    """The number of the first line of a function that has `text`."""
    lines, first = inspect.getsourcelines(function)
    return first + next(index for index, line in enumerate(lines) if text in line)


def _region(function: Any, first: str, last: str) -> tuple[Any, int, int]:
    return function, _line_of(function, first), _line_of(function, last)


async def add(cell: sim.Cell[int]) -> None:
    before = cell.get()
    await trio.lowlevel.checkpoint()
    cell.set(before + 1)


async def counter() -> int:
    cell = sim.Cell(0, name="counter")
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(add, cell)
    return cell.get()


async def nested_counter() -> int:
    found = {"counter": 0}

    async def adds() -> None:
        before = found["counter"]
        await trio.lowlevel.checkpoint()
        found["counter"] = before + 1

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(adds)
    return found["counter"]


def is_two(execution: sim.Execution) -> bool:
    return bool(execution.value == 2)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)
def test_atomic_lines_mend_a_lost_update(strategy: Any) -> None:
    """Under every strategy; the claim says what was assumed."""
    assert sim.explore(counter, strategy, is_two).verdict is sim.FAIL
    given = [sim.atomic(*_region(add, "before =", "cell.set"))]
    report = sim.explore(counter, strategy, is_two, given=given)
    assert report.verdict is sim.PASS
    assert f"given {given[0]}" in report.claim
    assert sim.explore(counter, strategy, is_two).verdict is sim.FAIL


def test_lines_that_leave_the_look_out_mend_nothing() -> None:
    """What was read before is as old as it was; the failure is told with the constraint that it is replayed under."""
    given = [sim.atomic(*_region(add, "await", "cell.set"))]
    report = sim.explore(counter, sim.DPOR(), is_two, given=given)
    assert report.verdict is sim.FAIL
    failure = report.failures[0]
    assert f"given=[{given[0].code}]" in failure.explain()
    assert sim.replay(counter, failure.schedule, given=given).value == failure.execution.value == 1


@pytest.mark.parametrize("place", [nested_counter, __file__], ids=["function", "path"])
def test_lines_of_an_inner_function_are_meant_by_what_is_around_it(place: Any) -> None:
    """By its function, or by its file; also where plain objects are tracked."""
    _, first, last = _region(nested_counter, "before =", 'found["counter"] = before')
    report = sim.explore(nested_counter, sim.DPOR(), is_two, track=[__name__], given=[sim.atomic(place, first, last)])
    assert report.verdict is sim.PASS
    assert sim.explore(nested_counter, sim.DPOR(), is_two, track=[__name__]).verdict is sim.FAIL


def test_program_is_as_it_was_afterwards() -> None:
    """Its functions and the builtins, also when a check raises."""
    code, names = add.__code__, set(vars(builtins))

    def breaks(execution: sim.Execution) -> bool:
        assert add.__code__ is not code
        raise RuntimeError("of the check")

    with pytest.raises(RuntimeError, match="of the check"):
        sim.explore(counter, sim.DPOR(), breaks, given=[sim.atomic(*_region(add, "before =", "cell.set"))])
    assert add.__code__ is code
    assert set(vars(builtins)) == names


async def reads_early() -> list[str]:
    said: list[str] = []
    note = sim.Cell("", name="note")

    async def writes() -> None:
        await trio.lowlevel.checkpoint()
        note.set("written")

    async def reads() -> None:
        said.append(note.get())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(writes)
        nursery.start_soon(reads)
    return said


def test_second_place_waits_for_the_first() -> None:
    """As if it waited for an event that is set behind the first one."""
    first = sim.line(reads_early, _line_of(reads_early, "note.set"))
    second = sim.line(reads_early, _line_of(reads_early, "said.append"))
    free = sim.explore(reads_early, sim.DPOR())
    held = sim.explore(reads_early, sim.DPOR(), given=[sim.before(first, second)])
    assert set(map(str, free.outcomes)) == {"['']", "['written']"}
    assert set(map(str, held.outcomes)) == {"['written']"}
    other = sim.explore(reads_early, sim.DPOR(), given=[sim.before(second, first)])
    assert set(map(str, other.outcomes)) == {"['']"}


async def cleans_up() -> str:
    state = "open"
    with trio.move_on_after(1):
        try:
            await trio.sleep(5)
        finally:
            await trio.lowlevel.checkpoint()
            state = "closed"
    return state


def test_shielded_lines_are_not_cancelled() -> None:
    """A cleanup that awaits goes on to its end."""
    assert sim.run(cleans_up).value == "open"
    given = [sim.shielded(*_region(cleans_up, "checkpoint", 'state = "closed"'))]
    assert sim.run(cleans_up, given=given).value == "closed"


async def hands_over() -> None:
    ready = trio.Event()

    async def waits() -> None:
        await ready.wait()

    async def tells() -> None:
        ready.set()
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits)
        nursery.start_soon(tells)


def test_lines_that_wait_for_who_is_held_back_are_a_deadlock() -> None:
    """Such a lock would hang, and the repair says so."""
    wait, tell = (_line_of(hands_over, text) for text in ("ready.wait", "ready.set"))
    given = [sim.atomic(hands_over, wait, wait), sim.atomic(hands_over, tell, tell)]
    report = sim.explore(hands_over, sim.DPOR(), given=given)
    assert report.verdict is sim.FAIL
    assert isinstance(report.failures[0].error, Deadlock)


async def goes_down(cell: sim.Cell[int], depth: int) -> None:
    if depth:
        await goes_down(cell, depth - 1)
    before = cell.get()
    await trio.lowlevel.checkpoint()
    cell.set(before + 1)


def test_task_that_is_inside_may_enter_again() -> None:
    """A function that calls itself in its atomic lines waits for no other task."""

    async def program() -> int:
        cell = sim.Cell(0, name="cell")
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(goes_down, cell, 1)
        return cell.get()

    given = [sim.atomic(*_region(goes_down, "if depth", "cell.set"))]
    report = sim.explore(program, sim.DPOR(), lambda execution: execution.value == 4, given=given)
    assert report.verdict is sim.PASS, report


@pytest.mark.parametrize("program", [counter, reads_early, hands_over])
def test_dpor_and_exhaustive_agree_in_such_a_world(program: Callable[[], Any]) -> None:
    """Every region of two lines: the same outcomes and the same verdict."""
    where: Any = add if program is counter else program
    lines, first = inspect.getsourcelines(where)
    tried = 0
    for start in range(first + 1, first + len(lines)):
        for end in (start, start + 1):
            try:
                given = [sim.atomic(where, start, end)]
                every = sim.explore(program, sim.Exhaustive(), given=given)
            except DefinitionRefused:
                continue
            reduced = sim.explore(program, sim.DPOR(), given=given)
            assert set(map(str, every.outcomes)) == set(map(str, reduced.outcomes)), given
            assert (every.verdict, every.complete) == (reduced.verdict, reduced.complete)
            tried += 1
    assert tried > 4


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sim.atomic(add, 1, 1), "has lines"),
        (lambda: sim.atomic(*reversed(_region(add, "cell.set", "before =")[1:]), 1), "a function or the path"),
        (lambda: sim.atomic(add, _line_of(add, "cell.set"), _line_of(add, "before =")), "not before line"),
        (lambda: sim.before(sim.line(add, _line_of(add, "await")), 3), "sim.line"),
        (lambda: sim.line(add, 0), "1 or more"),
    ],
)
def test_places_that_are_none_are_refused(make: Callable[[], Any], says: str) -> None:
    """With what was expected."""
    with pytest.raises(DefinitionRefused, match=says):
        make()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("atomic", "a list of constraints"),
        ([3], "a list of constraints"),
        ([sim.atomic("no/such/file.py", 1, 2)], "source is at hand"),
        ([sim.atomic(__file__, 1, 1)], "inside of one function"),
    ],
)
def test_constraints_that_are_none_are_refused(given: Any, says: str) -> None:
    """Before anything is run."""
    with pytest.raises(DefinitionRefused, match=says):
        sim.explore(counter, sim.DPOR(), given=given)


def test_lines_of_another_program_are_refused(tmp_path: Path) -> None:
    """Where no function that the program leads to has them, nothing would be held back."""
    (tmp_path / "other.py").write_text("async def f():\n    pass\n", encoding="utf-8")
    with pytest.raises(DefinitionRefused, match="that the program leads to"):
        sim.explore(counter, sim.DPOR(), given=[sim.atomic(str(tmp_path / "other.py"), 2, 2)])


def test_several_jobs_are_refused() -> None:
    """The constraints stand in the code of this process."""
    with pytest.raises(DefinitionRefused, match="jobs with given"):
        sim.explore(counter, sim.DPOR(), jobs=2, given=[sim.atomic(*_region(add, "before =", "cell.set"))])
