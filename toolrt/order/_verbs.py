"""The instructions and questions that a batch's machine gives: one method each."""

from __future__ import annotations

from typing import Protocol

from toolrt.model import Claim, Outcome
from toolrt.order._record import CallRecord, LaneRecord
from toolrt.order._states import CallMove


class Verbs(Protocol):
    """What a machine lets happen: its instructions."""

    def spawn(self, lane: LaneRecord, call: CallRecord) -> None:
        """Make the call of `lane` a task."""

    def approve(self, lane: LaneRecord, call: CallRecord) -> None:
        """Ask the approval check about the call of `lane`: `Machine.allowed`, or an answer."""

    def answer(self, call: CallRecord, outcome: Outcome, why: str, event: CallMove) -> None:
        """Fix the call's result, an `outcome` and `why`: `CallRecord.happen` with this `event`."""

    def interrupt(self, call: CallRecord) -> None:
        """Cancel the call alone: its tool, or the approval check that it waits for."""

    def interrupt_children(self, call: CallRecord, why: str) -> None:
        """Cancel the call's sub-batches; `why` is the reason."""

    def interrupt_lane(self, lane: LaneRecord) -> None:
        """Cancel everything that runs in the lane."""

    def wake(self) -> None:
        """Look again whether the lane is over, and whether there is another one."""

    def wake_at(self, lane: LaneRecord, instant: float) -> None:
        """When that `instant` has come, in seconds on the run's clock, let ready calls of `lane` start: `dispatch`."""


class Questions(Protocol):
    """What a machine has to find out from tools and their authors; each answer comes in as an event."""

    def ask(self, lane: LaneRecord, call: CallRecord) -> None:
        """Find out what a call of `lane` looks at and claims: `Admission.looks` or `Admission.claimed`."""

    def ask_claims(self, lane: LaneRecord, call: CallRecord) -> None:
        """Find out what the call of `lane` claims: `Admission.claimed`."""

    def ask_early(self, lane: LaneRecord, call: CallRecord) -> None:
        """Keep what the call of `lane` claims now, for when it is let in: `CallRecord.asked`."""

    def ask_late(self, lane: LaneRecord, call: CallRecord) -> None:
        """Find out what the claims of the call of `lane` look at by now: `Admission.looks_now`."""

    def ask_now(self, lane: LaneRecord, call: CallRecord, looked_at: tuple[Claim, ...] | None) -> None:
        """Find out what the call of `lane` claims, and what that looks at if `looked_at` is None: `Admission.known`."""

    def ask_again(self, lane: LaneRecord, call: CallRecord) -> None:
        """Find out whether the call of `lane`, which waited, holds what it claims: `Machine.holds` or an answer."""

    def decide(self, lane: LaneRecord, call: CallRecord) -> None:
        """Find out whether the call of `lane` is stale: an answer, or `Machine.repeat`."""

    def ask_time(self) -> None:
        """Find out the time on the run's clock: `Machine.time_is`."""

    def prefer(self, lane: LaneRecord, ready: list[CallRecord]) -> None:
        """Find out which of the calls of `lane` that are `ready` takes the next slot: `Machine.preferred`."""
