"""A picture of some lines at the end of what a terminal shows, drawn again in its own place.

Rules.  Only lines that have changed are sent.  A line never wraps, however wide a terminal takes its characters to be,
so a picture has as many rows as lines.  The cursor stands at the begin of the last line, hidden.  When the window's
width changes, the rows that its old lines now take are counted and cleared, once the width stays as it is.  A terminal
that takes nothing at the moment (Ctrl-S, a reader that is stopped) is not waited for, because that would hold up what
is watched: the rest of a picture is sent later, and pictures in between are not.  Ctrl-Z gives the cursor back before
it stops the process.

Limits.  What others write meanwhile (the echo of a key) moves the cursor: Enter leaves a line of the old picture above
the new one.  When a window becomes lower than its picture, the upper lines stay in what is scrolled back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import TextIO

import attrs
from rich.cells import cell_len, set_cell_size

from toolrt.cli.screen._signals import before_a_stop

#: A line: texts, each with its style.
Parts = Sequence[tuple[str, str]]

#: After so many pictures one is sent whole.
_AFRESH = 20

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
_CLEAR_LINE, _CLEAR_BELOW = "\x1b[2K", "\x1b[J"


@attrs.frozen
class _SentLine:
    """A line as it was sent."""

    sent: str
    #: How many columns it takes.
    cells: int


class Painter:
    """Draws pictures on one terminal.

    Args:
        stream: the terminal.
        size: gives its columns and rows, as they are now.
        coloured: gives what a text of a style is sent as.
        reflows: whether it wraps the lines it shows anew when its width changes, as nearly all do.
    """

    def __init__(
        self, stream: TextIO, size: Callable[[], tuple[int, int]], coloured: Callable[[str, str], str], reflows: bool
    ) -> None:
        self._stream = stream
        self._size = size
        self._coloured = coloured
        self._reflows = reflows
        # Where it is written to without waiting, while there is a picture; None: nowhere.
        self._descriptor: int | None = None
        # Takes back that Ctrl-Z is heard, while there is a picture.
        self._deafen: Callable[[], object] | None = None
        # Whether the terminal was given back to others since the last picture.
        self._is_left = False
        # What the terminal has not taken yet.
        self._rest = b""
        self._drawn: list[_SentLine] = []
        # The window's size when it was drawn, and when it was last asked.
        self._drawn_in = self._seen = (0, 0)
        # Pictures until all lines are sent again, in case something else wrote over them.
        self._until_afresh = 0

    def paint(self, lines: Sequence[Parts]) -> None:
        """Put `lines`, one or more, cut to the window, in place of those that were painted before.

        Raises:
            OSError: the terminal cannot be written to.
        """
        self._begin_anew_if_left()
        width, height = size = self._size()
        changing, self._seen = bool(self._drawn) and size != self._seen, size
        if changing:
            self._until_afresh = 0
        if changing or not self._has_taken_all():
            return
        new = [self._made(line, width) for line in lines[: max(1, height - 1)]]
        old = self._drawn
        afresh = size != self._drawn_in or len(new) < len(old) or self._until_afresh <= 0
        self._until_afresh = _AFRESH if afresh else self._until_afresh - 1
        pieces = [_HIDE + _NO_WRAP, self._to_the_top(width)]
        if old and (size != self._drawn_in or len(new) < len(old)):
            pieces.append(_CLEAR_BELOW)
        for row, line in enumerate(new):
            # The last line also where it is the same: a key that was typed shows there.
            if afresh or row >= len(old) or line != old[row] or row == len(new) - 1:
                pieces.append(_CLEAR_LINE + line.sent)
            pieces.append("\n" if row < len(new) - 1 else "")
        self._send("".join(pieces) + "\r" + _WRAP)
        self._drawn, self._drawn_in = new, size

    def wipe(self) -> None:
        """Take the picture away; what is written next begins where it began.

        Raises:
            OSError: the terminal cannot be written to.
        """
        self._begin_anew_if_left()
        if self._drawn:
            up = self._to_the_top(self._size()[0])
            self._drawn = []
            rest, self._rest = self._rest.decode(self._stream.encoding or "utf-8", "replace"), b""
            self._stream.write(rest + up + _CLEAR_BELOW + _SHOW)
            self._stream.flush()
        self.close()

    def _made(self, line: Parts, width: int) -> _SentLine:
        parts = fitted(line, width)
        # Blanks at its end show nothing, and only some terminals count them when they wrap anew.
        while parts and not (last := parts[-1][0].rstrip(" ")):
            parts.pop()
        if parts:
            parts[-1] = last, parts[-1][1]
        sent = "".join(self._coloured(text, style) for text, style in parts)
        return _SentLine(sent, sum(cell_len(text) for text, _ in parts))

    def _to_the_top(self, width: int) -> str:
        """From the begin of the last line to that of the first, in a window that is `width` columns wide now."""
        above = self._drawn[:-1]
        if self._reflows and 0 < width < self._drawn_in[0]:
            rows = sum(max(1, -(-line.cells // width)) for line in above)
        else:
            rows = len(above)
        return f"\r\x1b[{rows}A" if rows else "\r"

    def _has_taken_all(self) -> bool:
        """Whether all that was sent is there; what is not is sent now, as far as that goes."""
        if self._rest:
            self._send_bytes(self._rest)
        return not self._rest

    def _send(self, text: str) -> None:
        if self._deafen is None:
            self._stream.flush()
            self._descriptor = _own_descriptor(self._stream)
            self._deafen = before_a_stop(self._leave)
        if self._descriptor is None:
            self._stream.write(text)
            self._stream.flush()
        else:
            self._send_bytes(text.encode(self._stream.encoding, "backslashreplace"))

    def _send_bytes(self, content: bytes) -> None:
        try:
            taken = os.write(self._descriptor or 0, content)
        except BlockingIOError:
            taken = 0
        self._rest = content[taken:]

    def _leave(self) -> None:
        """Let others have the terminal: the picture stays as it is, and the next one stands below what they write."""
        self._is_left = True
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.write(self._descriptor, f"{_WRAP}\r\n{_SHOW}".encode())

    def _begin_anew_if_left(self) -> None:
        if self._is_left:
            self._is_left, self._drawn, self._rest, self._until_afresh = False, [], b"", 0

    def close(self) -> None:
        """Give up the terminal without changing what it shows; the last call on a painter."""
        deafen, self._deafen = self._deafen, None
        if deafen is not None:
            deafen()
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _own_descriptor(stream: TextIO) -> int | None:
    """The same terminal, opened once more: who shares the stream's own descriptor must not find it changed."""
    try:
        return os.open(os.ttyname(stream.fileno()), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None  # no terminal of this system, or one that cannot be opened


def fitted(line: Parts, width: int) -> list[tuple[str, str]]:
    """The line in at most `width` columns; where it is cut it ends in an ellipsis."""
    left = width
    found = []
    for place, (text, style) in enumerate(line):
        cells = cell_len(text)
        rest = any(later for later, _ in line[place + 1 :])
        if cells > left or (cells == left and rest):
            if left > 0:
                found.append((f"{set_cell_size(text, left - 1)}…", style))
            return found
        found.append((text, style))
        left -= cells
    return found


def reflows(environ: dict[str, str] | os._Environ[str]) -> bool:
    """Whether the terminal wraps what it shows anew when it is resized: all but xterm itself and bare consoles do."""
    return environ.get("TERM") not in ("linux", "vt100", "vt220") and "XTERM_VERSION" not in environ
