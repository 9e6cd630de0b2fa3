"""Language servers of a workspace: asked about files, and told what lanes change."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from functools import cached_property

import attrs
import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, MissingExtra, NotSimulated
from toolrt.model import Diagnostic, FileChange, LaneChanges, State, Tool
from toolrt.plugins.lsp._checked import Checked, in_order
from toolrt.plugins.lsp._connection import LanguageConnection
from toolrt.plugins.lsp._server import LanguagePeer, LanguageServer
from toolrt.plugins.lsp._session import LanguageAnswer
from toolrt.plugins.lsp._tool import diagnostics_tool
from toolrt.processes._connection import ServersBlock
from toolrt.processes._given import check_servers
from toolrt.processes._unanswered import Unanswered
from toolrt.workspace import FileProblem, Identity, RealDisk, Workspace, without_private_paths

#: Bytes of a file that servers are asked about.
TEXT_MOST = 4 * 1024 * 1024

#: What may have changed anywhere.
_ANYTHING = "*"


@attrs.frozen
class ServerStatus:
    """What is known of a server beside its findings: for people, not for models."""

    #: The server's name.
    name: str
    #: How many times it was started.
    starts: int
    #: Whether it can be asked now, without a start.
    running: bool
    #: How the last connection ended: "it ended with exit status 3"; None: none has.
    ended: str | None
    #: The end of what the present program, or the last one, wrote to its error output.
    stderr: str
    #: Messages of it that were dropped.
    dropped: int
    #: Requests of it that were answered.
    asked: int


class LanguageServers(ServersBlock):
    """Language servers of one workspace, for as long as the block lasts.

    Each is started when it is first asked about a file, and told by `after_lane` what lanes change.  What one of them
    does, or that it is not there, makes no call fail: the answer says so.

    Args:
        workspace: whose files; they are on the real disk, or every server is a `RecordedServer`.
        servers: with distinct names.

    Raises:
        DefinitionRefused: two servers share a name, or a value is none of what is expected.
        MissingExtra: the ``lsp`` extra is not installed.
        NotSimulated: entering it, where a program would have to be started inside a simulation.

    Checkpoint: entering and leaving do always.  Leaving cannot be cancelled; it takes three seconds for a program that
    does not end when it is asked to.

    Example::

        ruff = LanguageServer("ruff", ["ruff", "server"], suffixes=[".py"], reads="file")
        async with LanguageServers(workspace, [ruff]) as lsp:
            given = Services(lsp=lsp, after_lane=[lsp.after_lane])
            runtime = Runtime(Registry([*workspace.tools(), *lsp.tools()]), services=given)
    """

    def __init__(self, workspace: Workspace, servers: Sequence[LanguageServer]) -> None:
        if not isinstance(workspace, Workspace):
            raise DefinitionRefused("LanguageServers(workspace)", "a toolrt.Workspace", workspace)
        self._servers = tuple(servers)
        check_servers("LanguageServers(servers)", self._servers, LanguageServer)
        for server in self._servers:
            if server.server is None and workspace.disk.mounts:
                got = f"one with mounts: {', '.join(workspace.disk.mounts)}"
                raise DefinitionRefused(f"language server {server.name!r}", "a workspace of one root", got)
            if server.server is None and not isinstance(workspace.disk, RealDisk):
                expected = "a double, server=RecordedServer(...), for files that are not on the real disk"
                raise DefinitionRefused(f"language server {server.name!r}", expected, "a program")
        if importlib.util.find_spec("lsprotocol") is None:
            raise MissingExtra("a language server", "lsp")
        self._workspace = workspace
        self._connections: tuple[LanguageConnection, ...] = ()
        #: What lanes changed and servers were not told yet, in call order.
        self._untold: dict[str, str] = {}
        #: How many times something was added to it.
        self._noted = 0
        self._telling = trio.Lock()

    async def __aenter__(self) -> LanguageServers:
        """Give itself, ready to start servers; none is started yet.

        Raises:
            MissingExtra: the ``lsp`` extra is installed in part only.

        Checkpoint: always.
        """
        try:
            from toolrt.plugins.lsp._wire import Wire
        except ImportError as error:
            raise MissingExtra("a language server", "lsp") from error

        peers = [_peer_of(server) for server in self._servers]
        nursery = await self._open_nursery()
        root, wire = self._workspace.disk.root, Wire()
        self._connections = tuple(
            LanguageConnection(server.restarts, server.start_timeout, nursery, server, peer, root, wire)
            for server, peer in zip(self._servers, peers, strict=True)
        )
        return self

    @property
    def workspace(self) -> Workspace:
        """Whose files it is about."""
        return self._workspace

    @property
    def servers(self) -> tuple[LanguageServer, ...]:
        """The servers, as they were given."""
        return self._servers

    @property
    def status(self) -> dict[str, ServerStatus]:
        """How each server is, by its name."""
        return {one.server.name: _status(one) for one in self._connections}

    def tools(self) -> list[Tool]:
        """The tool ``diagnostics``; always the same object."""
        return list(self._tools)

    @cached_property
    def _tools(self) -> list[Tool]:
        return [diagnostics_tool(self)]

    # Files that the servers hear of

    async def after_lane(self, changes: LaneChanges) -> None:
        """Tell the servers that run the `changes` of a lane, for ``Services(after_lane=[lsp.after_lane])``.

        Servers get the files as they are now, in call order; this waits for no server.

        Checkpoint: always, if a server runs.
        """
        # All of it before the first checkpoint: after a cancel there may be no second one.
        if changes.unknown or any(change.is_directory for change in changes.changes):
            self._note(".", _ANYTHING)
        for change in changes.changes:
            self._note(change.path, "deleted" if change.change is FileChange.MOVED else change.change.value)
            if change.target is not None:
                self._note(change.target, "created")
        for path in changes.paths:
            if path not in self._untold:
                self._note(path, "modified")
        await self._tell()

    def _note(self, path: str, change: str) -> None:
        self._noted += 1
        if path == ".":
            path = change = _ANYTHING
        before = self._untold.get(path)
        # What was made and changed since was made.
        self._untold[path] = "created" if before == "created" and change == "modified" else change

    async def _tell(self) -> None:
        """The servers know of all that lanes changed."""
        async with self._telling:
            while self._untold:
                path, noted = next(iter(self._untold)), self._noted
                if path == _ANYTHING:
                    del self._untold[path]
                    for connection in self._connections:
                        connection.renew()
                    continue
                is_open = any(one.session is not None and one.session.is_open(path) for one in self._connections)
                content = await self._content_of(path) if is_open else b""
                if self._noted == noted:
                    # Else there may be news of this file, too: it is read again.
                    change = self._untold.pop(path)
                    self._tell_one(path, content, "deleted" if content is None else change)

    async def _content_of(self, path: str) -> bytes | None:
        """The file as it is; None: there is no such file to read."""
        identity = self._workspace.identify(f"./{path}", State())
        if identity.problem is not None:
            return None
        try:
            return (await self._workspace.disk.read(identity.entry, TEXT_MOST)).content
        except OSError:
            return None

    def notify_file_changed(self, path: str, content: str | bytes | None) -> None:
        """Tell the servers that run that a file has this content now; it waits for none of them.

        `after_lane` does it for what tools change.

        Args:
            path: relative to the workspace's root, with slashes.
            content: what stands in the file; None: it is not there any more.

        Raises:
            DefinitionRefused: a value is none of what is expected.

        Checkpoint: never.

        Ordering: servers hear of files in the order of the calls.
        """
        if not isinstance(path, str) or not path or path.startswith("/"):
            raise DefinitionRefused("notify_file_changed(path)", "a path relative to the workspace's root", path)
        if content is not None and not isinstance(content, str | bytes):
            raise DefinitionRefused("notify_file_changed(content)", "a text, bytes or None", type(content).__name__)
        self._tell_one(path, content, "deleted" if content is None else "modified")

    def _tell_one(self, path: str, content: str | bytes | None, change: str) -> None:
        text = None if content is None else _text_of(content)
        for connection in self._connections:
            session = connection.session
            if session is None:
                continue
            _touched(connection)
            if session.is_open(path):
                if text is None:
                    session.tell_closed(path)
                elif session.may_be_told:
                    session.tell_text(path, text)
            session.tell_on_disk(path, change)

    # What is asked

    async def diagnostics(self, path: str, state: State | None = None) -> Checked:
        """What the servers find in a file as it is now.

        A call that asks this holds READ on the file, and on all of the workspace where a server `reads` that; else what
        others change meanwhile decides the answer.

        Args:
            path: as tools take it: relative to the working directory of `state`, or absolute.
            state: None: the workspace's root is the working directory.

        Raises:
            FileProblem: it is no file that can be read, or no text of 4 MiB at most.

        Checkpoint: always.
        """
        identity = self._workspace.identify(path, state)
        if identity.problem is not None:
            raise identity.problem
        return await self.check(identity.path, await self._read(identity))

    async def _read(self, identity: Identity) -> bytes:
        try:
            return (await self._workspace.disk.read(identity.entry, TEXT_MOST)).content
        except OSError as error:
            got = os.strerror(error.errno) if error.errno else type(error).__name__
            raise FileProblem(identity.path, "a file that can be read", got, "Check the name.") from None

    async def check(self, path: str, content: bytes) -> Checked:
        """What the servers find in a file with that content.

        Args:
            path: relative to the workspace's root, with slashes.

        Raises:
            FileProblem: it is no text that servers are asked about.

        Checkpoint: always.
        """
        text = _text_of(content)
        if text is None:
            expected = f"text in UTF-8 of at most {TEXT_MOST // 1024 // 1024} MiB"
            raise FileProblem(path, expected, "something else", "Language servers are not asked about it.")
        if self._untold:
            await self._tell()
        chosen = [place for place, server in enumerate(self._servers) if server.is_for(path)]
        found: dict[int, LanguageAnswer | str] = {}
        async with trio.open_nursery() as nursery:
            for place in chosen:
                nursery.start_soon(self._ask, place, path, text, found)
        await trio.lowlevel.checkpoint()
        return self._checked(path, [(self._servers[place].name, found[place]) for place in chosen])

    async def _ask(self, place: int, path: str, text: str, found: dict[int, LanguageAnswer | str]) -> None:
        if not self._connections:
            found[place] = "it was not started: the block of its LanguageServers was not entered"
            return
        connection = self._connections[place]
        try:
            _touched(connection)
            found[place] = await connection.findings(path, text)
        except Unanswered as error:
            found[place] = str(error)

    def _checked(self, path: str, found: Sequence[tuple[str, LanguageAnswer | str]]) -> Checked:
        findings: set[Diagnostic] = set()
        answered, problems = [], []
        for name, answer in found:
            if isinstance(answer, str):
                problems.append(f"{name}: {answer}")
                continue
            answered.append(name)
            findings.update(map(self._shown, answer.findings))
            if answer.unread:
                problems.append(f"{name}: {answer.unread:,} of its findings are not shown")
        return Checked(path, tuple(sorted(findings, key=in_order)), tuple(answered), tuple(problems))

    def _shown(self, finding: Diagnostic) -> Diagnostic:
        """The finding without paths that a model must not see."""
        disk = self._workspace.disk
        return attrs.evolve(finding, message=without_private_paths(disk.root, finding.message, mounts=disk.mounts))

    def __repr__(self) -> str:
        return f"LanguageServers({', '.join(server.name for server in self._servers)})"


def _touched(connection: LanguageConnection) -> None:
    """Report to a simulation that this step touches the texts that a server has."""
    if probe.sink is not None:
        probe.sink.access(("language server", connection.server.name), True)


def _text_of(content: str | bytes) -> str | None:
    if isinstance(content, str):
        return content if len(content) <= TEXT_MOST else None
    try:
        return content.decode("utf-8") if len(content) <= TEXT_MOST else None
    except UnicodeDecodeError:
        return None


def _status(one: LanguageConnection) -> ServerStatus:
    notes = one.last.notes
    running, ended = one.session is not None, one.last.problem or notes.ended
    return ServerStatus(one.server.name, one.starts, running, ended, notes.stderr, notes.dropped, notes.asked)


def _peer_of(server: LanguageServer) -> LanguagePeer:
    if server.server is not None:
        return server.server
    if probe.threads_inline:
        raise NotSimulated(
            f"start the program of language server {server.name!r}",
            "give it a record: LanguageServer(name, suffixes=..., server=RecordedServer({...}))",
        )
    from toolrt.plugins.lsp._stdio import StdioLanguagePeer

    return StdioLanguagePeer()
