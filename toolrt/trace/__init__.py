"""What was observed: events, steps, accesses, and what happened before what.

A production run and a simulation give the same `Trace`.  This room imports errors and the probe alone, and
knows no Trio: the recorder supplies the time and the running task.
"""

from typing import TYPE_CHECKING, Any

from toolrt._plain import plain, stable_text
from toolrt.trace._compare import Parting, Race, parting_of, race_between
from toolrt.trace._edges import Edge
from toolrt.trace._record import Access, Step, TraceEvent
from toolrt.trace._recorder import Recorder, recording
from toolrt.trace._trace import Trace

__all__ = [
    "Access",
    "Edge",
    "Parting",
    "Race",
    "Recorder",
    "Step",
    "Trace",
    "TraceEvent",
    "parting_of",
    "plain",
    "race_between",
    "recording",
    "stable_text",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Find `TraceEvent` by its former name, ``Event``."""
        if name == "Event":
            return TraceEvent
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
