"""Holds any executor of tool calls against the laws, from outside: `toolrt conformance MODULE:ADAPTER`.

Nothing here imports the runtime.  `conformance` draws batches, runs them on an event loop with virtual time, and
compares effects, answers and what runs after the end with what a serial run gives.
"""

from toolrt.conformance._capabilities import CAPABILITIES
from toolrt.conformance._disk import ExecutorDisk
from toolrt.conformance._kit import Conformance, LawReport, conformance, load_adapter
from toolrt.conformance._laws import LAWS, BlackBoxLaw
from toolrt.conformance._loop import Stuck, VirtualLoop
from toolrt.conformance._plan import SampleBounds

__all__ = [
    "CAPABILITIES",
    "LAWS",
    "BlackBoxLaw",
    "Conformance",
    "ExecutorDisk",
    "LawReport",
    "SampleBounds",
    "Stuck",
    "VirtualLoop",
    "conformance",
    "load_adapter",
]
