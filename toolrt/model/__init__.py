"""Calls, results, state, claims, tools: values that know neither Trio nor time."""

from toolrt.model._call import Modifier, Outcome, ToolCall, ToolOutput, ToolResult
from toolrt.model._claim import EVERYTHING, READ, WRITE, Claim, Mode, covers
from toolrt.model._registry import Registry
from toolrt.model._schema import Mismatch
from toolrt.model._state import State
from toolrt.model._tool import Arguments, Tool, reads_only, tool
from toolrt.model._update import BatchOutcome, Progress, RejectedModifier, ResultReady, StateMerged, Update

__all__ = [
    "EVERYTHING",
    "READ",
    "WRITE",
    "Arguments",
    "BatchOutcome",
    "Claim",
    "Mismatch",
    "Mode",
    "Modifier",
    "Outcome",
    "Progress",
    "Registry",
    "RejectedModifier",
    "ResultReady",
    "State",
    "StateMerged",
    "Tool",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "Update",
    "covers",
    "reads_only",
    "tool",
]
