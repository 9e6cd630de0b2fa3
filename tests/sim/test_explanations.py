"""What a failure says of itself: fewest preemptions, the race, the nearest schedule that passes, how to repeat it."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.invariants import Violation, patched
from toolrt.teaching.litmus import LITMUS

_NAME = Path(__file__).name


async def lost_update(*names: str) -> int:
    """Two tasks add one each, and one of the two may get lost; they may have `names`."""
    cell = sim.Cell(0, name="x")

    async def add() -> None:
        seen = cell.get()
        await checkpoint()
        cell.set(seen + 1)

    async with trio.open_nursery() as nursery:
        for name in names or (None, None):
            nursery.start_soon(add, name=name)
    return cell.get()


def is_two(execution: sim.Execution) -> bool:
    """Nothing was lost."""
    return bool(execution.value == 2)


async def philosophers() -> None:
    """Three who each take the fork on the left first."""
    forks = [trio.Lock() for _ in range(3)]

    async def dine(seat: int) -> None:
        async with forks[seat]:
            await checkpoint()
            async with forks[(seat + 1) % 3]:
                pass

    async with trio.open_nursery() as nursery:
        for seat in range(3):
            nursery.start_soon(dine, seat)


def _explained(program: object, check: object = None, strategy: object = None, **more: object) -> str:
    report = sim.explore(program, strategy, check, **more)  # type: ignore[arg-type]
    assert report.verdict is sim.FAIL
    return report.failures[0].explain(verbose=True)


def _line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return 1 + next(number for number, line in enumerate(lines) if line.strip() == text)


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def _rows(text: str) -> list[list[str]]:
    """The steps of the table: what marks them, step, task, what they did, where."""
    lines = text.splitlines()
    begin = next(at for at, line in enumerate(lines) if line.split()[:1] == ["step"])
    end = next(at for at, line in enumerate(lines) if re.match(r"\(\d+ steps?, ", line))
    found = []
    for line in lines[begin + 1 : end]:
        number, *cells = re.split(r"  +", re.sub(r"^([ *>]*)(\d+)", r"\1\2", line).lstrip(" "))
        found.append([number, *cells])
    return found


@pytest.mark.seldom
def test_race_is_shown_with_its_lines() -> None:
    """The table has the lines of the two accesses that came the wrong way round."""
    seen, put = _line_of("seen = cell.get()"), _line_of("cell.set(seen + 1)")
    sentence = f"The race: add (main.1) read `x` ({_NAME}:{seen}) before add (main.0) wrote it ({_NAME}:{put})."
    assert f"{sentence} In the other order it passes." in _explained(lost_update, is_two)


@pytest.mark.seldom
def test_steps_have_values_and_lines_and_those_that_decide_are_marked() -> None:
    """Of a write both values stand there; a preemption is marked, and what the pattern names."""
    told = [row for row in _rows(_explained(lost_update, is_two)) if "cell" in row[-1]]
    seen, put = _line_of("seen = cell.get()"), _line_of("cell.set(seen + 1)")
    assert [row[-3] for row in told] == [
        "reads x = 0",
        "reads x = 0",
        "writes x 0 -> 1",
        "writes x 1 -> 1",
        "reads x = 1",
    ]
    assert [row[-2] for row in told[:4]] == [f"{_NAME}:{line}" for line in (seen, seen, put, put)]
    assert told[0][-1] == "seen = cell.get()"
    marks = "\n".join(" ".join(row[:2]) for row in told)
    assert re.fullmatch(r"\* 1 main\.0 add\n>2 main\.1 add\n\* 3 main\.1 add\n\* 4 main\.0 add\n5 main", marks), marks


@pytest.mark.seldom
def test_race_on_a_primitive_of_trio_has_the_lines_of_the_program() -> None:
    """Frames of Trio's and of the simulator's are passed over; a lock has the name that the program gave it."""
    text = _explained(philosophers)
    assert re.search(rf"The race: dine \(main.\d\) touched `Lock forks\[\d\]` \({_NAME}:\d+\) before dine ", text)


@pytest.mark.seldom
def test_accesses_in_the_same_order_in_both_are_no_race() -> None:
    """What is read when an event has said so comes later wherever it passes too: it decides nothing."""

    async def program() -> int:
        x, y, written = sim.Cell(0, name="x"), sim.Cell(0, name="y"), trio.Event()

        async def read() -> None:
            await written.wait()
            y.get()

        async def add(last: bool) -> None:
            seen = x.get()
            if last:
                y.set(1)
                written.set()
            await checkpoint()
            x.set(seen + 1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            nursery.start_soon(add, False)
            nursery.start_soon(add, True)
        return x.get()

    assert "read `x`" in next(line for line in _explained(program, is_two).splitlines() if line.startswith("The race:"))


def test_nearest_schedule_that_passes_is_beside_it() -> None:
    """The two orders are written with the part that differs in brackets; the second one passes."""
    lines = _explained(lost_update, is_two).splitlines()
    assert "fails   main main.0 [main.1*2 main.0] main" in lines
    passes = next(line for line in lines if line.startswith("passes"))
    schedule = passes.removeprefix("passes").replace("[", "").replace("]", "")
    assert sim.replay(lost_update, schedule).value == 2


@pytest.mark.seldom
def test_short_schedule_of_an_explanation_names_functions() -> None:
    """Told in full it has the schedule in one line with functions, which can be replayed."""
    text = _explained(lost_update, is_two)
    line = next(line for line in text.splitlines() if line.startswith("In short: "))
    assert line == "In short: main main.0 add main.1 add*2 main.0 main"
    assert sim.replay(lost_update, line.removeprefix("In short: ")).value == 1


def test_program_that_always_fails_has_no_passing_schedule() -> None:
    """Without a schedule that passes there is nothing to compare with."""

    async def program() -> None:
        await checkpoint()
        raise ValueError("always")

    text = _explained(program)
    assert "The race" not in text
    assert "passes" not in text


def test_race_of_plain_objects_is_found_when_it_is_explained() -> None:
    """An explanation runs its two schedules again with the program's modules tracked, and names the variable."""

    async def program() -> list[str]:
        order: list[str] = []

        async def arrive(name: str) -> None:
            await checkpoint()
            order.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(arrive, "a")
            nursery.start_soon(arrive, "b")
        return order

    text = _explained(program, lambda execution: execution.value == ["a", "b"])
    line = f"{_NAME}:{_line_of('order.append(name)')}"
    said = f"The race: arrive (main.1) wrote `order` ({line}) before arrive (main.0) wrote it ({line})."
    assert said in " ".join(text.split())
    assert "track" not in text


_HIDDEN = """
import trio

async def program():
    order = []

    async def arrive(name):
        await trio.lowlevel.checkpoint()
        order.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(arrive, "a")
        nursery.start_soon(arrive, "b")
    return order
"""


def test_race_that_no_access_shows_is_said_to_be_unknown() -> None:
    """Code that no module has cannot be tracked; the explanation says so and names what would show it."""
    space: dict[str, Any] = {"__name__": "a_module_that_is_not_there"}
    exec(_HIDDEN, space)
    text = _explained(space["program"], lambda execution: execution.value == ["a", "b"])
    told = " ".join(text.split())
    assert "No access that was reported decides it: what a step does to plain objects is seen where track=" in told


def test_step_of_which_nothing_is_seen_says_so() -> None:
    """That a step may have done anything is known when it is over: no line of the program did it."""
    space: dict[str, Any] = {"__name__": "a_module_that_is_not_there"}
    exec(_HIDDEN, space)
    text = _explained(space["program"], lambda execution: execution.value == ["a", "b"], track=__name__)
    assert "anything" not in text.partition("The race:")[0]
    assert any(row[2] == "does what is not seen" for row in _rows(text))


@pytest.mark.seldom
def test_cancel_is_shown_where_it_is_raised() -> None:
    """The step that begins with `trio.Cancelled` says so, and the line where its task stood."""

    async def program() -> None:
        free = sim.Cell(1, name="free")

        async def use() -> None:
            free.set(0)
            try:
                await checkpoint()
            finally:
                await checkpoint()  # of the finally
                free.set(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(use)
            for _ in range(3):
                await checkpoint()
            nursery.cancel_scope.cancel()
        assert free.get() == 1

    text = _explained(program)
    assert f"gets Cancelled at {_NAME}:{_line_of('await checkpoint()  # of the finally')}" in text


def test_step_that_touched_nothing_shows_where_it_ran() -> None:
    """A step without accesses has the line it went on from; the first step of a program, the line it has come to."""

    async def program() -> None:
        await checkpoint()
        assert not "wrong"

    line = _line_of('assert not "wrong"') - 1
    text = _explained(program)
    rows = _rows(text)
    assert [row[2:4] for row in rows[:1]] == [["runs", f"{_NAME}:{line}"]]
    assert rows[-1][2].startswith("raises AssertionError")


@pytest.mark.seldom
def test_deadlock_shows_who_waits_for_whom() -> None:
    """Each task points at those it waits for, and the circle is named."""
    text = _explained(philosophers)
    assert "    main -> main.0, main.1, main.2\n" in text
    assert re.search(r"^Deadlock: (dine \(main\.\d\) -> ){3}dine \(main\.\d\)$", text, re.MULTILINE)
    assert re.search(r"in a circle: (main\.\d -> ){3}main\.\d$", text, re.MULTILINE)


def test_deadlock_without_a_circle_says_so() -> None:
    """Children who wait for nobody are no circle."""

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.Event().wait)

    text = _explained(program)
    assert "    main -> main.0\n    no circle: a task waits for no other\n" in text


def test_minimal_schedule_has_the_fewest_preemptions() -> None:
    """Fewer preemptions come before fewer steps: the shortest way to fail needs one, a longer one none."""

    async def program() -> str:
        first, second = sim.Cell("", name="first"), sim.Cell("", name="second")

        async def hasty() -> None:
            await checkpoint()
            second.get()
            if first.get() == "once":
                raise ValueError("met in between")
            for _ in range(3):
                await checkpoint()
            if first.get() == "twice":
                raise ValueError("met at the end")

        async def writer() -> None:
            first.set("once")
            await checkpoint()
            first.set("twice")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hasty)
            nursery.start_soon(writer)
        return "ok"

    report = sim.explore(program, sim.Exhaustive())
    fewest = min(failure.schedule.switches for failure in report.failures)
    assert report.failures
    for failure in report.failures:
        assert failure.minimal.switches == fewest


@pytest.mark.seldom
def test_no_fewer_preemptions_is_said_only_where_all_were_run() -> None:
    """A search that ends early proves nothing."""
    assert "1 preemption >; with fewer it does not fail" in _explained(lost_update, is_two)

    async def wide() -> int:
        cell = sim.Cell(0, name="x")

        async def add() -> None:
            seen = cell.get()
            await checkpoint()
            cell.set(seen + 1)

        async with trio.open_nursery() as nursery:
            for _ in range(7):
                nursery.start_soon(add)
        return cell.get()

    assert "with fewer" not in _explained(wide, lambda execution: execution.value == 7)


def test_test_that_is_offered_fails_as_long_as_the_bug_is_there() -> None:
    """The snippet is Python, and it fails; for the repaired program it passes."""
    text = _explained(lost_update, is_two)
    snippet = text[text.index("    def test_lost_update_in_this_order") :]
    space = {"sim": sim, "lost_update": lost_update, "is_two": is_two}
    exec("if True:\n" + snippet, space)
    with pytest.raises(AssertionError, match="FAIL"):
        space["test_lost_update_in_this_order"]()  # type: ignore[operator]

    async def repaired() -> int:
        return 2

    space["lost_update"] = repaired
    space["test_lost_update_in_this_order"]()  # type: ignore[operator]


def test_lines_are_looked_at_only_when_explaining(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exploring and shrinking never look at the stack; explaining does, in one execution."""
    from toolrt.sim.engine import _source_lines

    made: list[_source_lines.SourceLines] = []

    class Counted(_source_lines.SourceLines):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr("toolrt.sim.exploring._report.SourceLines", Counted)
    failure = sim.explore(lost_update, check=is_two).failures[0]
    assert failure.minimal
    assert made == []
    assert failure.explain() == failure.explain()
    assert len(made) == 1
    assert made[0].of_accesses


def test_explanation_is_the_same_each_time() -> None:
    """Two explorations of one seed explain alike, byte for byte."""
    strategy = sim.Random(sim.RandomWalk(4), 40)
    assert _explained(lost_update, is_two, strategy) == _explained(lost_update, is_two, strategy)


def test_explanation_tells_a_law_in_its_own_sentence() -> None:
    """A violation of a law is a sentence with its place, not the fields of a record."""
    found = Violation("mine", "Nothing is lost.", "one addition is lost", "b", 1)
    text = _explained(lost_update, lambda execution: [] if execution.value == 2 else [found])
    assert "violation: law mine does not hold: Nothing is lost.\n  one addition is lost (batch b, call 1)" in text


def test_explanation_cuts_a_step_of_many_accesses() -> None:
    """A step that touches twenty variables is one column that still fits a terminal, and says how many are left out."""
    cells = [sim.Cell(0, name=f"variable{number:02}") for number in range(20)]

    async def touches_all() -> None:
        await checkpoint()
        for cell in cells:
            cell.get()

    text = _explained(touches_all, lambda execution: False)
    assert "reads variable00 = 0, reads variable01 = 0, " in text
    assert max(map(len, text.splitlines())) <= 160


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", ["lost_update_3x2", "dining_3", "lost_wakeup", "cleanup", "overdraw", "stolen_wakeup"])
def test_first_screen_has_twenty_lines_of_the_terminal_width(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with what runs it again: that line alone may be longer, for it is there to be pasted."""
    monkeypatch.setattr("toolrt.sim.exploring._explore.QUICK", float("inf"))  # on a slow machine too
    one = LITMUS[name]
    failure = sim.explore(one.program, None, one.check, **one.settings).failures[0]
    for columns in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = failure.explain()
        *lines, title, again = text.splitlines()
        assert len(lines) <= 18, text
        assert ("What would mend it:" in lines) is (name != "lost_wakeup")
        assert max(map(len, lines)) <= columns, text
        assert title == "Run it again:"
        assert again.startswith("    sim.replay(")


@pytest.mark.seldom
def test_long_schedule_shows_the_steps_that_the_failure_depends_on() -> None:
    """Those of the race with the steps that they depend on; the others are counted, with the tasks that took them."""

    async def program() -> int:
        cell, noise = sim.Cell(0, name="x"), sim.Cell(0, name="noise")

        async def busy() -> None:
            for _ in range(400):
                await checkpoint()
                noise.set(noise.get() + 1)

        async def add() -> None:
            seen = cell.get()
            await checkpoint()
            cell.set(seen + 1)

        async with trio.open_nursery() as nursery:
            for task in (busy, add, add):
                nursery.start_soon(task)
        return cell.get()

    failure = sim.explore(program, None, is_two).failures[0]
    text = failure.explain()
    assert text.startswith("lost update of x: ")
    assert re.search(r"… \d{3} steps: main.0\*\d{3}", text), text
    assert len(text.splitlines()) <= 20
    assert len([row for row in _rows(text) if "x" in row[-3:][0].split()]) >= 4


def test_task_has_the_name_that_the_program_gave_it() -> None:
    """The path stands before it; a sentence has the name alone, where no other task has it."""
    text = _explained(partial(lost_update, "worker 1", "conn-2"), is_two)
    assert "lost update of x: worker 1 reads x = 0 in step 1; conn-2 writes 1 in step 3" in text
    assert {row[1] for row in _rows(text)} | {row[2] for row in _rows(text)} >= {"main.0 worker 1"}


@pytest.mark.seldom
def test_error_that_comes_from_reading_too_early_is_told_as_that() -> None:
    """A group of one error is that error, and the line that raised it is a step."""

    async def program() -> None:
        pending: dict[str, int] = {}

        async def answers() -> None:
            await checkpoint()
            pending["id"] = 1

        async def asks() -> None:
            await checkpoint()
            pending["id"] += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answers)
            nursery.start_soon(asks)

    text = _explained(program, track=True)
    assert text.startswith("read before write of pending['id']: asks reads pending['id'] in step ")
    assert text.splitlines()[1] == "KeyError('id')"
    assert "raises KeyError('id')" in text


@pytest.mark.seldom
def test_locks_and_channels_are_told_by_what_the_program_called() -> None:
    """A lock is acquired, waited for, released; a channel is sent to; a sleep that ends wakes; an event is set."""

    async def program() -> None:
        lock, told = trio.Lock(), trio.Event()
        send, receive = trio.open_memory_channel[int](0)

        async def first() -> None:
            async with lock:
                await trio.sleep(1)
            told.set()
            await send.send(1)

        async def second() -> None:
            await trio.sleep(0.5)
            async with lock:
                await told.wait()
            await receive.receive()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            nursery.start_soon(second)
        raise ValueError("seen")

    told = [part for row in _rows(_explained(program)) for part in row[3].split(", ") if not part.startswith("runs")]
    assert "acquires Lock lock" in told
    assert "waits for Lock lock" in told
    assert "held by first" in told
    assert "releases Lock lock" in told
    assert "sets Event told" in told
    assert "wakes" in told
    assert "waits to send to MemoryChannel send/receive" in told
    assert "receives from MemoryChannel send/receive" in told
    assert "gets Cancelled" not in " ".join(told)


def test_explanation_outside_a_patch_says_where_to_ask() -> None:
    """A failure of a patched program is explained inside the block of the patch."""
    with patched(sim.Cell, "set", lambda put: lambda self, value: put(self, 0)):
        report = sim.explore(lost_update, sim.Random(sim.RandomWalk(1), 3), is_two)
    assert "only inside its `with` block, so call explain() there" in " ".join(report.failures[0].explain().split())


@pytest.mark.seldom
def test_thread_of_trio_is_told_without_what_trio_has_for_it() -> None:
    """Its limiter, its events and its queue are no things of the program's; what a task waits for is its thread."""

    async def program() -> int:
        box = [0]

        async def add() -> None:
            seen = box[0]
            await trio.to_thread.run_sync(lambda: None)
            box[0] = seen + 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add)
            nursery.start_soon(add)
        return box[0]

    failure = sim.explore(program, sim.DPOR(), lambda execution: execution.value == 2, track=[__name__]).failures[0]
    told = failure.explain(verbose=True)
    assert "waits for its thread" in told
    assert "takes what threads have handed over" in told
    for word in ("CapacityLimiter", "RunVar", "run_sync_soon", "TrioToken", "writes Event", "_impl.py"):
        assert word not in told
    assert "writes box[0] 1 -> 1" in told
    assert "box[0] = seen + 1" in next(line for line in told.splitlines() if "writes box[0] 1 -> 1" in line)
