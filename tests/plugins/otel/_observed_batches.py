"""Small batches for observers to be told of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import trio
from trio.testing import MockClock

import toolrt
from tests.plugins.otel._observed import Keeper
from toolrt import WRITE, Claim, Registry, Runtime, Tool, ToolCall, ToolContext


@toolrt.tool(safe=True)
async def sleep(ctx: ToolContext, seconds: float = 1.0) -> str:
    await trio.sleep(seconds)
    return "slept"


@toolrt.tool(claims=[Claim("file", WRITE)])
async def write(ctx: ToolContext, seconds: float = 1.0) -> bytes:
    await trio.sleep(seconds)
    return b"12345"


@toolrt.tool
async def alone(ctx: ToolContext) -> dict[str, int]:
    return {"a": 1}


@toolrt.tool(safe=True)
async def broken(ctx: ToolContext) -> None:
    raise LookupError("nothing there")


REGISTRY = Registry([sleep, write, alone, broken])


def run(runtime: Runtime, *calls: tuple[str, dict[str, Any]]) -> toolrt.BatchOutcome:
    """Run the calls in a clock that jumps."""
    asked = [ToolCall(f"c{index}", name, input) for index, (name, input) in enumerate(calls)]
    return trio.run(runtime.run, asked, clock=MockClock(autojump_threshold=0))


def told(*calls: tuple[str, dict[str, Any]], tools: Sequence[Tool] | None = None, **options: Any) -> Keeper:
    """What an observer is told of the calls; without `tools` they are those of `REGISTRY`."""
    keeper = Keeper()
    run(Runtime(REGISTRY if tools is None else Registry(tools), telemetry=keeper, **options), *calls)
    return keeper


def in_short(told: list[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Kind, call or lane, and what a wait is for."""
    words = [(kind, fields.get("call", fields.get("lane")), fields.get("why")) for kind, fields in told]
    return [" ".join(str(word) for word in one if word is not None) for one in words]
