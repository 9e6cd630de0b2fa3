"""Ctrl-C or an exit, wherever it comes up in a batch: the batch ends, every call is answered, and the exit goes out."""

from __future__ import annotations

from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.runtime._tools import WRITE, Diary, call, claims, outcomes, runtime
from toolrt import Claim, Services, ToolContext, ToolOutput, sim
from toolrt.errors import asks_to_exit
from toolrt.invariants import check

#: Where it comes up, and how the four calls of the batch end: one that has ended by then, the one that exits, one that
#: runs beside it, one behind it.
WHERE: dict[str, list[str]] = {
    "tool": ["ok", "interrupted", "interrupted", "not_started"],
    "group": ["ok", "interrupted", "interrupted", "not_started"],
    "timed tool": ["ok", "interrupted", "interrupted", "not_started"],
    "finishing tool": ["ok", "interrupted", "interrupted", "not_started"],
    "child": ["ok", "interrupted", "interrupted", "not_started"],
    "late approval": ["ok", "not_started", "interrupted", "not_started"],
    "modifier": ["ok", "ok", "interrupted", "not_started"],
    "service": ["ok", "ok", "ok", "not_started"],
    "late service": ["ok", "ok", "ok", "not_started"],
    "approval": ["not_started", "not_started", "not_started", "not_started"],
    "claims": ["not_started", "not_started", "not_started", "not_started"],
}


def _group(exits: type[BaseException]) -> BaseException:
    return BaseExceptionGroup("two", [ValueError("beside it"), exits("out")])


@given(
    where=st.sampled_from(sorted(WHERE)),
    exits=st.sampled_from([KeyboardInterrupt, SystemExit]),
    form=st.sampled_from(["run", "opened", "read", "cancelled too", "raises too"]),
    limit=st.sampled_from([None, 3]),
)
def test_exit_ends_the_batch_and_goes_out(where: str, exits: type[BaseException], form: str, limit: int | None) -> None:
    """No call is left without its answer, no ticket is kept, and the same runtime goes on with the next batch.

    Args:
        form: how the batch is used; ``cancelled too``: its caller's scope is cancelled, too; ``raises too``: its
            block raises meanwhile, which the exit outranks.
    """
    diary = Diary()
    file = claims((("file", "f"), WRITE))
    armed = [True]

    def out() -> Any:
        raise exits("out")

    async def leaf(ctx: ToolContext) -> None:
        await trio.sleep(2)
        out()

    async def body(ctx: ToolContext) -> Any:
        if armed[0] and where == "child":
            await ctx.run([call("leaf"), call("leaf")])
        await trio.sleep(2)
        if armed[0] and where == "group":
            raise _group(exits)
        if armed[0] and where.endswith("tool"):
            out()
        return ToolOutput("done", modifiers=[lambda state: out() if armed[0] and where == "modifier" else state])

    def claims_of(input: Any, state: Any) -> list[Claim]:
        if armed[0] and where == "claims":
            out()
        return file(input, state)

    def at_once(request: toolrt.ApprovalRequest) -> bool:
        if armed[0] and request.name == "exits":
            out()
        return True

    async def later(request: toolrt.ApprovalRequest) -> bool:
        if request.name == "exits":
            await trio.sleep(2)
            at_once(request)
        return True

    async def hears_late(changes: toolrt.LaneChanges) -> None:
        await trio.sleep(1)
        hears(changes)

    def hears(changes: toolrt.LaneChanges) -> None:
        if armed[0] and changes.lane == 0:
            out()

    options: dict[str, Any] = {"timed tool": {"timeout": 60.0}, "finishing tool": {"interrupt": "finish"}}.get(
        where, {}
    )
    tools = runtime(
        diary.tool("before", 1, safe=True),
        toolrt.tool(name="exits", claims=claims_of, **options)(body),
        toolrt.tool(name="leaf", claims=file)(leaf),
        diary.tool("beside", 5, safe=True),
        diary.tool("behind", 1),
        approve={"approval": at_once, "late approval": later}.get(where),
        services=Services(
            after_lane=[hears] if where == "service" else [hears_late] if where == "late service" else []
        ),
        limit=limit,
    )
    calls = [call(name) for name in ("before", "exits", "beside", "behind")]
    went_out: list[BaseException] = []
    kept: list[toolrt.Batch] = []
    read: list[Any] = []

    async def use() -> None:
        if form == "run":
            await tools.run(calls)
            return
        async with trio.open_nursery() as nursery, tools.open_batch() as batch:
            kept.append(batch)
            if form == "read":
                nursery.start_soon(look, batch)
            for one in calls:
                batch.submit(one)
            batch.seal()
            if form == "raises too":
                try:
                    await trio.sleep(50)
                finally:
                    raise LookupError("as it was left")

    async def look(batch: toolrt.Batch) -> None:
        async for update in batch:
            if isinstance(update, toolrt.ResultReady):
                read.append(update.result)

    async def program() -> Any:
        try:
            with trio.CancelScope() as scope:
                try:
                    await use()
                finally:
                    if form == "cancelled too":
                        scope.cancel()
        except BaseException as error:
            went_out.append(error)
        at = trio.current_time()
        armed[0] = False
        again = await tools.run(calls)
        return at, outcomes(again.results), tools.tables[0].busy

    execution = sim.run(program)
    assert execution.error is None
    at, again, busy = execution.value
    [error] = went_out
    assert type(asks_to_exit(error)) is exits
    assert (again, busy) == (["ok"] * 4, False)
    assert at == {"approval": 0, "claims": 0, "service": 5, "late service": 6}.get(where, 2), at
    for batch in kept:
        assert outcomes(batch.outcome.results) == WHERE[where]
        assert batch.cancel_reason is not None
        assert exits.__name__ in batch.cancel_reason or form == "cancelled too"
    assert form != "read" or read == list(kept[0].outcome.results[: len(read)])
    # The call that exits is answered before the batch is cancelled for it, which the law of a cancel finds too early.
    assert {(found.law, found.call) for found in check(execution.trace)} <= {
        ("cancel_truthful", 1),
        ("cancel_truthful", 0),
    }
