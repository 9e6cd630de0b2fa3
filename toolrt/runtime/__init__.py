"""Runs batches of tool calls on Trio: batches, lanes as nurseries, and the context that a tool gets."""

from toolrt.model import Allow, ApprovalRequest, Approve, Deny, ParentCall, Rewrite
from toolrt.runtime._batch import Batch
from toolrt.runtime._context import ToolContext
from toolrt.runtime._runtime import Runtime
from toolrt.runtime._statistics import RuntimeStatistics

__all__ = [
    "Allow",
    "ApprovalRequest",
    "Approve",
    "Batch",
    "Deny",
    "ParentCall",
    "Rewrite",
    "Runtime",
    "RuntimeStatistics",
    "ToolContext",
]
