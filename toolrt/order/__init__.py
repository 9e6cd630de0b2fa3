"""The order of everything: claims, tickets, lanes, result slots.  Pure; knows neither Trio nor time."""

from toolrt.order._circle import circle_through
from toolrt.order._cursor import PROGRESS_BOUND, Cursor
from toolrt.order._lanes import (
    STATE_KEY,
    Lane,
    LanePolicy,
    StateKeys,
    by_claims,
    by_safety,
    claims_of,
    looked_at_by,
    may_go_stale,
    parallel,
    partition,
    serial,
    shares_a_lane,
    stale_claims_text,
    touched_by,
)
from toolrt.order._machine import Machine
from toolrt.order._merge import MergedCall, applied, has_changed, merged, stale_part
from toolrt.order._record import CallRecord, LanePlace, LaneRecord, Siblings
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
from toolrt.order._tickets import ClaimTable, Ticket, give_back, next_batch
from toolrt.order._verbs import Verbs
from toolrt.order._view import TrackedCall, TrackedCalls

__all__ = [
    "BATCH",
    "CALL",
    "LANE",
    "PROGRESS_BOUND",
    "STATE_KEY",
    "BatchMove",
    "BatchState",
    "CallMove",
    "CallRecord",
    "CallState",
    "ClaimTable",
    "Cursor",
    "Holds",
    "Lane",
    "LaneMove",
    "LanePlace",
    "LanePolicy",
    "LaneRecord",
    "LaneState",
    "LentSlot",
    "Machine",
    "MergedCall",
    "Siblings",
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
    "circle_through",
    "claims_of",
    "give_back",
    "has_changed",
    "looked_at_by",
    "may_go_stale",
    "merged",
    "next_batch",
    "parallel",
    "partition",
    "serial",
    "shares_a_lane",
    "stale_claims_text",
    "stale_part",
    "stale_text",
    "touched_by",
]
