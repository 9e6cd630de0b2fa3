"""What people see: on terminals of any width, in pipes, in CI; and that no tool's output acts on the terminal."""

import contextlib
import errno
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrt.cli.screen._escape import on_one_line, shown_lines
from toolrt.cli.screen._screen import Screen

HOSTILE = "\x1b[31mred\x1b[0m [bold]markup[/bold] :smile: \x9b2J \u202eesrever\u2066 \x07\x08\r tail\u2028end"


def on_terminal(columns: int, *arguments: object, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The command on a terminal of that width: its exit code and everything the terminal was sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [sys.executable, "-m", "toolrt", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**inherited, "TERM": "xterm-256color", **(env or {})},
    )
    os.close(theirs)
    sent = b""
    # When the last process has closed a terminal, reading it is an error (EIO).
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 65_536):
            sent += piece
    os.close(ours)
    return process.wait(timeout=100), sent.decode()


def without_colours(text: str) -> str:
    """The text alone."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.mark.seldom
@pytest.mark.process
def test_run_on_a_narrow_terminal_keeps_to_its_width(response: Path, shop: Path) -> None:
    """In 40 columns no line is longer, and every call is there."""
    code, sent = on_terminal(40, "run", response, "--workspace", shop)
    lines = without_colours(sent).replace("\r\n", "\n").split("\n")
    assert code == 1
    assert max(len(line.split("\r")[-1]) for line in lines) <= 40
    assert all(any(line.startswith(f"[{index}] ") for line in lines) for index in range(14))


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("command", [("explore", "--executions", "3"), ("run", "--dry-run")])
def test_other_commands_on_a_narrow_terminal_keep_to_its_width(
    response: Path, shop: Path, command: tuple[str, ...]
) -> None:
    """In 40 columns no line is longer."""
    code, sent = on_terminal(40, command[0], response, "--workspace", shop, *command[1:])
    lines = without_colours(sent).replace("\r\n", "\n").split("\n")
    assert code == 0
    assert max(len(line.split("\r")[-1]) for line in lines) <= 40


@pytest.mark.seldom
@pytest.mark.process
def test_laws_on_a_narrow_terminal_are_a_list(response: Path) -> None:
    """The table needs over 90 columns; in 40 each mutant has its own lines."""
    code, sent = on_terminal(40, "laws", "--executions", "2", "--mutant", "answers twice")
    assert code == 0
    assert "answers twice:" in sent
    assert max(map(len, without_colours(sent).replace("\r\n", "\n").split("\n"))) <= 40


@pytest.mark.seldom
@pytest.mark.process
def test_terminal_gets_colours(response: Path, shop: Path) -> None:
    """The twin of the next test."""
    assert "\x1b[32m" in on_terminal(80, "run", response, "--workspace", shop)[1]


@pytest.mark.seldom
@pytest.mark.process
def test_pipe_gets_whole_lines(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """Who reads a pipe wraps for themselves, whatever COLUMNS says."""
    (shop / "long.txt").write_text("x" * 300)
    ended = toolrt.spawned(
        "run", written(("read_file", {"path": "long.txt"})), "--workspace", shop, env={"COLUMNS": "40"}
    )
    assert "x" * 300 in ended.out


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_output_fits_every_encoding(toolrt: Any, shop: Path, written: Callable[..., Path], encoding: str) -> None:
    """A character that the stream does not have is escaped."""
    (shop / "price.txt").write_text("値段 ☃\n", encoding="utf-8")
    ended = toolrt.spawned(
        "run",
        written(("read_file", {"path": "price.txt"})),
        "--workspace",
        shop,
        env={"PYTHONIOENCODING": encoding},
    )
    assert (ended.code, ended.err) == (0, "")


def test_hostile_output_is_shown_harmlessly(toolrt: Any, shop: Path, written: Callable[..., Path]) -> None:
    """Escapes, markup, reversing and line tricks of a file's content, a path and a tool's name are only shown."""
    (shop / "hostile.txt").write_bytes(HOSTILE.encode())
    calls = written(
        ("read_file", {"path": "hostile.txt"}), ("read_file", {"path": HOSTILE}), (HOSTILE, {"path": "[red]x[/red]"})
    )
    ended = toolrt("run", calls, "--workspace", shop)
    assert not set(ended.out) & set("\x1b\x9b\u202e\u2066\x07\x08\u2028")
    assert "\\x1b[31mred\\x1b[0m [bold]markup[/bold] :smile:" in ended.out
    assert "[red]x[/red]" in ended.out


@given(st.text())
def test_escaped_text_is_one_harmless_line(text: str) -> None:
    """Whatever the text: nothing a terminal acts on is left, and a second time changes nothing."""
    shown = on_one_line(text)
    assert all(character.isprintable() or character.isspace() for character in shown)
    assert len(shown.splitlines()) <= 1
    assert on_one_line(shown) == shown


@given(st.text(alphabet="ab\x1b\n", max_size=40), st.integers(1, 20))
def test_escaped_text_is_never_wider_than_asked(text: str, width: int) -> None:
    """Cut text ends in an ellipsis."""
    assert len(on_one_line(text, width)) <= width


@given(st.lists(st.text(alphabet="xy"), min_size=1, max_size=9), st.integers(1, 10))
def test_shown_lines_and_those_left_out_are_all(lines: list[str], most: int) -> None:
    """Nothing is lost uncounted."""
    text = "\n".join(lines)
    shown, left_out = shown_lines(text, most)
    assert len(shown) + left_out == len(text.removesuffix("\n").split("\n"))


class Full(io.StringIO):
    """A stream on a disk that is full."""

    asked = 0

    def write(self, text: str) -> int:
        self.asked += 1
        raise OSError(errno.ENOSPC, "No space left on device")


def test_screen_falls_silent_when_nothing_can_be_written() -> None:
    """What runs must not end because of who watches it."""
    stream = Full()
    screen = Screen(stream)
    screen.say("one")
    assert stream.asked == 1
    screen.say_parts(("two", "red"))
    screen.say("three")
    assert stream.asked == 1
