"""What happened, as typed records: one frozen class for each kind of event, and the seam that tells them.

Rules.  A record's class says when it happens and what its fields mean; `docs/reference/events.md` is made from that.
Traces hold the kind's name and the fields (`EventRecord.to_json`); their form is that of `SCHEMA`.  This room imports
the errors and the form of JSON values alone, so that pure rooms tell events too.

To add one: write the class in the module of its subject, tell it where it happens, and run ``.ci/write_events.py``.
"""

from toolrt.events._base import SCHEMA, BatchEvent, CallEvent, EventRecord, LaneEvent, from_json, kinds
from toolrt.events._batch import (
    BatchCancelled,
    BatchLeft,
    BatchOpened,
    BatchSealed,
    BatchStopped,
    LaneMerged,
    LaneStarted,
    MergeDelivered,
    ModifierApplied,
    ModifiersRefused,
    ProgressDelivered,
    ReaderAsked,
    ResultDelivered,
    ServiceFailed,
    ServicesHeard,
    ServicesTold,
)
from toolrt.events._call import (
    ApprovalAnswered,
    ApprovalAsked,
    CallEnded,
    CallSettled,
    CallStarted,
    CallStartedAgain,
    CallSubmitted,
    ClaimsAwaited,
    ClaimsStale,
    ProgressSent,
    TicketTaken,
)
from toolrt.events._observer import EventListener, Listeners, observer
from toolrt.events._tool import DiskFailed, FileRead, MutationBegan, MutationEnded, ToolEffect
from toolrt.events._waiting import (
    ApprovalAwaited,
    CallFailed,
    CallReady,
    LaneAwaited,
    ReleaseBegan,
    ReleaseEnded,
    SlotsGiven,
    TicketGranted,
    WaitsForUndeclared,
)

__all__ = [
    "SCHEMA",
    "ApprovalAnswered",
    "ApprovalAsked",
    "ApprovalAwaited",
    "BatchCancelled",
    "BatchEvent",
    "BatchLeft",
    "BatchOpened",
    "BatchSealed",
    "BatchStopped",
    "CallEnded",
    "CallEvent",
    "CallFailed",
    "CallReady",
    "CallSettled",
    "CallStarted",
    "CallStartedAgain",
    "CallSubmitted",
    "ClaimsAwaited",
    "ClaimsStale",
    "DiskFailed",
    "EventListener",
    "EventRecord",
    "FileRead",
    "LaneAwaited",
    "LaneEvent",
    "LaneMerged",
    "LaneStarted",
    "Listeners",
    "MergeDelivered",
    "ModifierApplied",
    "ModifiersRefused",
    "MutationBegan",
    "MutationEnded",
    "ProgressDelivered",
    "ProgressSent",
    "ReaderAsked",
    "ReleaseBegan",
    "ReleaseEnded",
    "ResultDelivered",
    "ServiceFailed",
    "ServicesHeard",
    "ServicesTold",
    "SlotsGiven",
    "TicketGranted",
    "TicketTaken",
    "ToolEffect",
    "WaitsForUndeclared",
    "from_json",
    "kinds",
    "observer",
]
