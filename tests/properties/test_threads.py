"""How calls end whose tools run in threads, which no cancel can stop, in any mix and whatever sees their results."""

from __future__ import annotations

import threading
from typing import Any

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.runtime._tools import runtime
from toolrt import State, ToolCall, ToolContext, ToolOutput
from toolrt.order import Status

#: How a thread ends, with the outcome, the content and the words of the error of a call that nothing cut short.
WAYS: dict[str, tuple[str, Any, str]] = {
    "returns": ("ok", 3, ""),
    "raises": ("error", None, "ValueError: no sum"),
    "says no": ("error", "no", "said no"),
    "gives an output": ("ok", "yes", ""),
    "modifies": ("ok", "modified", ""),
    "answers lazily": ("error", None, "TypeError"),
    "returns a coroutine": ("error", None, "TypeError"),
}


async def _coroutine() -> None:
    """Never awaited."""


class Work:
    """One tool that runs in a thread, and ends when it may."""

    def __init__(self, way: str, place: int) -> None:
        self.way, self.place = way, place
        self.started, self.may_end = threading.Event(), threading.Event()
        self.coroutine: Any = None
        self.tool = toolrt.tool(name=f"tool{place}", safe=True)(self.body)

    def body(self, ctx: ToolContext) -> Any:
        self.started.set()
        assert self.may_end.wait(60)
        if self.way == "raises":
            raise ValueError("no sum")
        if self.way == "answers lazily":
            return (number for number in range(3))
        if self.way == "returns a coroutine":
            self.coroutine = _coroutine()
            return self.coroutine
        if self.way == "says no":
            return ToolOutput("no", error="said no")
        if self.way == "gives an output":
            return ToolOutput("yes")
        if self.way == "modifies":
            return ToolOutput("modified", modifiers=[lambda state: state.set(f"key{self.place}", True)])
        return 3


@attrs.frozen
class Plan:
    """One call: how and when its thread ends."""

    way: str
    when: str


async def _until_ended(tracked: toolrt.TrackedCall) -> None:
    while tracked.status is Status.EXECUTING:
        await trio.lowlevel.checkpoint()


def _cut_short(plan: Plan, seen: bool, reason: str) -> tuple[str, Any, str]:
    """How a call ends whose thread ends behind the cancel."""
    cut = f"interrupted while it ran ({reason}); effects may have landed; its thread"
    if seen:
        return "interrupted", None, f"{cut} cannot be stopped and still runs"
    # The modifiers of a call that was interrupted do not apply, so it cannot be said to have done what it returns.
    return ("interrupted", None, f"{cut} could not be stopped and ran on") if plan.way == "modifies" else WAYS[plan.way]


PLANS = st.builds(Plan, st.sampled_from(sorted(WAYS)), st.sampled_from(["before", "behind"]))


@given(
    plans=st.lists(PLANS, min_size=1, max_size=4),
    limit=st.sampled_from([None, 1, 2]),
    sees=st.sampled_from(["nothing", "reader", "listener", "view"]),
    one_by_one=st.booleans(),
    at_once=st.booleans(),
)
def test_call_in_a_thread_ends_as_its_thread_does_unless_it_was_seen(
    plans: list[Plan], limit: int | None, sees: str, one_by_one: bool, at_once: bool
) -> None:
    """The batch waits for each thread, has as many as it has slots, and takes back no result that was seen.

    Args:
        sees: what sees the results between the cancel and the end of the threads.
        one_by_one: whether each call is cancelled alone, and not the batch.
        at_once: whether the first thread that ends behind the cancel has ended by then, and Trio has not heard of it.
    """
    plans = sorted(plans, key=lambda plan: plan.when)  # with a limit, one that may not end would keep those behind it
    works = [Work(plan.way, place) for place, plan in enumerate(plans)]
    behind = [place for place, plan in enumerate(plans) if plan.when == "behind"]
    running = behind[: limit or len(plans)]
    early = running[:1] if at_once and running and plans[running[0]].way != "raises" else []
    heard: list[list[toolrt.ToolResult]] = [[] for _ in plans]
    read: list[Any] = []

    async def look(batch: toolrt.Batch) -> None:
        async for update in batch:
            if isinstance(update, toolrt.ResultReady):
                read.append(update.result)

    async def until_behind(batch: toolrt.Batch) -> None:
        for place, work in enumerate(works):
            if plans[place].when == "before":
                await trio.to_thread.run_sync(work.started.wait)
                work.may_end.set()
                await _until_ended(batch.calls[place])
        for place in running:
            await trio.to_thread.run_sync(works[place].started.wait)
        assert [work.started.is_set() for work in works] == [
            plan.when == "before" or place in running for place, plan in enumerate(plans)
        ]

    async def cancel(batch: toolrt.Batch) -> None:
        if early:
            works[early[0]].may_end.set()
            while not trio.lowlevel.current_statistics().run_sync_soon_queue_size:
                pass  # until the thread has told that it ended, without letting Trio hear of it
        if one_by_one:
            for place in reversed(behind):
                assert batch.cancel_call(place, "enough") is True
        else:
            batch.cancel("enough")

    async def program() -> toolrt.BatchOutcome:
        tools = runtime(*(work.tool for work in works), limit=limit)
        async with trio.open_nursery() as nursery, tools.open_batch(State()) as batch:
            for place in range(len(plans)):
                listener = (lambda told, at=place: heard[at].append(told.result)) if sees == "listener" else None
                batch.submit(ToolCall(str(place), f"tool{place}"), listener)
            batch.seal()
            if sees == "reader":
                nursery.start_soon(look, batch)
            await until_behind(batch)
            await cancel(batch)
            for tracked in batch.calls:
                await _until_ended(tracked)
            assert sees != "view" or all(tracked.results for tracked in batch.calls)
            while sees == "reader" and len(read) < len(plans):
                await trio.lowlevel.checkpoint()
            for work in works:
                work.may_end.set()
        return batch.outcome

    outcome = trio.run(program)
    reason = "the call was cancelled: enough" if one_by_one else "enough"
    expected = []
    for place, plan in enumerate(plans):
        if plan.when == "before" or place in early:
            expected.append(WAYS[plan.way])
        elif place in running:
            expected.append(_cut_short(plan, sees != "nothing", reason))
        else:
            expected.append(("not_started", None, "enough"))
    assert [one.outcome.value for one in outcome.results] == [words for words, _, _ in expected]
    for place, (result, (_, content, says)) in enumerate(zip(outcome.results, expected, strict=True)):
        assert result.content == content
        assert (result.error is None) == (not says)
        assert says in (result.error or "")
        assert heard[place][-1:] in ([], [result])
        # Once its result was seen, nothing looks at what the thread returns.
        coroutine = works[place].coroutine
        if coroutine is not None and sees != "nothing" and plans[place].when == "behind":
            coroutine.close()
        assert coroutine is None or coroutine.cr_frame is None
    kept = [place for place, (words, _, _) in enumerate(expected) if plans[place].way == "modifies" and words == "ok"]
    assert sorted(outcome.state) == [f"key{place}" for place in kept]
    assert sees != "reader" or read == list(outcome.results)
