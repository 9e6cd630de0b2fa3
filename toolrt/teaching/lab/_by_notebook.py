"""Exercises at the end of notebooks 12 and 13: a pool that loses no slot, a lane policy that answers as serial does.

Rules.  They are no part of the semester's sheet, and are graded like those of it: the grader runs an answer, and a
finding says what goes wrong and never how to repair it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any

import attrs
import trio
import trio.testing
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.model import Registry, State, ToolCall, ToolOutput, tool
from toolrt.order import LaneChoice, PolicyCall, partition, serial
from toolrt.runtime import Runtime, ToolContext
from toolrt.teaching.lab._by_program import Program, tried
from toolrt.teaching.lab._exercise import Finding, Graders, told
from toolrt.teaching.litmus._litmus import together

# ---------------------------------------------------------------------- keep_slots

_LATE = 1.0
_SCHEDULES = 100


def _pool(size: int) -> SimpleNamespace:
    return SimpleNamespace(free=size, waiting=[])


def _uses(serve: Any, size: int, number: int, cancel: bool) -> Program:
    """Several uses begin, and may be cancelled together; then every slot has to serve again, at the same time."""

    async def program() -> str:
        pool = _pool(size)
        inside = most = done = 0

        async def use() -> None:
            nonlocal inside, most, done
            inside += 1
            most = max(most, inside)
            try:
                await checkpoint()
                done += 1
            finally:
                inside -= 1

        async with trio.open_nursery() as nursery:
            for _ in range(number):
                nursery.start_soon(serve, pool, use)
            if cancel:
                await checkpoint()
                nursery.cancel_scope.cancel()
        if not cancel and done != number:
            return f"{number} tasks came, and use() ended {done} times"
        most = max(most, left := await _slots_left(serve, pool, size))
        if left < size:
            return f"of {size} slots {left} are left: the next task waits for ever"
        return f"{most} slots were in use at once, and the pool has {size}" if most > size else ""

    return program


async def _slots_left(serve: Any, pool: SimpleNamespace, size: int) -> int:
    """Say how many tasks have a slot at once, of one more than there are slots; each keeps it until all are out."""
    inside = most = 0
    full = trio.Event()

    async def use() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        if inside >= size:
            full.set()
        try:
            await full.wait()
            await checkpoint()
        finally:
            inside -= 1

    with trio.move_on_after(_LATE):
        await together(*(lambda: serve(pool, use) for _ in range(size + 1)))
    return most


def _woken_and_cancelled(serve: Any) -> Program:
    """One slot, three tasks: the second is cancelled at any moment, and the third has to be served."""

    async def program() -> str:
        pool = _pool(1)
        served: list[str] = []

        async def one(name: str, scope: trio.CancelScope) -> None:
            async def use() -> None:
                await checkpoint()
                served.append(name)

            with scope:
                await serve(pool, use)

        scopes = [trio.CancelScope() for _ in range(3)]
        with trio.move_on_after(_LATE):
            async with trio.open_nursery() as nursery:
                for name, scope in zip("abc", scopes, strict=True):
                    nursery.start_soon(one, name, scope)
                await checkpoint()
                scopes[1].cancel()
        missing = sorted({"a", "c"} - set(served))
        return f"of the tasks a, b and c b was cancelled, and {' and '.join(missing)} waits for ever" if missing else ""

    return program


def _no_later(serve: Any) -> Program:
    """The second task begins when the first one ends: a task that looks again now and then comes too late."""

    async def program() -> str:
        pool, lasts = _pool(1), 1.03

        async def use() -> None:
            await trio.sleep(lasts)

        await together(*[lambda: serve(pool, use)] * 2)
        took = trio.current_time()
        return "" if took == 2 * lasts else f"one slot served two tasks of {lasts:g} s in {took:g} s"

    return program


def _apart(serve: Any) -> Program:
    async def program() -> str:
        async def use() -> None:
            await trio.sleep(1)

        pool = _pool(2)
        await together(*(lambda: serve(pool, use) for _ in range(2)))
        took = trio.current_time()
        return "" if took == 1 else f"two slots served two tasks of 1 s one after the other: {took:g} s"

    return program


def _failing(serve: Any) -> Program:
    async def program() -> str:
        pool = _pool(1)

        async def fails() -> None:
            await checkpoint()
            raise ValueError("no answer")

        async def use() -> None:
            await checkpoint()

        try:
            await serve(pool, fails)
        except ValueError:
            pass
        else:
            return "use() raised, and the error did not come out"
        with trio.move_on_after(_LATE) as late:
            await serve(pool, use)
        return "a use that raises takes its slot with it" if late.cancelled_caught else ""

    return program


def _asleep(serve: Any) -> Program:
    """While one task keeps the slot, the other has nothing to do: both are blocked."""

    async def program() -> str:
        pool = _pool(1)
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(serve, pool, trio.sleep_forever)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        return ""

    return program


def _keep_slots(serve: Any) -> Iterator[Finding]:
    yield tried(
        "each task is served, and no more at once than there are slots", _uses(serve, 1, 3, False), most=_SCHEDULES
    )
    yield tried("free slots are used at once", _apart(serve), most=_SCHEDULES)
    yield tried("a slot that becomes free is used at once", _no_later(serve), most=_SCHEDULES)
    yield tried("a task that waits does not ask again and again", _asleep(serve), most=_SCHEDULES)
    yield tried("a use that raises gives its slot back", _failing(serve), most=_SCHEDULES)
    yield tried("a cancel takes no slot", _uses(serve, 1, 2, True), _uses(serve, 2, 3, True), most=_SCHEDULES)
    yield tried(
        "a task that is cancelled in line holds up none behind it", _woken_and_cancelled(serve), most=_SCHEDULES
    )


# ---------------------------------------------------------------------- as_serial


@tool(name="pay", safe=True, schema=None)
async def _pay(ctx: ToolContext, amount: int) -> ToolOutput:  # noqa: ASYNC124  no thread for it
    """Pay, and answer what there was before."""
    return ToolOutput(
        f"had {ctx.state['budget']}", modifiers=[lambda state: state.set("budget", state["budget"] - amount)]
    )


@tool(name="budget", safe=True, schema=None)
async def _budget(ctx: ToolContext) -> str:  # noqa: ASYNC124  no thread for it
    """Answer what is left."""
    return f"{ctx.state['budget']} left"


@tool(name="price", safe=True, schema=None)
async def _price(ctx: ToolContext) -> str:  # noqa: ASYNC124  no thread for it
    """Answer without a look at the state."""
    return "costs 40"


_TOOLS = Registry([_pay, _budget, _price])


def _batch(*names: str) -> list[ToolCall]:
    return [ToolCall(str(place), name, {"amount": 1} if name == "pay" else {}) for place, name in enumerate(names)]


@attrs.frozen
class _Placed:
    """An answer as a lane policy."""

    place: Callable[[PolicyCall, tuple[PolicyCall, ...]], LaneChoice | bool]


def _came(lanes: Any, calls: list[ToolCall]) -> sim.Execution:
    async def program() -> Any:
        done = await Runtime(_TOOLS, lanes=lanes).run(calls, State({"budget": 9}))
        return [result.content for result in done.results], done.state["budget"]

    return sim.run(program)


def _as_serial(place: Any) -> Iterator[Finding]:
    lanes = _Placed(place)
    yield _answers_as_serial(lanes)
    for what, names in (
        ("calls that change nothing share a lane", ("budget", "price", "budget")),
        ("a change shares the lane of the calls before it", ("budget", "price", "pay")),
        ("a price shares the lane of a change", ("pay", "price", "price")),
    ):
        plan = partition(_batch(*names), _TOOLS, State({"budget": 9}), lanes)
        shown = " | ".join(" ".join(call.name for call in lane.calls) for lane in plan)
        yield Finding(len(plan) == 1, what, f"it plans {shown}")


def _answers_as_serial(lanes: _Placed) -> Finding:
    what = "every batch of up to three calls answers as it does one call at a time"
    for length in (1, 2, 3):
        for names in product(("pay", "budget", "price"), repeat=length):
            calls = _batch(*names)
            wanted, got = _came(serial, calls), _came(lanes, calls)
            if got.error is not None or got.value != wanted.value:
                came = told(got.error) if got.error is not None else f"{got.value}"
                return Finding(False, what, f"{', '.join(names)}: expected {wanted.value}, got {came}", got)
    return Finding(True, what)


#: What grades each exercise, by name.
BY_NOTEBOOK: Graders = {
    "keep_slots": _keep_slots,
    "as_serial": _as_serial,
}
