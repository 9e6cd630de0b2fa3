"""Holds any executor of tool calls against the laws, from outside: `toolrt conformance MODULE:ADAPTER`.

Nothing here imports the runtime.  `conformance` draws batches, runs them on an event loop with virtual time, and
compares effects, answers and what runs after the end with what a serial run gives.
"""

from toolrt.conformance._kit import Conformance, LawReport, conformance, load_adapter
from toolrt.conformance._laws import LAWS, BlackBoxLaw
from toolrt.conformance._loop import Stuck, VirtualLoop

__all__ = [
    "LAWS",
    "BlackBoxLaw",
    "Conformance",
    "LawReport",
    "Stuck",
    "VirtualLoop",
    "conformance",
    "load_adapter",
]
