"""A server that is a program of its own, and is spoken to over its standard streams.

Rules.
    1. What is sent is queued, and sent by a task of the connection's own: nobody waits for a server that does not read.
       One that lets too much pile up has lost its connection.
    2. Its error output is read at once, and the end of it is kept.
    3. At the end its input is closed; what then does not end in time is ended with all it started
       (`toolrt.processes`: TERM, then KILL).  That is bounded.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable

import attrs
import trio

from toolrt.processes import Supervised, program_at
from toolrt.services._environment import environment_of
from toolrt.services.lsp._framing import Framing, framed
from toolrt.services.lsp._port import Lost, Message, Notes, Talk
from toolrt.services.lsp._server import LanguageServer

__all__ = ["StdioPeer"]

#: Bytes that wait to be read by the server.
_UNREAD_MOST = 32 * 1024 * 1024
#: Bytes of the error output that are kept.
_STDERR_KEPT = 8 * 1024
#: Bytes read at once.
_CHUNK = 64 * 1024
#: Seconds in which a server has to end by itself once its input is closed.
_LINGER = 1.0


class StdioPeer:
    """Starts the server's program, once for each connection."""

    async def serve(self, server: LanguageServer, root: str, talk: Talk, notes: Notes) -> None:
        """See `Peer.serve`."""
        supervised = await _start(server, root)
        pipes = _Pipes(supervised, notes)
        readers = trio.CancelScope(shield=True)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(pipes.read_both, readers)
                nursery.start_soon(pipes.write)
                nursery.start_soon(pipes.watch)
                try:
                    with pipes.talking:
                        await talk(pipes)
                finally:
                    pipes.finish()
                    with trio.move_on_after(_LINGER, shield=True):
                        await supervised.wait()
                    halted = await supervised.end()  # noqa: ASYNC102  shielded and bounded
                    readers.cancel()
                    nursery.cancel_scope.cancel()
                    notes.ended = halted.story if halted.refused is not None else pipes.problem or halted.story
        finally:
            supervised.close()


async def _start(server: LanguageServer, root: str) -> Supervised:
    argv, environment = _found(server, root)
    try:
        return await Supervised.start(argv, directory=root, environment=environment, spoken_to=True)
    except (OSError, ValueError) as error:
        raise Lost(f"it cannot be started ({type(error).__name__})") from None


def _found(server: LanguageServer, root: str) -> tuple[list[str], dict[str, str]]:
    """What to start, and what it is told."""
    if os.name != "posix" or not sys.executable:
        raise Lost(f"it can be started on a POSIX system only, and this is {sys.platform}")
    command = list(server.command or ())
    environment = environment_of(server.env)
    program = program_at(command[0], root, environment["PATH"])
    if program is None:
        raise Lost(f"there is no program {os.path.basename(command[0])!r}")
    return [program, *command[1:]], environment


@attrs.define(eq=False)
class _Pipes:
    """The server's three streams."""

    _supervised: Supervised
    _notes: Notes
    #: Why the connection is given up, where that was decided here.
    problem: str | None = None
    #: Cancelled when the connection is lost.
    talking: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _take: Callable[[Message], None] | None = attrs.field(default=None, init=False)
    #: What it is still to be sent, and how many bytes that are.
    _unsent: deque[bytes] = attrs.field(factory=deque, init=False)
    _unsent_bytes: int = attrs.field(default=0, init=False)
    _more: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: Whether nothing more will be sent.
    _finished: bool = attrs.field(default=False, init=False)
    #: Cancelled when nobody needs to know any more whether the server has ended.
    _watching: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    #: Whether the server has ended, and what is cancelled then.
    _exited: bool = attrs.field(default=False, init=False)
    _reading: trio.CancelScope | None = attrs.field(default=None, init=False)

    def listen(self, take: Callable[[Message], None]) -> None:
        """See `Channel.listen`."""
        self._take = take

    def send(self, message: Message) -> None:
        """See `Channel.send`."""
        if self._finished or self.talking.cancel_called:
            return
        content = framed(message)
        self._unsent.append(content)
        self._unsent_bytes += len(content)
        self._more.set()
        if self._unsent_bytes > _UNREAD_MOST:
            self.give_up("it does not read what it is sent")

    def give_up(self, problem: str) -> None:
        """See `Channel.give_up`."""
        if self.problem is None and not self._finished:
            self.problem = problem
        self.talking.cancel()

    def finish(self) -> None:
        """The server has nothing more to read than what is queued."""
        self._finished = True
        self._more.set()
        self._watching.cancel()

    async def write(self) -> None:
        """Send what is queued; close the input when nothing more will be."""
        stream = self._supervised.stdin
        assert stream is not None
        try:
            while True:
                while self._unsent:
                    content = self._unsent.popleft()
                    await stream.send_all(content)
                    self._unsent_bytes -= len(content)
                if self._finished:
                    break
                await self._more.wait()
                self._more = trio.Event()
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            # It reads no more; its end tells the rest.
            self.talking.cancel()
        finally:
            stream.close()

    async def watch(self) -> None:
        """When the server has ended, what it wrote is all there is, whoever else still holds its output."""
        with self._watching:
            await self._supervised.wait_exited()
            self._exited = True
            if self._reading is not None:
                self._reading.cancel()

    async def read_both(self, scope: trio.CancelScope) -> None:
        """Read what the server writes until it writes no more, or `scope` is cancelled."""
        with scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read)
                nursery.start_soon(self._listen_to_errors)

    async def _more_output(self) -> bytes:
        """The next of what the server writes; nothing where there is no more."""
        stream = self._supervised.stdout
        if not self._exited:
            with trio.CancelScope() as self._reading:
                return bytes(await stream.receive_some(_CHUNK))
        with contextlib.suppress(OSError):
            return os.read(stream.fileno(), _CHUNK)
        return b""

    async def _read(self) -> None:
        framing = Framing()
        try:
            while chunk := await self._more_output():
                if self.talking.cancel_called and not self._finished:
                    continue  # nobody listens, but it is read until it ends
                before = framing.garbage
                for message in framing.feed(chunk):
                    if self._take is not None and not self.talking.cancel_called:
                        self._take(message)
                self._notes.dropped += framing.garbage - before
        except Lost as lost:
            self.give_up(str(lost))
        self.talking.cancel()

    async def _listen_to_errors(self) -> None:
        """Keep the end of what the server writes to its error output."""
        stream = self._supervised.stderr
        assert stream is not None
        kept = b""
        while chunk := await stream.receive_some(_CHUNK):
            kept = (kept + bytes(chunk))[-_STDERR_KEPT:]
            self._notes.stderr = kept.decode("utf-8", "replace")
