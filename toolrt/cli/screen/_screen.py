"""Where people read: one console for each command.

Rules.  Text is printed as it is given: no markup, no highlighting, no emoji codes.  A terminal gets lines wrapped
to its width and, where that was asked for, a picture that is drawn over; anything else, and a terminal in CI,
gets plain whole lines.  When its stream cannot be written any more (a closed pipe, a full disk) the screen falls
silent, and the command goes on without it.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.style import Style
from rich.text import Text

from toolrt.cli.screen._escape import on_one_line
from toolrt.cli.screen._painter import Painter, Parts, reflows
from toolrt.errors import InputRefused

#: Why text could not be written, of each screen that fell silent for that.
_lost: list[str] = []


def why_text_was_lost() -> str | None:
    """Why some text did not reach the file it was for, since this was asked last; None: it did."""
    found = _lost[0] if _lost else None
    _lost.clear()
    return found


def flush_output() -> None:
    """Write what standard output still holds; what cannot be written is lost, and Python does not try it at its end."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if not _is_closed(sys.stdout, error):
            _lost.append(os.strerror(error.errno or 0))
        _discard_the_rest(sys.stdout)


class Screen:
    """A stream for people.

    Args:
        stream: standard output, or standard error where that is kept for a machine.
    """

    def __init__(self, stream: TextIO) -> None:
        #: Whether it is a terminal that can be drawn over.
        self.is_live = (
            stream.isatty() and not os.environ.get("CI") and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
        )
        self._console = _Console(file=stream, highlight=False, markup=False, emoji=False)
        self._wraps = stream.isatty()
        self._painter = Painter(stream, self._size, self._coloured, reflows(os.environ))
        self._styles: dict[str, str] = {}
        self._is_held = False

    def fits(self, width: int) -> bool:
        """Whether lines of `width` characters are shown whole."""
        return not self._wraps or width <= self.width

    @property
    def width(self) -> int:
        """How many columns a line has now, 1 or more."""
        return self._size()[0]

    @property
    def height(self) -> int:
        """How many rows the window has now, 1 or more."""
        return self._size()[1]

    def _size(self) -> tuple[int, int]:
        """Columns and rows of this very stream; what the environment says outranks it, as everywhere."""
        known = self._console.size
        columns, rows = known.width, known.height
        try:
            found = os.get_terminal_size(self._console.file.fileno())
        except (OSError, ValueError):
            return max(1, columns), max(1, rows)
        if found.columns > 0 and not os.environ.get("COLUMNS", "").isdigit():
            columns = found.columns
        if found.lines > 0 and not os.environ.get("LINES", "").isdigit():
            rows = found.lines
        return max(1, columns), max(1, rows)

    @property
    def encoding(self) -> str:
        """How text is encoded there."""
        return getattr(self._console.file, "encoding", None) or "utf-8"

    def say(self, text: str = "", style: str = "", indent: int = 0) -> None:
        """Print `text` on lines of its own; it has to be escaped already."""
        self._print(Text(" " * indent + text, style=style))

    def say_parts(self, *parts: tuple[str, str]) -> None:
        """Print pairs of a text and a style as one line."""
        self._print(Text.assemble(*parts))

    def draw(self, lines: Sequence[Parts] | str) -> None:
        """Put `lines`, or one, escaped, in place of those drawn before; only when `is_live`."""
        if self._is_held or self._console.quiet:
            return
        try:
            self._painter.paint([[(lines, "")]] if isinstance(lines, str) else lines)
        except OSError as error:
            self._fall_silent(error)

    def wipe(self) -> None:
        """Take the last picture away."""
        if self._console.quiet:
            return
        try:
            self._painter.wipe()
        except OSError as error:
            self._fall_silent(error)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Draw no picture inside: a question stands on the terminal."""
        self.wipe()
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False

    def _print(self, text: Text) -> None:
        self.wipe()
        try:
            if self._wraps:
                self._console.print(text, width=self.width)
            else:
                self._console.print(text, soft_wrap=True)
        except OSError as error:
            self._fall_silent(error)

    def _coloured(self, text: str, style: str) -> str:
        """What `text` of a style is sent as."""
        if not style or self._console.color_system is None:
            return text
        around = self._styles.get(style)
        if around is None:
            known = Style.parse(style)
            if self._console.no_color:
                known = known.without_color
            system: ColorSystem = COLOR_SYSTEMS[self._console.color_system]
            around = self._styles[style] = known.render("\0", color_system=system)
        before, _, after = around.partition("\0")
        return f"{before}{text}{after}"

    def _fall_silent(self, error: OSError) -> None:
        if not self._wraps and not _is_closed(self._console.file, error):
            # A file lacks what it was to have.
            _lost.append(os.strerror(error.errno or 0))
        self._console.quiet = True
        self._painter.close()
        _discard_the_rest(self._console.file)


class _Console(Console):
    """A console that falls silent when its pipe is closed; rich's own ends the program."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        _discard_the_rest(self.file)


def _is_closed(stream: Any, error: OSError) -> bool:
    """Whether writing to `stream` failed because a pipe or a window was closed: they have seen what they wanted."""
    if isinstance(error, BrokenPipeError):
        return True
    try:
        # A terminal that is gone is none any more, but still a device.
        return error.errno == errno.EIO and stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _discard_the_rest(stream: Any) -> None:
    """Let what is still buffered go nowhere, or Python complains at its end of what could not be written."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        return


def forgiving(stream: TextIO) -> TextIO:
    """The same stream, writing an escape where its encoding has no character."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def print_json(value: Any) -> None:
    """Print a JSON value to standard output, indented; UTF-8 in every locale.

    Raises:
        InputRefused: it could not be written.
    """
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        encoded = json.dumps(value, indent=2).encode()
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(encoded + b"\n")
        sys.stdout.buffer.flush()
    except OSError as error:
        closed = _is_closed(sys.stdout, error)
        _discard_the_rest(sys.stdout)
        if closed:
            return
        raise InputRefused(
            "standard output",
            f"the answer could not be written ({os.strerror(error.errno or 0)})",
            "Calls that were run stay run.",
        ) from None


def complain(text: str) -> None:
    """Say on standard error why a command ends here."""
    Screen(forgiving(sys.stderr)).say("\n".join(on_one_line(line, 2_000) for line in f"toolrt: {text}".splitlines()))
