"""``toolrt litmus NAME --play``: answers on standard input."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from typing import Any

import pytest


def _played(toolrt: Any, monkeypatch: pytest.MonkeyPatch, name: str, *answers: str) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{answer}\n" for answer in answers)))
    ended = toolrt("litmus", name, "--play")
    assert (ended.code, ended.err) == (0, "")
    return str(ended.out)


def test_play_ends_in_the_bug(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read before either writes: the bug, its schedule, and what is still unseen."""
    out = _played(toolrt, monkeypatch, "lost_update_2x1", "main.0", "main.1", "2", "q")
    assert "You are the scheduler. Try to make it end in 1." in out
    assert "It ended in 1: the bug. You broke it, with 1 preemption." in out
    assert "In the simplest one: lost update: add (main.0) reads counter = 0 in step 1; add (main.1) writes 1" in out
    assert "What would mend it: `async with lock:` round lines " in out
    assert "main main.0 main.1*2 main.0 main" in out
    assert "1 class of schedules seen, 3 still unseen" in out


def test_play_goes_back_and_begins_again(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was taken back can be chosen otherwise, and what was seen stays seen."""
    out = _played(toolrt, monkeypatch, "lost_update_2x1", "1", "1", "b", "2", "1", "r", "2", "2", "q")
    assert out.count("It ended in 2, as it should.") == 2
    assert out.count("You broke it") == 1
    assert "3 classes of schedules seen, 1 still unseen" in out


def test_play_gives_hints(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint leads on; past the point from which all goes well it says so."""
    out = _played(toolrt, monkeypatch, "lost_update_2x1", "h", "1", "h", "1", "h")
    assert out.count("Hint: let main.") == 2
    assert "It is over: go back, or begin again." in out


def test_play_gives_the_proof_that_there_is_nothing_to_find(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every schedule was run, and none goes wrong."""
    out = _played(toolrt, monkeypatch, "lock_2", "h", "p")
    assert "Hint: no way from here goes wrong: go back, or begin again." in out
    assert "exhaustive(schedules=6): every schedule, 6 executions" in out
    assert "4 classes, 4 of them unseen" in out
    assert "None goes wrong, and none is left: there is nothing to find." in out


def test_play_answers_what_is_no_answer(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what would be one, asks again, and shows no escape of the terminal's."""
    out = _played(toolrt, monkeypatch, "lost_update_2x1", "7", "0", "\x1b[2J", "", "?", "1", "1", "1", "q")
    assert "'7' is no answer" in out
    assert "'0' is no answer" in out
    assert "\x1b" not in out
    assert "It is over: b undo, r begin again." in out


def test_play_writes_a_page(toolrt: Any, tmp_path: Any) -> None:
    """With --html the game is a page, and nothing is asked."""
    page = tmp_path / "page.html"
    ended = toolrt("litmus", "lost_update_2x1", "--play", "--html", page)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert "You are the scheduler" in page.read_text()


def test_play_names_tasks_and_numbers_them_as_the_page_does(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 1, by the task and the function that it runs."""
    out = _played(toolrt, monkeypatch, "lost_update_2x1", "q")
    assert "  1  main.0 add" in out
    assert "  2  main.1 add" in out


def test_play_shows_one_that_goes_wrong(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simplest schedule found, step by step; where none goes wrong it says so."""
    out = _played(toolrt, monkeypatch, "lost_update_2x1", "s", "q")
    assert "The simplest schedule found that goes wrong:" in out
    assert "main main.0 main.1*2 main.0 main" in out
    assert "None was found that goes wrong." in _played(toolrt, monkeypatch, "lock_2", "s", "q")


@pytest.mark.seldom
@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="terminals of this kind are POSIX's")
def test_play_takes_keys_of_a_terminal() -> None:
    """Without Enter: two reads, a write, quit; and the terminal is as it was."""
    import pty
    import termios

    keyboard, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    command = [sys.executable, "-m", "toolrt", "litmus", "lost_update_2x1", "--play"]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        # Where no key is taken it would wait for ever.
        watchdog = threading.Timer(100, process.kill)
        watchdog.start()
        os.write(keyboard, b"1")
        assert process.stdout is not None
        told = b""
        # The next key is pressed when the question for it is there: what is typed early is thrown together.
        for key in (b"2", b"1", b"q"):
            wanted = b"It ended in" if key == b"q" else b"Who runs next?"
            while told.count(wanted) < (1 if key == b"q" else 2 + (key == b"1")):
                line = process.stdout.readline()
                if not line:
                    watchdog.cancel()
                assert line, told
                told += line
            os.write(keyboard, key)
        told += process.communicate(timeout=100)[0]
        watchdog.cancel()
    after = termios.tcgetattr(terminal)
    os.close(keyboard)
    os.close(terminal)
    assert process.returncode == 0
    assert b"It ended in 1: the bug. You broke it" in told
    assert after == before
