"""A whole agent loop of three turns, in asyncio or in Trio, on a copy of docs/examples/shop in memory.

    pip install 'toolrt[anthropic]'
    python -m docs.examples.agents.loop            in asyncio
    python -m docs.examples.agents.loop --trio     in Trio

The model is recorded, so it needs no key and no network; a real one has `anthropic.AsyncAnthropic()` in place of
`recorded.anthropic_client()`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import trio

import toolrt
from docs.examples.agents import recorded
from toolrt import aio
from toolrt.plugins import anthropic


async def converse(
    open_batch: Callable[[toolrt.Runtime], Any], client: Any, runtime: toolrt.Runtime, messages: list[dict[str, Any]]
) -> None:
    """Let the model call tools until it calls none, and say what has happened when it stops speaking."""
    request = {"model": "claude-sonnet-5-5", "max_tokens": 4096, "tools": anthropic.tools(runtime), "stream": True}
    waits = True
    while waits:
        async with open_batch(runtime) as batch:
            turn = anthropic.AnthropicTurn(batch)
            calls = batch.calls

            def show(event: Any, calls: Any = calls) -> None:
                if getattr(getattr(event, "delta", None), "type", "") == "text_delta":
                    print(event.delta.text, end="", flush=True)
                elif event.type == "message_stop":
                    print("  the model stops;", *[f"{call.call_id} is {call.status.value}" for call in calls])

            await turn.hear(client.messages.create(messages=messages, **request), show)
        for result in batch.outcome.results:
            print(f"  {result.call_id} {result.name}: {result.outcome.value}")
        messages += turn.messages
        waits = turn.waits


def main(in_trio: bool) -> list[dict[str, Any]]:
    """Run the conversation, and give its messages."""
    workspace = toolrt.Workspace(toolrt.MemoryDisk.copy_of("docs/examples/shop"))
    runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Raise shipping by two euros."}]
    client = recorded.anthropic_client()
    if in_trio:
        trio.run(converse, toolrt.Runtime.open_batch, client, runtime, messages)
    else:
        asyncio.run(converse(aio.open_batch, client, runtime, messages))
    print(workspace.snapshot()["shop/cart.py"].decode().splitlines()[6])
    return messages


if __name__ == "__main__":
    main("--trio" in sys.argv)
