"""A task that goes round in a circle waits until something is written, time moves, or nothing else can run."""

from __future__ import annotations

import itertools
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st

import toolrt
from tests.sim._spins import Plain, made_of, spinning
from toolrt import sim
from toolrt.errors import Livelock, StepLimit
from toolrt.sim.engine import _fairness, _scheduler

checkpoint = trio.lowlevel.checkpoint

STRATEGIES = [
    sim.Exhaustive(),
    sim.Bounded(2),
    sim.DPOR(),
    sim.Portfolio(30),
    sim.Random(sim.RandomWalk(1), 20),
    sim.Random(sim.PCT(3, 1), 20),
    sim.Random(sim.POS(1), 20),
    sim.Random(sim.URW(1), 20),
]


async def beside(spin: Callable[[], Awaitable[Any]], *others: Callable[[], Awaitable[Any]]) -> None:
    """Run them all."""
    async with trio.open_nursery() as nursery:
        for each in (spin, *others):
            nursery.start_soon(each)


async def waits_for_a_variable() -> None:
    """Poll a variable that two functions share."""
    x = None

    async def spin() -> None:
        while x is None:
            await checkpoint()

    async def put() -> None:
        nonlocal x
        await checkpoint()
        x = 1

    await beside(spin, put)


async def waits_for_a_queue() -> None:
    """Poll a list with sleep(0), in a function that is called for it."""
    queue: list[int] = []

    async def item() -> int:
        while not queue:
            await trio.lowlevel.checkpoint()
        return queue.pop()

    async def take() -> None:
        assert [await item(), await item()] == [1, 2]

    async def put() -> None:
        queue.append(1)
        await trio.sleep(1)
        queue.append(2)

    await beside(take, put)


async def waits_in_several_steps() -> None:
    """A round has two checkpoints, and reads a cell before each."""
    one, other = sim.Cell(False), sim.Cell(False)

    async def spin() -> None:
        while not one.get():
            await checkpoint()
            if other.get():
                return
            await checkpoint()

    async def put() -> None:
        await checkpoint()
        other.set(True)

    await beside(spin, put)


async def waits_for_all() -> None:
    """Poll what Trio's events say, by way of a generator."""
    events = [trio.Event(), trio.Event()]

    async def spin() -> None:
        while not all(event.is_set() for event in events):
            await checkpoint()

    async def put() -> None:
        events[0].set()
        await checkpoint()
        events[1].set()

    await beside(spin, put)


async def tries_again() -> None:
    """Poll a channel that raises as long as it is empty."""
    send, receive = trio.open_memory_channel[int](1)

    async def spin() -> None:
        while True:
            try:
                receive.receive_nowait()
            except trio.WouldBlock:
                await checkpoint()
            else:
                return

    async def put() -> None:
        await checkpoint()
        send.send_nowait(1)

    await beside(spin, put)


async def is_cancelled() -> None:
    """A task that never stops by itself is cancelled."""

    async def spin() -> None:
        while True:
            await checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(spin)
        await checkpoint()
        nursery.cancel_scope.cancel()


async def has_a_deadline() -> None:
    """Time comes to the deadline of a task that polls what never is."""
    with trio.move_on_after(5):
        while True:
            await trio.lowlevel.checkpoint()
    assert trio.current_time() == 5


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize(
    "program",
    [
        waits_for_a_variable,
        waits_for_a_queue,
        waits_in_several_steps,
        waits_for_all,
        tries_again,
        is_cancelled,
        has_a_deadline,
    ],
)
def test_polling_passes(program, strategy) -> None:
    """A right program that polls is right in every strategy, and none of its executions is cut off."""
    report = sim.explore(program, strategy, step_limit=100)
    assert report.verdict is sim.PASS, report
    assert report.outcomes.keys() == {None}


async def stuck() -> None:
    """Each polls what the other would write afterwards."""
    one = other = False

    async def first() -> None:
        nonlocal one
        while not other:
            await checkpoint()
        one = True

    async def second() -> None:
        nonlocal other
        while not one:
            await checkpoint()
        other = True

    await beside(first, second)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_fair_livelock_fails(strategy) -> None:
    """Where every task that can run does, and nothing changes, each strategy says so at once."""
    report = sim.explore(stuck, strategy)
    assert report.verdict is sim.FAIL
    assert report.outcomes == {"Livelock": report.executions}


def test_livelock_shows_its_circle() -> None:
    """The error has the steps of the circle, and each task's place; its schedule is replayed."""
    execution = sim.run(stuck)
    error = execution.error
    assert isinstance(error, Livelock)
    assert {name for _, name in error.cycle} == {"main.0", "main.1"}
    for step, name in error.cycle:
        assert execution.trace.steps[step].task == name
    places = dict(error.waiting)
    assert places["main.0"].startswith("its turn (it can run) at test_fairness.py:")
    assert "livelock at step" in str(error)
    assert "the circle: step" in str(error)
    again = sim.replay(stuck, execution.schedule.short)
    assert str(again.error) == str(error)
    assert again.trace.to_json() == execution.trace.to_json()


def test_waiting_for_the_clock_decides_nothing() -> None:
    """The virtual clock moves to deadlines only; a real one would have ended this."""

    async def program() -> None:
        while trio.current_time() < 5:
            await checkpoint()

    assert sim.explore(program, sim.Exhaustive()).verdict is sim.INCONCLUSIVE


def test_cancel_ends_a_circle() -> None:
    """A cancel may come although all tasks that can run are in circles."""
    report = sim.explore(stuck, sim.Exhaustive(), lambda execution: True, cancel_at="any")
    assert sim.CANCELLED in report.outcomes
    assert "Livelock" in report.outcomes
    assert report.outcomes.keys() <= {sim.CANCELLED, "Livelock"}


class Counter:
    """Counts in an attribute, a closure and a C object."""

    def __init__(self) -> None:
        self.count = 0
        self.items = deque(range(4))
        self.iterator = iter(range(4))
        self.generator = (n for n in range(4))
        self.set = {0, 1, 2, 3}

    def more(self) -> bool:
        """Count."""
        self.count += 1
        return self.count < 4


def _circles() -> dict[str, Callable[[], Awaitable[None]]]:
    """Loops of the same place and values in which something goes on."""

    async def attribute(it: Counter) -> None:
        while it.more():
            await checkpoint()

    async def pops(it: Counter) -> None:
        while it.items:
            it.items.popleft()
            await checkpoint()

    async def pops_through_a_name(it: Counter) -> None:
        pop = it.set.pop
        while it.set:
            pop()
            await checkpoint()

    async def moves_an_iterator(it: Counter) -> None:
        while next(it.iterator, None) is not None:
            await checkpoint()

    async def moves_a_generator(it: Counter) -> None:
        while any(True for _ in itertools.islice(it.generator, 1)):
            await checkpoint()

    async def on_the_stack(it: Counter) -> None:
        for _ in itertools.repeat(None, 3):
            await checkpoint()

    async def closure(it: Counter) -> None:
        left = 3

        def less() -> None:
            nonlocal left
            left -= 1

        while left:
            less()
            await checkpoint()

    async def in_place(it: Counter) -> None:
        items = [0]
        while len(items) < 4:
            items += [0]
            await checkpoint()

    async def local(it: Counter) -> None:
        left = 3
        while left:
            left = left - 1
            await checkpoint()

    return dict(locals())


@pytest.mark.parametrize("name", _circles())
def test_progress_is_no_circle(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that comes to the same place, and gets on unseen, is interleaved as without fairness."""
    loop = _circles()[name]

    async def program() -> Any:
        log: list[int] = []

        async def run() -> None:
            await loop(Counter())
            log.append(1)

        async def other() -> None:
            await checkpoint()
            log.append(2)

        await beside(run, other)
        return tuple(log)

    fair = sim.explore(program, sim.Exhaustive(), lambda execution: True)
    monkeypatch.setattr(_fairness.Fairness, "yields", lambda *_: False)
    assert fair.outcomes == sim.explore(program, sim.Exhaustive(), lambda execution: True).outcomes


@pytest.mark.parametrize("program", [waits_for_a_variable, waits_in_several_steps, stuck, has_a_deadline])
def test_same_schedules_when_trio_steps(program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Trio's loop takes the steps, what is in a circle is the same."""
    inside = sim.explore(program, sim.Exhaustive(), lambda execution: True)
    seen = [sim.run(program, sim.RandomWalk(seed)).trace.to_json() for seed in range(3)]
    monkeypatch.setattr(_scheduler, "can_step_inside", lambda: False)
    outside = sim.explore(program, sim.Exhaustive(), lambda execution: True)
    assert (outside.claim, outside.outcomes) == (inside.claim, inside.outcomes)
    assert [sim.run(program, sim.RandomWalk(seed)).trace.to_json() for seed in range(3)] == seen


def test_trace_functions_are_put_back() -> None:
    """A debugger or a measurement of coverage goes on where it was."""
    import sys

    def trace(frame: Any, event: str, argument: Any) -> None:
        return None

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    try:
        sim.run(waits_for_a_variable)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before[0])
    assert sys.getprofile() is before[1]


@settings(max_examples=3)
@given(spinning, st.sampled_from([sim.Cell, Plain]))
def test_polling_programs_lose_no_outcome(tasks: list[Any], cell: Any) -> None:
    """What comes out without fairness, in as many steps as can be run, comes out with it; the reduction has all."""
    program = made_of(tasks, cell)
    fair = sim.explore(program, sim.Exhaustive(), lambda execution: True, max_executions=100, step_limit=100)
    if not fair.complete:
        return
    assert "StepLimit" not in fair.outcomes
    reduced = sim.explore(program, sim.DPOR(samples=1), lambda execution: True, step_limit=100)
    assert reduced.unfinished is None
    assert reduced.outcomes.keys() == fair.outcomes.keys()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_fairness.Fairness, "yields", lambda *_: False)
        unfair = sim.explore(program, sim.Exhaustive(), lambda execution: True, max_executions=100, step_limit=12)
    assert unfair.outcomes.keys() - {"StepLimit"} <= fair.outcomes.keys()


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR(), sim.Portfolio(20)], ids=repr)
@pytest.mark.parametrize(
    ("program", "outcome"),
    [(waits_for_a_queue, None), (is_cancelled, None), (has_a_deadline, None), (stuck, "Livelock")],
)
def test_in_trios_orders(program, outcome: object, strategy) -> None:
    """Trio's loop steps a task that polls in each pass; time moves, and a livelock is seen, as with any order."""
    report = sim.explore(program, strategy, step_limit=100, order="trio")
    assert report.outcomes.keys() == {outcome}, report
    assert report.unfinished is None


async def polls_beside_steps() -> None:
    """One polls while another writes twice; the first write comes in the midst of a pass that the polling one is in."""
    done = 0

    async def spin() -> None:
        while not done:
            await checkpoint()

    async def work() -> None:
        nonlocal done
        for _ in range(3):
            await checkpoint()
        done = 1

    await beside(spin, work)


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR(), sim.Random(sim.RandomWalk(0), 60)], ids=repr)
def test_a_task_that_yielded_is_in_a_pass_once(strategy) -> None:
    """A write in the midst of a pass does not put it there a second time."""
    report = sim.explore(polls_beside_steps, strategy, lambda execution: execution.error is None, order="trio")
    assert report.verdict is sim.PASS, report
    if strategy == sim.Exhaustive():
        assert report.executions == 16


@pytest.mark.parametrize("order", ["any", "trio"])
def test_tracked_code_tests_the_truth_of_what_it_polls(order: str) -> None:
    """A look at a container is none that writes, with tracking as without."""

    async def program() -> int:
        items: list[int] = []

        async def spin() -> None:
            while not items:
                await checkpoint()

        async def put() -> None:
            await checkpoint()
            items.append(1)

        await beside(spin, put)
        return len(items)

    counts = [
        sim.explore(program, sim.Exhaustive(), check, track=track, order=order, step_limit=60).claim
        for track in (False, True)
        for check in (None, lambda execution: True)
    ]
    schedules = {"any": 7, "trio": 4}[order]
    assert all(claim.startswith(f"exhaustive(schedules={schedules})") for claim in counts), counts


async def spins_and_counts() -> None:
    """One polls and counts, so none of its rounds is a yield; another does one thing."""
    done = turns = 0

    async def spin() -> None:
        nonlocal turns
        while not done:
            turns += 1
            await checkpoint()

    async def put() -> None:
        nonlocal done
        await checkpoint()
        done = 1

    await beside(spin, put)


async def gives_way() -> None:
    """Two tasks that each want to be alone, and step back while the other wants it too."""
    wants = [False, False]

    async def polite(me: int) -> None:
        while True:
            wants[me] = True
            await trio.lowlevel.checkpoint()
            if not wants[1 - me]:
                break
            wants[me] = False
            await trio.lowlevel.checkpoint()
        wants[me] = False

    async with trio.open_nursery() as nursery:
        nursery.start_soon(polite, 0)
        nursery.start_soon(polite, 1)


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR()], ids=repr)
def test_search_finds_the_fair_livelock_of_tasks_that_give_way(strategy: Any) -> None:
    """Both tasks step on to the limit; a task that starves is no failure."""
    report = sim.explore(gives_way, strategy, max_executions=300, step_limit=120)
    assert report.verdict is sim.FAIL
    assert isinstance(report.failures[0].error, StepLimit)
    steps = report.failures[0].schedule.tasks[60:]
    assert 20 < steps.count("main.0") < 40
    assert 20 < steps.count("main.1") < 40
    assert sim.explore(gives_way, strategy, order="trio").verdict is sim.PASS


def test_right_program_that_spins_and_counts_does_not_fail() -> None:
    """A schedule that lets a task wait for nearly all its steps is not fair, also where it has a turn at the end."""
    report = sim.explore(spins_and_counts, sim.Exhaustive(), max_executions=300, step_limit=40)
    assert report.verdict is sim.INCONCLUSIVE
    assert report.undecided
    assert sim.explore(spins_and_counts, sim.Random(sim.RandomWalk(0), 30)).verdict is sim.PASS
    assert sim.explore(spins_and_counts, sim.Exhaustive(), order="trio").verdict is sim.PASS


def test_cancel_in_trios_orders() -> None:
    """A cancel at any step comes into a circle too."""
    report = sim.explore(stuck, sim.Exhaustive(), lambda execution: True, cancel_at="any", order="trio", step_limit=100)
    assert report.outcomes.keys() == {sim.CANCELLED, "Livelock"}


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR()], ids=repr)
def test_tracked_code_polls(strategy) -> None:
    """What tracked code reports of reads is no write; what it reports of writes is."""

    async def program() -> Any:
        box: dict[str, Any] = {"x": None}
        items = [1]
        seen: list[int] = []

        async def spin() -> None:
            while box["x"] is None:
                await checkpoint()
            seen.append(len(items))

        async def pops() -> None:
            while items:
                items.pop()
                await checkpoint()

        async def put() -> None:
            await checkpoint()
            box["x"] = 1

        await beside(spin, pops, put)
        return tuple(seen)

    report = sim.explore(program, strategy, lambda execution: True, 3000, track=True, step_limit=60)
    assert report.outcomes.keys() == {(0,), (1,)}, report


def test_a_tracer_sees_the_lines_of_a_step_that_is_looked_at() -> None:
    lines: set[int] = set()

    async def program() -> None:
        box: list[int] = []

        async def spin() -> None:
            while not box:
                await checkpoint()
            await checkpoint()
            box.clear()

        async def put() -> None:
            for _ in range(9):
                await checkpoint()
            box.append(1)

        await beside(spin, put)

    def tracer(frame: Any, event: str, _: Any) -> Any:
        if event == "call":
            # As that of coverage does.
            sys.settrace(tracer)
        if frame.f_code.co_name == "spin" and event == "line":
            lines.add(frame.f_lineno - frame.f_code.co_firstlineno)
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        report = sim.explore(program, sim.Random(sim.RandomWalk(1), 2))
    finally:
        sys.settrace(before)
    assert report.verdict == "PASS"
    assert lines == {1, 2, 3, 4}


def test_details_change_no_schedule() -> None:
    """To note lines and values writes nothing that the program sees: a task that polls yields all the same."""

    async def program() -> None:
        flag = sim.Cell(0, name="flag")

        async def poll() -> None:
            while not flag.get():
                await checkpoint()

        async def put() -> None:
            await checkpoint()
            flag.set(1)

        await beside(poll, put)

    plain = sim.run(program, sim.Choices())
    told = sim.run(program, sim.Choices(), details=True)
    assert (told.choices, told.enabled) == (plain.choices, plain.enabled)
    assert told.error is None


def test_call_that_passes_checkpoints_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime's own loop around a tool is no poller; to look at each step would take five times as long."""

    @toolrt.tool(safe=True)
    async def passes(ctx: toolrt.ToolContext) -> None:
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()

    async def program() -> None:
        await toolrt.Runtime(toolrt.Registry([passes])).run([toolrt.ToolCall("a", "passes", {})])

    looked: list[object] = []
    monkeypatch.setattr(_fairness, "StepWatch", lambda: looked.append(program))
    assert sim.run(program).error is None
    assert looked == []
