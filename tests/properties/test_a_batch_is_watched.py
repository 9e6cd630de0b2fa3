"""What a batch shows while it runs, at any instant: its views, its reader, early or late, and listeners of one call.

The model beside it says when each call begins and ends.  Calls take whole seconds; what looks at them does so between.
"""

from __future__ import annotations

from typing import Any

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.runtime._tools import WRITE, claims, runtime
from toolrt import Progress, ResultReady, State, StateMerged, ToolCall, ToolContext, ToolOutput, sim
from toolrt.errors import BatchClosed
from toolrt.invariants import check
from toolrt.order import PROGRESS_BOUND, CallState, Status

FILE = claims(("f", WRITE))
_CLAIMS = {"safe": (), "file": tuple(FILE(None, None))}
KINDS: dict[str, dict[str, Any]] = {"safe": {"safe": True}, "file": {"claims": FILE}, "alone": {}}


@attrs.frozen
class Planned:
    """One call."""

    kind: str
    seconds: int
    #: How much progress it tells as it begins.
    tells: int
    modifies: bool
    #: Whether a listener hears it, in place of the reader.
    heard: bool


@attrs.define
class Timed:
    """When a call of the plan begins and ends."""

    lane: int
    began: float = 0.0
    ended: float = 0.0
    #: When its result is fixed: for one with modifiers, once all before it in its lane have ended.
    fixed: float = 0.0


def _timed(plan: list[Planned], limit: int | None, sealed: float) -> tuple[list[Timed], list[float]]:
    """When each call begins and ends, and when each lane is merged: free slots go to the first that may start."""
    found: list[Timed] = []
    for place, one in enumerate(plan):
        follows = bool(found) and "alone" not in (one.kind, plan[place - 1].kind)
        found.append(Timed(found[-1].lane if follows else len({timed.lane for timed in found})))
    merged: list[float] = []
    for lane in range(found[-1].lane + 1):
        now = merged[-1] if merged else 0.0
        waiting = [place for place, timed in enumerate(found) if timed.lane == lane]
        last, shared = lane == found[-1].lane, plan[waiting[0]].kind != "alone"
        running: list[int] = []
        while waiting or running:
            running = [place for place in running if found[place].ended > now]
            for place in [*waiting]:
                in_the_way = _in_the_way(plan, found, place, [*waiting, *running])
                if not in_the_way and (limit is None or len(running) < limit):
                    found[place].began, found[place].ended = now, now + plan[place].seconds
                    running.append(place)
                    waiting.remove(place)
            now = min((found[place].ended for place in running), default=now)
        merged.append(max(now, sealed) if last and shared else now)
    for place, one in enumerate(found):
        before = [timed.ended for timed in found[:place] if timed.lane == one.lane and plan[place].modifies]
        one.fixed = max(one.ended, *before, 0)
    return found, merged


def _in_the_way(plan: list[Planned], timed: list[Timed], place: int, there: list[int]) -> list[int]:
    """The call before it on the file, if that is among those that are `there`."""
    if plan[place].kind != "file":
        return []
    return [
        at for at in sorted(there) if at < place and plan[at].kind == "file" and timed[at].lane == timed[place].lane
    ][-1:]


def _look(view: toolrt.TrackedCall, at: float, plan: list[Planned], timed: list[Timed], merged: list[float]) -> None:
    """Hold a view against the model."""
    place, one = view.call_index, timed[view.call_index]
    begun, over, fixed = one.began < at, one.ended < at, one.fixed < at
    lane_begins = merged[one.lane - 1] if one.lane else 0.0
    assert (view.name, view.call_id, view.call.name) == (f"tool{place}", f"id{place}", f"tool{place}")
    assert (view.lane, view.safe) == (one.lane, plan[place].kind != "alone")
    running = Status.EXECUTING if begun else Status.QUEUED
    assert view.status in ([Status.COMPLETED, Status.YIELDED] if fixed else [running])
    assert view.state.status is view.status
    assert (view.state is CallState.PLACED) == (at < lane_begins)
    assert plan[place].kind == "alone" or view.claims == (_CLAIMS[plan[place].kind] if at > lane_begins else ())
    assert view.waited == (one.began if begun else None)
    assert view.ran == (one.ended - one.began if over else None)
    # What a listener hears passes the reader by, and is not counted.
    assert view.progress_count == (plan[place].tells if begun and not plan[place].heard else 0)
    assert len(view.pending_progress) <= view.progress_count
    assert bool(view.modifiers) == (plan[place].modifies and over and at < merged[one.lane])
    assert [result.content for result in view.results] == ([place] if fixed else [])
    assert f"call {place} (tool{place}, id 'id{place}'): {view.status.value}" in repr(view)
    assert (", ok" in repr(view)) == fixed
    if at < lane_begins:
        assert view.waits_for == ["lane"]
    else:
        there = [other for other, its in enumerate(timed) if its.ended > at]
        assert view.waits_for == ([] if begun else _in_the_way(plan, timed, place, there) or ["slot"])


PLANS = st.builds(
    Planned,
    st.sampled_from(["safe", "safe", "file", "file", "alone"]),
    st.integers(1, 3),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([False, False, False, True]),
)


@given(
    plan=st.lists(PLANS, min_size=1, max_size=5),
    limit=st.sampled_from([None, 1, 2]),
    reads=st.sampled_from([0.0, 0.0, 2.25, 99.0]),
    slow=st.sampled_from([0.0, 0.0, 0.25]),
    sealed=st.sampled_from([0.0, 20.5]),
    cancels=st.booleans(),
)
def test_what_is_shown_is_what_is_so(
    plan: list[Planned], limit: int | None, reads: float, slow: float, sealed: float, cancels: bool
) -> None:
    """Views at each instant; results and merges in one order, each as soon as it may come; no progress is lost unseen.

    Args:
        reads: when the reader begins; 99: once the batch was left.
        slow: how long it takes for each update.
        sealed: when no further call will come: sealed then, or with `cancels` cancelled.
    """
    timed, merged = _timed(plan, limit, sealed)
    seen: list[tuple[float, Any]] = []
    refused: list[float] = []
    heard: dict[int, list[tuple[float, Any]]] = {place: [] for place, one in enumerate(plan) if one.heard}
    ended_at: list[float] = []
    read_all = trio.Event()

    def tool(place: int, one: Planned) -> toolrt.Tool:
        async def body(ctx: ToolContext) -> Any:
            for number in range(one.tells):
                ctx.progress(number)
            await trio.sleep(one.seconds)
            return ToolOutput(place, modifiers=[lambda state: state.set("last", place)]) if one.modifies else place

        return toolrt.tool(name=f"tool{place}", **KINDS[one.kind])(body)

    tools = runtime(*(tool(place, one) for place, one in enumerate(plan)), limit=limit)

    async def read(batch: toolrt.Batch) -> None:
        async for update in batch:
            seen.append((trio.current_time(), update))
            await trio.sleep(slow)
        ended_at.append(trio.current_time())
        read_all.set()

    async def look(batch: toolrt.Batch) -> None:
        for step in range(16):
            await trio.sleep_until(step + 0.5)
            for view in batch.calls:
                _look(view, trio.current_time(), plan, timed, merged)
            views = [*batch.calls]
            assert [view.call_index for view in batch.calls[1:]] == [*range(1, len(plan))]
            assert [one == views[0] for one in batch.calls] == [True] + [False] * (len(plan) - 1)
            assert views[0] != 0
            if trio.current_time() < max(merged) and batch.is_complete:
                return

    async def read_too(batch: toolrt.Batch) -> None:
        await trio.sleep(0.5)
        try:
            await batch.__anext__()
        except BatchClosed:
            refused.append(trio.current_time())

    async def program() -> toolrt.BatchOutcome:
        async with trio.open_nursery() as nursery, tools.open_batch(State()) as batch:
            for place in range(len(plan)):

                def listen(update: Any, place: int = place) -> None:
                    heard[place].append((trio.current_time(), update))

                batch.submit(ToolCall(f"id{place}", f"tool{place}"), listen if place in heard else None)
            if not sealed:
                batch.seal()
            nursery.start_soon(look, batch)
            if reads == 0 and slow == 0:
                nursery.start_soon(read_too, batch)
            if reads < 99:
                await trio.sleep_until(reads)
                nursery.start_soon(read, batch)
            await trio.sleep_until(sealed)
            if sealed and cancels:
                batch.cancel("no more")
            else:
                batch.seal()
            if reads < 99:
                await read_all.wait()
        if reads == 99:
            await read(batch)
        return batch.outcome

    execution = sim.run(program)
    assert check(execution.trace) == []
    if execution.error is not None:
        raise execution.error
    outcome = execution.value
    answers = [update.result for _, update in seen if isinstance(update, ResultReady)]
    assert answers == list(outcome.results)
    assert [result.content for result in answers] == [*range(len(plan))]
    order = [
        update.lane if isinstance(update, StateMerged) else -1 - update.result.call_index
        for _, update in seen
        if not isinstance(update, Progress)
    ]
    expected = []
    for place, one in enumerate(timed):
        expected.append(-1 - place)
        if place + 1 == len(plan) or timed[place + 1].lane != one.lane:
            expected.append(one.lane)
    assert order == expected
    told = [(update.call_index, update.message) for _, update in seen if isinstance(update, Progress)]
    for place, one in enumerate(plan):
        mine = [message for call_index, message in told if call_index == place]
        assert mine == [*range(0 if one.heard else one.tells - answers[place].progress_dropped)]
        assert answers[place].progress_dropped == (one.tells if reads == 99 and not one.heard else 0)
    for place, events in heard.items():
        assert [at for at, _ in events] == [timed[place].began] * plan[place].tells + [timed[place].fixed]
        assert events[-1][1].result == answers[place]
    if not slow and reads < 99:
        at = {update.result.call_index: at for at, update in seen if isinstance(update, ResultReady)}
        for place in range(len(plan)):
            due = [one.fixed for one in timed[: place + 1]] + merged[: timed[place].lane]
            assert at[place] == max(reads, *due), (place, at, due)
        assert ended_at == [max(reads, sealed, *merged)]
    assert refused == ([0.5] if reads == 0 and slow == 0 else [])
    changes = [place for place, one in enumerate(plan) if one.modifies]
    assert outcome.state.get("last") == (changes[-1] if changes else None)


@given(sent=st.integers(PROGRESS_BOUND - 2, PROGRESS_BOUND + 2), taken=st.integers(0, 2), more=st.integers(0, 3))
def test_progress_is_kept_up_to_a_bound_and_counted_beyond_it(sent: int, taken: int, more: int) -> None:
    """No tool waits for the reader; where that takes some, there is room for as many."""

    @toolrt.tool(safe=True)
    async def tells(ctx: ToolContext) -> None:
        for number in range(sent):
            ctx.progress(number)
        await trio.sleep(2)
        for number in range(more):
            ctx.progress(number)

    async def program() -> Any:
        async with runtime(tells).open_batch() as batch:
            batch.submit(ToolCall("id", "tells"))
            batch.seal()
            await trio.sleep(1)
            for _ in range(taken):
                await batch.__anext__()
            assert len(batch.calls[0].pending_progress) == min(sent, PROGRESS_BOUND) - taken
            await trio.sleep(2)
            updates = [update async for update in batch]
        return [len(updates) - 2, batch.outcome.results[0].progress_dropped, batch.calls[0].progress_count]

    kept = min(sent, PROGRESS_BOUND) - taken
    later = min(more, PROGRESS_BOUND - kept)
    left, dropped, count = sim.run(program).value
    assert (left, dropped, count) == (kept + later, sent - kept - taken + more - later, sent + more)
