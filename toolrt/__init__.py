"""A Trio runtime for the tool calls of LLM agents, and a simulator that shows that timing decides nothing."""

from typing import Any

from toolrt.interop import record, run_sync
from toolrt.model import (
    EVERYTHING,
    READ,
    WRITE,
    BatchOutcome,
    Claim,
    Diagnostic,
    Diagnostics,
    DirectoryChanged,
    Event,
    FileChanged,
    LaneChanges,
    Mode,
    Outcome,
    OutputChunk,
    Progress,
    Registry,
    RejectedModifier,
    ResultReady,
    Services,
    State,
    StateMerged,
    Tool,
    ToolCall,
    ToolOutput,
    ToolResult,
    tool,
)
from toolrt.order import (
    ClaimTable,
    Lane,
    Status,
    TrackedCall,
    by_claims,
    by_safety,
    parallel,
    partition,
    serial,
)
from toolrt.runtime import Allow, ApprovalRequest, Batch, Deny, Rewrite, Runtime, ToolContext
from toolrt.workspace import MemoryDisk, Permissions, Permit, Rule, Workspace

__all__ = [
    "EVERYTHING",
    "READ",
    "WRITE",
    "Allow",
    "ApprovalRequest",
    "Batch",
    "BatchOutcome",
    "Claim",
    "ClaimTable",
    "Deny",
    "Diagnostic",
    "Diagnostics",
    "DirectoryChanged",
    "Event",
    "FileChanged",
    "Lane",
    "LaneChanges",
    "MemoryDisk",
    "Mode",
    "Outcome",
    "OutputChunk",
    "Permissions",
    "Permit",
    "Progress",
    "Registry",
    "RejectedModifier",
    "ResultReady",
    "Rewrite",
    "Rule",
    "Runtime",
    "Services",
    "State",
    "StateMerged",
    "Status",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolOutput",
    "ToolResult",
    "TrackedCall",
    "Workspace",
    "by_claims",
    "by_safety",
    "parallel",
    "partition",
    "record",
    "run_sync",
    "serial",
    "tool",
]

_ROOMS = ("interop", "invariants", "services", "sim", "testing", "trace", "view", "workspace")


def __getattr__(name: str) -> Any:
    """Import a room when it is first asked for: ``import toolrt`` alone stays light."""
    if name in _ROOMS:
        import importlib

        return importlib.import_module(f"toolrt.{name}")
    raise AttributeError(f"module 'toolrt' has no attribute {name!r}")
