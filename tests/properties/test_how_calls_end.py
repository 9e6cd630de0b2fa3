"""How each call of a batch ends, and when, whatever comes first: its return, its failure, a timeout or a cancel.

The model beside it is a line of time for each slot.  Calls and timeouts take whole seconds, and cancels come at halves.
"""

from __future__ import annotations

from typing import Any

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from tests.runtime._tools import runtime
from toolrt import ToolCall, ToolContext, ToolOutput, sim
from toolrt.invariants import check

#: What a call does with a cancel that reaches it, or what it gives at its end.
WAYS = ("returns", "fails", "says no", "finishes", "holds on", "returns early", "cleans up badly", "raises both")
NEVER = float("inf")


@attrs.frozen
class Planned:
    """One call of a plan."""

    way: str
    seconds: int
    timeout: int | None
    #: When it alone is cancelled.
    cancelled: float


@attrs.frozen
class Ending:
    """How a call ends."""

    outcome: str
    #: What its text has to say; an empty text: anything.
    says: str
    #: None where it never starts.
    began: float | None
    ended: float


def _tool(planned: Planned, place: int) -> toolrt.Tool:
    async def body(ctx: ToolContext) -> Any:
        way = planned.way
        with trio.CancelScope(shield=way == "holds on"):
            try:
                await trio.sleep(planned.seconds)
            except trio.Cancelled as cancelled:
                if way == "returns early":
                    return "early"
                if way == "cleans up badly":
                    raise ValueError("cleanup") from None
                if way == "raises both":
                    raise BaseExceptionGroup("both", [cancelled, ValueError("cleanup")]) from None
                raise
        if way == "fails":
            raise LookupError("failed")
        return ToolOutput("no", error="said no") if way == "says no" else "done"

    interrupt: Any = "finish" if planned.way == "finishes" else "cancel"
    return toolrt.tool(name=f"tool{place}", safe=True, timeout=planned.timeout, interrupt=interrupt)(body)


def _ending(one: Planned, begins: float, stop: float, why: str) -> Ending:
    """How a call ends whose slot is free at `begins`, in a batch that is cancelled at `stop`."""
    if min(one.cancelled, stop) <= begins:
        at = min(one.cancelled, stop)
        return Ending("not_started", "the call was cancelled" if one.cancelled < stop else why, None, at)
    ends = begins + one.seconds
    overruns = NEVER if one.timeout is None else begins + one.timeout
    reached = min(overruns, NEVER if one.way == "finishes" else min(one.cancelled, stop))
    by_itself = {"fails": Ending("error", "LookupError: failed", begins, ends)}
    by_itself["says no"] = Ending("error", "said no", begins, ends)
    if ends <= reached or one.way == "holds on":
        return by_itself.get(one.way, Ending("ok", "", begins, ends))
    if one.way == "returns early":
        return Ending("ok", "", begins, reached)
    if one.way == "cleans up badly":
        return Ending("error", "ValueError: cleanup", begins, reached)
    also = "cleanup" if one.way == "raises both" else ""
    if reached == overruns:
        says = f"timed out after {one.timeout} s of its own execution; effects may have landed"
        return Ending("timed_out", f"{says}{also and '; it raised ValueError: cleanup'}", begins, reached)
    reason = "the call was cancelled: enough of it" if one.cancelled < stop else why
    says = f"interrupted while it ran ({reason}); effects may have landed"
    return Ending("interrupted", f"{says}{also and '; it raised ValueError: cleanup'}", begins, reached)


WHYS = {
    "cancel": "enough",
    "scope": "the caller's scope was cancelled",
    "raise": "its block was left by KeyError",
    "none": "",
}


def _endings(plan: list[Planned], limit: int | None, stop: float, why: str) -> list[Ending]:
    """How each call ends: with a limit, in the slots that get free, the first call first."""
    found = []
    slots = [0.0] * (limit or len(plan))
    for one in plan:
        slot = min(range(len(slots)), key=slots.__getitem__)
        ending = _ending(one, slots[slot], stop, why)
        if ending.began is not None:
            slots[slot] = ending.ended
        found.append(ending)
    return found


def _may_be_cancelled(one: Planned, ending: Ending, at: float) -> bool:
    """Whether a cancel at that instant changes anything for a call that ends so without it."""
    if ending.began is None or at < ending.began:
        return at < ending.ended
    overrun = one.timeout is not None and ending.began + one.timeout < at
    return at < ending.ended and not overrun and one.way != "finishes"


CALLS = st.builds(
    Planned,
    st.sampled_from(WAYS),
    st.sampled_from([1, 3, 5]),
    st.sampled_from([None, None, 2, 4]),
    st.sampled_from([NEVER, NEVER, 0.5, 1.5, 4.5]),
)


@given(
    plan=st.lists(CALLS, min_size=1, max_size=4),
    limit=st.sampled_from([None, 1, 2]),
    end=st.sampled_from(sorted(WHYS)),
    stop=st.sampled_from([0.75, 2.25, 3.75]),
    opened=st.booleans(),
)
def test_each_call_ends_as_what_came_first_says(
    plan: list[Planned], limit: int | None, end: str, stop: float, opened: bool
) -> None:
    """With its text, at its instant; a cancel of one call changes something exactly where it still can."""
    # No two things come at one instant.
    plan = [attrs.evolve(one, cancelled=one.cancelled + place / 16) for place, one in enumerate(plan)]
    opened = opened or end in ("cancel", "raise")
    if not opened:  # its calls cannot be cancelled one by one
        plan = [attrs.evolve(one, cancelled=NEVER) for one in plan]
    told: dict[int, tuple[float, bool]] = {}
    tools = runtime(*(_tool(one, place) for place, one in enumerate(plan)), limit=limit)
    calls = [ToolCall(f"id{place}", f"tool{place}") for place in range(len(plan))]

    async def cancel_one(batch: toolrt.Batch, place: int, at: float) -> None:
        await trio.sleep_until(at)
        told[place] = at, batch.cancel_call(place, "enough of it")

    async def block() -> Any:
        batch = tools.open_batch()
        try:
            async with trio.open_nursery() as nursery, batch:
                for one in calls:
                    batch.submit(one)
                batch.seal()
                for place, one in enumerate(plan):
                    if one.cancelled < NEVER:
                        nursery.start_soon(cancel_one, batch, place, one.cancelled)
                if end in ("cancel", "raise"):
                    await trio.sleep(stop)
                if end == "cancel":
                    batch.cancel("enough")
                if end == "raise":
                    raise KeyError("out")
        finally:
            batches.append((batch, trio.current_time()))

    batches: list[Any] = []

    async def program() -> Any:
        with trio.CancelScope(deadline=stop if end == "scope" else NEVER):
            try:
                if opened:
                    await block()
                else:
                    done = await tools.run(calls)
                    return done.results, trio.current_time()
            except* KeyError:
                pass
        if not batches:
            return None
        [(batch, over)] = batches
        return batch.outcome.results, over

    execution = sim.run(program)
    # A tool that shields itself is not interrupted at the cancel, as the law wants it.
    assert check(execution.trace) == [] or any(one.way == "holds on" for one in plan)
    stop = NEVER if end == "none" else stop
    expected = _endings(plan, limit, stop, WHYS[end])
    for place, (at, changed) in told.items():
        others = [*plan]
        others[place] = attrs.evolve(plan[place], cancelled=NEVER)
        assert at > stop or changed == _may_be_cancelled(others[place], _endings(others, limit, stop, "")[place], at)
    if execution.value is None:  # cancelled from outside: there is no outcome to give
        assert end == "scope"
        assert max(one.ended for one in expected) >= stop
        return
    results, over = execution.value
    assert [one.outcome.value for one in results] == [one.outcome for one in expected]
    for result, ending in zip(results, expected, strict=True):
        assert (result.error is None) == (ending.outcome == "ok")
        assert ending.says in (result.error or "")
        assert ending.outcome not in ("interrupted", "timed_out") or result.error == ending.says
    if not any(one.cancelled < NEVER for one in plan):
        left = stop if end in ("cancel", "raise") else 0
        assert over == max(left, *(one.ended for one in expected))
