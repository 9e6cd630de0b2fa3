"""A language server that is no program: it answers from a record, as the real one once did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import attrs
import trio

from toolrt.errors import DefinitionRefused
from toolrt.model import Diagnostic
from toolrt.plugins.lsp._port import Message, Talk
from toolrt.plugins.lsp._server import LanguageServer
from toolrt.processes import ProgramNotes, check_recorded_seconds

_Findings = Iterable[Diagnostic]


class RecordedServer:
    r"""Answers for simulations and tests, where no process is started.

    Args:
        findings: what is found in each text; or a function of a path (relative to the root) and a text.
        answers: "asked" answers when it is asked, "published" publishes with the version, "unversioned" without.
        seconds: how long it takes for each answer.
        lost_after: how many messages it takes before its connection is lost, each time; None: it never is.

    Raises:
        DefinitionRefused: a value is none of what is expected.

    Example::

        finding = Diagnostic(1, 8, "`os` imported but unused", Severity.WARNING, "Ruff", "F401")
        double = RecordedServer({"import os\n": [finding], "": []})
        server = LanguageServer("ruff", suffixes=[".py"], server=double)
    """

    def __init__(
        self,
        findings: Mapping[str, _Findings] | Callable[[str, str], _Findings],
        *,
        answers: Literal["asked", "published", "unversioned"] = "asked",
        seconds: float = 0.0,
        lost_after: int | None = None,
    ) -> None:
        if not callable(findings) and not isinstance(findings, Mapping):
            expected = "findings by text, or a function of path and text"
            raise DefinitionRefused("RecordedServer(findings)", expected, findings)
        if answers not in ("asked", "published", "unversioned"):
            raise DefinitionRefused("RecordedServer(answers)", '"asked", "published" or "unversioned"', answers)
        check_recorded_seconds("RecordedServer(seconds)", seconds)
        self._findings = findings
        self._answers = answers
        self._seconds = seconds
        self._lost_after = lost_after
        #: What it was told, message by message: the method, the path, and the text or the kind of change.
        self.told: list[tuple[str, str, str | None]] = []

    async def serve(self, server: LanguageServer, root: str, talk: Talk, notes: ProgramNotes) -> None:
        """See `Peer.serve`."""
        async with trio.open_nursery() as nursery:
            channel = _RecordedChannel(self, root, nursery, self._lost_after)
            with channel.talking:
                await talk(channel)
            nursery.cancel_scope.cancel()
        notes.ended = channel.problem or "it ended with exit status 0"

    def found(self, path: str, text: str) -> list[Message] | None:
        """The findings in the text of `path`, as LSP writes them; None: nothing is recorded for it."""
        if callable(self._findings):
            findings: _Findings | None = self._findings(path, text)
        else:
            findings = self._findings.get(text)
        return None if findings is None else [_written(finding) for finding in findings]

    @property
    def is_asked(self) -> bool:
        """Whether it answers when it is asked."""
        return self._answers == "asked"

    @property
    def names_versions(self) -> bool:
        """Whether it says which version its findings are about."""
        return self._answers == "published"

    @property
    def seconds(self) -> float:
        """How long it takes for each answer."""
        return self._seconds


def _written(finding: Diagnostic) -> Message:
    place = {"line": finding.line - 1, "character": finding.column - 1}
    written: Message = {"range": {"start": place, "end": place}, "message": finding.message}
    written["severity"] = int(finding.severity)
    return written | {name: value for name in ("source", "code") if (value := getattr(finding, name)) is not None}


@attrs.define(eq=False)
class _RecordedChannel:
    """One connection to the record."""

    _record: RecordedServer
    _root: str
    _nursery: trio.Nursery
    _left: int | None
    problem: str | None = None
    talking: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _take: Callable[[Message], None] = attrs.field(default=lambda _: None, init=False)
    _texts: dict[str, tuple[int, str]] = attrs.field(factory=dict, init=False)

    def listen(self, take: Callable[[Message], None]) -> None:
        """See `Channel.listen`."""
        self._take = take

    def give_up(self, problem: str) -> None:
        """See `Channel.give_up`."""
        self.problem = self.problem or problem
        self.talking.cancel()

    def send(self, message: Message) -> None:
        """See `Channel.send`."""
        if self.talking.cancel_called:
            return
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self.give_up("it was ended by SIGKILL")
                return
        method, params = message.get("method"), message.get("params") or {}
        if method == "initialize":
            provider = {"interFileDependencies": False, "workspaceDiagnostics": False}
            said: Message = {"positionEncoding": "utf-32", "textDocumentSync": 1}
            said |= {"diagnosticProvider": provider} if self._record.is_asked else {}
            self._reply(message, {"capabilities": said})
        elif method == "textDocument/diagnostic":
            # It answers about the text that it has now, as a server does that takes one message after the other.
            path = self._path(params["textDocument"]["uri"])
            known = self._texts.get(path)
            found = None if known is None else self._record.found(path, known[1])
            if found is None:
                self._later({"id": message["id"], "error": {"code": -32603, "message": "nothing is recorded"}})
            else:
                self._reply(message, {"kind": "full", "items": found})
        elif method in ("textDocument/didOpen", "textDocument/didChange"):
            self._told_text(method, params)
        elif method == "textDocument/didClose":
            path = self._path(params["textDocument"]["uri"])
            self._texts.pop(path, None)
            self._record.told.append((method, path, None))
        elif method == "workspace/didChangeWatchedFiles":
            kinds = {1: "created", 2: "modified", 3: "deleted"}
            for change in params["changes"]:
                self._record.told.append((method, self._path(change["uri"]), kinds[change["type"]]))
        elif method == "shutdown":
            self._reply(message, None)

    def _told_text(self, method: str, params: Any) -> None:
        document = params["textDocument"]
        path, version = self._path(document["uri"]), document["version"]
        text = document["text"] if method == "textDocument/didOpen" else params["contentChanges"][0]["text"]
        self._texts[path] = version, text
        self._record.told.append((method, path, text))
        if self._record.is_asked:
            return
        found = self._record.found(path, text)
        if found is not None:
            published: Message = {"uri": document["uri"], "diagnostics": found}
            published |= {"version": version} if self._record.names_versions else {}
            self._later({"method": "textDocument/publishDiagnostics", "params": published})

    def _reply(self, request: Message, result: Any) -> None:
        self._later({"id": request["id"], "result": result})

    def _later(self, message: Message) -> None:
        async def deliver() -> None:
            await trio.sleep(self._record.seconds)
            self._take(message)

        self._nursery.start_soon(deliver)

    def _path(self, uri: str) -> str:
        return unquote(urlsplit(uri).path).removeprefix(f"{self._root.rstrip('/')}/")
