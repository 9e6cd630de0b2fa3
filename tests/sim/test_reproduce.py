"""A failing schedule as a program that needs Trio alone."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import DefinitionRefused, NotReproducible
from toolrt.sim.exploring import _reproduction
from toolrt.teaching.litmus import LITMUS

pytestmark = pytest.mark.process

#: What a program of this module names besides what it is handed.
START, AGAIN = 0, [1, 2]


@pytest.fixture(autouse=True)
def _few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reproduction, "_RUNS", 2)


async def lost() -> None:
    stock = {"tea": START}

    async def add(number: int) -> None:
        seen = stock["tea"]
        await checkpoint()
        stock["tea"] = seen + number

    async with trio.open_nursery() as nursery:
        for number in AGAIN:
            nursery.start_soon(add, number)
    assert stock["tea"] == 3


async def value_alone() -> str:
    order = []

    async def note(name: str) -> None:
        await checkpoint()
        order.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(note, "a")
        nursery.start_soon(note, "b")
    return "".join(order)


AGAINST = object()


async def sold(AGAINST: int, *, tea: int) -> None:  # noqa: N803  a name of the module, too
    left, names = {"tea": tea}, []

    async def sell(name: str) -> None:
        if left["tea"]:
            await checkpoint()
            left["tea"] -= 1
            names.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sell, "a")
        nursery.start_soon(sell, "b")
    assert len(names) == AGAINST


class Till:
    def __init__(self, money: int) -> None:
        self.money = money

    async def counted(self) -> None:
        assert self.money == 2


async def with_a_class() -> None:
    assert Till(1).money == 2, __name__


def _failure(program: Callable[[], Awaitable[Any]], check: Any = None, **options: Any) -> sim.Failure:
    return sim.explore(program, sim.DPOR(), check, max_executions=500, **options).failures[0]


def _run(text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "fails.py"
    path.write_text(text)
    command = [sys.executable, "-I", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)


@pytest.mark.seldom
def test_lost_update_fails_on_trio_alone(tmp_path: Path) -> None:
    """The file has the program, what it names, and the coins that Trio flips; it knows no toolrt."""
    made = _failure(lost, track=True).reproduce("plain_trio")
    assert (made.runs, made.failed, made.is_of_trio) == (2, 2, True)
    assert "toolrt" not in made
    assert "START, AGAIN = 0, [1, 2]" in made
    assert "Fails in 2 of 2 runs on plain Trio" in made
    ended = _run(made, tmp_path)
    assert ended.returncode == 1
    assert "AssertionError" in ended.stderr


@pytest.mark.seldom
def test_outcome_that_only_a_check_refuses_ends_the_file(tmp_path: Path) -> None:
    """The value of the failing schedule is compared with."""
    made = _failure(value_alone, lambda execution: execution.value == "ab").reproduce()
    ended = _run(made, tmp_path)
    assert (ended.returncode, ended.stderr) == (1, "the outcome of the failing schedule\n")
    assert "if outcome == 'ba':" in made


@pytest.mark.seldom
def test_program_with_arguments_is_called_with_them(tmp_path: Path) -> None:
    """Its own names are no names of the module; what has no literal is refused by its name."""
    made = _failure(functools.partial(sold, 1, tea=1), track=True).reproduce()
    assert "return await sold(1, tea=1)" in made
    assert "object()" not in made
    assert "AssertionError" in _run(made, tmp_path).stderr
    with pytest.raises(NotReproducible, match=r"its argument is <object .*, and has no literal"):
        _failure(functools.partial(sold, AGAINST, tea=1)).reproduce()  # type: ignore[arg-type]


@pytest.mark.seldom
def test_class_is_written_without_the_name_of_its_module(tmp_path: Path) -> None:
    """The file is run as itself: what each module has is not taken over."""
    made = _failure(with_a_class).reproduce()
    assert "class Till:" in made
    assert "AssertionError: __main__" in _run(made, tmp_path).stderr


@pytest.mark.seldom
def test_module_that_is_found_here_is_found_by_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project that is not installed stands on the path alone."""
    (tmp_path / "its_shop.py").write_text("class Full(Exception):\n    pass\n")
    (tmp_path / "its_program.py").write_text("import its_shop\n\n\nasync def program():\n    raise its_shop.Full\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = _failure(importlib.import_module("its_program").program).reproduce()
    assert (made.runs, made.failed) == (2, 2)
    assert "import its_shop" in made


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("name", "says", "is_of_trio"),
    [
        ("dining_2", "Deadlock: every task waits for ever", True),
        ("peterson_swapped", "AssertionError", None),
        ("both_give_way", "the outcome of the failing schedule", None),
        ("two_looks", "the outcome of the failing schedule", False),
    ],
)
def test_litmus_programs_fail_on_trio_alone(tmp_path: Path, name: str, says: str, is_of_trio: bool | None) -> None:
    """Also in orders that Trio does not make: then the file says which task takes each step."""
    litmus = LITMUS[name]
    made = _failure(litmus.program, litmus.check, **litmus.settings).reproduce()
    assert made.failed == made.runs
    assert is_of_trio is None or made.is_of_trio is is_of_trio
    assert "toolrt" not in made
    ended = _run(made, tmp_path)
    assert ended.returncode == 1
    assert says in ended.stderr or "the outcome of the failing schedule" in ended.stderr


def test_what_cannot_be_written_is_said() -> None:
    """A program without a name or a source, a step of a thread, a value without a literal, another way."""

    class Held:
        pass

    held = Held()

    async def holds() -> None:
        assert held is None

    with pytest.raises(NotReproducible, match=r"held, of the function around the program, is .*, and has no source"):
        _failure(holds).reproduce()
    with pytest.raises(NotReproducible, match=r"its method is that of <.*Till object .*, which has attributes"):
        _failure(Till(1).counted).reproduce()
    with pytest.raises(NotReproducible, match="no function with a name"):
        _failure(lambda: lost(), track=False).reproduce()
    with pytest.raises(NotReproducible, match=r"the step 'thread\.0\.0'"):
        litmus = LITMUS["check_then_thread"]
        _failure(litmus.program, litmus.check, **litmus.settings).reproduce()
    with pytest.raises(NotReproducible, match="has no literal to be compared with"):
        litmus = LITMUS["tickets_2"]
        _failure(litmus.program, litmus.check, **litmus.settings).reproduce()
    with pytest.raises(DefinitionRefused, match="'plain_trio', got 'asyncio'"):
        _failure(lost).reproduce("asyncio")  # type: ignore[arg-type]


@pytest.mark.seldom
async def test_a_file_that_never_fails_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs are counted, and none of them failed."""
    monkeypatch.setattr(_reproduction, "_fails", lambda text, wanted: False)
    with pytest.raises(NotReproducible, match="did not fail in 2 runs of plain Trio"):
        await trio.to_thread.run_sync(lambda: _failure(lost, track=True).reproduce())
