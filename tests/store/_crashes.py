"""One batch of many kinds of tools, stopped at each commit and resumed, with its effects counted."""

from __future__ import annotations

import collections
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

import toolrt
from toolrt import Change, Outcome, Registry, Runtime, Tool, ToolCall, ToolContext, ToolOutput, ToolResult
from toolrt.store import MemoryRecords


class Crash(BaseException):
    """The process ends here."""


@attrs.define(eq=False)
class World:
    """What outlives a process: the records, and what tools did."""

    records: MemoryRecords = attrs.field(factory=MemoryRecords)
    #: How often each effect took place.
    effects: collections.Counter[str] = attrs.field(factory=collections.Counter)
    #: Results that were handed out.
    delivered: dict[int, ToolResult] = attrs.field(factory=dict)
    #: How often the approval check was asked about a call, and answered.
    asked: collections.Counter[int] = attrs.field(factory=collections.Counter)
    answered: collections.Counter[int] = attrs.field(factory=collections.Counter)
    #: What the model asks for.
    calls: list[ToolCall] = attrs.field(factory=lambda: CALLS)
    #: How many commits the process that runs has begun and ended.
    moments: int = 0
    #: Whether it has crashed; what its tasks are still given as they unwind does not count.
    is_dead: bool = False

    def starts(self, crash_at: int | None) -> None:
        """A process starts, which will crash at the moment `crash_at`: before or after a commit."""
        self.moments, self.is_dead = 0, False
        self.records.running.clear()

        def at_commit(count: int, is_done: bool) -> None:
            self.moments += 1
            if crash_at is not None and self.moments > crash_at:
                self.is_dead = True
                raise Crash

        self.records.at_commit = at_commit

    def runtime(self, tools: list[Tool] | None = None, **options: Any) -> Runtime:
        """The runtime of a new process."""
        registry = Registry(tools_of(self) if tools is None else tools)
        return Runtime(registry, journal=toolrt.Journal(self.records), **options)

    def did(self, effect: str) -> None:
        """An effect takes place."""
        self.effects[effect] += 1


def tools_of(world: World) -> list[Tool]:
    """Tools of all kinds, whose effects `world` counts."""

    @toolrt.tool(claims=lambda input, state: [toolrt.Claim(("shop", input["what"]), toolrt.WRITE)], schema=None)
    async def buy(ctx: ToolContext, what: str) -> ToolOutput:
        await trio.lowlevel.checkpoint()
        world.did(f"buy {what} in {ctx.batch_id}#{ctx.call_index}")
        await trio.lowlevel.checkpoint()
        return ToolOutput(f"bought {what}", modifiers=[Change.append("bought", what)])

    @toolrt.tool(idempotent=True, claims=[], schema=None)
    async def put(ctx: ToolContext, what: str) -> str:
        world.did(f"put {what}")
        return f"put {what}"

    @toolrt.tool(claims=[], schema=None)
    def count(ctx: ToolContext, what: str) -> tuple[str, int]:
        world.did(f"count {what}")
        return what, len(what)

    @toolrt.tool(claims=[], schema=None)
    async def fail(ctx: ToolContext, what: str) -> None:
        world.did(f"fail {what}")
        raise ValueError(f"no {what}")

    @toolrt.tool(claims=[], timeout=1.0, schema=None)
    async def sleep(ctx: ToolContext, what: str) -> None:
        world.did(f"sleep {what}")
        await trio.sleep(5)

    @toolrt.tool(idempotent=True, claims=[toolrt.Claim("shop", toolrt.WRITE, subtree=True)], schema=None)
    async def several(ctx: ToolContext, what: str) -> list[ToolResult]:
        outcome = await ctx.run([ToolCall(part, "buy", {"what": part}) for part in what])
        return list(outcome.results)

    @toolrt.tool(stops_batch=True, claims=[], schema=None)
    async def guard(ctx: ToolContext, what: str) -> ToolOutput:
        world.did(f"guard {what}")
        return ToolOutput(error=f"stop at {what}")

    return [buy, put, count, fail, sleep, several, guard]


#: Every tool, two calls on one resource, an unknown tool, one that is denied, and what a stop skips.
CALLS = [
    ToolCall(str(index), name, {"what": what})
    for index, (name, what) in enumerate(
        [
            ("buy", "pen"),
            ("put", "jar"),
            ("buy", "pen"),
            ("unknown", "x"),
            ("count", "four"),
            ("fail", "luck"),
            ("sleep", "late"),
            ("buy", "forbidden"),
            ("several", "ab"),
            ("guard", "door"),
            ("buy", "never"),
        ]
    )
]
OUTCOMES = [
    Outcome.OK,
    Outcome.OK,
    Outcome.OK,
    Outcome.INVALID,
    Outcome.OK,
    Outcome.ERROR,
    Outcome.TIMED_OUT,
    Outcome.DENIED,
    Outcome.OK,
    Outcome.ERROR,
    Outcome.SKIPPED,
]


def approve_in(world: World) -> Callable[[toolrt.ApprovalRequest], Awaitable[bool]]:
    """A person who is asked about each call, and takes a moment."""

    async def approve(request: toolrt.ApprovalRequest) -> bool:
        world.asked[request.call_index] += 1
        await trio.lowlevel.checkpoint()
        return request.input["what"] != "forbidden"

    return approve


async def first(world: World, crash_at: int | None) -> toolrt.BatchOutcome | None:
    """The first process: it runs the batch and takes its results as they come; None: it crashed."""
    world.starts(crash_at)
    runtime = world.runtime(approve=approve_in(world))
    batch = runtime.open_batch(batch_id="b")
    try:
        async with batch:
            for call in world.calls:
                batch.submit(call)
            batch.seal()
            async for update in batch:
                if isinstance(update, toolrt.ResultReady) and not world.is_dead:
                    world.delivered[update.result.call_index] = update.result
    except BaseException as error:
        if not crashed(error):
            raise
        return None
    return batch.outcome


async def later(world: World, crash_at: int | None = None) -> toolrt.BatchOutcome | None:
    """A later process: it resumes the batch; None: it crashed, too."""
    world.starts(crash_at)
    try:
        outcome = await world.runtime(approve=approve_in(world)).resume("b")
    except BaseException as error:
        if not crashed(error):
            raise
        return None
    return outcome


def crashed(error: BaseException) -> bool:
    """Whether the process crashed, and nothing else went wrong."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(crashed, error.exceptions))
    return isinstance(error, Crash)


def wrong(world: World, outcome: toolrt.BatchOutcome, whole: toolrt.BatchOutcome) -> list[str]:
    """What is wrong with the `outcome` of a batch that was stopped; `whole` is that of one that was not."""
    found = [f"twice: {one}" for one, times in world.effects.items() if times > 1 and not one.startswith("put")]
    lost = []
    if len(outcome.results) < len(whole.results) and (world.effects or world.delivered):
        found.append(f"there are {len(outcome.results)} results")
    for index, (result, expected) in enumerate(zip(outcome.results, whole.results, strict=False)):
        if result.call_index != index:
            found.append(f"result {result.call_index} in the place of {index}")
        if index in world.delivered and result != world.delivered[index]:
            found.append(f"delivered {world.delivered[index].outcome}, then {result.outcome} of call {index}")
        if result.outcome is Outcome.INTERRUPTED:
            lost.append(index)
            if "may have landed" not in str(result.error):
                found.append(f"call {index} does not say that it may have happened")
        elif result != expected and result.name != "several":
            found.append(f"call {index}: {result}, expected {expected}")
    answered = [call for index, call in enumerate(world.calls[: len(outcome.results)]) if index not in lost]
    bought = [call.input["what"] for call in answered if call.name == "buy" and call.input["what"] == "pen"]
    if outcome.state != toolrt.State({"bought": tuple(bought)} if bought else {}):
        found.append(f"the state is {outcome.state}")
    return found
