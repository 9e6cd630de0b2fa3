"""An MCP server that is not nice: ``python rough.py CONFIGURATION``, a JSON object.

It knows the protocol's messages and nothing else, so it starts at once.  Its tools, unless it is told others: ``echo``
answers its text, after ``seconds``; ``crash`` ends the server, after ``half`` of a message, if so, and with a ``file``
that counts the calls only ``until`` so many; ``say`` sends the messages that it is given.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

OBJECT = {"type": "object"}
TOOLS = [
    {"name": "echo", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
    {"name": "crash", "inputSchema": OBJECT},
    {"name": "crash_safely", "inputSchema": OBJECT, "annotations": {"idempotentHint": True}},
    {"name": "say", "inputSchema": OBJECT},
]

config: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
writing = threading.Lock()
started: list[float] = []


def write(message: object) -> None:
    """Send one message, or a text as it is."""
    line = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message}) + "\n"  # type: ignore[dict-item]
    with writing:
        sys.stdout.write(line)
        sys.stdout.flush()


def counted(file: str) -> int:
    """How often this was asked, by whichever process."""
    with open(file, "a") as handle:
        handle.write("x")
    return os.path.getsize(file)


def text(given: object) -> str:
    """A text, or one that is given as a piece and how many of it."""
    if isinstance(given, list):
        return str(given[0]) * int(given[1])
    return str(given)


def listed(place: int) -> list[Any]:
    """The tools as they are the time they are asked for."""
    tools = config.get("tools", TOOLS)
    if "many" in config:
        tools = [{"name": f"t{number}", "inputSchema": OBJECT} for number in range(config["many"])]
    lists = config.get("lists")
    return tools if lists is None else lists[min(place, len(lists) - 1)]


def call(number: object, name: str, arguments: dict[str, Any], token: object) -> None:
    """Answer a call, in whatever way."""
    if arguments.get("file"):
        count = counted(arguments["file"])
    if name.startswith("crash"):
        if arguments.get("file") and count >= arguments.get("until", 10**9):
            write({"id": number, "result": {"content": [{"type": "text", "text": f"call {count}"}]}})
            return
        if arguments.get("half"):
            write(json.dumps({"jsonrpc": "2.0", "id": number, "result": {}})[:-9])
        os._exit(3)
    if name == "say":
        for message in arguments["messages"]:
            filled = json.loads(
                json.dumps(message).replace('"$id"', json.dumps(number)).replace('"$token"', json.dumps(token))
            )
            write(filled)
        return
    time.sleep(arguments.get("seconds", 0))
    content = [{"type": "text", "text": str(arguments.get("text", ""))}]
    write({"id": number, "result": {"content": content, **config.get("later", {})}})


def answer(message: dict[str, Any]) -> None:
    """Answer one message."""
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        if config.get("initialize") == "mute":
            return
        if "initialize" in config:
            given = config["initialize"]
            write({"id": number, **given} if isinstance(given, dict) else text(given))
            return
        version = message["params"]["protocolVersion"]
        about = {"name": "rough", "version": "1"}
        write(
            {"id": number, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}}
        )
    elif method == "server/discover" and "discover" in config:
        write({"id": number, **config["discover"]})
    elif method == "tools/list" and config.get("once") and started:
        write({"id": number, "error": {"code": -32601, "message": "no tools"}})
    elif method == "tools/list":
        started.append(0.0)
        result: dict[str, Any] = {"tools": listed(len(started) - 1), **config.get("later", {})}
        if config.get("pages"):
            result["nextCursor"] = "more"
        write({"id": number, "result": result})
        if config.get("deaf"):
            while True:
                time.sleep(1000)
        if config.get("close_output"):
            os.close(1)
            while True:
                time.sleep(1000)
    elif method == "tools/call":
        parameters = message["params"]
        token = parameters.get("_meta", {}).get("progressToken")
        arguments = (number, parameters["name"], parameters.get("arguments", {}), token)
        threading.Thread(target=call, args=arguments, daemon=True).start()


def main() -> None:
    """Do as configured."""
    if config.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for command in config.get("children", ()):
        subprocess.Popen(["sh", "-c", command])
    if config.get("stderr"):
        threading.Thread(target=lambda: [os.write(2, b"x" * 65536) for _ in range(config["stderr"])]).start()
    for line in config.get("garbage", ()):
        write(text(line) + "\n")
    if config.get("exit") is not None:
        print("nothing to serve", file=sys.stderr)
        sys.exit(config["exit"])
    for line in sys.stdin:
        for noise in config.get("noise", ()):
            write(noise + "\n")
        answer(json.loads(line))
    while config.get("stubborn"):
        time.sleep(1000)


main()
