"""Decides the order of calls: claims, tickets, lanes, slots, merges.  Pure: it imports no Trio and reads no clock."""

from typing import Any

from toolrt._alias import forward_to
from toolrt.order._circle import circle_through
from toolrt.order._lanes import (
    LANE_POLICIES,
    STATE_KEY,
    StateKeys,
    by_claims,
    by_safety,
    claims_of,
    looked_at_by,
    may_go_stale,
    parallel,
    serial,
    shares_a_lane,
    stale_claims_text,
    touched_by,
)
from toolrt.order._machine import Machine
from toolrt.order._merge import MergedCall, applied, has_changed, merged, stale_part
from toolrt.order._partition import Lane, partition
from toolrt.order._policies import (
    MOST_OVERTAKEN,
    LaneChoice,
    LanePlacing,
    LanePolicy,
    LaneRule,
    PolicyCall,
    SlotChooser,
    SlotPolicy,
    checked_lanes,
    checked_slots,
    gives_up,
    is_rule,
    left_out,
    policy_name,
    policy_text,
    promises_serial,
)
from toolrt.order._record import (
    PROGRESS_BOUND,
    CallRecord,
    LanePlace,
    LaneRecord,
    Siblings,
    TrackedCall,
    TrackedCalls,
)
from toolrt.order._slots import LentSlot, Slots
from toolrt.order._stale import stale_text
from toolrt.order._states import (
    BATCH,
    CALL,
    LANE,
    BatchMove,
    BatchState,
    CallMove,
    CallState,
    Holds,
    LaneMove,
    LaneState,
    Status,
)
from toolrt.order._tickets import ClaimTable, Ticket, enter_tables, give_back, leave_tables, next_batch
from toolrt.order._verbs import Questions, Verbs

__all__ = [
    "BATCH",
    "CALL",
    "LANE",
    "LANE_POLICIES",
    "MOST_OVERTAKEN",
    "PROGRESS_BOUND",
    "STATE_KEY",
    "BatchMove",
    "BatchState",
    "CallMove",
    "CallRecord",
    "CallState",
    "ClaimTable",
    "Holds",
    "Lane",
    "LaneChoice",
    "LaneMove",
    "LanePlace",
    "LanePlacing",
    "LanePolicy",
    "LaneRecord",
    "LaneRule",
    "LaneState",
    "LentSlot",
    "Machine",
    "MergedCall",
    "PolicyCall",
    "Questions",
    "Siblings",
    "SlotChooser",
    "SlotPolicy",
    "Slots",
    "StateKeys",
    "Status",
    "Ticket",
    "TrackedCall",
    "TrackedCalls",
    "Verbs",
    "applied",
    "by_claims",
    "by_safety",
    "checked_lanes",
    "checked_slots",
    "circle_through",
    "claims_of",
    "enter_tables",
    "give_back",
    "gives_up",
    "has_changed",
    "is_rule",
    "leave_tables",
    "left_out",
    "looked_at_by",
    "may_go_stale",
    "merged",
    "next_batch",
    "parallel",
    "partition",
    "policy_name",
    "policy_text",
    "promises_serial",
    "serial",
    "shares_a_lane",
    "stale_claims_text",
    "stale_part",
    "stale_text",
    "touched_by",
]

_find = forward_to("toolrt.order", "toolrt.runtime._reader")


def __getattr__(name: str) -> Any:
    """Give `Cursor`, which stands beside the reader now."""
    if name == "Cursor":
        return _find(name)
    raise AttributeError(f"module 'toolrt.order' has no attribute {name!r}")
