"""Calls, results, state, claims, tools: values that know neither Trio nor time."""

from toolrt.model._call import Modifier, Outcome, ToolCall, ToolOutput, ToolResult, json_value
from toolrt.model._claim import EVERYTHING, READ, WRITE, Claim, Mode, covers
from toolrt.model._registry import Registry
from toolrt.model._schema import Mismatch
from toolrt.model._state import State
from toolrt.model._tool import Arguments, Tool, reads_only, tool

__all__ = [
    "EVERYTHING",
    "READ",
    "WRITE",
    "Arguments",
    "Claim",
    "Mismatch",
    "Mode",
    "Modifier",
    "Outcome",
    "Registry",
    "State",
    "Tool",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "covers",
    "json_value",
    "reads_only",
    "tool",
]
