"""What would mend a failure: each repair was explored, and written by hand as proposed it holds."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import sim
from toolrt.sim.programs.given._constraints import Again, Atomic, Before, Constraint, LockOrder, Shielded
from toolrt.teaching.litmus import LITMUS

_HEAD = "import trio\nfrom toolrt import sim\n\n\nLOCK, LOCKS = None, []\n\n\n"

#: Programs with a race in plain view, which return True when all is well.
PROGRAMS = {
    "lost update": """
async def add(cell):
    before = cell.get()
    await trio.lowlevel.checkpoint()
    cell.set(before + 1)


async def program():
    cell = sim.Cell(0, name="cell")
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(add, cell)
    return cell.get() == 2
""",
    "in a branch of a loop": """
async def add(cell, most):
    for _ in range(2):
        if cell.get() < most:
            await trio.lowlevel.checkpoint()
            cell.set(cell.get() + 1)


async def program():
    cell = sim.Cell(0, name="cell")
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(add, cell, 1)
    return cell.get() == 1
""",
    "two functions": """
async def deposit(balance):
    before = balance.get()
    await trio.lowlevel.checkpoint()
    balance.set(before + 50)


async def withdraw(balance):
    before = balance.get()
    await trio.lowlevel.checkpoint()
    balance.set(before - 30)


async def program():
    balance = sim.Cell(100, name="balance")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deposit, balance)
        nursery.start_soon(withdraw, balance)
    return balance.get() == 120
""",
    "a plain dict": """
async def serve(stock, sold):
    if stock["tea"] > 0:
        await trio.lowlevel.checkpoint()
        stock["tea"] -= 1
        sold.append("tea")


async def program():
    stock, sold = {"tea": 1}, []
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(serve, stock, sold)
    return len(sold) == 1
""",
    "two locks": """
async def move(one, other):
    async with one:
        async with other:
            await trio.lowlevel.checkpoint()


async def program():
    a, b = LOCKS[:] = trio.Lock(), trio.Lock()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(move, a, b)
        nursery.start_soon(move, b, a)
    return True
""",
    "a look before a wait": """
async def take(changed, items, took):
    async with changed:
        if not items:
            await changed.wait()
        took.append(items.pop() if items else None)


async def put(changed, items, item):
    async with changed:
        items.append(item)
        changed.notify_all()


async def program():
    changed, items, took = trio.Condition(), [], []
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(take, changed, items, took)
        for item in "ab":
            nursery.start_soon(put, changed, items, item)
    return None not in took
""",
}


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Any]:
    """Gives a module with a text."""
    made: list[str] = []

    def load(text: str) -> Any:
        name = f"mended_{len(made)}_{tmp_path.name}"
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        made.append(name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in made:
        del sys.modules[name]


def _explored(module: Any) -> sim.Report:
    return sim.explore(module.program, sim.DPOR(), lambda execution: execution.value is True, track=[module.__name__])


def _written(text: str, constraint: Constraint) -> str:
    """The text as a person would write it: a lock round each of the places, the locks sorted, a loop."""
    lines = text.split("\n")
    if isinstance(constraint, LockOrder):
        for first, last in constraint.regions:
            at = first.number - 1
            locks = ", ".join(re.findall(r"async with (\w+):", "\n".join(lines[at : last.number])))
            margin = " " * (len(lines[at]) - len(lines[at].lstrip()))
            lines[at] = f"{margin}{locks} = sorted(({locks}), key=LOCKS.index)\n{lines[at]}"
        return "\n".join(lines)
    if isinstance(constraint, Again):
        at = constraint.place.number - 1
        lines[at] = lines[at].replace("if ", "while ", 1)
        return "\n".join(lines)
    assert isinstance(constraint, Atomic)
    for first, last in sorted(constraint.regions, key=lambda region: -region[0].number):
        start, end = first.number - 1, last.number
        margin = len(lines[start]) - len(lines[start].lstrip())
        while end < len(lines) and lines[end].strip() and len(lines[end]) - len(lines[end].lstrip()) > margin:
            end += 1  # the rest of the last statement
        inside = [f"    {line}" if line.strip() else line for line in lines[start:end]]
        lines[start:end] = [f"{' ' * margin}async with LOCK:", *inside]
    whole = "\n".join(lines).replace(
        "async def program():\n", "async def program():\n    global LOCK\n    LOCK = trio.Lock()\n"
    )
    return whole


@pytest.mark.parametrize("name", PROGRAMS)
def test_repair_that_is_proposed_first_mends_the_program_when_it_is_written(name: str, loaded: Any) -> None:
    """Explored as the failure was found; and again with a lock in its source at the lines that it names."""
    text = _HEAD + PROGRAMS[name]
    report = _explored(loaded(text))
    assert report.verdict is sim.FAIL
    repairs = report.failures[0].repairs()
    assert repairs
    first = repairs[0]
    assert first.report.verdict is sim.PASS
    assert first.report.complete
    assert first.lost == ()
    assert not first.may_overfit
    assert re.search(r"\blines? \d+", first.text)
    assert str(first.report.executions) in str(first)
    assert _explored(loaded(_written(text, first.constraint))).verdict is sim.PASS


def test_every_repair_passes_and_gives_nothing_new() -> None:
    """It is held against what passed before; the report names what does not come any more."""
    failing = LITMUS["both_give_way"]
    report = sim.explore(failing.program, sim.DPOR(), failing.check, **failing.settings)
    repairs = report.failures[0].repairs()
    assert repairs
    for repair in repairs:
        assert set(repair.report.outcomes) <= failing.right
        assert set(repair.lost) == {repr(one) for one in failing.right - set(repair.report.outcomes)}
        assert not repair.lost or f"{repair.lost[0]} does not come any more" in repair.text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("overdraw", Atomic),
        ("plain_vars", Atomic),
        ("two_locks", LockOrder),
        ("dining_2", LockOrder),
        ("stolen_wakeup", Again),
        ("two_stages_apart", Atomic),
        ("event_before_data", Before),
        ("cleanup", Shielded),
        ("taken_and_lost", Shielded),
    ],
)
def test_repair_of_the_right_kind_comes_first(name: str, kind: type) -> None:
    """Orders and shields may fit the failure alone, and say so."""
    litmus = LITMUS[name]
    report = sim.explore(litmus.program, sim.DPOR(), litmus.check, **litmus.settings)
    first = report.failures[0].repairs()[0]
    assert isinstance(first.constraint, kind)
    assert first.may_overfit is (kind in (Shielded, Before))
    assert ("may fit this failure alone" in first.text) is first.may_overfit
    again = sim.explore(litmus.program, sim.DPOR(), litmus.check, given=[first.constraint], **litmus.settings)
    assert again.verdict is sim.PASS


def test_world_that_hangs_is_no_repair_whatever_the_check_looks_at() -> None:
    """A check need not cope with worlds that have no value."""
    hung: list[object] = []

    async def sell(stock: dict[str, int], sold: list[str], customer: str) -> None:
        if stock["tea"] > 0:
            await trio.lowlevel.checkpoint()
            stock["tea"] -= 1
            sold.append(customer)

    async def shop() -> list[str]:
        stock, sold = {"tea": 1}, list[str]()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sell, stock, sold, "Ada")
            nursery.start_soon(sell, stock, sold, "Bob")
        return sold

    def sold_once(execution: sim.Execution) -> bool:
        if execution.value is None:
            hung.append(execution.error)
        return len(execution.value) == 1

    failure = sim.explore(shop, sim.DPOR(), sold_once, track=[__name__]).failures[0]
    first = failure.repairs()[0]
    assert first.text.startswith("`async with lock:` round lines ")
    assert hung
    # What does not come any more were failures, though a list is counted by its text.
    assert first.lost == ()


@pytest.mark.parametrize("name", ["order_of_tasks", "rendezvous_backwards", "ask_each_other"])
def test_no_repair_of_these_kinds_is_an_answer(name: str) -> None:
    """What no lock, look, shield or order mends gets none."""
    litmus = LITMUS[name]
    report = sim.explore(litmus.program, sim.DPOR(), litmus.check, **litmus.settings)
    assert report.failures[0].repairs() == []


def test_failure_of_a_short_search_is_told_with_a_repair() -> None:
    """It cost no more executions than the search; the failure and its report name the same one."""
    one = LITMUS["overdraw"]
    failure = sim.explore(one.program, sim.DPOR(), one.check, **one.settings).failures[0]
    told = failure.explain()
    assert "What would mend it:" in told
    first = failure.first_repair
    assert first is not None
    assert first.report.executions <= 4
    assert str(failure.repairs()[0]).startswith(str(first).partition(":")[0])


def test_repair_that_few_executions_would_pass_is_not_told_unasked() -> None:
    """One schedule alone passes in nearly every world."""
    one = LITMUS["overdraw"]
    found = sim.explore(one.program, sim.DPOR(), one.check, **one.settings).failures[0]
    only = sim.Random(sim.Choices(found.execution.choices), 1)
    failure = sim.explore(one.program, only, one.check, **one.settings).failures[0]
    assert failure.first_repair is None
    assert "What would mend it:" not in failure.explain()
