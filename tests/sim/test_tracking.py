"""Plain state that tasks share is seen: what is tracked makes the reduction exact, and what is not makes it careful."""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import io
import linecache
import re
import sys
import types
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest
import trio
from tricycle import RWLock

from tests._profile import FULL
from tests.sim._plain_programs import module_of, source_of
from toolrt import sim
from toolrt.sim.programs.tracking import _sources

Program = Callable[[], Awaitable[Any]]


class _Box:
    def __init__(self) -> None:
        self.n = 0
        self.items: list[int] = []


async def _two(task: Callable[[int], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(task, 1)
        nursery.start_soon(task, 2)


async def attribute() -> int:
    box = _Box()

    async def add(me: int) -> None:
        seen = box.n
        await trio.lowlevel.checkpoint()
        box.n = seen + 1

    await _two(add)
    return box.n


_total = 0


async def module_global() -> int:
    global _total
    _total = 0

    async def add(me: int) -> None:
        global _total
        seen = _total
        await trio.lowlevel.checkpoint()
        _total = seen + 1

    await _two(add)
    return _total


async def of_an_async_generator() -> list[int | str]:
    seen: list[int | str] = [0, 0]

    async def count() -> AsyncGenerator[int, None]:
        number = 0
        while True:
            number += 1
            await trio.lowlevel.checkpoint()
            yield number

    numbers = count()

    async def take(me: int) -> None:
        try:
            seen[me - 1] = await anext(numbers)
        except RuntimeError:
            seen[me - 1] = "running"

    await _two(take)
    await numbers.aclose()
    return seen


@pytest.mark.parametrize("program", [attribute, module_global, of_an_async_generator], ids=lambda each: each.__name__)
def test_every_outcome_is_found(program: Program) -> None:
    """Of what a module cannot be made of in `test_shared_shapes`."""
    every = sim.explore(program, sim.Exhaustive())
    found = sim.explore(program, sim.DPOR(), track=True)
    assert found.unfinished is None
    assert set(found.outcomes) == set(every.outcomes)
    assert len(every.outcomes) > 1


async def own_boxes() -> int:
    boxes = [_Box(), _Box()]

    async def add(me: int) -> None:
        box = boxes[me - 1]
        for _ in range(2):
            box.n += me
            await trio.lowlevel.checkpoint()
            box.items.append(box.n)

    await _two(add)
    return boxes[0].n + boxes[1].n


async def three_times_two() -> int:
    box = _Box()

    async def add() -> None:
        for _ in range(2):
            seen = box.n
            await trio.lowlevel.checkpoint()
            box.n = seen + 1

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(add)
    return box.n


def test_what_is_independent_is_not_tried_in_both_orders() -> None:
    assert sim.explore(own_boxes, sim.DPOR(), track=True).claim == f"exhaustive(traces=1) with track={__name__}"
    assert sim.explore(three_times_two, sim.DPOR(), track=True).executions == 762


@pytest.mark.parametrize("seed", range(500) if FULL else range(0, 500, 25))
def test_random_programs_with_plain_state(seed: int) -> None:
    module = module_of(source_of(seed, slow=FULL))
    try:
        every = sim.explore(module.program, sim.Exhaustive(), max_executions=5000)
        found = sim.explore(module.program, sim.DPOR(), track=True)
    finally:
        del sys.modules[module.__name__]
    assert found.unfinished is None
    if every.complete:
        assert set(found.outcomes) == set(every.outcomes)
    assert set(found.outcomes) >= set(every.outcomes)


def _foreign(source: str) -> types.ModuleType:
    """Make a module that is not tracked."""
    return module_of(source)


def test_code_that_is_not_tracked_may_do_anything() -> None:
    library = _foreign("class Box:\n    n = 0\ndef add(box, n):\n    box.n = n + 1\ndef look(box):\n    return box.n\n")

    async def program() -> int:
        box = library.Box()

        async def add(me: int) -> None:
            seen = library.look(box)
            await trio.lowlevel.checkpoint()
            library.add(box, seen)

        await _two(add)
        return int(box.n)

    assert set(sim.explore(program, sim.DPOR(), track=True).outcomes) == {1, 2}
    both = sim.explore(program, sim.DPOR(), track=[__name__, library.__name__])
    assert set(both.outcomes) == {1, 2}
    assert both.executions <= 4


def test_a_task_of_code_that_is_not_tracked_may_do_anything() -> None:
    library = _foreign(
        "import trio\nasync def add(box):\n    async with trio.Lock():\n        seen = box['n']\n"
        "    await trio.lowlevel.checkpoint()\n    box['n'] = seen + 1\n"
    )

    async def program() -> int:
        box = {"n": 0}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(library.add, box)
            nursery.start_soon(library.add, box)
        return box["n"]

    assert set(sim.explore(program, sim.DPOR(), track=True).outcomes) == {1, 2}


def test_functions_have_their_own_code_again_afterwards() -> None:
    before = attribute.__code__, _Box.__init__.__code__
    sim.explore(attribute, sim.DPOR(), track=True)
    assert (attribute.__code__, _Box.__init__.__code__) == before


def test_a_function_is_tracked_by_itself() -> None:
    module = module_of(
        "import trio\nclass Box:\n    n = 0\nbox = Box()\nasync def add():\n    seen = box.n\n"
        "    await trio.lowlevel.checkpoint()\n    box.n = seen + 1\n"
        "async def program():\n    box.n = 0\n    async with trio.open_nursery() as nursery:\n"
        "        nursery.start_soon(add)\n        nursery.start_soon(add)\n    return box.n\n"
    )
    for function in (module.add, module.program):
        assert sim.tracked(function) is function
    report = sim.explore(module.program, sim.DPOR())
    assert set(report.outcomes) == {1, 2}
    assert report.claim == "exhaustive(traces=4) with track=functions"


def test_a_failure_is_replayed_with_what_was_tracked() -> None:
    report = sim.explore(attribute, sim.DPOR(), lambda execution: execution.value == 2, track=True)
    assert report.verdict is sim.FAIL
    failure = report.failures[0]
    assert failure.reproduced
    story = failure.explain()
    assert "track=True" in story
    assert re.match(r"lost update of box\.n: add \(main\.[01]\) reads box\.n = 0 in step \d", story)
    again = sim.replay(attribute, failure.schedule, track=True)
    assert again.value == 1


def test_a_traceback_has_the_lines_of_the_source() -> None:
    async def program() -> int:
        box = _Box()
        return box.missing  # type: ignore[attr-defined,no-any-return]

    plain = sim.run(program).error
    seen = sim.run(program, track=True).error
    assert plain is not None
    assert seen is not None
    assert str(plain) == str(seen)
    lines = []
    for error in (plain, seen):
        traceback = error.__traceback__
        found = []
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == __file__:
                found.append(traceback.tb_lineno)
            traceback = traceback.tb_next
        lines.append(found)
    assert lines[0] == lines[1] != []


def test_a_partial_and_a_bound_method_have_a_module_too() -> None:
    module = module_of(
        "import trio\nclass Owner:\n    n = 0\n    async def add(self):\n        seen = self.n\n"
        "        await trio.lowlevel.checkpoint()\n        self.n = seen + 1\n"
        "    async def program(self):\n        self.n = 0\n        async with trio.open_nursery() as nursery:\n"
        "            nursery.start_soon(self.add)\n            nursery.start_soon(self.add)\n        return self.n\n"
    )
    owner = module.Owner()
    for program in (owner.program, functools.partial(module.Owner.program, owner)):
        report = sim.explore(program, sim.DPOR(), track=True)
        assert report.executions == 4
        assert set(report.outcomes) == {1, 2}
    linecache.cache.pop(module.__file__, None)


async def beside_cells() -> int:
    cells, box = [sim.Cell(0), sim.Cell(0)], _Box()

    async def add(me: int) -> None:
        cells[me - 1].set(1)
        seen = box.n
        await trio.lowlevel.checkpoint()
        cells[me - 1].set(2)
        box.n = seen + 1

    await _two(add)
    return len(cells)


def test_state_that_no_step_reports_makes_a_pass_inconclusive() -> None:
    """The outcome does not show it, so no sample does; the variable, both tasks and the remedy are named."""
    report = sim.explore(beside_cells, sim.DPOR())
    assert report.verdict is sim.INCONCLUSIVE
    assert report.unfinished is not None
    for words in ("box.n", "add of main.0", "add of main.1", "track=True", "sim.watch", "test_tracking.py:"):
        assert words in report.unfinished
    assert sim.explore(beside_cells, sim.DPOR(), track=True).verdict is sim.PASS


async def ordered_by_an_event() -> int:
    cells, box, ready = [sim.Cell(0), sim.Cell(0)], _Box(), trio.Event()

    async def add(me: int) -> None:
        cells[me - 1].set(1)
        if me == 1:
            box.n = 7
            ready.set()
        else:
            await ready.wait()
            cells[me - 1].set(box.n)

    await _two(add)
    return cells[1].get()


def test_state_that_an_event_orders_is_no_doubt() -> None:
    report = sim.explore(ordered_by_an_event, sim.DPOR())
    assert (report.verdict, set(report.outcomes)) == (sim.PASS, {7})


def test_tracked_function_of_a_cell_that_awaits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook's cell may await outside of any function; its functions are rewritten all the same."""
    function = "async def add(numbers):\n    await trio.lowlevel.checkpoint()\n    numbers.append(len(numbers))\n"
    cell = function + "print(await add([]))\n"
    monkeypatch.setitem(linecache.cache, "<cell>", (len(cell), None, cell.splitlines(keepends=True), "<cell>"))
    names: dict[str, Any] = {"trio": trio, "__name__": "cell"}
    exec(compile(function, "<cell>", "exec"), names)
    before = names["add"].__code__
    assert sim.tracked(names["add"]).__code__ is not before


async def tricycles_lock() -> tuple[str, ...]:
    lock, log = RWLock(), list[str]()

    async def read() -> None:
        async with lock.read_locked():
            log.append("read")
            await trio.lowlevel.checkpoint()

    async def write() -> None:
        async with lock.write_locked():
            log.append("write")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(write)
    return tuple(log)


async def anyios_lock() -> tuple[int, ...]:
    lock, log = anyio.Lock(), list[int]()

    async def add(number: int) -> None:
        async with lock:
            log.append(number)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(add, 1)
        group.start_soon(add, 2)
    return tuple(log)


async def objects_that_name_each_other() -> bool:
    ring = [[number] for number in range(12)]
    for one in ring:
        one.extend(ring)
    await trio.lowlevel.checkpoint()
    return ring == []


def test_comparison_looks_at_each_object_once() -> None:
    """Each way from one to another is no look of its own: there are more of these than any walk would end."""
    assert sim.run(objects_that_name_each_other, track=__name__).value is False


@pytest.mark.seldom
@pytest.mark.parametrize(("program", "package"), [(tricycles_lock, "tricycle"), (anyios_lock, "anyio")])
def test_package_of_others_is_tracked(program: Program, package: str) -> None:
    """Code that this project did not write is rewritten by the package's name, and is itself again afterwards."""
    before = RWLock.acquire_read.__code__, anyio.Lock.acquire.__code__
    every = sim.explore(program, sim.Exhaustive())
    reduced = sim.explore(program, sim.DPOR(), track=[__name__, package])
    assert set(reduced.outcomes) == set(every.outcomes)
    assert reduced.verdict is sim.PASS
    assert reduced.executions <= every.executions
    assert f"track={__name__}, {package}" in reduced.claim
    assert (RWLock.acquire_read.__code__, anyio.Lock.acquire.__code__) == before


def test_guard_names_a_file_that_was_edited_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that no longer stands in its file cannot be looked at: that is no PASS, and the report says why."""
    file = tmp_path / "edited_meanwhile.py"
    text = (
        "import trio\nfrom toolrt import sim\n\n"
        "async def add(cell):\n    await trio.lowlevel.checkpoint()\n    cell.set(1)\n\n"
        "async def program():\n    async with trio.open_nursery() as nursery:\n"
        "        for name in 'ab':\n            nursery.start_soon(add, sim.Cell(0, name=name))\n"
    )
    file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("edited_meanwhile")
    assert sim.explore(module.program, sim.DPOR()).verdict is sim.PASS
    file.write_text("# a line\n" + text)
    linecache.checkcache(str(file))
    report = sim.explore(module.program, sim.DPOR())
    assert report.verdict is sim.INCONCLUSIVE
    assert "edited_meanwhile.py:" in str(report.unfinished)
    assert "was edited since it was imported" in str(report.unfinished)


def test_function_of_another_module_that_bears_this_ones_name_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # So does attrs itself with its own `evolve`, on Python 3.13.
    monkeypatch.setattr(attrs.evolve, "__module__", __name__)
    monkeypatch.setattr(_Box, "replace", attrs.evolve, raising=False)
    before = attrs.evolve.__code__
    during = []

    async def look() -> None:
        during.append(attrs.evolve.__code__)

    sim.explore(look, sim.DPOR(), track=True)
    assert set(during) == {before}


def test_two_prints_to_a_captured_stdout_are_in_both_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed to a terminal decides nothing, so it is no access there."""

    async def program() -> str:
        captured = io.StringIO()
        monkeypatch.setattr(sys, "stdout", captured)

        async def say(word: str) -> None:
            print(word)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(say, "a")
            nursery.start_soon(say, "b")
        monkeypatch.undo()
        return captured.getvalue()

    assert set(sim.explore(program, sim.DPOR(samples=0), track=True).outcomes) == {"a\nb\n", "b\na\n"}


def _rows(box: _Box) -> list[int]:
    return box.items or box.items


def test_expression_of_a_line_counts_once_however_often_its_file_is_rewritten() -> None:
    """What a container is called when it is the only one there must not depend on what ran before in the process."""
    for rewrites in (_sources.new_code, _sources.woven_code):
        assert rewrites(_rows) is not None  # type: ignore[arg-type]
        assert _sources.expressions_of(__file__, _rows.__code__.co_firstlineno + 1) == ["box.items"]


class _Parses:
    """Garbage whose finaliser parses, and leaves more of it."""

    more = True

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        self.parse(20)
        if _Parses.more:
            _Parses()

    def parse(self, deeper: int) -> None:
        """Parse where the stack is higher by so many frames, and so is the count of levels."""
        _ = self.parse(deeper - 1) if deeper else ast.parse("a + 1")


def test_finaliser_that_parses_does_not_end_the_rewriting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11.7 counts the levels of both syntax trees together."""
    source = "async def program():\n" + "    seen = [[1, 2], [3, 4]]\n" * 500
    program = module_of(source).program
    threshold = gc.get_threshold()
    _Parses()
    gc.set_threshold(10)
    try:
        assert _sources.new_code(program) is not None
    finally:
        gc.set_threshold(*threshold)
        monkeypatch.setattr(_Parses, "more", False)
        gc.collect()


_DOES: dict[str, Callable[[trio.Event], object]] = {"set": lambda one: one.set(), "ask": lambda one: one.is_set()}


def test_two_functions_of_one_line_are_both_rewritten() -> None:
    """Each gets the code of its own, so neither may do anything."""

    async def program() -> None:
        async def apply(name: str) -> None:
            _DOES[name](trio.Event())

        async with trio.open_nursery() as nursery:
            for name in _DOES:
                nursery.start_soon(apply, name)

    assert sim.explore(program, sim.DPOR(), track=True).claim.startswith("exhaustive(traces=1)")
