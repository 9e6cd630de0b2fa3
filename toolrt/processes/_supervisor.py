"""The program that stands between toolrt and another program, and outlives every process that one leaves.

It is run as a script, in a process of its own, and imports nothing of toolrt.

Rules.
    1. It becomes the reaper of its descendants (``PR_SET_CHILD_SUBREAPER``): a process whose parent ends becomes its
       child, whatever session or group it has put itself in.  So all that a command started is below it, always.
    2. It ends only when it has no child left; then nothing of the command is.
    3. It ends the command when its standard input ends, which also happens when toolrt's own process dies.
    4. Processes are asked by TERM, then, after the grace, made to by KILL.

What it says, one line each, on its standard error: ``started PID``; or ``refused ERRNO WHAT``, and the command was
not started; ``confined NAME...``: the restrictions of its sandbox (`toolrt.processes._sandbox`); ``exit STATUS`` of the
command (below 0: the signal); ``swept``: it had left processes behind, and they are gone; ``stuck``: some cannot be
ended; ``done``.

The command's two outputs go to this program's standard output, unless it is given descriptors of its own.

Limits.  Processes that go on forking, each in a session of its own, faster than they are found are given up after some
seconds (``stuck``).  A process is found by its parent's number in ``/proc``: elsewhere than on Linux only the command's
process group is ended.  Who kills this program with KILL cuts the tree loose; toolrt then looks for the mark in the
environments of all processes (see `toolrt.processes._supervised`).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

#: Seconds after which processes that do not vanish though they were killed (they wait for a disk, say) are given up.
_STUCK_AFTER = 10.0

#: Seconds that processes get to end by themselves after the command has: those at the end of a pipe, say.
_LINGER = 0.2

#: What must not end this program before its work is done.
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # the other end may be closed
        os.write(2, line.encode() + b"\n")


def _become_reaper() -> bool:
    """Become the reaper of all descendants; whether that is possible here."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        import ctypes

        prctl = ctypes.CDLL(None, use_errno=True).prctl
        # Only root may open its files in /proc, the pipes to toolrt among them.
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        return bool(prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def _start(argv: list[str], streams: list[int], sandbox: list[str]) -> int:
    """Start the command in a session of its own, with `streams`, or no input and both outputs in one pipe."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        if sandbox:
            _confine(sandbox)
        _say(f"started {os.getpid()}")  # by itself: the command may end this program before its next line
        if streams:
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
        else:
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(1, 2)
        # What Python and `main` ignore would stay ignored.
        for number in (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execv(argv[0], argv)
    except OSError as error:
        os.write(2, f"{os.path.basename(argv[0])}: {os.strerror(error.errno or 0)}\n".encode())
    finally:
        os._exit(127)


def _confine(arguments: list[str]) -> None:
    """Restrict this process, which is to become the command; it ends where that cannot be done."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import _sandbox  # type: ignore[import-not-found]  # a sibling: the package is not to be found from here

    try:
        _say(f"confined {' '.join(_sandbox.confine(arguments))}")
    except OSError as error:
        _say(f"refused {error.errno} sandbox")
        os._exit(127)


def _stat(pid: int) -> tuple[int, int, int] | None:
    """A process's parent, its group and when it was started; None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # A name may have spaces and brackets in it; it ends at the last bracket.
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[1]), int(fields[2]), int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _descendants() -> dict[int, tuple[int, int]]:
    """The processes below this one, each with its group and when it was started."""
    below: dict[int, list[tuple[int, int, int]]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal() and (stat := _stat(int(name))) is not None:
            below.setdefault(stat[0], []).append((int(name), *stat[1:]))
    found: dict[int, tuple[int, int]] = {}
    pending = [os.getpid()]
    while pending:
        for pid, *known in below.get(pending.pop(), []):
            found[pid] = known[0], known[1]
            pending.append(pid)
    return found


class _Tree:
    """The command and all it started."""

    def __init__(self, command: int, reaper: bool, ends_waiting: int) -> None:
        self._command = command
        self._reaper = reaper
        self._ends = ends_waiting
        #: What the command itself ended with, once it has.
        self.status: int | None = None

    def reap(self) -> bool:
        """Bury the dead; whether any of the tree still lives, as far as it can be known."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not self._reaper and self._group_lives()
            if pid == 0:
                return True
            if pid == self._command:
                self.status = os.waitstatus_to_exitcode(status)
                _say(f"exit {self.status}")

    def _group_lives(self) -> bool:
        try:
            os.killpg(self._command, 0)
        except OSError:
            return False
        return True

    def _signal(self, *numbers: int) -> None:
        if not self._reaper:
            for number in numbers:
                try:
                    os.killpg(self._command, number)
                except OSError:
                    return
            return
        groups: dict[int, None] = {}
        for pid, (group, began) in _descendants().items():
            self._signal_one(pid, began, numbers)
            groups[group] = None
        if signal.SIGKILL in numbers:
            # A process that forks and ends is gone when its number is known; its group is not.  All of these groups are
            # in sessions that began below this process, so they hold no other process.
            for group in groups:
                with contextlib.suppress(OSError):
                    os.killpg(group, signal.SIGKILL)

    def _signal_one(self, pid: int, began: int, numbers: tuple[int, ...]) -> None:
        try:
            held = os.pidfd_open(pid)
        except OSError:
            return
        try:
            # From here on the number is this process's: is it the one that was found, or has that ended meanwhile?
            stat = _stat(pid)
            if stat is not None and stat[2] == began:
                for number in numbers:
                    signal.pidfd_send_signal(held, number)
        except OSError:
            pass  # it has ended
        finally:
            os.close(held)

    def wait(self, until: float) -> bool:
        """Wait until nothing lives, or the time has come; whether something still does."""
        while lives := self.reap():
            left = until - time.monotonic()
            if left <= 0:
                break
            # Without being the reaper, this process gets no notice when a process ends that is not its child.
            self.wait_for_an_end(left if self._reaper else min(left, 0.02))
        return lives

    def wait_for_an_end(self, seconds: float | None, *also: int) -> list[int]:
        ready, _, _ = select.select([self._ends, *also], [], [], seconds)
        if self._ends in ready:
            os.read(self._ends, 4096)
        return ready

    def sweep(self, grace: float) -> bool:
        """End all that lives; whether nothing does any more."""
        # What is stopped must go on, or it cannot hear TERM.
        self._signal(signal.SIGTERM, signal.SIGCONT)
        began = time.monotonic()
        lives = self.wait(began + grace)
        pause = 0.02
        while lives and time.monotonic() < began + grace + _STUCK_AFTER:
            self._signal(signal.SIGKILL)
            lives = self.wait(time.monotonic() + pause)
            pause = min(2 * pause, 0.5)
        return not lives


def main(arguments: list[str]) -> None:
    """Run ``GRACE DIRECTORY STREAMS COUNT SANDBOX... PROGRAM ARGUMENT...`` to its end, or to that of standard input.

    STREAMS is ``-``, or the numbers of the descriptors that are the program's input, output and error output.  SANDBOX
    is what `toolrt.processes._sandbox.confine` takes, COUNT arguments; none: the program is not restricted.
    """
    grace, directory, numbers, count, *argv = arguments
    sandbox, argv = argv[: int(count)], argv[int(count) :]
    streams = [] if numbers == "-" else [int(number) for number in numbers.split(",")]
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    ends_waiting, ended = os.pipe()
    os.set_blocking(ended, False)
    signal.set_wakeup_fd(ended, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    try:
        os.chdir(directory)
        if os.getcwd() != directory:
            _say("refused 0 directory")
            return
        reaper = _become_reaper()
        tree = _Tree(_start(argv, streams, sandbox), reaper, ends_waiting)
    except OSError as error:
        _say(f"refused {error.errno} directory")
        return
    # The pipes are the command's alone now: where one ends, all who held it have.
    for stream in streams:
        os.close(stream)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    lives = tree.reap()
    while tree.status is None:
        if 0 in tree.wait_for_an_end(None, 0) and not os.read(0, 4096):
            break
        lives = tree.reap()
    if lives and tree.status is not None:
        lives = tree.wait(time.monotonic() + _LINGER)
    if lives:
        _say("swept" if tree.sweep(float(grace)) else "stuck")
    _say("done")


if __name__ == "__main__":
    main(sys.argv[1:])
