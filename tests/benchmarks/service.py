"""A service with many conversations: toolrt's door for asyncio against a hand-written `asyncio.gather`, in one process.

Run it as ``python -m tests.benchmarks.service``.  Both answer the same requests to one Starlette application, in
memory: each request is a conversation's next turn, with four look-ups of 20 ms and two edits of its document of 2 ms
each.  The rows give the median latency of a turn, the processor time of all turns, and how many edits were lost.
``--json`` prints a JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from toolrt import WRITE, Claim, Registry, Runtime, ToolCall, aio
from toolrt.interop import render_results

LOOK_UP, EDIT = 0.02, 0.002
CALLS = [
    {"type": "tool_use", "id": f"c{index}", "name": name, "input": {"document": "", "text": name}}
    for index, name in enumerate(["look_up", "edit", "look_up", "look_up", "edit", "look_up"])
]

DOCUMENTS: dict[str, str] = {}


async def look_up(ctx: Any, document: str, text: str) -> str:
    """Ask another service."""
    await asyncio.sleep(LOOK_UP)
    return text


async def edit(ctx: Any, document: str, text: str) -> str:
    """Read, change and write a document, and wait in between."""
    before = DOCUMENTS.get(document, "")
    await asyncio.sleep(EDIT)
    DOCUMENTS[document] = before + "x"
    return "edited"


RUNTIME = Runtime(
    Registry(
        [
            aio.tool(safe=True)(look_up),
            aio.tool(claims=lambda input, state: [Claim(("document", input["document"]), WRITE)])(edit),
        ]
    )
)


async def by_toolrt(conversation: str, blocks: list[dict[str, Any]]) -> Any:
    """One turn by the runtime."""
    calls = [ToolCall(block["id"], block["name"], block["input"]) for block in blocks]
    done = await aio.run(RUNTIME, calls, owner=conversation)
    return render_results(done.results, "anthropic")


async def by_gather(conversation: str, blocks: list[dict[str, Any]]) -> Any:
    """One turn by hand: nothing is checked, and nothing orders the edits."""
    named: dict[str, Callable[..., Awaitable[str]]] = {"look_up": look_up, "edit": edit}
    answers = await asyncio.gather(*(named[block["name"]](None, **block["input"]) for block in blocks))
    content = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": answer}
        for block, answer in zip(blocks, answers, strict=True)
    ]
    return {"role": "user", "content": content}


async def served(turn: Callable[..., Awaitable[Any]], conversations: int, turns: int) -> dict[str, Any]:
    """All conversations at once, each its turns one after the other; the figures of the service."""

    async def answer(request: Request) -> JSONResponse:
        conversation = request.path_params["conversation"]
        return JSONResponse(await turn(conversation, await request.json()))

    app = Starlette(routes=[Route("/{conversation}", answer, methods=["POST"])])
    latencies: list[float] = []

    async def converse(client: Any, name: str) -> None:
        calls = [{**call, "input": {**call["input"], "document": name}} for call in CALLS]
        for _ in range(turns):
            began = time.perf_counter()
            (await client.post(f"/{name}", json=calls)).raise_for_status()
            latencies.append(time.perf_counter() - began)

    DOCUMENTS.clear()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        await converse(client, "warm")
        latencies.clear()
        began, processor = time.perf_counter(), time.process_time()
        await asyncio.gather(*(converse(client, f"conversation {index}") for index in range(conversations)))
        wall, processor = time.perf_counter() - began, time.process_time() - processor
    edits = 2 * turns * (conversations + 1)
    return {
        "median_ms": round(statistics.median(latencies) * 1e3, 1),
        "wall_s": round(wall, 3),
        "processor_s": round(processor, 3),
        "lost_edits": edits - sum(map(len, DOCUMENTS.values())),
    }


def main() -> None:
    """Print the figures and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--conversations", type=int, default=50)
    parser.add_argument("--turns", type=int, default=5, help="of each conversation")
    parser.add_argument("--json", action="store_true", help="a JSON object")
    options = parser.parse_args()
    rows = {
        turn.__name__: asyncio.run(served(turn, options.conversations, options.turns))
        for turn in (by_gather, by_toolrt)
    }
    ratios = {
        what: round(rows["by_toolrt"][what] / rows["by_gather"][what], 2)
        for what in ("median_ms", "wall_s", "processor_s")
    }
    if options.json:
        print(json.dumps({**rows, "ratios": ratios}))
        return
    for name, row in rows.items():
        print(f"{name:9}", row)
    print("ratios   ", ratios)


if __name__ == "__main__":
    main()
