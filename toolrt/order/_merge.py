"""Modifiers merge in call order.

A modifier is applied once, at its lane's end, in (call_index, position) order.  One that raises, or gives
something else than a State, changes nothing and is named; the merge goes on.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolrt import probe
from toolrt.errors import asks_to_exit, error_text
from toolrt.model import Modifier, State, Tool
from toolrt.model._update import RejectedModifier, StateMerged
from toolrt.order._tracked import TrackedCall

__all__ = ["merged"]


def merged(lane: int, state: State, calls: Iterable[TrackedCall]) -> StateMerged:
    """The state of `lane` after the modifiers of `calls`, which may be given in any order.

    Ordering: modifiers apply by call_index, and those of one call in the order in which it gave them.
    """
    applied: list[tuple[int, int]] = []
    rejected: list[RejectedModifier] = []
    for call in sorted(calls, key=_call_index):
        for position, modifier in enumerate(call.modifiers):
            outcome = _applied(modifier, state, call.tool)
            if isinstance(outcome, State):
                state = outcome
                applied.append((call.call_index, position))
            else:
                rejected.append(RejectedModifier(call.call_index, call.call_id, position, outcome))
            if probe.sink is not None:
                probe.sink.event(
                    "state.applied",
                    {
                        "batch": call.batch_id,
                        "lane": lane,
                        "call": call.call_index,
                        "position": position,
                        "ok": isinstance(outcome, State),
                    },
                )
    return StateMerged(lane, state, tuple(applied), tuple(rejected))


def _call_index(call: TrackedCall) -> int:
    return call.call_index


def _applied(modifier: Modifier, state: State, tool: Tool | None) -> State | str:
    try:
        after = modifier(state)
    except BaseException as error:  # noqa: ASYNC103  nothing is awaited here
        if asks_to_exit(error) is not None:
            raise
        return error_text(error) if tool is None else tool.describe_error(error)  # noqa: ASYNC104
    if not isinstance(after, State):
        return f"a modifier gives a State, this one gave {type(after).__name__}"
    return after
