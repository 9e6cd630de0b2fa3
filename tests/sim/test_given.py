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


async def wakes_too_early() -> str:
    items: list[str] = []
    ready: list[trio.Event] = []

    def event() -> trio.Event:
        ready.append(trio.Event())
        return ready[-1]

    async def get() -> str:
        if not items:
            await trio.lowlevel.checkpoint()
            wakes = event()
            await wakes.wait()
        return items.pop()

    async def put() -> None:
        items.append("tea")
        if ready:
            ready[0].set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(get)
        nursery.start_soon(put)
    return "got"


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)
def test_atomic_lines_that_end_before_a_wait_are_left_there(strategy: Any) -> None:
    """A task looks and registers in one step, and waits outside, as a person would write it."""
    assert sim.explore(wakes_too_early, strategy, track=[__name__]).verdict is sim.FAIL
    look = sim.atomic(*_region(wakes_too_early, "if not items", "wakes = event()"))
    tell = sim.atomic(*_region(wakes_too_early, "items.append", "ready[0].set"))
    assert sim.explore(wakes_too_early, strategy, track=[__name__], given=[look | tell]).verdict is sim.PASS


@pytest.mark.seldom
def test_regions_are_of_async_functions_and_of_what_runs_beside_others() -> None:
    """A function that awaits nothing cannot take a lock: its caller does; what is set up before is left out."""
    failure = sim.explore(wakes_too_early, sim.DPOR(), track=[__name__]).failures[0]
    told = str(failure.repairs()[0])
    assert " of get, not round the wait behind them and round line" in told
    assert " of event" not in told
    assert " of wakes_too_early" not in told


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


async def opposite() -> str:
    one, other = trio.Lock(), trio.Lock()

    async def forth() -> None:
        async with one, other:
            pass

    async def back() -> None:
        async with other:
            await trio.lowlevel.checkpoint()
            async with one:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(forth)
        nursery.start_soon(back)
    return "both" if not one.locked() and not other.locked() else "held"


async def takes_early() -> int:
    changed = trio.Condition()
    items: list[int] = []
    took: list[int] = []

    async def take() -> None:
        async with changed:
            if not items:
                await changed.wait()
            took.append(len(items))
            del items[:1]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        nursery.start_soon(take)
        for item in range(2):
            await trio.lowlevel.checkpoint()
            async with changed:
                items.append(item)
                changed.notify_all()
    return min(took)


def _orders() -> list[Any]:
    regions = [
        _region(opposite, "async with one, other", "pass"),
        _region(opposite, "async with other:", "async with one:"),
    ]
    return [sim.lock_order(*regions[0]) | sim.lock_order(*regions[1])]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)
@pytest.mark.parametrize(
    ("program", "given"),
    [
        (opposite, _orders()),
        (takes_early, [sim.again(takes_early, _line_of(takes_early, "if not items"))]),
    ],
    ids=["lock order", "again"],
)
def test_what_a_repair_of_locks_and_looks_assumes_mends_its_bug(program: Any, given: Any, strategy: Any) -> None:
    """Under every strategy; the locks are free afterwards, also where a look is taken twice."""
    right = {"both"} if program is opposite else {1, 2}
    assert sim.explore(program, strategy, lambda execution: execution.value in right).verdict is sim.FAIL
    report = sim.explore(program, strategy, lambda execution: execution.value in right, given=given)
    assert report.verdict is sim.PASS, report
    assert f"given {given[0]}" in report.claim
    assert given[0].code.startswith(("sim.lock_order(opposite, ", "sim.again(takes_early, "))


async def cancelled_in_line() -> str:
    one, other = trio.Lock(), trio.Lock()

    async def both(first: trio.Lock, second: trio.Lock) -> None:
        with trio.move_on_after(1):
            async with first, second:
                await trio.sleep(2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(both, one, other)
        nursery.start_soon(both, other, one)
    return "free" if not one.locked() and not other.locked() else "held"


async def round_the_table() -> str:
    forks = [trio.Lock() for _ in range(3)]
    said: list[str] = []

    async def eat(left: int, right: int) -> None:
        async with forks[left], forks[right]:
            said.append(f"{left}{forks[left].statistics().tasks_waiting}{forks[right].statistics().tasks_waiting}")

    async with trio.open_nursery() as nursery:
        for left in range(3):
            nursery.start_soon(eat, left, (left + 1) % 3)
    return " ".join(said)


def test_task_that_is_cancelled_among_ordered_locks_holds_none() -> None:
    """What it took before the cancel is given back, in every schedule."""
    line = _line_of(cancelled_in_line, "async with first")
    for strategy in STRATEGIES:
        report = sim.explore(cancelled_in_line, strategy, given=[sim.lock_order(cancelled_in_line, line, line + 1)])
        assert report.verdict is sim.PASS
        assert set(map(str, report.outcomes)) == {"free"}


def test_lines_that_wait_for_who_is_held_back_are_a_deadlock() -> None:
    """Such a lock would hang, and the repair says so."""
    wait, tell = (_line_of(hands_over, text) for text in ("ready.wait", "ready.set"))
    given = [sim.atomic(hands_over, wait, wait), sim.atomic(hands_over, tell, tell)]
    report = sim.explore(hands_over, sim.DPOR(), given=given)
    assert report.verdict is sim.FAIL
    assert isinstance(report.failures[0].error, Deadlock)


async def goes_round() -> None:
    while True:
        if trio.current_time() >= 0:
            await trio.lowlevel.checkpoint()
            break


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


@pytest.mark.parametrize("program", [opposite, cancelled_in_line, round_the_table])
def test_dpor_and_exhaustive_agree_on_ordered_locks(program: Callable[[], Any]) -> None:
    """Which lock comes first is decided by the first task that names it, and that is an access."""
    begins, ends = (
        ("async with first", "sleep") if program is cancelled_in_line else ("async with forks", "said.append")
    )
    given = _orders() if program is opposite else [sim.lock_order(*_region(program, begins, ends))]
    every, reduced = (sim.explore(program, strategy, given=given) for strategy in STRATEGIES[:2])
    assert set(map(str, every.outcomes)) == set(map(str, reduced.outcomes))
    assert (every.verdict, every.complete) == (reduced.verdict, reduced.complete) == (sim.PASS, True)
    assert reduced.executions < every.executions


@pytest.mark.seldom
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
        ([sim.lock_order(add, *_region(add, "before =", "cell.set")[1:])], "takes two locks by name"),
        ([sim.again(add, _line_of(add, "before ="))], "an `if` with a wait inside"),
        ([sim.again(goes_round, _line_of(goes_round, "if "))], "without break"),
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
