"""One child process of a program: a task that runs its script.

Rules.
    1. Its task steps whenever it likes, also within a pass, as a worker thread's does: a process waits for no loop.
    2. A signal without a receiver cancels the script, which ends at its next checkpoint; its exit code is the negative
       number of the signal.  SIGKILL and SIGSTOP have no receivers.
    3. When it ends, its pipes are closed first, and its exit code is seen in a later step.
    4. A child that has not ended when its execution does is ended with it.
    5. A stopped child takes no step until SIGCONT, nor does a task of its script.  Signals wait for that, all but
       SIGKILL.
    6. Its process group is its starter's, unless it was given one of its own.

Limits.  A killed script runs its ``finally`` blocks, which a process does not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from types import CodeType
from typing import Any

import outcome
import trio
from trio.lowlevel import Abort

from toolrt.errors import DefinitionRefused, NotSimulated
from toolrt.probe import ANYTHING, Resource
from toolrt.sim._paths import PROCESS
from toolrt.sim._trio_internals._seam import Seam
from toolrt.sim.engine._scheduler import Scheduler
from toolrt.sim.programs.network._links import touch
from toolrt.sim.programs.network._state import refuse
from toolrt.sim.programs.processes._pipes import ChildFile, descriptor, end_of, name_new

#: No process of an operating system has such a number.
FIRST_PID, _PIDS = 1 << 23, 1 << 22

_IGNORED = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
_STOPS = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}


#: The child that the running task is, or is one of; None: it is the program's.
_OWN: ContextVar[ScriptedPopen | None] = ContextVar("toolrt simulated process", default=None)


class ChildProcess:
    """A child process, as its script sees it.

    Args:
        popen: what stands for it in the program's hands.
        files: its standard input, output and error.
        options: what `subprocess.Popen` was given besides the command.
    """

    def __init__(self, popen: ScriptedPopen, files: tuple[ChildFile, ChildFile, ChildFile], options: Any) -> None:
        #: The command that started it, word by word, the name first.
        self.args: tuple[str, ...] = popen.words
        #: The environment it was given; None: the program's.
        self.env: Mapping[str, str] | None = options.get("env")
        #: The directory it was given; None: the program's.
        self.cwd: Any = options.get("cwd")
        self.pid: int = popen.pid
        stdin, stdout, stderr = [trio.lowlevel.FdStream(descriptor(each)) for each in files]
        #: A stream to read from.
        self.stdin: trio.abc.ReceiveStream = stdin
        #: A stream to write to.
        self.stdout: trio.abc.SendStream = stdout
        #: A stream to write to.
        self.stderr: trio.abc.SendStream = stderr
        self._popen = popen
        self._options = options

    @contextmanager
    def open_signal_receiver(self, *signals: int) -> Iterator[AsyncIterator[int]]:
        """Receive signals in the block, as `trio.open_signal_receiver` does; they do not end the process meanwhile.

        Raises:
            DefinitionRefused: there is none, or one that no process receives.
        """
        if not signals or {signal.SIGKILL, signal.SIGSTOP}.intersection(signals):
            raise DefinitionRefused("open_signal_receiver(signals)", "one or more, but SIGKILL and SIGSTOP", signals)
        send, receive = trio.open_memory_channel[int](inf)
        receivers = self._popen.receivers
        before = dict(receivers)
        receivers.update(dict.fromkeys(signals, send))
        touch((*self._popen.name, "receivers"), True)
        try:
            yield receive
        finally:
            touch((*self._popen.name, "receivers"), True)
            receivers.clear()
            receivers.update(before)
            while receive.statistics().current_buffer_used:
                self._popen.send_signal(receive.receive_nowait())


_Script = Callable[[ChildProcess], Awaitable[int | None]]


class ScriptedPopen:
    """Stands in for the `subprocess.Popen` of a child, in Trio's hands.

    Args:
        seam: the Trio run that it is in.
        scheduler: the execution.
        script: says what it does.
        words: the command, word by word.
        args: the command as it was given.
        options: what `subprocess.Popen` was given besides.
    """

    #: In a schedule of Trio's orders it waits for nothing that a step which blocks the loop could wait for.
    can_go_on = False

    def __init__(
        self, seam: Seam, scheduler: Scheduler, script: _Script, words: tuple[str, ...], args: Any, options: Any
    ) -> None:
        self._seam = seam
        self._scheduler = scheduler
        self._script = script
        self.words = words
        self.args = args
        self._options = options
        self.name: Resource = name_new("process")
        self.pid = FIRST_PID + zlib.crc32(repr(self.name).encode()) % _PIDS
        #: The exit code; None while it runs.
        self.returncode: int | None = None
        #: Where signals go that its script receives.
        self.receivers: dict[int, Any] = {}
        #: The number of its process group; 0: the program's.
        self.group = self._group_of(options)
        self._is_stopped = False
        # The signals that wait for SIGCONT.
        self._pending: dict[int, None] = {}
        self._life = trio.CancelScope()
        self._exited = trio.Event()
        self._fatal = 0
        self._starter: Any = seam.current_task()
        self._task: Any = None
        self._files: list[ChildFile] = []
        self._streams: list[Any] = []

    def _group_of(self, options: Any) -> int:
        asked = options.get("process_group")
        if options.get("start_new_session") or asked == 0:
            return self.pid
        starter = _OWN.get()
        return (0 if starter is None else starter.group) if asked is None or asked < 0 else int(asked)

    def all_report(self, reports: Callable[[CodeType], bool]) -> bool:
        """Say whether the script's code reports what it touches.

        Args:
            reports: says so of one piece of code.
        """
        code = getattr(self._script, "__code__", None)
        return code is not None and reports(code)

    # ------------------------------------------------------------------ what Trio asks

    def poll(self) -> int | None:
        """Give the exit code, if it has one."""
        touch((*self.name, "exit"), False)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Give the exit code of a process that has ended."""
        if self.returncode is None:
            refuse(NotSimulated("block on a child process", "await process.wait()"))
        return self.returncode

    async def wait_until_exited(self) -> None:
        """Wait for its end."""
        await self._exited.wait()

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Send a signal; a process that has ended gets none."""
        if self.poll() is not None or not number:
            return
        touch((*self.name, "receivers"), False)
        if self._is_stopped and number not in (signal.SIGCONT, signal.SIGKILL):
            touch((*self.name, "receivers"), True)
            if number not in _STOPS:
                self._pending[number] = None
            return
        if number == signal.SIGKILL:
            self._pending.clear()
        if number in (signal.SIGCONT, signal.SIGKILL):
            self._resume()
        if number in self.receivers:
            self.receivers[number].send_nowait(number)
        elif number in _STOPS:
            self._stop()
        elif number not in _IGNORED:
            self._fatal = self._fatal or int(number)
            self._life.cancel()

    def _stop(self) -> None:
        if _OWN.get() is self:
            refuse(NotSimulated("stop itself", "let another task or process send it the signal"))
        # Whatever its next steps would touch.
        touch(ANYTHING, True)
        self._is_stopped = True
        self._scheduler.roster.stop(self._task)

    def _resume(self) -> None:
        if self._is_stopped:
            touch(ANYTHING, True)
            self._is_stopped = False
            self._scheduler.roster.resume(self._task)
            pending, self._pending = [*self._pending], {}
            for number in pending:
                self.send_signal(number)

    # ------------------------------------------------------------------ its task

    @trio.lowlevel.enable_ki_protection
    async def act(self) -> None:
        """Be the process."""
        _OWN.set(self)
        self._task = trio.lowlevel.current_task()
        # Unless it comes to an end of its own.
        code: int = -signal.SIGKILL
        try:
            child = outcome.capture(self._begin)
            if isinstance(child, outcome.Error):
                self._seam.runner.reschedule(self._starter, child)
                return
            touch(("process group", self.group), True)
            self._seam.runner.reschedule(self._starter, outcome.Value(self))
            with self._life:
                await trio.lowlevel.checkpoint()
                ended = await self._run(child.value)
                # A signal may still come.
                await trio.lowlevel.checkpoint()
            code = -self._fatal if self._life.cancelled_caught else ended
            self._close_files()
            await trio.lowlevel.checkpoint()
        except BaseException as error:  # noqa: ASYNC103
            # What left this task would end the executions that follow.
            others = error.split(trio.Cancelled)[1] if isinstance(error, BaseExceptionGroup) else error
            if others is not None and not isinstance(others, trio.Cancelled):
                self._scheduler.refuse(others)
        finally:
            if (end := getattr(self._script, "end", None)) is not None:
                end()
            self._scheduler.roster.threads.pop(trio.lowlevel.current_task(), None)
        touch((*self.name, "exit"), True)
        self.returncode = code
        self._exited.set()

    def _begin(self) -> ChildProcess:
        if (begin := getattr(self._script, "begin", None)) is not None:
            begin(self._seam, self._options)
        given = [self._options.get(name) for name in ("stdin", "stdout", "stderr")]
        if given[2] == subprocess.STDOUT:
            given[2] = given[1]
        # Three files of its own, as after a fork: the program closes what it has of them.
        for each in given:
            file = end_of(each)
            if file is None:
                real = None if each is None or each == subprocess.DEVNULL else each
                fd = real if real is None or isinstance(real, int) else real.fileno()
                file = ChildFile((*self.name, "file", len(self._files)), fd)
            else:
                file.sockets += 1
            self._files.append(file)
        stdin, stdout, stderr = self._files
        child = ChildProcess(self, (stdin, stdout, stderr), self._options)
        self._streams = [child.stdin, child.stdout, child.stderr]
        return child

    async def _run(self, child: ChildProcess) -> int:
        try:
            code = await self._script(child)
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        except trio.BrokenResourceError:
            return -signal.SIGPIPE
        if code is not None and (not isinstance(code, int) or isinstance(code, bool)):
            raise DefinitionRefused("a script's exit code", "a number, or None for 0", code)
        code = code or 0
        # The operating system keeps one byte.
        return code & 0xFF if code > 0 else code

    def _close_files(self) -> None:
        for stream in self._streams:
            stream._fd_holder.close()


async def start(
    seam: Seam, scheduler: Scheduler, script: _Script, words: tuple[str, ...], args: Any, options: Any
) -> ScriptedPopen:
    """Start a child process; it begins at a moment of the explorer's choice.

    Raises:
        OSError: a real one cannot be started.

    Checkpoint: always.
    """
    await trio.lowlevel.checkpoint_if_cancelled()
    made = ScriptedPopen(seam, scheduler, script, words, args, options)
    task = scheduler.roster.begin_thread(made.act, os.path.basename(words[0]), PROCESS)
    scheduler.record.threads[task] = made
    popen: ScriptedPopen = await trio.lowlevel.wait_task_rescheduled(lambda _: Abort.FAILED)
    return popen
