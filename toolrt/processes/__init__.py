"""Runs real programs, ends each with all the processes that it started, and keeps connections to servers."""

from toolrt.processes._connection import pause_before_restart
from toolrt.processes._conversation import Conversation, ProgramNotes, start_spoken_to
from toolrt.processes._recorded import check_recorded_seconds, spread
from toolrt.processes._sandbox import sandbox_lacks
from toolrt.processes._supervised import Halted, Supervised, drain, program_at
from toolrt.processes._unanswered import NotStarted

__all__ = [
    "Conversation",
    "Halted",
    "NotStarted",
    "ProgramNotes",
    "Supervised",
    "check_recorded_seconds",
    "drain",
    "pause_before_restart",
    "program_at",
    "sandbox_lacks",
    "spread",
    "start_spoken_to",
]
