"""A Trio runtime for the tool calls of LLM agents, and a simulator that shows that timing decides nothing."""

from toolrt.model import (
    READ,
    WRITE,
    Claim,
    Outcome,
    Registry,
    State,
    ToolCall,
    ToolOutput,
    ToolResult,
    tool,
)

__all__ = [
    "READ",
    "WRITE",
    "Claim",
    "Outcome",
    "Registry",
    "State",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "tool",
]
