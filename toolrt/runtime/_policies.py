"""Calls the policies of one batch, and gives the machine their answers as plain values.

Rules.  What a policy does wrong is kept and raised when the batch is left; the batch goes on without the policy.
Ctrl-C or an exit in a policy is not kept: it comes out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from toolrt.errors import PolicyRefused
from toolrt.model import BatchOutcome, Tool
from toolrt.order import (
    CallRecord,
    LaneChoice,
    LanePlacing,
    LanePolicy,
    PolicyCall,
    SlotChooser,
    SlotPolicy,
    is_rule,
    shares_a_lane,
)


class BatchPolicies:
    """What one batch asks its policies.

    Args:
        batch_id: names the batch.
        lanes: the lane policy.
        slots: the slot policy; None: ready calls take slots in call order.
    """

    __slots__ = ("_batch_id", "_calls", "_chooser", "_lanes", "_placing", "_slots", "refused")

    def __init__(self, batch_id: str, lanes: LanePolicy, slots: SlotPolicy | None) -> None:
        self._batch_id = batch_id
        self._lanes = lanes
        self._slots = slots
        #: Made when they are first asked.
        self._placing: LanePlacing | None = None
        self._chooser: SlotChooser | None = None
        self._calls: dict[int, PolicyCall] = {}
        #: The first error of a policy; None: there was none.
        self.refused: PolicyRefused | None = None

    def place(self, call: CallRecord) -> LaneChoice:
        """What the lane policy says of a valid call, which comes next."""
        if not is_rule(self._lanes):
            shares = shares_a_lane(self._lanes, cast(Tool, call.tool), call.input)
            return LaneChoice.JOIN if shares else LaneChoice.ALONE
        try:
            if self._placing is None:
                self._placing = LanePlacing(self._lanes, self._batch_id)
            return self._placing.place(self._shown(call))
        except PolicyRefused as error:
            self._refuse(error)
            return LaneChoice.ALONE

    def prefer(self, ready: Sequence[CallRecord], more_may_come: bool) -> CallRecord:
        """The call that takes the next slot, of those that are `ready`, in call order; `more_may_come` to the batch."""
        if self._slots is None:
            return ready[0]
        try:
            if self._chooser is None:
                self._chooser = SlotChooser(self._slots, self._batch_id)
            index = self._chooser.choose([self._shown(call) for call in ready], more_may_come)
        except PolicyRefused as error:
            self._refuse(error)
            self._slots = None
            return ready[0]
        return next(call for call in ready if call.call_index == index)

    def raise_refused(self, outcome: BatchOutcome | None) -> None:
        """Raise what a policy did wrong, if one did.

        Args:
            outcome: what the batch gave; the error has it.

        Raises:
            PolicyRefused: a policy failed.
        """
        if self.refused is not None:
            self.refused.outcome = outcome
            raise self.refused

    def _refuse(self, error: PolicyRefused) -> None:
        if self.refused is None:
            self.refused = error

    def _shown(self, call: CallRecord) -> PolicyCall:
        shown = self._calls.get(call.call_index)
        if shown is None or shown.input is not call.input:
            shown = PolicyCall(call.call_index, call.name, call.input, cast(Tool, call.tool))
            self._calls[call.call_index] = shown
        return shown
