"""Writes one line of JSON for each telemetry event, to a file or a stream.

Rules.
    1. `event` never waits for the disk: lines are kept in memory, up to a bound, and a thread of the sink's own
       writes them.  What the bound has no room for is dropped and counted, the newest first.
    2. Lines are written whole.  Of a line that the disk had room for in part only, nothing stays.
    3. A full disk, a closed stream, a reader that is gone: what could not be written is counted, and the next lines are
       tried again.  Nothing is raised.
    4. In a simulation there is no thread: a line is written where the event happens, and virtual time stands still.

Limits.  `close` and `flush` wait for the disk, up to the time they are given; what has not been written by then is
counted as lost.  A process that is killed loses what its thread had not written yet.
"""

from __future__ import annotations

import atexit
import json
import os
import stat
import threading
import weakref
from collections import deque
from collections.abc import Mapping
from typing import Any, TextIO

from toolrt import probe
from toolrt._plain import plain
from toolrt.errors import DefinitionRefused

#: So many lines wait at most.
_BOUND = 100_000

#: So many lines are written at once at most.
_CHUNK = 500

#: Seconds that `close` waits for the disk, unless told otherwise.
_PATIENCE = 2.0


class JsonLines:
    """A sink that writes one line of JSON for each event.

    Every line has ``kind``, ``time`` (seconds since the epoch, or virtual ones), ``batch``, ``number`` and the fields
    of its kind, as ``docs/reference/events.md`` lists them.

    Args:
        target: a file's path (it is made if it is not there, and lines are added at its end), or a text stream that is
            open for writing; a stream is written to by a thread, and is not closed.
        bound: how many lines may wait for the disk, 1 or more; further ones are dropped and counted.

    Raises:
        DefinitionRefused: an argument is not what it must be.
        OSError: the file cannot be opened for writing.
    """

    def __init__(self, target: str | os.PathLike[str] | TextIO, *, bound: int = _BOUND) -> None:
        if not isinstance(bound, int) or isinstance(bound, bool) or bound < 1:
            raise DefinitionRefused("JsonLines(bound)", "a number of lines, 1 or more", bound)
        output: _LineFile | _Stream
        if isinstance(target, str | os.PathLike):
            output = _LineFile(os.fspath(target))
        elif callable(getattr(target, "write", None)):
            output = _Stream(target)
        else:
            raise DefinitionRefused("JsonLines(target)", "a path or a text stream", target)
        self._writer = _Writer(output, bound)
        # Without `close`, this runs when the sink is collected: its thread writes the lines that wait, and ends.
        self._finalizer = weakref.finalize(self, self._writer.shut)
        self._finalizer.atexit = False

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Write a line, by and by.  Checkpoint: never."""
        self._writer.put(kind, fields)

    @property
    def written(self) -> int:
        """How many lines have been written."""
        return self._writer.written

    @property
    def lost(self) -> int:
        """How many lines will never be: there was no room to wait, or the disk or the stream refused them."""
        return self._writer.lost

    def flush(self, patience: float = _PATIENCE) -> bool:
        """Wait until all lines so far have been written or lost; False if that takes more than `patience` seconds.

        It blocks the thread it is called in.  Checkpoint: never.
        """
        return self._writer.flush(patience)

    def close(self, patience: float = _PATIENCE) -> None:
        """Write what still waits, for `patience` seconds at most, and take no more lines.

        What has not been written by then is lost.  It blocks the thread it is called in.  Closing twice is no harm.

        Checkpoint: never.
        """
        self._finalizer.detach()
        self._writer.close(patience)

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<JsonLines: {self.written:,} written, {self.lost:,} lost>"


class _Writer:
    """The lines that wait, and the thread that writes them."""

    def __init__(self, output: _LineFile | _Stream, bound: int) -> None:
        self._output = output
        self._bound = bound
        self._waiting: deque[tuple[str, Mapping[str, Any]]] = deque()
        self._changed = threading.Condition(threading.Lock())
        # How many lines the thread has in its hands.
        self._in_hand = 0
        self._thread: threading.Thread | None = None
        self._closed = False
        self._given_up = False
        self.written = 0
        self.lost = 0
        _writers.add(self)

    def begin_anew(self) -> None:
        """Go on in a child process: it has no thread, and what waits is its parent's to write."""
        self._changed = threading.Condition(threading.Lock())
        self._waiting.clear()
        self._in_hand = self.written = self.lost = 0
        self._thread = None

    def put(self, kind: str, fields: Mapping[str, Any]) -> None:
        with self._changed:
            if self._closed or len(self._waiting) + self._in_hand >= self._bound:
                self.lost += 1
                return
            self._waiting.append((kind, fields))
            if not probe.threads_inline:
                if self._thread is None:
                    thread = threading.Thread(target=self._work, name="toolrt telemetry", daemon=True)
                    thread.start()  # if there can be none, the next line tries again
                    self._thread = thread
                elif len(self._waiting) == 1:
                    self._changed.notify_all()
                return
            if self._thread is not None:
                self._changed.notify_all()  # it has begun in an earlier run, and keeps the lines in order
                return
            chunk = self._take()
        self._write(chunk)

    def _take(self) -> list[tuple[str, Mapping[str, Any]]]:
        chunk = [self._waiting.popleft() for _ in range(min(_CHUNK, len(self._waiting)))]
        self._in_hand = len(chunk)
        return chunk

    def _write(self, chunk: list[tuple[str, Mapping[str, Any]]]) -> None:
        lines = [_line(kind, fields) for kind, fields in chunk]
        try:
            written = self._output.write(lines)
        except Exception:
            written = 0
        with self._changed:
            self._in_hand = 0
            if not self._given_up:
                self.written += written
                self.lost += len(lines) - written
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    break
                chunk = self._take()
            self._write(chunk)
        self._output.close()

    def flush(self, patience: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._in_hand), patience)

    def shut(self) -> None:
        """Take no more lines; what waits is written, unless Python ends before that."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
            if self._thread is not None:
                return
            self.lost += len(self._waiting)
            self._waiting.clear()
        self._output.close()

    def close(self, patience: float) -> None:
        self.shut()
        thread = self._thread
        if thread is None:
            return
        thread.join(patience)
        if thread.is_alive() and not self._given_up:
            with self._changed:
                self._given_up = True
                self.lost += len(self._waiting) + self._in_hand
                self._waiting.clear()


#: Those whose lines may not all have been written.
_writers: weakref.WeakSet[_Writer] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Write what still waits before Python ends."""
    for writer in list(_writers):
        writer.close(_PATIENCE)


def _in_child() -> None:
    for writer in list(_writers):
        writer.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class _LineFile:
    """A file that lines are added to."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644)
        self._regular = stat.S_ISREG(os.fstat(self._fd).st_mode)
        # Whether the file ends within a line that could not be taken back.
        self._torn = False

    def write(self, lines: list[bytes]) -> int:
        """Write as many of `lines` as there is room for, whole; say how many those are."""
        data = b"".join([b"\n", *lines] if self._torn else lines)
        begin = os.fstat(self._fd).st_size if self._regular else 0
        done = 0
        try:
            while done < len(data):
                done += os.write(self._fd, data[done:])
        except OSError:
            return self._keep_whole(lines, begin, done)
        self._torn = False
        return len(lines)

    def _keep_whole(self, lines: list[bytes], begin: int, done: int) -> int:
        """Take back the part of a line that was written last."""
        if done == 0:
            return 0
        whole, count = int(self._torn), 0
        for line in lines:
            if whole + len(line) > done:
                break
            whole += len(line)
            count += 1
        self._torn = whole < done
        # Another process may have added to the file meanwhile.
        if self._torn and self._regular and os.fstat(self._fd).st_size == begin + done:
            os.ftruncate(self._fd, begin + whole)
            self._torn = False
        return count

    def close(self) -> None:
        os.close(self._fd)


class _Stream:
    """A text stream of the caller's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, lines: list[bytes]) -> int:
        self._stream.write(b"".join(lines).decode("ascii"))
        flush = getattr(self._stream, "flush", None)
        if callable(flush):
            flush()
        return len(lines)

    def close(self) -> None:
        """Leave it open: it is the caller's."""


def _line(kind: str, fields: Mapping[str, Any]) -> bytes:
    shown = {"kind": kind, **plain(fields)}
    if isinstance(shown.get("time"), int):
        shown["time"] = round(shown["time"] / 1e9, 6)
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
