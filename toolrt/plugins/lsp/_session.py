"""One connection to a language server, from its first message to its loss: requests, and the texts the server has.

Rules.
    1. Nothing here waits for the server but `start`, `findings` and `stop`, and messages go out
       in the order of the calls.
    2. A document's version is one higher with each text that is sent; it never goes back, also when the document is
       closed and opened again.
    3. Findings belong to a version.  A server that can be asked (``textDocument/diagnostic``) is asked after the text
       was sent; if the text has changed by the time it answers, it is asked again.  Any other server publishes: what
       names the version that was sent last counts, what names another is dropped.
    4. A server that publishes without versions gets one text at a time: the first it publishes after a text is
       taken to be about that; if it does not publish at all, the connection is given up, so that what comes late is
       not taken for an answer to the next text.
    5. Requests of the server's own are answered at once; one to change files is refused.

Limits.  A server that publishes twice about one version, the second time more, is taken by its first word.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

import attrs
import trio

from toolrt.model import Diagnostic
from toolrt.plugins.lsp._port import Channel, Message
from toolrt.plugins.lsp._server import LanguageServer
from toolrt.processes import ProgramNotes
from toolrt.processes._unanswered import Gone, Refused
from toolrt.workspace import meant_path, shown_path

if TYPE_CHECKING:
    from toolrt.plugins.lsp._wire import Abilities, Wire

#: Documents that are open at once; the one that was used the longest ago is closed for a new one.
OPEN_MOST = 256
#: Messages of the server's own, since it was last told something, after which it is given up.
_UNASKED_MOST = 50_000
#: How often one question is asked again because the server says that it was too early, or too late.
_AGAIN_MOST = 20

#: The server gave up on a request, or what it was about has changed (LSP 3.17, ErrorCodes).
_ASK_AGAIN = (-32800, -32801, -32802)
_NO_METHOD = -32601


@attrs.frozen
class LanguageAnswer:
    """What one server found in one version of one document."""

    findings: tuple[Diagnostic, ...]
    #: How many findings could not be read, or were too many.
    unread: int = 0


@attrs.define(eq=False)
class _Document:
    """A file whose text the server knows."""

    uri: str
    text: str
    version: int
    #: What changed since is counted by the session; this is the count when the version was sent.
    as_of: int
    #: What was published about this version; None: nothing yet.
    published: LanguageAnswer | None = None
    #: Set when something was published about this version, or there is another.
    news: trio.Event = attrs.field(factory=trio.Event)


@attrs.define(eq=False)
class _Reply:
    """What a request waits for."""

    there: trio.Event = attrs.field(factory=trio.Event)
    message: Message | None = None


@attrs.define(eq=False)
class LanguageSession:
    """A connection, and what the server was told on it."""

    server: LanguageServer
    _root: str
    _channel: Channel
    _wire: Wire
    _notes: ProgramNotes
    #: Why there is no connection any more; None: there is one.
    lost: str | None = attrs.field(default=None, init=False)
    #: What it can do; None: it has not said so yet.
    _abilities: Abilities | None = attrs.field(default=None, init=False)
    _pending: dict[int, _Reply] = attrs.field(factory=dict, init=False)
    _next_id: int = attrs.field(default=1, init=False)
    _documents: OrderedDict[str, _Document] = attrs.field(factory=OrderedDict, init=False)
    #: The last version of each document that was ever open.
    _versions: dict[str, int] = attrs.field(factory=dict, init=False)
    #: How many times anything was told to have changed.
    _told: int = attrs.field(default=0, init=False)
    #: Whether it names versions in what it publishes; None: it has published nothing yet.
    _names_versions: bool | None = attrs.field(default=None, init=False)
    _unasked: int = attrs.field(default=0, init=False)

    async def start(self) -> None:
        """The server can be used on return.

        Raises:
            Refused: it says nothing of use.

        Checkpoint: always.
        """
        self._channel.listen(self._take)
        reply = await self._request("initialize", self._wire.initialize(_uri(self._root), self.server.options))
        try:
            self._abilities = self._wire.abilities(reply.get("result"))
        except ValueError:
            raise Refused("it did not say what it can do") from None
        self._send({"method": "initialized", "params": {}})

    async def stop(self) -> None:
        """Ask the server to end; the caller decides how long to wait.

        Checkpoint: always.
        """
        try:
            await self._request("shutdown", None)
        except Gone:
            pass
        finally:
            self._send({"method": "exit"})

    def end(self, problem: str) -> None:
        """The connection is gone: every question that waits raises `Gone`."""
        if self.lost is None:
            self.lost = problem
        for reply in self._pending.values():
            reply.there.set()
        for document in self._documents.values():
            document.news.set()

    # Texts that the server gets

    def is_open(self, path: str) -> bool:
        """Whether the server has been given the text of this file."""
        return path in self._documents

    def tell_text(self, path: str, text: str) -> None:
        """On return the server's text of the file is this one; nothing is sent where it already was.

        Checkpoint: never.
        """
        document = self._documents.get(path)
        if document is None:
            if len(self._documents) >= OPEN_MOST:
                self.tell_closed(next(iter(self._documents)))
            uri = _uri(f"{self._root.rstrip('/')}/{meant_path(path)}")
            document = _Document(uri, text, self._new_version(path), self._told)
            self._documents[path] = document
            language = self.server.language_of(path)
            params = self._wire.opened(uri, language, document.version, text)
            self._send({"method": "textDocument/didOpen", "params": params})
        elif document.text != text:
            self._told += 1
            self._send_text(path, document, text)

    def tell_closed(self, path: str) -> None:
        """The server takes the file's text from the disk, if it is there.

        Checkpoint: never.
        """
        document = self._documents.pop(path, None)
        if document is not None:
            document.news.set()
            self._send({"method": "textDocument/didClose", "params": self._wire.closed(document.uri)})

    def tell_on_disk(self, path: str, change: str) -> None:
        """A file on the disk was "created", "modified" or "deleted".

        Checkpoint: never.
        """
        self._told += 1
        uri = _uri(f"{self._root.rstrip('/')}/{meant_path(path)}")
        params = self._wire.watched([(uri, change)])
        self._send({"method": "workspace/didChangeWatchedFiles", "params": params})

    @property
    def may_be_told(self) -> bool:
        """Whether texts may be sent before a question needs them (rule 4)."""
        return self._is_asked or self._names_versions is True

    def _new_version(self, path: str) -> int:
        self._versions[path] = self._versions.get(path, 0) + 1
        return self._versions[path]

    def _send_text(self, path: str, document: _Document, text: str) -> None:
        document.text, document.version, document.as_of = text, self._new_version(path), self._told
        document.published = None
        document.news.set()
        document.news = trio.Event()
        params = self._wire.changed(document.uri, document.version, text)
        self._send({"method": "textDocument/didChange", "params": params})

    # What is asked

    @property
    def _is_asked(self) -> bool:
        return self._abilities is not None and self._abilities.is_asked

    async def findings(self, path: str, text: str) -> LanguageAnswer:
        """What the server finds in the file, whose text this is.

        Raises:
            Gone: the connection was lost before it said so.
            Refused: it answered that it cannot say.

        Checkpoint: always.
        """
        self.tell_text(path, text)
        self._documents.move_to_end(path)
        return await (self._asked(path) if self._is_asked else self._published(path))

    async def _asked(self, path: str) -> LanguageAnswer:
        assert self._abilities is not None
        for _ in range(_AGAIN_MOST):
            document = self._documents[path]
            version, text = document.version, document.text
            try:
                reply = await self._request("textDocument/diagnostic", self._wire.question(document.uri))
            except _ErrorAnswer as refused:
                if refused.code in _ASK_AGAIN:
                    continue
                raise
            now = self._documents.get(path)
            if now is None:
                self.tell_text(path, text)
            elif now.version == version:
                result = reply.get("result")
                items = result.get("items") if isinstance(result, dict) and result.get("kind") == "full" else None
                try:
                    return LanguageAnswer(*self._wire.findings(items, text, self._abilities.encoding))
                except ValueError:
                    raise Refused("it answered with what are no findings") from None
        raise Refused(f"it said {_AGAIN_MOST} times in a row to ask again, or the file does not come to rest")

    async def _published(self, path: str) -> LanguageAnswer:
        document = self._documents[path]
        if self.server.reads == "workspace" and document.as_of != self._told:
            # Another file has changed: only findings on a new version are known to be later.
            self._send_text(path, document, document.text)
        try:
            while self.lost is None:
                now = self._documents.get(path)
                if now is None:
                    self.tell_text(path, document.text)
                    continue
                if now.published is not None:
                    await trio.lowlevel.checkpoint()
                    return now.published
                await now.news.wait()
        except trio.Cancelled:
            if not self._names_versions and self._documents.get(path) is not None:
                self._channel.give_up("it published nothing about a text, and names no versions")
            raise
        raise Gone(self.lost)

    async def _request(self, method: str, params: Any) -> Message:
        if self.lost is not None:
            raise Gone(self.lost)
        number, self._next_id = self._next_id, self._next_id + 1
        reply = self._pending[number] = _Reply()
        request: Message = {"id": number, "method": method}
        self._send(request if params is None else {**request, "params": params})
        try:
            await reply.there.wait()
        except trio.Cancelled:
            self._send({"method": "$/cancelRequest", "params": {"id": number}})
            raise
        finally:
            self._pending.pop(number, None)
        if reply.message is None:
            raise Gone(self.lost or "the connection was lost")
        error = reply.message.get("error")
        if error is not None:
            code = error.get("code") if isinstance(error, dict) else None
            raise _ErrorAnswer(code if isinstance(code, int) else None)
        return reply.message

    def _send(self, message: Message) -> None:
        self._unasked = 0
        if self.lost is None:
            self._channel.send(message)

    # What is received

    def _take(self, message: Message) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            self._unasked += 1
            if self._unasked > _UNASKED_MOST:
                self._channel.give_up(f"it sent more than {_UNASKED_MOST:,} messages that no request asked for")
            elif number is not None:
                self._answer(method, number, message.get("params"))
            elif method == "textDocument/publishDiagnostics":
                self._hear(message.get("params"))
            else:
                self._notes.dropped += 1
            return
        reply = self._pending.get(number) if type(number) is int else None
        if reply is None or reply.there.is_set() or not ("result" in message or "error" in message):
            self._notes.dropped += 1
            return
        reply.message = message
        reply.there.set()

    def _answer(self, method: str, number: Any, params: Any) -> None:
        """Answer a request of the server."""
        if not isinstance(number, int | str) or isinstance(number, bool):
            self._notes.dropped += 1
            return
        self._notes.asked += 1
        answered = _ANSWERS.get(method)
        reply: Message = {"id": number}
        if answered is None:
            reply["error"] = {"code": _NO_METHOD, "message": "not supported"}
        else:
            reply["result"] = answered(self, params)
        if self.lost is None:
            self._channel.send(reply)

    def _configuration(self, params: Any) -> list[Any]:
        items = params.get("items") if isinstance(params, dict) else None
        found = []
        for item in (items if isinstance(items, list) else [])[:1000]:
            section = item.get("section") if isinstance(item, dict) else None
            if isinstance(section, str) and section:
                found.append(self.server.settings.get(section))
            else:
                found.append(dict(self.server.settings) or None)
        return found

    def _hear(self, params: Any) -> None:
        """Take what the server publishes, if it is about the text that it was sent last."""
        path = self._path_of(params.get("uri")) if isinstance(params, dict) else None
        document = None if path is None else self._documents.get(path)
        if document is None or self._abilities is None or self._is_asked:
            self._notes.dropped += 1
            return
        version = params.get("version")
        if version is not None or self._names_versions is None:
            self._names_versions = version is not None
        # Who names versions is not heard without one.
        wanted = document.version if self._names_versions else None
        if document.published is not None or type(version) is not type(wanted) or version != wanted:
            self._notes.dropped += 1
            return
        try:
            found = self._wire.findings(params.get("diagnostics"), document.text, self._abilities.encoding)
        except ValueError:
            self._notes.dropped += 1
            return
        document.published = LanguageAnswer(*found)
        document.news.set()

    def _path_of(self, uri: Any) -> str | None:
        """The file that a server means, relative to the root; servers write one URI in several ways."""
        if not isinstance(uri, str):
            return None
        try:
            parts = urlsplit(uri)
        except ValueError:
            return None
        path, root = unquote(parts.path, errors="surrogateescape"), f"{self._root.rstrip('/')}/"
        return shown_path(path[len(root) :]) if parts.scheme == "file" and path.startswith(root) else None


class _ErrorAnswer(Refused):
    """The server answered with an error."""

    def __init__(self, code: int | None) -> None:
        self.code = code
        super().__init__("it answered with an error" if code is None else f"it answered with error {code}")


def _nothing(_: LanguageSession, __: Any) -> None:
    return None


#: How the server's own requests are answered; any other is no method here.
_ANSWERS: dict[str, Callable[[LanguageSession, Any], Any]] = {
    "client/registerCapability": _nothing,
    "client/unregisterCapability": _nothing,
    "window/showDocument": lambda _, __: {"success": False},
    "window/showMessageRequest": _nothing,
    "window/workDoneProgress/create": _nothing,
    "workspace/applyEdit": lambda _, __: {"applied": False, "failureReason": "files are changed by tools only"},
    "workspace/codeLens/refresh": _nothing,
    "workspace/configuration": LanguageSession._configuration,
    "workspace/diagnostic/refresh": _nothing,
    "workspace/inlayHint/refresh": _nothing,
    "workspace/semanticTokens/refresh": _nothing,
    "workspace/workspaceFolders": lambda session, _: [{"uri": _uri(session._root), "name": "workspace"}],
}


def _uri(path: str) -> str:
    return "file://" + quote(os.fsencode(path))
