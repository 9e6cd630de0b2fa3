"""The instructions and questions that a batch's machine gives: one method each."""

from __future__ import annotations

from typing import Protocol

from toolrt.model import Claim, Outcome, State, ToolOutput
from toolrt.order._record import CallRecord, FoundClaims, LaneRecord, MergedCall
from toolrt.order._states import CallMove


class Verbs(Protocol):
    """What a machine lets happen: its instructions."""

    def spawn(self, lane: LaneRecord, calls: list[CallRecord]) -> None:
        """Make the `calls` of `lane` tasks, in this order."""

    def approve(self, lane: LaneRecord, call: CallRecord) -> None:
        """Ask the approval check about the call of `lane`: `Machine.allowed`, or an answer."""

    def answer(self, call: CallRecord, outcome: Outcome, why: str, event: CallMove) -> None:
        """Fix the call's result, an `outcome` and `why`: `CallRecord.happen` with this `event`."""

    def fix_result(self, call: CallRecord, output: ToolOutput) -> None:
        """Fix the result of a call that returned `output`."""

    def interrupt(self, call: CallRecord) -> None:
        """Cancel the call alone: its tool, or the approval check that it waits for."""

    def interrupt_children(self, call: CallRecord, why: str) -> None:
        """Cancel the call's sub-batches; `why` is the reason."""

    def interrupt_lane(self, lane: LaneRecord) -> None:
        """Cancel everything that runs in the lane."""

    def wake(self) -> None:
        """Look again whether the lane is over, and whether there is another one."""

    def exit_or_raise(self, error: BaseException) -> None:
        """End the batch because of `error`, if a function of an author's asks to exit by it; else raise it."""

    def wake_at(self, lane: LaneRecord, instant: float) -> None:
        """When that `instant` has come, in seconds on the run's clock, let ready calls of `lane` start: `dispatch`."""


class Questions(Protocol):
    """What a machine has to find out from tools and their authors; what a method gives is the answer."""

    def looks_at(self, lane: LaneRecord, call: CallRecord) -> tuple[Claim, ...]:
        """What the claims of the call of `lane` look at."""

    def claims(self, lane: LaneRecord, call: CallRecord) -> FoundClaims:
        """What the call of `lane` claims, and whether it may."""

    def stale(self, lane: LaneRecord, call: CallRecord) -> tuple[Outcome, str] | None:
        """How the call of `lane`, which waited, ends because it does not hold what it claims by now; None: it does."""

    def applied(self, call: CallRecord, state: State) -> MergedCall:
        """What the modifiers that the call returned do to `state`."""

    def prefer(self, lane: LaneRecord, ready: list[CallRecord], more_may_come: bool) -> CallRecord:
        """Which of the calls of `lane` that are `ready` takes the next slot; `more_may_come` to the batch."""

    def time(self) -> tuple[float, object]:
        """The time in seconds, and what stands for the run whose clock says so."""
