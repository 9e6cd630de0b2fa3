"""``toolrt serve``: offer the tools of a directory to an MCP host, over standard input and output or by HTTP.

Rules.  While it serves standard input, descriptor 0 is the null device and descriptor 1 is standard error: what a tool
or a library prints cannot get among the messages, and no child reads them.  Everything for people goes to standard
error.  When standard input ends, what runs is interrupted and the process ends, in a second or so, whatever a tool
does.  By HTTP it serves until it is interrupted.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import stat
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Annotated, Any, NoReturn
from urllib.parse import urlsplit
from urllib.request import url2pathname

import attrs
import trio
from cyclopts import Parameter

from toolrt.cli._exit import Exit
from toolrt.cli.experiment._input import checked_directory
from toolrt.cli.experiment._offer import ToolOptions, offered
from toolrt.cli.experiment._options import LIMIT, Whole, above_0, at_least_one
from toolrt.cli.experiment._roots import KeepHardLinks, Mounts, Roots, roots_of
from toolrt.cli.experiment._servers import language_servers_of
from toolrt.cli.screen._permit import permissions_of
from toolrt.cli.screen._screen import complain
from toolrt.errors import InputRefused, MissingExtra, asks_to_exit
from toolrt.model import Registry, Tool
from toolrt.model._bounded import RESULT_MOST
from toolrt.plugins import mcp as mcp_servers
from toolrt.plugins.code import skeleton
from toolrt.runtime import Runtime
from toolrt.workspace import Permit, head_and_tail

#: Tools that add and never take away, and those that do nothing more when they are called again.
_ONLY_ADD = ("make_dir", "change_dir")
_IDEMPOTENT = ("make_dir", "change_dir", "write_file")

#: The groups that --tools names; what is in none of them is code.
_GROUPS = {
    "read": ("read_file", "list_dir", "glob", "search"),
    "edit": ("write_file", "edit_file", "multi_edit", "apply_patch", "parallel_edit_files"),
    "arrange": ("make_dir", "move_path", "delete_path", "change_dir"),
    "shell": ("run_command",),
}

_INSTRUCTIONS = """\
Call several tools at once whenever their inputs do not depend on each other's results. Calls take effect in the order \
in which they are sent: edits of one file are never lost, a read sees the edits sent before it, and calls that touch \
different files run at the same time. Paths are relative to the workspace; nothing outside it can be named."""

_Patterns = Annotated[tuple[str, ...], Parameter(negative=(), consume_multiple=False)]

#: Is the token of `--http`, where it is set: a host's configuration can then have it once and for all.
_TOKEN = "TOOLRT_SERVE_TOKEN"

#: Seconds in which language servers have to end, and whatever else the tools used.
_CLOSING = 1.0


def serve(
    *,
    mcp: Annotated[bool, Parameter(help="Speak the Model Context Protocol on standard input and output.", negative=())],
    workspace: Annotated[str | None, Parameter(help="The directory the tools work on; they change it.")] = None,
    roots: Annotated[
        bool, Parameter(help="Work on the directories that the host names, in place of --workspace.", negative=())
    ] = False,
    http: Annotated[
        int | None,
        Parameter(help="Listen to HTTP on this port of 127.0.0.1, in place of standard input; 0: a free one."),
    ] = None,
    origin: Annotated[_Patterns, Parameter(help="With --http: let web pages of this origin use it.")] = (),
    mount: Mounts = (),
    keep_hard_links: KeepHardLinks = False,
    read_only: Annotated[bool, Parameter(help="Offer only tools that change nothing.", negative=())] = False,
    shell: Annotated[
        bool, Parameter(help="Offer run_command, whose commands can do what you can.", negative="--no-shell")
    ] = True,
    sandbox: Annotated[
        bool, Parameter(help="Let the commands of run_command reach the directory alone.", negative=())
    ] = False,
    tools: Annotated[
        str | None, Parameter(help="Offer only these, with commas: read, edit, arrange, shell, code, or a tool's name.")
    ] = None,
    ask: Annotated[_Patterns, Parameter(help="Have the host ask its person before what matches [TOOL:]PATTERN.")] = (),
    deny: Annotated[_Patterns, Parameter(help="Deny what matches [TOOL:]PATTERN; outranks --ask.")] = (),
    limit: Annotated[Whole, Parameter(help="How many calls run at once, 1 or more.")] = LIMIT,
    timeout: Annotated[float | None, Parameter(help="Seconds each call may run; no limit unless given.")] = None,
    max_result: Annotated[Whole, Parameter(help="How many characters a result may have.")] = RESULT_MOST,
) -> int:
    """Offer the tools of a directory to an MCP host, over standard input and output or by HTTP.

    The host, such as an editor or a desktop assistant, starts this command. The tools are the workspace's file
    tools, run_command, those that know code where the code extra is installed, and for a single directory diagnostics
    of ruff and ty where they and the lsp extra are. Calls take effect in the order in which the host sends them; those
    that do not touch the same things run at the same time.
    """
    at_least_one("--limit", limit)
    if timeout is not None:
        above_0("--timeout", timeout)
    at_least_one("--max-result", max_result)
    if not mcp:
        raise InputRefused("toolrt serve", "expected --mcp, the protocol to speak", "Add it.")
    if roots == (workspace is not None):
        raise InputRefused("toolrt serve", "expected either --workspace or --roots", "Name the directory.")
    code = importlib.util.find_spec("tree_sitter") is not None
    wanted = ToolOptions(shell and not read_only, sandbox, code, language_servers_of(_installed_servers()))
    options = {"limit": limit, "timeout": timeout, "max_result": max_result}
    desk = _Desk(wanted, keep_hard_links, read_only, tools, ask, deny, options)
    listening = None if http is None else _listening(http)

    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            if workspace is None:
                of: _Of = desk.runtime_of_roots
            else:
                of = await stack.enter_async_context(desk.opened(roots_of(workspace, mount)))

            def served() -> mcp_servers.ServedTools:
                asked = mcp_servers.Elicitation({permit.value: permit for permit in Permit})
                # History outlives this process, and a counter would begin anew in each.
                batch_ids = f"serve-{uuid.uuid4().hex[:8]}"
                return mcp_servers.ServedTools(of(asked), _INSTRUCTIONS, desk.hints, batch_ids, asked)

            if listening is None:
                incoming, outgoing = await stack.enter_async_context(_standard_streams())
                await _serve(served(), incoming, outgoing)
            else:
                await _serve_http(served, listening, origin)

    try:
        trio.run(main)
    except BaseExceptionGroup as group:
        exit_asked = asks_to_exit(group)
        if exit_asked is None:
            raise
        raise exit_asked from None
    return Exit.OK


#: Makes what one host is served; the elicitation asks that host's person.
_Of = Callable[[mcp_servers.Elicitation], Runtime | mcp_servers.RuntimeOfRoots]


@attrs.frozen
class _Desk:
    """What the options say of the tools, whichever directories they work on."""

    _wanted: ToolOptions
    _keep_hard_links: bool
    _read_only: bool
    #: What --tools names; None: all.
    _tools: str | None
    _ask: Sequence[str]
    _deny: Sequence[str]
    #: Of each runtime.
    _options: Mapping[str, Any]

    @contextlib.asynccontextmanager
    async def opened(self, roots: Roots) -> AsyncIterator[Callable[[mcp_servers.Elicitation], Runtime]]:
        """What makes runtimes on these directories, for as long as the block lasts.

        Raises:
            InputRefused: an option cannot be meant.
        """
        files = roots.workspace(skeleton if self._wanted.code else head_and_tail, self._keep_hard_links)
        permissions_of(files, (), self._ask, self._deny, mcp_servers.Elicitation().put)
        # A language server knows one directory alone.
        wanted = attrs.evolve(self._wanted, language_servers=()) if roots.mounts else self._wanted
        async with offered(files, wanted) as offer:
            kept = [tool for tool in offer.registry if _reads(tool) or not self._read_only]
            registry = Registry(kept if self._tools is None else _chosen(kept, self._tools))

            def runtime(asked: mcp_servers.Elicitation) -> Runtime:
                approve = permissions_of(files, (), self._ask, self._deny, asked.put)
                return Runtime(registry, services=offer.services, approve=approve, **self._options)

            yield runtime

    def runtime_of_roots(self, asked: mcp_servers.Elicitation) -> mcp_servers.RuntimeOfRoots:
        """What makes a runtime on whatever directories the host names."""

        @contextlib.asynccontextmanager
        async def of(roots: Sequence[mcp_servers.Root]) -> AsyncIterator[Runtime]:
            async with self.opened(_directories(roots)) as runtime:
                yield runtime(asked)

        return of

    def hints(self, tool: Tool) -> mcp_servers.Hints:
        """What a host hears of the tool."""
        return mcp_servers.Hints(
            _reads(tool),
            destructive=tool.name not in _ONLY_ADD,
            idempotent=tool.name in _IDEMPOTENT,
            open_world=tool.name == "run_command" and not self._wanted.sandbox,
        )


def _directories(roots: Sequence[mcp_servers.Root]) -> Roots:
    """The first root, and those outside it at names of it.

    Raises:
        InputRefused: there is none, or one is no directory of this machine.
    """
    if not roots:
        raise InputRefused("the host's roots", "expected a directory, got none", "Open a folder.")
    base, *others = (checked_directory(_path_of(root.uri)) for root in roots)
    mounts = {}
    for directory in others:
        if not directory.is_relative_to(base):
            name, number = directory.name or "root", 1
            while name in mounts or (base / name).exists():
                number += 1
                name = f"{directory.name}-{number}"
            mounts[name] = directory
    return Roots(base, mounts)


def _path_of(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise InputRefused(f"the host's root {uri!r:.200}", "expected a file: URI of this machine", "Open a folder.")
    return url2pathname(parts.path)


async def _serve(served: mcp_servers.ServedTools, incoming: _Input, outgoing: _Output) -> None:
    """Serve until standard input has ended, or the host takes nothing any more."""
    await mcp_servers.serve(
        served.runtime,
        incoming,
        outgoing,
        instructions=served.instructions,
        hints=served.hints,
        batch_ids=served.batch_ids,
        elicitation=served.elicitation,
        stuck=_leave,
    )
    trio.lowlevel.spawn_system_task(_leave_after, _CLOSING)


def _listening(port: int) -> socket.socket:
    """A socket that hosts of this machine can reach.

    Raises:
        InputRefused: the port cannot be had.
        MissingExtra: there is no server to listen on it.
    """
    if importlib.util.find_spec("hypercorn") is None:
        raise MissingExtra("toolrt serve --http", "http")
    try:
        return socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise InputRefused(f"--http {port}", f"the port cannot be had: {error}", "Name another, or 0.") from None


async def _serve_http(
    served: Callable[[], mcp_servers.ServedTools], listening: socket.socket, origins: Sequence[str]
) -> None:
    """Serve whatever hosts come, until the process is interrupted.

    Raises:
        KeyboardInterrupt: it was; what ran is interrupted.
    """
    import hypercorn.config
    import hypercorn.trio

    token = os.environ.get(_TOKEN)
    app: Any = mcp_servers.HttpApp(served, token=token or secrets.token_urlsafe(32), origins=origins)
    config = hypercorn.config.Config()
    port = listening.getsockname()[1]
    config.bind = [f"fd://{listening.detach()}"]
    config.errorlog = None
    shown = f"the token of {_TOKEN}" if token else app.token
    complain(f"serves http://127.0.0.1:{port}/mcp to requests with the header  Authorization: Bearer {shown}")
    # An interrupt is heard here, and not raised in whichever of Hypercorn's tasks runs just then.
    with trio.open_signal_receiver(signal.SIGINT) as interrupts:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hypercorn.trio.serve, app, config)
            await anext(aiter(interrupts))
            trio.lowlevel.spawn_system_task(_leave_after, _CLOSING)
            nursery.cancel_scope.cancel()
    raise KeyboardInterrupt


async def _leave_after(seconds: float) -> None:
    await trio.sleep(seconds)
    _leave()


def _leave() -> NoReturn:
    """End this process now.

    A thread cannot be ended otherwise.  What is being written is whole or not there, as after every crash, and the
    supervisors of commands and servers end these when this process is gone.
    """
    os._exit(Exit.OK)


class _Input(trio.abc.ReceiveStream):
    """What the host sends; takes the descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        most = max_bytes or 65536
        try:
            await trio.lowlevel.wait_readable(self._descriptor)
            return os.read(self._descriptor, most)
        except OSError:
            # A regular file cannot be waited for on Linux, nor a pipe on Windows.
            return await trio.to_thread.run_sync(os.read, self._descriptor, most, abandon_on_cancel=True)

    async def aclose(self) -> None:
        os.close(self._descriptor)
        await trio.lowlevel.checkpoint()


class _Output(trio.abc.SendStream):
    """What the host reads; takes the descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        kind = os.fstat(descriptor).st_mode
        # Only an end of a pipe or a socket is this process's alone, so that no other is surprised by what Trio sets.
        waits = os.name == "posix" and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind))
        self._stream = trio.lowlevel.FdStream(descriptor) if waits else None

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self._stream is not None:
            await self._stream.send_all(data)
            return
        try:
            await trio.to_thread.run_sync(_write_all, self._descriptor, bytes(data), abandon_on_cancel=True)
        except OSError as error:
            raise trio.BrokenResourceError from error

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()
            return
        os.close(self._descriptor)
        await trio.lowlevel.checkpoint()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


@contextlib.asynccontextmanager
async def _standard_streams() -> AsyncIterator[tuple[_Input, _Output]]:
    """Standard input and output for the messages alone; they are what they were again afterwards."""
    kept = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        async with _Input(os.dup(kept[0])) as incoming, _Output(os.dup(kept[1])) as outgoing:
            yield incoming, outgoing
    finally:
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _chosen(offered: list[Tool], wanted: str) -> list[Tool]:
    """Those of the tools that `wanted` names, by groups or by their own names.

    Raises:
        InputRefused: it names something else.
    """
    grouped = [name for names in _GROUPS.values() for name in names]
    groups = {**_GROUPS, "code": tuple(tool.name for tool in offered if tool.name not in grouped)}
    names: set[str] = set()
    for one in wanted.split(","):
        if one in groups:
            names.update(groups[one])
        elif any(tool.name == one for tool in offered):
            names.add(one)
        else:
            known = ", ".join([*groups, *(tool.name for tool in offered)])
            raise InputRefused(f"--tools {wanted}", f"there is no {one!r}; there are {known}", "See --help.")
    return [tool for tool in offered if tool.name in names]


def _reads(tool: Tool) -> bool:
    """Whether the tool changes nothing: of toolrt's own, these are the ones that are safe whatever their input is."""
    return tool.safe is True


def _installed_servers() -> list[str]:
    if importlib.util.find_spec("lsprotocol") is None:
        return []
    return [name for name in ("ruff", "ty") if shutil.which(name) is not None]
