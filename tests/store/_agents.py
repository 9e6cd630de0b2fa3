"""The child of the tests of agents that are killed: it runs the calls of one model response, whole or streamed.

The response calls ``note`` three times; each is a line that is appended to one file in one write.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import trio

import toolrt
from tests.store._killed import die_at
from toolrt import WRITE, Claim, Registry, Runtime, ToolContext
from toolrt.interop import read_response, render_results
from toolrt.plugins import anthropic, openai

NOTES = ("first", "second", "third")

#: Messages as the APIs send them, by the format's name.
MESSAGES: dict[str, dict[str, Any]] = {
    "anthropic": {
        "id": "msg_7",
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I note."},
            *({"type": "tool_use", "id": f"t{at}", "name": "note", "input": {"what": NOTES[at]}} for at in range(3)),
        ],
    },
    "openai-responses": {
        "id": "resp_7",
        "output": [
            {"type": "function_call", "call_id": f"t{at}", "name": "note", "arguments": json.dumps({"what": NOTES[at]})}
            for at in range(3)
        ],
    },
    "openai-chat": {
        "id": "chatcmpl-7",
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": f"t{at}",
                            "type": "function",
                            "function": {"name": "note", "arguments": json.dumps({"what": NOTES[at]})},
                        }
                        for at in range(3)
                    ],
                }
            }
        ],
    },
}


def runtime_in(directory: Path, kills: str = "") -> Runtime:
    """The runtime of a process, which the note `kills` ends."""

    @toolrt.tool(claims=[Claim("notes", WRITE)], schema=None)
    async def note(ctx: ToolContext, what: str) -> str:
        with (directory / "effects").open("a") as file:
            file.write(f"{what}\n")
        if what == kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"noted {what}"

    return Runtime(Registry([note]), journal=toolrt.Journal(directory / "journal.db"))


def agent(directory: str, format: str, kill_at: int | None, told: Connection[str, str]) -> None:
    """Run the calls of a message that was saved before, or go on with them, and send what answers it.

    Args:
        directory: where all is that outlives a process.
        format: of the message.
        kill_at: as of `tests.store._killed.process`.
        told: is sent the answer as JSON.
    """
    if kill_at is not None:
        die_at(kill_at)
    response = read_response(MESSAGES[format])
    run = toolrt.run_sync(runtime_in(Path(directory)), response.calls, batch_id=response.response_id, resume=True)
    told.send(json.dumps(render_results(run.results, response.format)))


def listener(directory: str, format: str) -> None:
    """Read a stream, until the second call kills the process; the third is never whole."""
    run = {"anthropic": anthropic.run, "openai-responses": openai.run, "openai-chat": openai.run_chat}[format]
    trio.run(run, runtime_in(Path(directory), kills="second"), events(format))


async def events(format: str) -> AsyncIterator[dict[str, Any]]:
    """The events of two calls, and the beginning of a third."""
    message = MESSAGES[format]
    if format == "anthropic":
        yield {"type": "message_start", "message": {**message, "content": []}}
        for index, block in enumerate(message["content"][1:]):
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            if index < 2:
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
                yield {"type": "content_block_stop", "index": index}
    elif format == "openai-responses":
        yield {"type": "response.created", "response": {"id": message["id"], "output": []}}
        for index, item in enumerate(message["output"]):
            yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "arguments": ""}}
            if index < 2:
                yield {"type": "response.output_item.done", "output_index": index, "item": item}
    else:
        for index, call in enumerate(message["choices"][0]["message"]["tool_calls"]):
            delta = {**call, "index": index}
            if index == 2:
                delta["function"] = {"name": "note", "arguments": '{"wh'}
            yield {"id": message["id"], "choices": [{"index": 0, "delta": {"tool_calls": [delta]}}]}
    await trio.sleep_forever()
