"""``toolrt litmus NAME --play``: answers on standard input."""

from __future__ import annotations

import io
from typing import Any

import pytest


def _played(toolrt: Any, monkeypatch: pytest.MonkeyPatch, name: str, *answers: str) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{answer}\n" for answer in answers)))
    ended = toolrt("litmus", name, "--play")
    assert (ended.code, ended.err) == (0, "")
    return str(ended.out)


def test_play_ends_in_the_bug(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read before either writes: the bug, its schedule, and what is still unseen."""
    out = _played(toolrt, monkeypatch, "lost_update_2x1", "main.0", "main.1", "0", "q")
    assert "You are the scheduler. Try to make it end in 1." in out
    assert "It ended in 1: the bug. You broke it, with 1 preemption." in out
    assert "main main.0 main.1*2 main.0 main" in out
    assert "1 class of schedules seen, 3 still unseen" in out


def test_play_goes_back_and_begins_again(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was taken back can be chosen otherwise, and what was seen stays seen."""
    out = _played(toolrt, monkeypatch, "lost_update_2x1", "0", "0", "b", "1", "1", "r", "1", "0", "q")
    assert out.count("It ended in 2, as it should.") == 2
    assert out.count("You broke it") == 1
    assert "3 classes of schedules seen, 1 still unseen" in out


def test_play_gives_hints(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint leads on; past the point from which all goes well it says so."""
    out = _played(toolrt, monkeypatch, "lost_update_2x1", "h", "0", "h", "0", "h")
    assert out.count("Hint: let main.") == 2
    assert "It is over: go back, or begin again." in out


def test_play_gives_the_proof_that_there_is_nothing_to_find(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every schedule was run, and none goes wrong."""
    out = _played(toolrt, monkeypatch, "lock_2", "h", "p")
    assert "Hint: no way from here goes wrong: go back, or begin again." in out
    assert "exhaustive(schedules=6): every schedule, 6 executions" in out
    assert "None goes wrong, and none is left: there is nothing to find." in out


def test_play_answers_what_is_no_answer(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what would be one, asks again, and shows no escape of the terminal's."""
    out = _played(toolrt, monkeypatch, "lost_update_2x1", "7", "\x1b[2J", "", "?", "0", "0", "0", "q")
    assert "'7' is no answer" in out
    assert "\x1b" not in out
    assert "It is over: b back, r begin again." in out


@pytest.mark.process
def test_play_ends_with_its_input(toolrt: Any) -> None:
    """In a process of its own, without any answer, it shows the beginning and ends."""
    ended = toolrt.spawned("litmus", "lost_update_2x1", "--play")
    assert ended.code == 0
    assert ended.out.count("Who runs next?") == 1


@pytest.mark.parametrize("arguments", [(), ("lock_2", "--verify"), ("lock_2", "--json")])
def test_play_wants_one_program_and_nothing_else(toolrt: Any, arguments: tuple[str, ...]) -> None:
    """Exit 2, before anything is shown."""
    ended = toolrt("litmus", *arguments, "--play")
    assert (ended.code, ended.out) == (2, "")
    assert "--play" in ended.err


def test_play_writes_a_page(toolrt: Any, tmp_path: Any) -> None:
    """With --html the game is a page, and nothing is asked."""
    page = tmp_path / "page.html"
    ended = toolrt("litmus", "lost_update_2x1", "--play", "--html", page)
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert "You are the scheduler" in page.read_text()
