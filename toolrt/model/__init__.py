"""Calls, results, state, claims, tools: values that know neither Trio nor time."""

from toolrt.model._approval import Allow, ApprovalRequest, Approve, Deny, Rewrite, decision
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
    "Allow",
    "ApprovalRequest",
    "Approve",
    "Arguments",
    "BatchOutcome",
    "Claim",
    "Deny",
    "Mismatch",
    "Mode",
    "Modifier",
    "Outcome",
    "Progress",
    "Registry",
    "RejectedModifier",
    "ResultReady",
    "Rewrite",
    "State",
    "StateMerged",
    "Tool",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "Update",
    "covers",
    "decision",
    "reads_only",
    "tool",
]
