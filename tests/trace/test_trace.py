"""Events, steps, happens-before, and the trace's JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

from toolrt import probe, sim, trace
from toolrt.errors import InputRefused, InternalError
from toolrt.events import BatchLeft
from toolrt.teaching import lab
from toolrt.teaching.litmus import LITMUS
from toolrt.trace import Access, Edge, Recorder, Step, Trace, TraceEvent, plain, recording, stable_text


def step(index: int, task: str, *accesses: Access, causes: tuple[int, ...] = ()) -> Step:
    """Give a step of a trace made by hand."""
    return Step(index, task, (task,), 0, accesses, 0.0, causes)


READ_X, WRITE_X = Access(("x",), False), Access(("x",), True)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.lists(st.tuples(st.sampled_from("xy"), st.booleans()), max_size=2),
            st.lists(st.integers(0, 12), max_size=2),
        ),
        max_size=12,
    )
)
def test_happens_before_is_the_closure_of_its_edges(rows) -> None:
    """Vector clocks say what a search over the edges says, for any trace."""
    steps = [
        step(index, task, *(Access((name,), write) for name, write in accesses), causes=tuple(causes))
        for index, (task, accesses, causes) in enumerate(rows)
    ]
    trace = Trace((), steps)
    before: list[set[int]] = []
    for index, one in enumerate(steps):
        direct = {cause for cause in one.causes if cause < index}
        for earlier in steps[:index]:
            if earlier.task == one.task or any(
                mine.conflicts_with(other) for mine in one.accesses for other in earlier.accesses
            ):
                direct.add(earlier.index)
        before.append(direct.union(*(before[other] for other in direct)))
    for first in range(len(steps)):
        for second in range(len(steps)):
            assert trace.happens_before(steps[first], steps[second]) is (first in before[second])
            apart = first != second and first not in before[second] and second not in before[first]
            assert trace.concurrent(steps[first], steps[second]) is apart


def test_simulated_spawn_and_join_are_ordered() -> None:
    """Spawning happens before the child, and all children before what follows their nursery."""

    async def program() -> None:
        async def child() -> None:
            await checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            nursery.start_soon(child)
        await checkpoint()

    for seed in range(20):
        trace = sim.run(program, sim.RandomWalk(seed)).trace
        first, *middle, joined, last = trace.steps
        assert {one.task for one in middle} == {"main.0", "main.1"}
        assert joined.task == last.task == "main"
        for one in middle:
            assert trace.happens_before(first, one)
            assert trace.happens_before(one, joined)
        left = [one for one in middle if one.task == "main.0"]
        right = [one for one in middle if one.task == "main.1"]
        assert all(trace.concurrent(one, other) for one in left for other in right)


def test_simulated_join_of_ended_children_is_ordered() -> None:
    """Children that ended before the nursery's body did happen before what follows the nursery."""

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(checkpoint)
            await trio.sleep(1)
        await checkpoint()

    trace = sim.run(program).trace
    child = next(one for one in trace.steps if one.task == "main.0")
    assert trace.happens_before(child, trace.steps[-1])
    woken = next(one for one in trace.steps if one.task == "main" and one.time == 1.0)
    assert trace.concurrent(child, woken)


def test_simulated_wake_is_ordered() -> None:
    """Setting an event happens before its waiter goes on."""

    async def program() -> None:
        event = trio.Event()

        async def wait() -> None:
            await event.wait()
            probe.event("woken")

        async def wake() -> None:
            await checkpoint()
            probe.event("set")
            event.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            nursery.start_soon(wake)

    trace = sim.run(program, sim.Fifo()).trace
    (set_event,), (woken,) = trace.of_kind("set"), trace.of_kind("woken")
    assert trace.happens_before(set_event, woken)


def test_events_of_one_step_are_ordered_by_sequence() -> None:
    """Within a step, what was reported first happened first."""

    async def program() -> None:
        probe.event("first")
        probe.event("second")

    trace = sim.run(program).trace
    first, second = trace.events
    assert trace.happens_before(first, second)
    assert not trace.happens_before(second, first)
    assert not trace.concurrent(first, second)


def test_events_know_their_step_time_and_task() -> None:
    """A simulated event says in which step, at which virtual second and in which task it happened."""

    async def program() -> None:
        await trio.sleep(2)
        probe.event("slept", seconds=2)

    (event,) = sim.run(program).trace.events
    assert event == TraceEvent(0, 1, 2.0, "main", "slept", {"seconds": 2})


def test_of_kind_gives_several_kinds_in_order() -> None:
    """of_kind keeps the order of the trace."""
    trace = Trace([(None, 0.0, "a", kind, {}) for kind in ("x", "y", "z", "x")])
    assert [event.seq for event in trace.of_kind("x", "z")] == [0, 2, 3]


def test_step_of_another_trace_is_refused() -> None:
    """A step that the trace does not have cannot be placed."""
    with pytest.raises(InternalError):
        Trace((), [step(0, "a")]).happens_before(step(0, "a"), step(5, "a"))


def test_json_round_trip_keeps_the_bytes() -> None:
    """Reading a trace and writing it again gives the same text."""

    async def program() -> None:
        sim.Cell(0, name="x").set(1)
        probe.event("odd", value=1.5, items=[1, None, True], nested={"b": 1, "a": "ä"})
        await trio.sleep(0.1)

    trace = sim.run(program).trace
    trace.notes["oracle"] = [1, 2]
    text = trace.to_json()
    assert Trace.from_json(text).to_json() == text
    assert Trace.from_json(text) == trace
    assert Trace.from_json(text).notes == {"oracle": [1, 2]}


def test_json_has_a_version() -> None:
    """The document says what it is."""
    assert json.loads(Trace().to_json())["toolrt_trace"] == 1


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda document: document.update(toolrt_trace=2), "toolrt_trace"),
        (lambda document: document.update(schema=2), "schema is 2, expected 1 to 1"),
        (lambda document: document.update(steps={}), "steps"),
        (lambda document: document.update(meta=[]), "meta"),
        (lambda document: document["steps"][1].update(task=3), "steps[1].task"),
        (lambda document: document["steps"][1].update(task="nobody"), "steps[1].task"),
        (lambda document: document["steps"][1].update(causes=[1]), "steps[1].causes"),
        (lambda document: document["steps"][0].update(touched=[["x"]]), "steps[0].touched"),
        (lambda document: document["events"][0].update(step=9), "events[0].step"),
        (lambda document: document["events"][0].update(time="now"), "events[0].time"),
        (lambda document: document["events"][0].pop("fields"), "events[0].fields"),
    ],
)
def test_bad_json_is_refused_with_its_place(change, place: str) -> None:
    """What is wrong in a trace's JSON is named by its place."""

    async def program() -> None:
        probe.event("begun")
        await checkpoint()

    document = json.loads(sim.run(program).trace.to_json())
    change(document)
    with pytest.raises(InputRefused) as caught:
        Trace.from_json(json.dumps(document))
    assert place in str(caught.value)


def test_text_that_is_no_json_is_refused() -> None:
    """A text that is not JSON is refused."""
    with pytest.raises(InputRefused):
        Trace.from_json("{")


class _Raises:
    def __repr__(self) -> str:
        raise ValueError("no repr")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        ({3, 1, 2}, [1, 2, 3]),
        ({"b", "a"}, ["a", "b"]),
        ({1: "one", (2, 3): "pair"}, {"1": "one", "(2, 3)": "pair"}),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (b"bytes", "b'bytes'"),
        (_Raises(), "<_Raises whose repr raises ValueError>"),
    ],
)
def test_odd_values_become_json(value: object, expected: object) -> None:
    """What JSON does not have becomes what it has, and never raises."""
    assert plain(value) == expected


def test_addresses_are_never_written() -> None:
    """An object's default repr loses its address."""
    assert "0x" not in stable_text(object())
    assert "0x" not in stable_text([object(), test_addresses_are_never_written])


def test_value_that_holds_itself_becomes_text() -> None:
    """A list inside itself ends somewhere."""
    loop: list[object] = []
    loop.append(loop)
    json.dumps(plain(loop))


def test_recorder_reads_clock_and_task_for_each_event() -> None:
    """A production recording asks for the time and the task when an event is reported."""
    now = iter([1.0, 2.0])
    with recording(clock=lambda: next(now), task=lambda: "worker") as recorder:
        probe.event("a", n=1)
        probe.event("b")
        probe.access(("x",), True)
    assert [(event.time, event.task, event.kind, event.step) for event in recorder.trace().events] == [
        (1.0, "worker", "a", None),
        (2.0, "worker", "b", None),
    ]


def test_recording_restores_the_observer_before_it() -> None:
    """Recordings nest, and end with their block."""
    with recording(lambda: 0.0, lambda: "t") as outer:
        with recording(lambda: 0.0, lambda: "t") as inner:
            probe.event("inner")
        probe.event("outer")
    assert probe.sink is None
    assert [event.kind for event in inner.trace().events] == ["inner"]
    assert [event.kind for event in outer.trace().events] == ["outer"]


def test_production_events_are_ordered_within_their_task() -> None:
    """Without steps only one task's own events have an order."""
    recorder = Recorder(lambda: 0.0, iter(["a", "b", "a"]).__next__)
    for kind in ("x", "y", "z"):
        recorder.event(kind, {})
    trace = recorder.trace({"from": "production"})
    first, other, last = trace.events
    assert trace.happens_before(first, last)
    assert trace.concurrent(first, other)
    assert trace.meta == {"from": "production"}


def test_edges_say_why_a_step_came_later() -> None:
    """A cause and a conflict are two reasons; the order of one task's own steps is none."""
    steps = [step(0, "a", WRITE_X), step(1, "b", causes=(0,)), step(2, "a", READ_X), step(3, "b", WRITE_X)]
    assert Trace((), steps).edges == (Edge(0, 1, (), True), Edge(0, 3, (("x",),), False), Edge(2, 3, (("x",),), False))


def test_races_are_edges_that_nothing_else_orders() -> None:
    """The write that b had already seen is no race; the read it could not know of is one."""
    steps = [step(0, "a", WRITE_X), step(1, "b", causes=(0,)), step(2, "a", READ_X), step(3, "b", WRITE_X)]
    assert Trace((), steps).races == (Edge(2, 3, (("x",),), False),)


def test_woken_step_is_no_race() -> None:
    """Who was woken by whoever wrote could not have come first."""
    steps = [step(0, "a", WRITE_X), step(1, "b", READ_X, causes=(0,))]
    trace = Trace((), steps)
    assert trace.edges == (Edge(0, 1, (("x",),), True),)
    assert trace.races == ()


def test_every_race_of_trace_has_a_schedule_the_other_way_round() -> None:
    """In the litmus of two unlocked counters, swapping a race's two steps is another schedule that can happen."""
    executions = lab.collect(LITMUS["lost_update_2x1"].program, sim.Exhaustive()).executions
    orders = {execution.schedule.tasks for execution in executions}
    found = 0
    for execution in executions:
        for race in execution.trace.races:
            found += 1
            first, second = (execution.trace.steps[index] for index in (race.before, race.after))
            rest = [one.task for one in execution.trace.steps[race.before + 1 : race.after]]
            before = execution.schedule.tasks[: race.before]
            # What is between them either comes with the second, or stays behind the first.
            mine = [task for task in rest if task == second.task]
            others = [task for task in rest if task != second.task]
            swapped = (*before, *mine, second.task, first.task, *others)
            assert any(order[: len(swapped)] == swapped for order in orders)
    assert found


def test_clock_of_step_counts_what_came_before() -> None:
    """The vector clock names the tasks that count, and leaves out the others."""
    trace = Trace((), [step(0, "a"), step(1, "b"), step(2, "b", causes=(0,))])
    assert trace.clock_of(trace.steps[1]) == {"b": 1}
    assert trace.clock_of(trace.steps[2]) == {"a": 1, "b": 2}


#: Written before traces named the version of their events' fields.
UNVERSIONED = Path(__file__).parents[1] / "view" / "data" / "batch.json"


def test_trace_without_a_schema_is_read() -> None:
    """A file of an earlier toolrt reads as it is, each event as a record, and is written with the version of today."""
    text = UNVERSIONED.read_text(encoding="utf-8").strip()
    trace = Trace.from_json(text)
    assert all(event.record is not None for event in trace.events)
    assert trace.of_kind(BatchLeft) == trace.of_kind("batch.left") != ()
    assert json.loads(trace.to_json()) == json.loads(text) | {"schema": 1}


def test_event_of_ones_own_or_with_wrong_fields_is_no_record() -> None:
    """Such an event is in the trace all the same."""
    raw = [(None, 0.0, "main", "mine", {"n": 1}), (None, 0.0, "main", "call.ended", {"batch": "b", "call": "0"})]
    trace = Trace(raw)
    assert [event.record for event in trace.events] == [None, None]
    assert [event.fields for event in trace.events] == [fields for *_, fields in raw]


def test_event_is_the_former_name_of_trace_event() -> None:
    """Code that was written for `toolrt.trace.Event` goes on working."""
    assert vars(trace)["__getattr__"]("Event") is TraceEvent
    with pytest.raises(AttributeError, match="has no attribute 'Evnt'"):
        vars(trace)["__getattr__"]("Evnt")
