"""The machine as a function: an event goes in, a list of instructions comes out.  No Trio, no clock, no tool.

Questions stand in that list, too; what they are answered is fixed beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from toolrt.model import Claim, Outcome, State, ToolCall, ToolOutput, ToolResult
from toolrt.order import CallMove, CallRecord, ClaimTable, FoundClaims, LaneRecord, LentSlot, Machine, MergedCall

#: An instruction: its verb, and the call or lane that it is for, by index.
Instruction = tuple[str, int]

STATE = State()


@attrs.frozen
class PlainTool:
    """What the machine looks at of a tool."""

    claims: Callable[..., Any] | None = None
    claims_after: Callable[..., Any] | None = None
    looks_again: bool = False
    alone: bool = False
    pure: bool = False
    is_async: bool = True
    owner: Any = None
    declares: bool = True


class Recording:
    """Verbs and questions that record each instruction; they fix results at once, because that takes no work.

    A call claims nothing, and of the ready ones the last that `preferred` names takes the next slot, else the first.
    """

    def __init__(self) -> None:
        self.told: list[Instruction] = []
        self.preferred: list[int] = []

    def spawn(self, lane: LaneRecord, calls: list[CallRecord]) -> None:
        self.told += [("spawn", call.call_index) for call in calls]

    def looks_at(self, lane: LaneRecord, call: CallRecord) -> tuple[Claim, ...]:
        self.told.append(("looks_at", call.call_index))
        return ()

    def claims(self, lane: LaneRecord, call: CallRecord) -> FoundClaims:
        self.told.append(("claims", call.call_index))
        return (), (), None

    def stale(self, lane: LaneRecord, call: CallRecord) -> tuple[Outcome, str] | None:
        self.told.append(("stale", call.call_index))
        return None

    def approve(self, lane: LaneRecord, call: CallRecord) -> None:
        self.told.append(("approve", call.call_index))

    def answer(self, call: CallRecord, outcome: Outcome, why: str, event: CallMove) -> None:
        self.settle(call, outcome, why, event)
        self.told.append((outcome.value, call.call_index))

    def settle(self, call: CallRecord, outcome: Outcome, why: str, event: CallMove) -> None:
        call.happen(event)
        call.modifiers = () if event is CallMove.SKIP else call.modifiers
        call.result = ToolResult(call.call_id, call.call_index, call.name, outcome, None, why, 0)

    def applied(self, call: CallRecord, state: State) -> MergedCall:
        self.told.append(("applied", call.call_index))
        return MergedCall(state, state, ())

    def fix_result(self, call: CallRecord, output: ToolOutput) -> None:
        self.told.append(("fix_result", call.call_index))

    def prefer(self, lane: LaneRecord, ready: list[CallRecord], more_may_come: bool) -> CallRecord:
        self.told.append(("prefer", lane.index))
        named = self.preferred.pop(0) if self.preferred else ready[0].call_index
        return next(call for call in ready if call.call_index == named)

    def interrupt(self, call: CallRecord) -> None:
        self.told.append(("interrupt", call.call_index))

    def interrupt_children(self, call: CallRecord, why: str) -> None:
        self.told.append(("interrupt_children", call.call_index))

    def interrupt_lane(self, lane: LaneRecord) -> None:
        self.told.append(("interrupt_lane", lane.index))

    def wake(self) -> None:
        self.told.append(("wake", -1))


class Steps:
    """One batch's machine, bound to verbs that record.

    Args:
        limit: how many calls run at once.
        approves: whether each call is to be approved.
        tables: where tickets are taken; one of its own by default.
        prefers: whether there is a slot policy.
        lent: the slot of the parent call, of a sub-batch.
        verbs: what records, and answers questions.
    """

    def __init__(
        self,
        limit: float,
        approves: bool = False,
        tables: tuple[ClaimTable, ...] = (),
        prefers: bool = False,
        lent: LentSlot | None = None,
        verbs: Recording | None = None,
    ) -> None:
        self.verbs = Recording() if verbs is None else verbs
        tables = tables or (ClaimTable(),)
        self.machine = Machine("batch", self.verbs, self.verbs, tables, limit, approves, lent=lent, prefers=prefers)

    def new_call(self, tool: PlainTool, stops: bool = False) -> CallRecord:
        """A call that was submitted: its record, which has no lane yet."""
        calls = self.machine.calls
        call = CallRecord(ToolCall(str(len(calls)), "tool", {}), len(calls), "batch", 0.0, calls)
        call.tool, call.stops = tool, stops  # type: ignore[assignment]
        calls.append(call)
        return call

    def step(self, event: str, *values: Any) -> list[Instruction]:
        """Let `event` happen, with these values; gives what follows from it, in order."""
        getattr(self.machine, event)(*values)
        return self.collect()

    def collect(self) -> list[Instruction]:
        """What was told since."""
        told, self.verbs.told = self.verbs.told, []
        return told

    def settle(self, call: CallRecord, outcome: Outcome) -> None:
        """Fix the result of a call that the machine did not answer itself."""
        self.verbs.settle(call, outcome, "", CallMove.SETTLE)
