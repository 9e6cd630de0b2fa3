"""Holds a conversation with a program over its standard streams, from its start until all its processes have ended.

Rules.
    1. Sending never waits for the program: a task of the conversation sends what is queued, so that a cancel reaches
       the queue also of a program that does not read.  A program whose queue grows too long is given up.
    2. What it writes is handed on piece by piece, in its order, while `hold` runs its `talk`; later output is
       read and dropped, so that a full pipe never keeps a program from ending.
    3. When the program itself has ended, its output ends too, even where another process still holds the pipe.
    4. Its error output is read at once, and the end of it is kept.
    5. At the end what is queued is sent and its input is closed; what then does not end in time is ended with all it
       started: TERM, then KILL (`Supervised.end`).  That is bounded.

The caller of `hold` cuts the stream into messages and answers them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs
import trio

from toolrt.processes._supervised import Halted, Supervised, program_at
from toolrt.processes._unanswered import NotStarted

#: Bytes of the error output that are kept.
_STDERR_KEPT = 8 * 1024
#: Bytes read at once.
_CHUNK = 64 * 1024


async def start_spoken_to(command: Sequence[str], *, directory: str, environment: Mapping[str, str]) -> Supervised:
    """Start a program to speak with.

    Args:
        command: the program and its arguments, one each; it is looked for as `program_at` does.
        directory: where it starts; a real path.
        environment: all its variables.

    Raises:
        NotStarted: there is no such program, or it could not be started; nothing is left.

    Checkpoint: always, where there is such a program.
    """
    if os.name != "posix" or not sys.executable:
        raise NotStarted(f"it can be started on a POSIX system only, and this is {sys.platform}")
    program = program_at(command[0], directory, environment.get("PATH"))
    if program is None:
        raise NotStarted(f"there is no program {os.path.basename(command[0])!r}")
    try:
        argv = [program, *command[1:]]
        return await Supervised.start(argv, directory=directory, environment=environment, spoken_to=True)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise NotStarted(f"it cannot be started: {why or type(error).__name__}") from None


@attrs.define(eq=False)
class ProgramNotes:
    """What is known of one conversation beside what was said in it; for people, not for models."""

    #: The end of what the program wrote to its error output.
    stderr: str = ""
    #: Bytes it wrote there altogether.
    stderr_bytes: int = 0
    #: How the conversation ended; None: it has not.
    ended: str | None = None
    #: What it sent that was no message, or one that no question waited for; it was dropped.
    dropped: int = 0
    #: Requests of its own that were answered.
    asked: int = 0


@attrs.define(eq=False)
class Conversation:
    """The three streams of a program started with ``spoken_to=True``, and the tasks that read and write them."""

    _supervised: Supervised
    _notes: ProgramNotes
    #: Takes each piece that the program writes.
    _hear: Callable[[bytes], Awaitable[None]]
    #: Called when there is nothing more to hear, once or more often; it does not wait.
    _lose: Callable[[], object]
    #: Bytes that may wait to be read by the program.
    _unread_most: int
    #: Seconds in which it has to end by itself once its input is closed.
    _linger: float
    #: Why the program is given up, where that was decided here.
    problem: str | None = attrs.field(default=None, init=False)
    #: What it is still to be sent, and how many bytes that are.
    _unsent: deque[bytes] = attrs.field(factory=deque, init=False)
    _unsent_bytes: int = attrs.field(default=0, init=False)
    _more: trio.Event = attrs.field(factory=trio.Event, init=False)
    #: Whether nothing more will be sent, and whether the program has closed its input.
    _finished: bool = attrs.field(default=False, init=False)
    _unheard: bool = attrs.field(default=False, init=False)
    #: Cancelled when no task needs the program's end any more.
    _watching: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    #: Whether the program has ended, and what is cancelled then.
    _exited: bool = attrs.field(default=False, init=False)
    _reading: trio.CancelScope | None = attrs.field(default=None, init=False)

    async def hold(self, talk: Callable[[], Awaitable[None]]) -> Halted:
        """Speak with the program: `talk` until it returns; then nothing of the program is left.

        It returns by itself after `lose`, and gives how the program was ended.  How the conversation
        ended is in the notes.

        Returns:
            How the program came to its end.

        Checkpoint: always.  Also when it is cancelled, nothing is left on return; that is bounded.
        """
        readers = trio.CancelScope(shield=True)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read_both, readers)
                nursery.start_soon(self._write)
                nursery.start_soon(self._watch)
                try:
                    await talk()
                finally:
                    self._finish()
                    with trio.move_on_after(self._linger, shield=True):
                        await self._supervised.wait()
                    halted = await self._supervised.end()  # noqa: ASYNC102  shielded and bounded
                    readers.cancel()
                    nursery.cancel_scope.cancel()
                    given_up = None if halted.refused is not None else self.problem
                    self._notes.ended = given_up or halted.story
        finally:
            self._supervised.close()
        return halted

    @property
    def over(self) -> bool:
        """Whether nothing is sent any more, and nothing is heard."""
        return self._finished or self.problem is not None

    def send(self, content: bytes) -> bool:
        """Have `content` sent, after all before it; False: nothing is sent any more.

        Checkpoint: never.
        """
        if self.over or self._unheard:
            return False
        self._unsent.append(content)
        self._unsent_bytes += len(content)
        self._more.set()
        if self._unsent_bytes > self._unread_most:
            self.give_up("it does not read what it is sent")
        return True

    def give_up(self, problem: str) -> None:
        """The program is of no use; `problem` says why, in words for a model.

        Checkpoint: never.
        """
        if not self.over:
            self.problem = problem
        self._lose()

    def _finish(self) -> None:
        """The program has nothing more to read than what is queued."""
        self._finished = True
        self._more.set()
        self._watching.cancel()

    async def _write(self) -> None:
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
            self._unheard = True
            self._lose()
        finally:
            stream.close()

    async def _watch(self) -> None:
        with self._watching:
            await self._supervised.wait_exited()
            self._exited = True
            if self._reading is not None:
                self._reading.cancel()

    async def _read_both(self, scope: trio.CancelScope) -> None:
        """Read what the program writes until it writes no more, or `scope` is cancelled."""
        with scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read)
                nursery.start_soon(self._read_errors)

    async def _more_output(self) -> bytes:
        """The next of what the program writes; nothing where there is no more."""
        stream = self._supervised.stdout
        if not self._exited:
            with trio.CancelScope() as self._reading:
                return bytes(await stream.receive_some(_CHUNK))
        # Another process may go on writing into the pipe: the user of the conversation bounds what is read then.
        await trio.lowlevel.checkpoint()
        with contextlib.suppress(OSError):
            return os.read(stream.fileno(), _CHUNK)
        return b""

    async def _read(self) -> None:
        try:
            while chunk := await self._more_output():
                if not self.over:
                    await self._hear(chunk)
        finally:
            self._lose()

    async def _read_errors(self) -> None:
        stream = self._supervised.stderr
        assert stream is not None
        kept = b""
        while chunk := await stream.receive_some(_CHUNK):
            kept = (kept + bytes(chunk))[-_STDERR_KEPT:]
            self._notes.stderr = kept.decode("utf-8", "replace")
            self._notes.stderr_bytes += len(chunk)
