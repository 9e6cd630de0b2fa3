"""What a failure says of itself: fewest preemptions, the race, the nearest schedule that passes, how to repeat it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.invariants import Violation, patched

_NAME = Path(__file__).name


async def lost_update() -> int:
    """Two tasks add one each, and one of the two may get lost."""
    cell = sim.Cell(0, name="x")

    async def add() -> None:
        seen = cell.get()
        await checkpoint()
        cell.set(seen + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
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
    return report.failures[0].explain()


def _line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return 1 + next(number for number, line in enumerate(lines) if line.strip() == text)


def test_race_is_shown_with_its_lines() -> None:
    """The two accesses that came the wrong way round are there with file, line and source."""
    text = _explained(lost_update, is_two)
    seen, put = _line_of("seen = cell.get()"), _line_of("cell.set(seen + 1)")
    sentence = f"The race: add (main.1) read `x` (line {seen}) before add (main.0) wrote it (line {put})."
    race = text[text.index(f"{sentence} In the other order it passes.") :].splitlines()
    assert race[1].split("  ", 2)[2].split() == f"step 2 main.1 reads cell x {_NAME}:{seen} seen = cell.get()".split()
    assert race[2].split("  ", 2)[2].split() == f"step 4 main.0 writes cell x {_NAME}:{put} cell.set(seen + 1)".split()


def test_race_on_a_primitive_of_trio_has_the_lines_of_the_program() -> None:
    """Frames of Trio's and of the simulator's are passed over."""
    text = _explained(philosophers)
    race = text[text.index("The race: dine (main.") :].splitlines()
    assert re.match(r"The race: dine \(main.\d\) touched `Lock main \d` \(line \d+\) before dine ", race[0])
    for line, source in zip(race[1:3], ("async with forks[seat]:", "async with forks[(seat + 1) % 3]:"), strict=True):
        assert re.search(rf"writes Lock main \d  {re.escape(_NAME)}:{_line_of(source)}  {re.escape(source)}$", line)


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

    text = _explained(program, is_two)
    race = text[text.index("The race:") :].splitlines()
    assert [line.split()[3:6] for line in race[1:3]] == [["reads", "cell", "x"], ["writes", "cell", "x"]]


def test_columns_have_the_values_that_were_read_and_written() -> None:
    """Of a write both values stand there, as in the cells of the page."""
    rows = [line.split(maxsplit=1)[1].strip() for line in _explained(lost_update, is_two).splitlines()[5:9]]
    assert rows == ["reads cell x = 0", "> reads cell x = 0", "writes cell x 0 -> 1", "writes cell x 1 -> 1"]


def test_nearest_schedule_that_passes_is_beside_it() -> None:
    """The two orders are written with the part that differs in brackets; the second one passes."""
    text = _explained(lost_update, is_two)
    assert "parts from it at step 2:" in text
    assert "    fails   main main.0 [main.1*2 main.0] main\n" in text
    passes = next(line for line in text.splitlines() if line.startswith("    passes"))
    schedule = passes.removeprefix("    passes").replace("[", "").replace("]", "")
    assert sim.replay(lost_update, schedule).value == 2


def test_short_schedule_of_an_explanation_names_functions() -> None:
    """Below the columns the schedule stands in one line, which can be replayed."""
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
    assert "passes" not in text.partition("Run it again:")[0]


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
    race = text[text.index("The race:") :].splitlines()
    line = re.escape(f"{_NAME}:{_line_of('order.append(name)')}  order.append(name)")
    assert all(re.search(rf"  writes list main \d  {line}$", row) for row in race[2:4])
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
    assert "No access that was reported decides it: what a step does to plain objects is seen where track=" in text


def test_anything_has_no_line() -> None:
    """That a step may have done anything is known when it is over: no line of the program did it."""
    space: dict[str, Any] = {"__name__": "a_module_that_is_not_there"}
    exec(_HIDDEN, space)
    race = _explained(space["program"], lambda execution: execution.value == ["a", "b"], track=__name__)
    assert re.search(r"^    step \d+  main\.1  writes anything$", race, re.MULTILINE)


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
    assert f"0  runs from {_NAME}:{line}\n   1  runs from {_NAME}:{line}\n" in text


def test_deadlock_shows_who_waits_for_whom() -> None:
    """Each task points at those it waits for, and the circle is named."""
    text = _explained(philosophers)
    assert "    main -> main.0, main.1, main.2\n" in text
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


def test_no_fewer_preemptions_is_said_only_where_all_were_run() -> None:
    """A search that ends early proves nothing."""
    assert "1 preemption; with fewer it does not fail" in _explained(lost_update, is_two)

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

    lines = _explained(wide, lambda execution: execution.value == 7).splitlines()
    assert next(line for line in lines if " steps, " in line).endswith("1 preemption")


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
    failure.explain()
    assert failure.explain() is failure.explain()
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
    assert "reads cell variable00 = 0, reads cell variable01 = 0, and 18 more" in text
    assert max(map(len, text.splitlines())) < 120


def test_explanation_outside_a_patch_says_where_to_ask() -> None:
    """A failure of a patched program is explained inside the block of the patch."""
    with patched(sim.Cell, "set", lambda put: lambda self, value: put(self, 0)):
        report = sim.explore(lost_update, sim.Random(sim.RandomWalk(1), 3), is_two)
    assert "only inside its `with` block, so call explain() there" in " ".join(report.failures[0].explain().split())
