"""Calls, results, state, claims, tools: values that know neither Trio nor time."""

from toolrt.model._approval import Allow, ApprovalRequest, Approve, Deny, ParentCall, Rewrite, Withheld, decision
from toolrt.model._call import Modifier, Outcome, ToolCall, ToolOutput, ToolResult
from toolrt.model._change import Change
from toolrt.model._claim import EVERYTHING, READ, WRITE, Claim, Mode, Rate, covers
from toolrt.model._content import File, Image, Json, Text
from toolrt.model._event import (
    Diagnostic,
    Diagnostics,
    DirectoryChanged,
    Event,
    FileChange,
    FileChanged,
    OutputChunk,
    Severity,
)
from toolrt.model._mismatch import Mismatch
from toolrt.model._read_result import read_result
from toolrt.model._row import FieldClaims, Row
from toolrt.model._services import NO_SERVICES, SILENT, AfterLane, LaneChanges, Observer, Services, ToolTelemetry
from toolrt.model._state import LongResult, State, WorkingDir
from toolrt.model._tool import Arguments, Registry, Tool, reads_only, tool
from toolrt.model._update import BatchOutcome, Progress, RejectedModifier, ResultReady, StateMerged, Update

__all__ = [
    "EVERYTHING",
    "NO_SERVICES",
    "READ",
    "SILENT",
    "WRITE",
    "AfterLane",
    "Allow",
    "ApprovalRequest",
    "Approve",
    "Arguments",
    "BatchOutcome",
    "Change",
    "Claim",
    "Deny",
    "Diagnostic",
    "Diagnostics",
    "DirectoryChanged",
    "Event",
    "FieldClaims",
    "File",
    "FileChange",
    "FileChanged",
    "Image",
    "Json",
    "LaneChanges",
    "LongResult",
    "Mismatch",
    "Mode",
    "Modifier",
    "Observer",
    "Outcome",
    "OutputChunk",
    "ParentCall",
    "Progress",
    "Rate",
    "Registry",
    "RejectedModifier",
    "ResultReady",
    "Rewrite",
    "Row",
    "Services",
    "Severity",
    "State",
    "StateMerged",
    "Text",
    "Tool",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "ToolTelemetry",
    "Update",
    "Withheld",
    "WorkingDir",
    "covers",
    "decision",
    "read_result",
    "reads_only",
    "tool",
]
