"""A reduction says PASS only of code that it could look at: of every module, and of none without a source."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pytest
import trio

from tests.workspace import test_every_pair as every_pair
from toolrt import sim

_BESIDE = """
class Counter:
    def __init__(self):
        self.number = 0

    def read(self):
        return self.number

    def write(self, number):
        self.number = number

    def nothing(self, number):
        return number
"""


@pytest.fixture
def counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A class of a module of its own."""
    (tmp_path / "beside_the_program.py").write_text(_BESIDE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("beside_the_program").Counter
    del sys.modules["beside_the_program"]


def _two(one: Callable[[Any], Any], other: Callable[[Any], Any], make: Callable[[], Any]) -> Callable[[], Any]:
    """A program of two tasks that report something of their own, and use one object."""

    async def program() -> None:
        shared = make()
        cells = [sim.Cell(0, name=f"own {number}") for number in range(2)]

        async def work(number: int, use: Callable[[Any], Any]) -> None:
            cells[number].set(1)
            use(shared)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, 0, one)
            nursery.start_soon(work, 1, other)

    return program


def _asks_nothing(shared: Any) -> None:
    shared.nothing(1)


def test_state_of_a_class_in_another_module_is_no_pass(counter: Any) -> None:
    """The verdict names the variable, both lines, and the remedy, which works."""
    program = _two(lambda shared: shared.read(), lambda shared: shared.write(1), counter)
    report = sim.explore(program, sim.DPOR())
    assert report.verdict is sim.INCONCLUSIVE
    assert "self.number" in str(report)
    assert "beside_the_program.py" in str(report)
    tracked = sim.explore(program, sim.DPOR(), track=[__name__, "beside_the_program"])
    assert (tracked.verdict, tracked.executions) == (sim.PASS, 2)


def test_writer_here_and_reader_in_another_module_are_no_pass(counter: Any) -> None:
    """The reader's module is looked at, though only one task runs its code."""

    def write(shared: Any) -> None:
        shared.number = 1

    report = sim.explore(_two(lambda shared: shared.read(), write, counter), sim.DPOR())
    assert report.verdict is sim.INCONCLUSIVE
    assert "number read at beside_the_program.py" in str(report)


def test_code_of_another_module_that_shares_nothing_is_a_pass(counter: Any) -> None:
    """It was looked at, too."""
    program = _two(_asks_nothing, _asks_nothing, counter)
    report = sim.explore(program, sim.DPOR())
    assert (report.verdict, report.executions) == (sim.PASS, 1), str(report)


def test_code_without_a_source_is_no_pass() -> None:
    """As of a program on standard input; the verdict says why."""
    space: dict[str, Any] = {"__name__": __name__}
    exec(compile(_BESIDE, "<no file>", "exec"), space)
    program = _two(lambda shared: shared.read(), lambda shared: shared.write(1), space["Counter"])
    report = sim.explore(program, sim.DPOR())
    assert report.verdict is sim.INCONCLUSIVE
    assert "source is not at hand" in str(report)
    assert sim.explore(program, sim.Exhaustive()).verdict is sim.PASS


def test_writer_and_reader_in_two_other_modules_are_no_pass(
    counter: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are looked at, though each has code in one task alone."""
    (tmp_path / "reads_it.py").write_text("def read(it):\n    return it.number\n", encoding="utf-8")
    (tmp_path / "writes_it.py").write_text("def write(it):\n    it.number = 1\n", encoding="utf-8")
    reads, writes = (importlib.import_module(name) for name in ("reads_it", "writes_it"))
    monkeypatch.delitem(sys.modules, "reads_it")
    monkeypatch.delitem(sys.modules, "writes_it")
    monkeypatch.setitem(sys.modules, "reads_it", reads)
    monkeypatch.setitem(sys.modules, "writes_it", writes)
    report = sim.explore(_two(reads.read, writes.write, counter), sim.DPOR())
    assert report.verdict is sim.INCONCLUSIVE
    assert "number" in str(report)


@pytest.mark.parametrize("space", [{}, {"__name__": "nowhere"}])
def test_program_of_no_module_is_no_pass(space: dict[str, Any]) -> None:
    """A text that was executed, with a name that no module has, or without one."""
    used = {**space}
    exec(compile(_BESIDE, "<no file>", "exec"), used)
    program = _two(lambda shared: shared.read(), lambda shared: shared.write(1), used["Counter"])
    assert sim.explore(program, sim.DPOR()).verdict is sim.INCONCLUSIVE


_APART = """
import trio
from toolrt import sim

async def program():
    async def work(cell):
        cell.set(1)

    async with trio.open_nursery() as nursery:
        for number in range(2):
            nursery.start_soon(work, sim.Cell(0, name=str(number)))
"""


@pytest.mark.parametrize("space", [{}, {"__name__": "nowhere"}])
def test_program_of_no_module_that_shares_nothing_is_a_pass(
    space: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its source is at hand, as that of a notebook's cell or of a page's example."""
    monkeypatch.setitem(linecache.cache, "<page>", (len(_APART), None, _APART.splitlines(keepends=True), "<page>"))
    used = {**space}
    exec(compile(_APART, "<page>", "exec"), used)
    report = sim.explore(used["program"], sim.DPOR())
    assert (report.verdict, report.executions) == (sim.PASS, 1), str(report)


@attrs.define
class _Kept:
    number: int

    @functools.cached_property
    def next(self) -> int:
        return self.number + 1


@dataclasses.dataclass
class _Written:
    number: int


class _Row(NamedTuple):
    number: int


def _makes_records(_: Any) -> None:
    kept = _Kept(1)
    assert kept.next == 2
    assert attrs.evolve(kept, number=2) != kept
    assert repr(kept)
    assert _Written(1) == _Written(1)
    assert _Row(1)._replace(number=2) == _Row(2)


def test_records_that_each_task_makes_are_a_pass() -> None:
    """What attrs, dataclasses and named tuples write has no file, and touches what it is handed."""
    report = sim.explore(_two(_makes_records, _makes_records, object), sim.DPOR())
    assert (report.verdict, report.executions) == (sim.PASS, 1), str(report)


@pytest.mark.parametrize("make", [_Kept, _Written])
@pytest.mark.parametrize("read", [repr, lambda record: record == type(record)(3)])
def test_record_that_two_tasks_share_is_no_pass(make: Callable[[int], Any], read: Callable[[Any], Any]) -> None:
    """What reads it may be a method that attrs or dataclasses made."""

    def write(record: Any) -> None:
        record.number = 3

    report = sim.explore(_two(write, read, lambda: make(1)), sim.DPOR())
    assert report.verdict is sim.INCONCLUSIVE
    assert "number" in str(report)


def test_guard_leaves_no_profile_behind() -> None:
    """Also where what polls is looked at in its steps, which profiles them, too."""

    async def program() -> None:
        cells = [sim.Cell(0, name=str(number)) for number in range(2)]

        async def polls(cell: sim.Cell[int]) -> None:
            for _ in range(40):
                await trio.lowlevel.checkpoint()
            cell.set(1)

        async with trio.open_nursery() as nursery:
            for cell in cells:
                nursery.start_soon(polls, cell)

    before = sys.getprofile()
    report = sim.explore(program, sim.DPOR(), max_executions=5)
    assert report.executions
    every_pair.require_one_ending(_PAIR)
    assert sys.getprofile() is before


#: Two moves.  In some executions they poll.
_PAIR = (
    ("move_path", {"source": "f", "target": "d/m"}),
    ("move_path", {"source": "hard", "target": "f/q"}),
)
