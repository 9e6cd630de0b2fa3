"""Ctrl-C at any instruction of the runtime: every ticket goes back, and the next batch runs."""

from __future__ import annotations

import dis
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from tests._profile import FULL
from tests.runtime._tools import READ, WRITE, call, claims, outcomes, runtime
from toolrt import Runtime, State, ToolContext, ToolOutput
from toolrt.model import Allow

#: How many interrupts each scenario has: 3,000 in all with HYPOTHESIS_PROFILE=full.

POINTS = 600 if FULL else 50

#: Python looks at no signal between a coroutine's yield and the place where it is awaited.
NEVER = {
    dis.opmap[name]
    for name in ("SEND", "YIELD_VALUE", "RESUME", "JUMP_BACKWARD_NO_INTERRUPT", "END_SEND")
    if name in dis.opmap
}

HERE = str(Path(toolrt.__file__).parent)


class _Interrupter:
    """Presses Ctrl-C once, at the n-th instruction that is traced; real, so Trio decides what becomes of it."""

    def __init__(self, point: int | None) -> None:
        self.point = point
        self.seen = 0
        self.where: str | None = None

    def __enter__(self) -> _Interrupter:
        # Python 3.12 shows instructions only where some frame had asked for them before.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        frame.f_trace_opcodes = True
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "opcode" and frame.f_code.co_code[frame.f_lasti] not in NEVER:
            self.seen += 1
            if self.seen == self.point:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
                signal.raise_signal(signal.SIGINT)
        return self._stepped


@toolrt.tool(claims=claims(("f", WRITE)))
async def writes(ctx: ToolContext) -> ToolOutput:
    """Tells, waits and changes the state."""
    ctx.progress("writing")
    await trio.lowlevel.checkpoint()
    return ToolOutput("written", modifiers=[lambda state: state.set("n", state.get("n", 0) + 1)])


@toolrt.tool(safe=lambda input: True, stops_batch=lambda input: True)
async def looks(ctx: ToolContext) -> str:
    """Shares a lane."""
    await trio.lowlevel.checkpoint()
    return "seen"


@toolrt.tool(claims=claims(("f", WRITE), ("g", READ)), timeout=60.0)
async def opens(ctx: ToolContext) -> list[str]:
    """Runs two calls as a sub-batch."""
    return outcomes((await ctx.run([call("writes"), call("writes")])).results)


@toolrt.tool
async def alone(ctx: ToolContext) -> None:
    """Has a lane to itself."""


CALLS = [call(name) for name in ("writes", "writes", "looks", "opens", "alone", "writes")]


async def _slowly(request: Any) -> Allow:
    await trio.lowlevel.checkpoint()
    return Allow()


async def _run(given: Runtime) -> list[Any]:
    return [(await given.run(CALLS, State())).results]


async def _read(given: Runtime) -> list[Any]:
    async with given.open_batch(State()) as batch:
        for one in CALLS:
            batch.submit(one)
        batch.seal()
        async for _ in batch:
            pass
    return [batch.outcome.results]


async def _beside_another(given: Runtime) -> list[Any]:
    found: list[Any] = []

    async def one() -> None:
        found.append((await given.run(CALLS[:4], State())).results)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        nursery.start_soon(one)
    return found


async def _cancelled(given: Runtime) -> list[Any]:
    with trio.CancelScope() as scope:
        async with given.open_batch(State()) as batch:
            for one in CALLS:
                batch.submit(one)
            await trio.lowlevel.checkpoint()
            scope.cancel()
    return [batch.outcome.results]


def _on_trio(program: Callable[[Runtime], Any]) -> Callable[[Runtime], Any]:
    return lambda given: trio.run(program, given)


SCENARIOS: dict[str, tuple[Callable[[Runtime], Any], dict[str, Any]]] = {
    "run": (_on_trio(_run), {}),
    "read": (_on_trio(_read), {"limit": 1}),
    "approved": (_on_trio(_run), {"approve": _slowly}),
    "beside_another": (_on_trio(_beside_another), {"limit": 2}),
    "cancelled": (_on_trio(_cancelled), {}),
    "run_sync": (lambda given: toolrt.run_sync(given, CALLS), {}),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_interrupt_at_any_instruction_leaves_nothing(name: str) -> None:
    """After each the table is empty, and the next batch on it answers as if there had been none."""
    scenario, options = SCENARIOS[name]
    given = runtime(writes, looks, opens, alone, **options)
    empty = given.tables[0].statistics()
    scenario(given)
    with _Interrupter(None) as counting:
        scenario(given)
    assert counting.seen > POINTS
    raised = 0
    # An odd step, so that successive points are not the same instruction of a loop.
    for point in range(1, counting.seen, max(1, counting.seen // POINTS) | 1):
        with _Interrupter(point) as interrupter:
            try:
                scenario(given)
            except* KeyboardInterrupt:
                raised += 1
        assert given.tables[0].statistics() == empty, interrupter.where
        if point % 7 == 0 or not FULL:
            assert _next_batch(given) == ["ok"] * len(CALLS), interrupter.where
    assert raised > POINTS // 2


def _next_batch(given: Runtime) -> list[str]:
    async def program() -> list[str]:
        with trio.fail_after(60):
            return outcomes((await given.run(CALLS)).results)

    return trio.run(program, clock=trio.testing.MockClock(autojump_threshold=0))


def test_code_of_tools_and_authors_can_be_interrupted() -> None:
    """Ctrl-C comes up at once in a tool and in what its author says of it: one that does not end can be ended."""
    seen: list[str] = []

    def pressed(where: str) -> Any:
        seen.append(where)
        signal.raise_signal(signal.SIGINT)
        seen.append(f"{where} went on")

    async def body(ctx: ToolContext) -> Any:
        return pressed("tool")

    async def modifying(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(1, modifiers=[lambda state: pressed("modifier")])

    async def awaited(request: Any) -> Any:
        return pressed("awaited approval")

    fine = toolrt.tool(name="t", safe=True)(alone.function)
    cases: list[tuple[str, toolrt.Tool, dict[str, Any]]] = [
        ("tool", toolrt.tool(name="t")(body), {}),
        ("timed", toolrt.tool(name="t", timeout=9.0)(body), {}),
        ("modifier", toolrt.tool(name="t")(modifying), {}),
        ("safe", toolrt.tool(name="t", safe=lambda input: pressed("safe"))(alone.function), {}),
        ("claims", toolrt.tool(name="t", claims=lambda input, state: pressed("claims"))(alone.function), {}),
        ("stops", toolrt.tool(name="t", stops_batch=lambda input: pressed("stops"))(alone.function), {}),
        ("policy", fine, {"lanes": lambda tool, input: pressed("policy")}),
        ("awaited approval", fine, {"approve": awaited}),
    ]
    for name, tool, options in cases:
        seen.clear()
        given = runtime(tool, **options)
        with pytest.raises(KeyboardInterrupt):
            trio.run(given.run, [call("t")])
        assert len(seen) == 1, (name, seen)
        assert not given.tables[0].busy
