"""``record``: a production run as the trace that the simulator makes."""

from typing import Any

import trio
import trio.testing

from toolrt import Registry, Runtime, ToolCall, invariants, probe, sim, tool
from toolrt.errors import MisuseError
from toolrt.interop import record, run_sync
from toolrt.trace import Trace


@tool(safe=True)
async def nap(ctx: Any, seconds: float = 0.0) -> str:
    """Sleep."""
    await trio.sleep(seconds)
    return "slept"


CALLS = [ToolCall("a", "nap", {"seconds": 2.0}), ToolCall("b", "nap", {"seconds": 1.0})]


async def run() -> None:
    """One batch, read to the end."""
    async with Runtime(Registry([nap])).open_batch() as batch:
        for call in CALLS:
            batch.submit(call)
        batch.seal()
        async for _ in batch:
            pass


def test_record_sees_what_a_simulation_sees() -> None:
    """The same events with the same fields and times; only tasks are numbered in another order."""

    def told(trace: Trace) -> list[Any]:
        return sorted(
            (event.time, event.kind, event.fields.get("call", -1), str(event.fields)) for event in trace.events
        )

    async def recorded() -> Trace:
        with record() as recorder:
            await run()
        return recorder.trace()

    clock = trio.testing.MockClock(autojump_threshold=0)
    assert told(trio.run(recorded, clock=clock)) == told(sim.run(run).trace)


def test_record_from_outside_sees_a_whole_run() -> None:
    """Its trace keeps every law, and survives JSON."""
    with record() as recorder:
        run_sync(Runtime(Registry([nap])), [ToolCall("a", "nap"), ToolCall("b", "nap")])
    trace = recorder.trace()
    assert invariants.check(trace) == []
    assert Trace.from_json(trace.to_json()) == trace


def test_record_counts_time_on_through_two_runs() -> None:
    """Each Trio run has a clock of its own; the recording's never goes back."""
    with record() as recorder:
        for _ in range(2):
            run_sync(Runtime(Registry([nap])), [ToolCall("a", "nap")])
        probe.event("tool.effect", effect="outside")
    times = [event.time for event in recorder.trace().events]
    assert times == sorted(times)
    assert times[0] >= 0
    assert recorder.trace().events[-1].task == "outside"


def test_record_names_tasks_by_their_paths() -> None:
    """The program is main, its batch's task a child, and the calls children of that."""
    with record() as recorder:
        trio.run(run)
    tasks = {event.kind: event.task for event in recorder.trace().events}
    assert tasks["batch.opened"] == "main"
    assert tasks["lane.started"] == "main.0"
    started = {event.task for event in recorder.trace().of_kind("call.started")}
    assert started == {"main.0.0", "main.0.1"}


def test_record_is_over_when_its_block_is() -> None:
    """Nothing observes any more."""
    with record() as recorder:
        pass
    run_sync(Runtime(Registry([nap])), [])
    assert probe.sink is None
    assert recorder.trace().events == ()


def test_record_is_refused_inside_a_simulation() -> None:
    """The simulation would lose what it observes."""

    async def program() -> None:
        with record():
            raise AssertionError("never reached")

    error = sim.run(program).error
    assert isinstance(error, MisuseError)
    assert "execution.trace" in str(error)


def test_record_can_begin_in_the_middle_of_a_deep_nest() -> None:
    """Tasks nobody had met get their names from the top down."""

    async def main() -> str:
        async def inner() -> None:
            with record() as recorder:
                probe.event("tool.effect", effect="x")
            found.append(recorder.trace().events[0].task)

        async def outer() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(inner)

        found: list[str] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outer)
        return found[0]

    assert trio.run(main) == "main.0.0"
