"""What is asked of a batch that it must refuse, from anywhere: it is refused, and the batch goes on as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.runtime._tools import WRITE, call, claims, outcomes, runtime
from toolrt import ToolContext
from toolrt.errors import BatchClosed, DefinitionRefused

FILE = claims(("f", WRITE))
#: What is asked of an open batch, and whether it waits.
ASKED: dict[str, Callable[[Any], Any]] = {
    "submit": lambda batch: batch.submit(call("leaf")),
    "seal": lambda batch: batch.seal(),
    "cancel": lambda batch: batch.cancel("enough"),
    "cancel a call": lambda batch: batch.cancel_call(0, "enough"),
}
AWAITED: dict[str, Callable[[Any], Any]] = {
    "read": lambda batch: batch.__anext__(),
    "leave": lambda batch: batch.__aexit__(None, None, None),
    "enter": lambda batch: batch.__aenter__(),
}
WRONG: list[Callable[[Any], Any]] = [
    lambda batch: batch.cancel_call(-1),
    lambda batch: batch.cancel_call(len(batch.calls)),
    lambda batch: batch.cancel_call(True),
    lambda batch: batch.cancel_call("0"),
    lambda batch: batch.cancel_call(0, 17),
    lambda batch: batch.cancel(17),
    lambda batch: batch.submit("leaf"),
]


async def _in_another_run(ask: Callable[[], Any]) -> None:
    """Ask in a Trio run of another thread."""

    async def main() -> None:
        with pytest.raises(BatchClosed):
            await ask()

    await trio.to_thread.run_sync(lambda: trio.run(main))


async def _refused(batch: Any, what: str) -> None:
    with pytest.raises(BatchClosed):
        if what in ASKED:
            ASKED[what](batch)
        else:
            await AWAITED[what](batch)


@given(
    asked=st.lists(st.sampled_from([*ASKED, *AWAITED]), max_size=3),
    inside=st.lists(st.sampled_from(["read", "leave", "open", "open with other files", "other run"]), max_size=3),
    wrong=st.lists(st.sampled_from(range(len(WRONG))), max_size=3),
    depth=st.integers(0, 2),
    thread=st.booleans(),
)
def test_what_is_refused_changes_nothing(
    asked: list[str], inside: list[str], wrong: list[int], depth: int, thread: bool
) -> None:
    """From another Trio run, from a thread without one, from its own tools at any depth, and with wrong arguments."""
    batches: list[toolrt.Batch] = []
    other = runtime(toolrt.tool(name="leaf", safe=True)(lambda ctx: "leaf"))

    async def misuse(ctx: ToolContext) -> str:
        [outermost] = batches
        for what in inside:
            if what == "open":  # its calls would wait for the very call that opens it
                with pytest.raises(BatchClosed, match="would wait for itself"):
                    await tools.run([call("leaf")])
            elif what == "open with other files":
                assert outcomes((await other.run([call("leaf")])).results) == ["ok"]
            elif what == "other run":
                sub = ctx.open_batch()
                await _in_another_run(sub.__aenter__)
            else:
                await _refused(outermost, what)
        return "misused"

    async def opens(ctx: ToolContext, left: int) -> Any:
        calls = [_outer(left - 1)]
        async with ctx.open_batch() as batch:
            for one in calls:
                batch.submit(one)
        return batch.outcome.results[0].content

    def _outer(left: int) -> toolrt.ToolCall:
        return call("opens", left=left) if left else call("misuse")

    async def leaf(ctx: ToolContext) -> str:
        await trio.lowlevel.checkpoint()
        return "leaf"

    tools = runtime(
        toolrt.tool(name="misuse", claims=FILE)(misuse),
        toolrt.tool(name="opens", claims=FILE)(opens),
        toolrt.tool(name="leaf", claims=FILE)(leaf),
    )

    async def program() -> Any:
        async with tools.open_batch() as batch:
            batches.append(batch)
            batch.submit(_outer(depth))
            batch.submit(call("leaf"))
            for what in asked:
                if thread and what in ASKED:  # a thread that has no Trio run
                    with pytest.raises(BatchClosed):
                        await trio.to_thread.run_sync(ASKED[what], batch)
                else:

                    async def ask(what: str = what) -> None:
                        await AWAITED[what](batch) if what in AWAITED else ASKED[what](batch)

                    await _in_another_run(ask)
            for which in wrong:
                with pytest.raises(DefinitionRefused):
                    WRONG[which](batch)
            with pytest.raises(BatchClosed):
                await batch.__aenter__()
            assert len(batch.calls) == 2
            assert not batch.is_complete
            batch.seal()
            with pytest.raises(BatchClosed):
                batch.submit(call("leaf"))
            updates = [update async for update in batch]
        assert batch.cancel_call(0) is False
        batch.cancel("late")
        assert batch.cancel_reason is None
        return updates, batch.outcome, tools.tables[0].busy

    updates, outcome, busy = trio.run(program)
    assert [(one.outcome.value, one.content) for one in outcome.results] == [("ok", "misused"), ("ok", "leaf")]
    assert [one.result for one in updates if isinstance(one, toolrt.ResultReady)] == list(outcome.results)
    assert not busy
