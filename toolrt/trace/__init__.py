"""What was observed: events, steps, accesses, and what happened before what.

A production run and a simulation give the same `Trace`.  This room imports errors and the probe alone, and
knows no Trio: the recorder supplies the time and the running task.
"""

from toolrt._plain import plain, stable_text
from toolrt.trace._compare import Parting, Race, parting_of, race_between
from toolrt.trace._edges import Edge
from toolrt.trace._record import Access, Event, Step
from toolrt.trace._recorder import Recorder, recording
from toolrt.trace._trace import Trace

__all__ = [
    "Access",
    "Edge",
    "Event",
    "Parting",
    "Race",
    "Recorder",
    "Step",
    "Trace",
    "parting_of",
    "plain",
    "race_between",
    "recording",
    "stable_text",
]
