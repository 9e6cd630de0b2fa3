"""A Trio runtime for the tool calls of LLM agents, and a simulator that shows that timing decides nothing.

Every name below is imported from its room when it is first used, so ``import toolrt`` costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if sys.platform == "emscripten":
    # Before Trio, which has no I/O manager for a browser.
    from toolrt._without_io import prepare_trio

    prepare_trio()

if TYPE_CHECKING:
    from types import ModuleType

    from toolrt.interop import record, run_sync
    from toolrt.model import (
        EVERYTHING,
        READ,
        WRITE,
        BatchOutcome,
        Change,
        Claim,
        Diagnostic,
        Diagnostics,
        DirectoryChanged,
        Event,
        File,
        FileChanged,
        Image,
        Json,
        LaneChanges,
        LongResult,
        Mode,
        Outcome,
        OutputChunk,
        Progress,
        Rate,
        Registry,
        RejectedModifier,
        ResultReady,
        Row,
        Services,
        State,
        StateMerged,
        Text,
        Tool,
        ToolCall,
        ToolOutput,
        ToolResult,
        read_result,
        tool,
    )
    from toolrt.order import (
        ClaimTable,
        Lane,
        LaneChoice,
        LanePolicy,
        LaneRule,
        Limits,
        PolicyCall,
        SlotPolicy,
        Status,
        TrackedCall,
        by_claims,
        by_safety,
        parallel,
        partition,
        serial,
    )
    from toolrt.runtime import Allow, ApprovalRequest, Batch, Deny, Rewrite, Runtime, ToolContext
    from toolrt.store import Journal
    from toolrt.workspace import MemoryDisk, Permissions, Permit, Rule, Workspace

__all__ = [
    "EVERYTHING",
    "READ",
    "WRITE",
    "Allow",
    "ApprovalRequest",
    "Batch",
    "BatchOutcome",
    "Change",
    "Claim",
    "ClaimTable",
    "Deny",
    "Diagnostic",
    "Diagnostics",
    "DirectoryChanged",
    "Event",
    "File",
    "FileChanged",
    "Image",
    "Journal",
    "Json",
    "Lane",
    "LaneChanges",
    "LaneChoice",
    "LanePolicy",
    "LaneRule",
    "Limits",
    "LongResult",
    "MemoryDisk",
    "Mode",
    "Outcome",
    "OutputChunk",
    "Permissions",
    "Permit",
    "PolicyCall",
    "Progress",
    "Rate",
    "Registry",
    "RejectedModifier",
    "ResultReady",
    "Rewrite",
    "Row",
    "Rule",
    "Runtime",
    "Services",
    "SlotPolicy",
    "State",
    "StateMerged",
    "Status",
    "Text",
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
    "read_result",
    "record",
    "run_sync",
    "serial",
    "tool",
]

#: The rooms that `__all__` comes from, from the ground up: each imports those before it in any case.
_SOURCES = ("model", "order", "runtime", "workspace", "interop", "store")
_ROOMS = (
    "aio",
    "conformance",
    "interop",
    "invariants",
    "plugins",
    "services",
    "sim",
    "store",
    "teaching",
    "testing",
    "trace",
    "view",
    "workspace",
)


def __getattr__(name: str) -> Any:
    """Import a room, or the room that a name comes from, at its first use."""
    if name in _ROOMS:
        return _room(name)
    if name in __all__:
        for source in map(_room, _SOURCES):
            if name in source.__all__:
                return globals().setdefault(name, getattr(source, name))
    raise AttributeError(f"module 'toolrt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})


def _room(name: str) -> ModuleType:
    return importlib.import_module(f"toolrt.{name}")
