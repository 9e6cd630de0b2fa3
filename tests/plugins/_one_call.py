"""A batch of one call, for the tests of tools that come from a framework."""

from __future__ import annotations

import asyncio
from typing import Any

from toolrt import Registry, Runtime, Tool, ToolCall, ToolResult, aio, run_sync


def result_of(made: Tool, input: dict[str, Any], awaited: bool = True) -> ToolResult:
    """What a batch of one call answers, in asyncio or outside of any event loop."""
    runtime, calls = Runtime(Registry([made])), [ToolCall("call_0", made.name, input)]
    done = asyncio.run(aio.run(runtime, calls)) if awaited else run_sync(runtime, calls)
    return done.results[0]
