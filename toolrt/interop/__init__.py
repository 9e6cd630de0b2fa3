"""Ways in and out: provider formats, sync and asyncio callers, recording a production run.

Formats lead from a model's response to calls, and from results to the message that answers it.  They work on plain
JSON values; no provider's SDK is needed, and an SDK's request types are plain dictionaries that fit.  Tools of MCP
servers are a plugin (`toolrt.plugins.mcp`).
"""

from toolrt.interop._format import Format, named_format
from toolrt.interop._json import MAX_NESTING
from toolrt.interop._record import record
from toolrt.interop._render import Rendered, render_calls, render_results, render_tools
from toolrt.interop._response import Response, read_response
from toolrt.interop._sync import run_sync
from toolrt.interop._text import MAX_RESPONSE_BYTES, parse_response

__all__ = [
    "MAX_NESTING",
    "MAX_RESPONSE_BYTES",
    "Format",
    "Rendered",
    "Response",
    "named_format",
    "parse_response",
    "read_response",
    "record",
    "render_calls",
    "render_results",
    "render_tools",
    "run_sync",
]
