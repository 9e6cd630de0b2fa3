"""The order of everything: claims, tickets, lanes, result slots.  Pure; knows neither Trio nor time."""

from toolrt.order._cursor import PROGRESS_BOUND, Cursor, MergingLane
from toolrt.order._lanes import (
    STATE_KEY,
    Lane,
    LanePolicy,
    StateKeys,
    by_claims,
    by_safety,
    claims_of,
    parallel,
    partition,
    serial,
    shares_a_lane,
    touched_by,
)
from toolrt.order._merge import merged
from toolrt.order._tickets import ClaimTable, Ticket, give_back, next_batch
from toolrt.order._tracked import TRANSITIONS, Happening, LanePlace, Status, TrackedCall

__all__ = [
    "PROGRESS_BOUND",
    "STATE_KEY",
    "TRANSITIONS",
    "ClaimTable",
    "Cursor",
    "Happening",
    "Lane",
    "LanePlace",
    "LanePolicy",
    "MergingLane",
    "StateKeys",
    "Status",
    "Ticket",
    "TrackedCall",
    "by_claims",
    "by_safety",
    "claims_of",
    "give_back",
    "merged",
    "next_batch",
    "parallel",
    "partition",
    "serial",
    "shares_a_lane",
    "touched_by",
]
