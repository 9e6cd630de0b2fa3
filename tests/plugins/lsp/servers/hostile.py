"""A language server that misbehaves as it is told to; without a word of that it finds the word "bad" in a file.

Its arguments: how it behaves, and a file in which its starts are counted.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

HOW, COUNT = sys.argv[1], sys.argv[2]
with open(COUNT, "a") as counted:
    counted.write("x")
STARTS = os.path.getsize(COUNT)
OUT = sys.stdout.buffer
TEXTS: dict[str, tuple[int, str]] = {}
ASKED: dict[int, str] = {}
ANSWERED: dict[str, Any] = {}


def send(message: dict[str, Any]) -> None:
    content = json.dumps({"jsonrpc": "2.0", **message}).encode()
    OUT.write(b"Content-Type: x\r\ncontent-length:%d\r\n\r\n" % len(content) + content)
    OUT.flush()


def receive() -> dict[str, Any]:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        if line.lower().startswith(b"content-length"):
            length = int(line.split(b":")[1])
    if not length:
        sys.exit(0)
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    return message


def found(uri: str) -> list[Any]:
    at = TEXTS[uri][1].find("bad")
    text = TEXTS[uri][1][:at]
    line, column = text.count("\n"), len(text) - text.rfind("\n") - 1
    place = {"line": line, "character": column}
    return [] if at < 0 else [{"range": {"start": place, "end": place}, "message": "bad", "severity": 2, "code": 7}]


def publish(uri: str, version: int | None, items: Any = None) -> None:
    params = {"uri": uri, "diagnostics": found(uri) if items is None else items}
    send(
        {
            "method": "textDocument/publishDiagnostics",
            "params": params | ({} if version is None else {"version": version}),
        }
    )


def told(uri: str) -> None:
    """A document has a text."""
    version = TEXTS[uri][0]
    wrong = [{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "message": "wrong"}]
    if HOW == "published":
        publish(uri.replace("a.py", "%61.py"), version, found(uri))
    elif HOW == "lies":
        for other in (version + 1, version - 1, 10**30, -1, "x", True, None):
            publish(uri, other, wrong)  # type: ignore[arg-type]
        send({"method": "textDocument/publishDiagnostics", "params": "nothing"})
        publish("file:///elsewhere", version, wrong)
        publish("http://[", version, wrong)
        publish(uri, version)
        publish(uri, version, wrong)
    elif HOW == "unversioned" or (HOW == "silent first" and STARTS > 1):
        publish(uri, None)


def ask(number: int, method: str, params: Any = None) -> None:
    ASKED[number] = method
    send({"id": number, "method": method, "params": params})


def question(message: dict[str, Any]) -> None:
    """Somebody asks for findings."""
    uri = message["params"]["textDocument"]["uri"]
    if HOW == "half always" or (HOW == "half" and STARTS == 1):
        OUT.write(b"Content-Length: 1000\r\n\r\n{")
        OUT.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    elif HOW == "mute":
        return
    elif HOW == "again":
        send({"id": message["id"], "error": {"code": -32802, "message": "later", "data": {"retriggerRequest": True}}})
    elif HOW == "refuses":
        send({"id": message["id"], "error": {"code": -32603, "message": "/etc/passwd is secret"}})
    elif HOW == "nonsense":
        send({"id": message["id"], "result": {"kind": "full", "items": {"a": 1}}})
    elif HOW == "odd findings":
        place = {"start": {"line": -1, "character": 0}, "end": {"line": 0, "character": 0}}
        odd = [{}, 7, None, {"range": place, "message": "x"}, {"range": "x", "message": []}]
        secret = {**found(uri)[0], "message": "see /home/secret/x.py: two\nlines"}
        send({"id": message["id"], "result": {"kind": "full", "items": [*odd, *found(uri), secret]}})
    else:
        send({"id": "1", "result": None})
        send({"id": 10**9, "result": None})
        if HOW == "asks":
            items = [{"section": "one"}, {"section": "other"}, {}, 7]
            ask(1, "workspace/configuration", {"items": items})
            ask(2, "client/registerCapability", {"registrations": []})
            ask(3, "window/workDoneProgress/create", {"token": 1})
            ask(4, "workspace/applyEdit", {"edit": {"changes": {uri: []}}})
            ask(5, "workspace/workspaceFolders")
            ask(6, "no/such/method")
            send({"id": None, "method": "workspace/configuration"})
            while len(ANSWERED) < len(ASKED):
                take(receive())
            text = json.dumps(ANSWERED, sort_keys=True)
            place = {"line": 0, "character": 0}
            item = {"range": {"start": place, "end": place}, "message": text}
            send({"id": message["id"], "result": {"kind": "full", "items": [item]}})
            return
        send({"id": message["id"], "result": {"kind": "full", "items": found(uri)}})


def take(message: dict[str, Any]) -> None:
    method, params = message.get("method"), message.get("params")
    if method is None:
        ANSWERED[ASKED[message["id"]]] = message.get("result", message.get("error"))
    elif method == "initialize":
        start(message)
    elif method in ("textDocument/didOpen", "textDocument/didChange"):
        document = params["textDocument"]
        text = document.get("text") if method.endswith("Open") else params["contentChanges"][0]["text"]
        TEXTS[document["uri"]] = document["version"], text
        told(document["uri"])
    elif method == "textDocument/diagnostic":
        question(message)
    elif method == "shutdown" and HOW != "stubborn":
        send({"id": message["id"], "result": None})
    elif method == "exit" and HOW != "stubborn":
        sys.exit(0)


def start(message: dict[str, Any]) -> None:
    if HOW == "hang":
        hang()
    elif HOW == "text":
        OUT.write(b"hello, I am a server\n" * 1000)
    elif HOW == "oversized":
        OUT.write(b"Content-Length: 999999999999\r\n\r\n")
    elif HOW == "negative":
        OUT.write(b"Content-Length: -5\r\n\r\n")
    elif HOW == "no json":
        OUT.write(b"Content-Length: 4\r\n\r\n{{{{" * 1000)
    elif HOW == "deep":
        OUT.write(b"Content-Length: 1000000\r\n\r\n" + b"[" * 1_000_000)
    elif HOW == "cannot":
        send({"id": message["id"], "result": 7})
    OUT.flush()
    asked = {} if HOW in PUBLISHING else {"diagnosticProvider": {}}
    send({"id": message["id"], "result": {"capabilities": {"textDocumentSync": 1, **asked}}})
    number = 0
    while HOW in ("flood", "asks for ever"):
        number += 1
        id = {} if HOW == "flood" else {"id": number}
        send({**id, "method": "window/logMessage" if HOW == "flood" else "client/registerCapability", "params": {}})
    if HOW == "deaf":
        hang()


def hang() -> None:
    while True:
        time.sleep(1000)


PUBLISHING = ("published", "lies", "unversioned", "silent first")

if HOW in ("stubborn", "hang", "deaf", "flood"):
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    subprocess.Popen(["sh", "-c", 'trap "" TERM HUP INT; while :; do sleep 1000; done'], stderr=subprocess.DEVNULL)
if HOW == "stubborn":
    for signalled in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signalled, signal.SIG_IGN)
while True:
    if HOW == "stubborn":
        try:
            take(receive())
        except SystemExit:
            hang()
    else:
        take(receive())
