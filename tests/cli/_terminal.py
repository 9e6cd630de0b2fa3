"""A terminal to look at: a real pseudo-terminal, and an emulator that knows what it shows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyte

#: The last that is sent to a window.
_CLOSED = b"\x1b]0;closed\x07"


class Reflowing(pyte.Screen):
    """A screen that wraps its lines anew when its width changes, as most terminals do; pyte's own cuts them."""

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Change its size; whatever stands there is kept, the cursor stays with its character."""
        lines, columns = lines or self.lines, columns or self.columns
        rows: list[list[Any]] = []
        at = (0, 0)
        for y in range(self.lines):
            cells = [self.buffer[y][x] for x in range(self.columns)]
            while cells and cells[-1].data == " " and not (y == self.cursor.y and len(cells) <= self.cursor.x):
                cells.pop()
            pieces = [cells[start : start + columns] for start in range(0, len(cells), columns)] or [[]]
            if y == self.cursor.y:
                at = (len(rows) + self.cursor.x // columns, self.cursor.x % columns)
            rows += pieces
        while len(rows) > lines and not rows[-1] and at[0] < len(rows) - 1:
            rows.pop()
        above = max(0, len(rows) - lines)
        super().resize(lines, columns)
        self.buffer.clear()
        for y, row in enumerate(rows[above:]):
            for x, cell in enumerate(row):
                self.buffer[y][x] = cell
        self.cursor.y, self.cursor.x = max(0, at[0] - above), at[1]


class Window:
    """A pseudo-terminal, and what is seen on it.

    Args:
        columns, rows: its size.
        reflows: whether it wraps its lines anew when its width changes.
    """

    def __init__(self, columns: int = 80, rows: int = 24, *, reflows: bool = False) -> None:
        self.ours, self.theirs = pty.openpty()
        self.screen = (Reflowing if reflows else pyte.Screen)(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        #: Everything that was sent.
        self.sent = b""
        self._marks = 0
        self.changed = threading.Condition()
        self.resize(columns, rows)
        #: What programs in this process write to; a terminal.
        self.stream = os.fdopen(self.theirs, "w", encoding="utf-8", closefd=False)
        self._reader = threading.Thread(target=self._keep_reading, daemon=True)
        self._is_read = False

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        with self.changed:
            fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            self.screen.resize(rows, columns)

    def feed(self, content: bytes) -> None:
        """Show `content` as if it had been sent."""
        self._stream.feed(content)

    def keep_reading(self) -> None:
        """Begin to read what is sent, until the window is closed or nobody can write to it any more."""
        self._is_read = True
        self._reader.start()

    def _keep_reading(self) -> None:
        # When the last program has closed a terminal, reading it is an error (EIO).
        with contextlib.suppress(OSError):
            while piece := os.read(self.ours, 65_536):
                with self.changed:
                    self.sent += piece
                    self._stream.feed(piece)
                    self.changed.notify_all()
                if _CLOSED in piece:
                    return

    def shows(self) -> list[str]:
        """Every row that is not empty at the end, after all that was written until now."""
        self._marks += 1
        mark = f"mark {self._marks}"
        self.stream.flush()
        os.write(self.theirs, f"\x1b]0;{mark}\x07".encode())
        with self.changed:
            assert self.changed.wait_for(lambda: self.screen.title == mark, 100)
            return self.rows()

    def close(self) -> None:
        """Close it; nobody may use it any more."""
        if self._is_read:
            os.write(self.theirs, _CLOSED)
            self._reader.join(100)
        self.stream.close()
        os.close(self.ours)
        os.close(self.theirs)

    def rows(self) -> list[str]:
        """Every row, without spaces at its end, up to the last that is not empty."""
        rows = [row.rstrip() for row in self.screen.display]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    @property
    def cursor_is_hidden(self) -> bool:
        """Whether it is."""
        return bool(self.screen.cursor.hidden)

    @property
    def wraps(self) -> bool:
        """Whether a long line goes on in the next row, as it does unless it was told otherwise."""
        return pyte.modes.DECAWM in self.screen.mode


@contextmanager
def window(columns: int = 80, rows: int = 24, *, reflows: bool = False) -> Iterator[Window]:
    """A window that is read, closed at the end."""
    made = Window(columns, rows, reflows=reflows)
    made.keep_reading()
    try:
        yield made
    finally:
        made.close()
