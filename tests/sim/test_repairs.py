"""What would mend a failure: each repair was explored, and written by hand as proposed it holds."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.sim._racy import HEAD, RACY, explored, module_of
from toolrt import sim
from toolrt.sim.programs.given._constraints import Again, Atomic, Before, Constraint, LockOrder, Shielded
from toolrt.teaching.litmus import LITMUS


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[Any]:
    """Gives a module with a text."""
    made: list[str] = []

    def load(text: str) -> Any:
        name = f"mended_{len(made)}_{tmp_path.name}"
        made.append(name)
        return module_of(text, tmp_path / f"{name}.py")

    yield load
    for name in made:
        del sys.modules[name]


def _written(text: str, constraint: Constraint) -> str:
    """The text as a person would write it: a lock round each place, locks sorted, a loop, a shield, an event."""
    lines = text.split("\n")

    def indent(number: int) -> str:
        return " " * (len(lines[number]) - len(lines[number].lstrip()))

    def end_of(first: int, last: int) -> int:
        """Give the last line of the statements that the lines are of."""
        end, margin = last, indent(first - 1)
        while end < len(lines) and lines[end].strip() and len(indent(end)) > len(margin):
            end += 1
        return end

    if isinstance(constraint, LockOrder):
        for first, last in sorted(constraint.regions, key=lambda region: -region[0].number):
            at = first.number - 1
            taken = "\n".join(lines[at : last.number])
            locks = re.findall(r"async with ([\w.]+):", taken)
            for place, lock in enumerate(locks):
                taken = taken.replace(f"async with {lock}:", f"async with in_order[{place}]:")
            lines[at : last.number] = [f"{indent(at)}in_order = sorted(({', '.join(locks)}), key=LOCKS.index)", taken]
        return "\n".join(lines)
    if isinstance(constraint, Again):
        at = constraint.place.number - 1
        lines[at] = lines[at].replace("if ", "while ", 1)
        return "\n".join(lines)
    if isinstance(constraint, Before):
        first, second = constraint.first.number, constraint.second.number
        sets, waits = f"{indent(first - 1)}EVENT.set()", f"{indent(second - 1)}await EVENT.wait()"
        for at, line in sorted([(end_of(first, first), sets), (second - 1, waits)], reverse=True):
            lines.insert(at, line)
        return "\n".join(lines).replace(*_MADE)
    held = "with trio.CancelScope(shield=True):" if isinstance(constraint, Shielded) else "async with LOCK:"
    regions = constraint.regions if isinstance(constraint, Atomic) else [(constraint.first, constraint.last)]
    for first, last in sorted(regions, key=lambda region: -region[0].number):
        start, end = first.number - 1, end_of(first.number, last.number)
        inside = [f"    {line}" if line.strip() else line for line in lines[start:end]]
        lines[start:end] = [f"{indent(start)}{held}", *inside]
    return "\n".join(lines).replace(*_MADE)


#: Each execution makes its own lock and event.
_MADE = (
    "async def program():\n",
    "async def program():\n    global LOCK, EVENT\n    LOCK, EVENT = trio.Lock(), trio.Event()\n",
)

#: For the one no repair is there, the other one's lock is left before the wait in the middle of a statement.
_NOT_WRITTEN = ("closed by the first that is done", "lost wake-up")

#: The texts of the programs, twenty-six, into which the first repair is written.
_MENDED = {name: text for name, (_, text) in RACY.items() if name not in _NOT_WRITTEN}


@pytest.mark.seldom
@pytest.mark.drawn(10)
@pytest.mark.parametrize("name", _MENDED)
def test_repair_that_is_proposed_first_mends_the_program_when_it_is_written(name: str, loaded: Any) -> None:
    """Explored as the failure was found; and again with the repair in its source at the lines that it names."""
    text = HEAD + _MENDED[name]
    report = explored(loaded(text))
    assert report.verdict is sim.FAIL
    repairs = report.failures[0].repairs()
    assert repairs
    first = repairs[0]
    assert first.report.verdict is sim.PASS
    assert first.report.complete
    assert first.lost == ()
    assert first.may_overfit is isinstance(first.constraint, Shielded | Before)
    assert re.search(r"\blines? \d+", first.text)
    assert str(first.report.executions) in str(first)
    assert explored(loaded(_written(text, first.constraint))).verdict is sim.PASS


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


@pytest.mark.drawn(3)
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


@pytest.mark.seldom
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


async def pulse_is_missed() -> None:
    """An event is replaced when it is set: a task that comes late waits for ever."""
    gate = {"event": trio.Event()}

    async def listen() -> None:
        await trio.lowlevel.checkpoint()
        await gate["event"].wait()

    async def pulse() -> None:
        set_now, gate["event"] = gate["event"], trio.Event()
        set_now.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        nursery.start_soon(pulse)


async def used_before_it_is_there() -> None:
    """A task reads what the other one has not written; in the schedule that fails it never is."""
    result: dict[str, int] = {}

    async def fetch() -> None:
        await trio.sleep(1)
        result["x"] = 1

    async def use() -> None:
        await trio.sleep(1)
        assert result["x"] == 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fetch)
        nursery.start_soon(use)


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("program", "first", "second", "done"),
    [
        (pulse_is_missed, 'gate["event"].wait()', 'set_now, gate["event"] = ', "reached"),
        (used_before_it_is_there, 'result["x"] = 1', 'assert result["x"]', "passed"),
    ],
)
def test_order_of_two_lines_mends_what_comes_too_early(program: Any, first: str, second: str, done: str) -> None:
    """A line that waits has to be reached only; a write that the failing schedule has not is seen where it passes."""
    lines, start = inspect.getsourcelines(program)
    early, late = (max(at for at, line in enumerate(lines, start) if text in line) for text in (first, second))
    failure = sim.explore(program, sim.DPOR(), track=[__name__]).failures[0]
    told = str(failure.repairs()[0])
    assert re.match(rf"an event: line {late} of \w+ waits until line {early} of \w+ has been {done}: ", told)
    assert failure.repairs()[0].constraint.code.endswith(", reached=True)") is (done == "reached")


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("name", "most", "says"),
    [("overdraw", 200, False), ("overdraw", 4, True), ("two_stages_apart", 200, True)],
    ids=["often", "a sample that says little", "several functions"],
)
def test_sample_that_may_hide_the_failure_says_so(name: str, most: int, says: bool) -> None:
    """Few executions would have failed anyway, or the lock stands in several functions and moves other moments."""
    litmus = LITMUS[name]
    strategy = sim.Random(sim.RandomWalk(seed=1), most)
    first = sim.explore(litmus.program, strategy, litmus.check, **litmus.settings).failures[0].repairs()[0]
    assert isinstance(first.constraint, Atomic)
    assert first.may_overfit is says
    assert ("it may hide the failure" in first.text) is says


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
