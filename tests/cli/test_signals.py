"""What asks a command to end, or to make room: the terminal is as it was, and nothing is left unsaid."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli._terminal import Window, window
from tests.cli.test_interrupt import WITH_SLOW_TOOLS
from tests.cli.test_live import spawned, until
from toolrt.cli._exit import Exit
from toolrt.cli.experiment import _experiment
from toolrt.cli.screen._signals import before_a_stop, code_of_interrupt, taken_as_interrupts, who_interrupts

pytestmark = pytest.mark.skipif(os.name != "posix", reason="these signals are POSIX's")


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that pyte is, outside of CI."""
    for name in ("CI", "NO_COLOR", "COLUMNS", "LINES", "XTERM_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "linux")


@pytest.mark.seldom
@pytest.mark.process
def test_asked_to_end_a_run_ends_as_by_ctrl_c(shop: Path, tmp_path: Path, written: Callable[..., Path]) -> None:
    """SIGTERM: the picture is gone, the cursor is back, every result is told, the trace is there, the code is 143."""
    calls = written(("wait", {}), ("write_file", {"path": "new", "content": ""}))
    trace = tmp_path / "trace.json"
    arguments = ("run", calls, "--workspace", shop, "--lanes", "by_safety", "--trace", trace)
    with window(80, 40) as shown, spawned(shown, *arguments) as process:
        until(shown, "  ready", process)
        assert shown.cursor_is_hidden
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 143
        rows = shown.shows()
        assert not shown.cursor_is_hidden
    assert [row for row in rows if re.match(r"\[\d\] ", row)] == [
        "[0] interrupted wait",
        "[1] not_started write_file new",
    ]
    events = json.loads(trace.read_text())["events"]
    assert [event["fields"]["reason"] for event in events if event["kind"] == "batch.cancelled"] == ["SIGTERM"]


@pytest.mark.seldom
@pytest.mark.process
def test_second_request_gives_up_on_what_does_not_end(shop: Path, written: Callable[..., Path]) -> None:
    """A supervisor that asks again gets what a second Ctrl-C gets."""
    with window(80, 40) as shown, spawned(shown, "run", written(("hang", {})), "--workspace", shop) as process:
        until(shown, "  ready", process)
        process.send_signal(signal.SIGTERM)
        until(shown, "Ctrl-C again", process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 143
        assert "[0] hang: still running, given up; effects may have landed" in shown.shows()
        assert not shown.cursor_is_hidden


@pytest.mark.seldom
@pytest.mark.process
def test_run_whose_terminal_is_closed_keeps_its_trace(shop: Path, tmp_path: Path, written: Callable[..., Path]) -> None:
    """SIGHUP: the calls are cancelled, though nobody reads what came of them."""
    trace = tmp_path / "trace.json"
    shown = Window()
    shown.keep_reading()
    with spawned(shown, "run", written(("wait", {})), "--workspace", shop, "--trace", trace) as process:
        until(shown, "  ready", process)
        shown.close()
        assert process.wait(100) == 129
    assert json.loads(trace.read_text())["meta"]["ended"] == "interrupted"


@pytest.mark.seldom
@pytest.mark.process
def test_stopped_run_gives_the_terminal_back(shop: Path, written: Callable[..., Path]) -> None:
    """Ctrl-Z and fg: the cursor is there for others, what they wrote stays, and the picture comes again below it."""
    calls = str(written(("wait", {})))
    with window(80, 40) as shown:
        process = subprocess.Popen(
            [sys.executable, "-c", WITH_SLOW_TOOLS, "run", calls, "--workspace", str(shop)],
            stdin=subprocess.DEVNULL,
            stdout=shown.theirs,
            stderr=shown.theirs,
            process_group=0,
        )
        try:
            until(shown, "  ready", process)
            assert shown.cursor_is_hidden
            process.send_signal(signal.SIGTSTP)
            stopped = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            assert stopped is not None
            assert stopped.si_status == signal.SIGTSTP
            assert any("  ready" in row for row in shown.shows())
            assert not shown.cursor_is_hidden
            assert shown.wraps
            os.write(shown.theirs, b"of a shell\r\n")
            process.send_signal(signal.SIGCONT)
            with shown.changed:
                assert shown.changed.wait_for(lambda: shown.cursor_is_hidden, 100)
            rows = until(shown, "  ready", process)
            assert rows.index("of a shell") < max(place for place, row in enumerate(rows) if "  ready" in row)
            process.send_signal(signal.SIGTSTP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            assert not (shown.shows() and shown.cursor_is_hidden)
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGINT)
            assert process.wait(100) == 130
            rows = shown.shows()
            assert not shown.cursor_is_hidden
            assert "of a shell" in rows
            assert "[0] interrupted wait" in rows
        finally:
            process.kill()
            process.wait(100)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_asked_to_end_an_exploration_reports_what_it_saw(
    explored: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As Ctrl-C does, with a code of its own; afterwards the signal does what it did before."""
    number = getattr(signal, name)
    check = _experiment.Experiment.check

    def asking(self: Any, execution: Any, twice: bool = False) -> Any:
        if execution.index == 2:
            signal.raise_signal(number)
        return check(self, execution, twice)

    monkeypatch.setattr(_experiment.Experiment, "check", asking)
    ended = explored("--executions", 50)
    assert ended.code == {"SIGTERM": 143, "SIGHUP": 129}[name]
    assert "INTERRUPTED: sampled(n=3" in ended.out
    assert signal.getsignal(number) is signal.SIG_DFL


def test_what_is_ignored_stays_ignored() -> None:
    """Under nohup a closed terminal ends nothing."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with taken_as_interrupts():
            signal.raise_signal(signal.SIGHUP)
            assert who_interrupts() == "Ctrl-C"
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_first_signal_names_the_end() -> None:
    """Whatever follows; and the next command begins anew."""
    with taken_as_interrupts():
        assert code_of_interrupt() is Exit.INTERRUPTED
        for number in (signal.SIGTERM, signal.SIGHUP):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
        assert (who_interrupts(), code_of_interrupt()) == ("SIGTERM", Exit.TERMINATED)
    with taken_as_interrupts():
        assert who_interrupts() == "Ctrl-C"


@pytest.mark.process
def test_forked_process_ends_by_itself(tmp_path: Path) -> None:
    """One that is told to end does, and says nothing in its parent's name."""
    program = """
import os, signal
from toolrt.cli.screen._signals import before_a_stop, taken_as_interrupts
with taken_as_interrupts():
    before_a_stop(lambda: print("left", flush=True))
    child = os.fork()
    if not child:
        os.setpgid(0, 0)  # a group whose parent is of another one in the session: others are not stopped
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.raise_signal(signal.SIGTSTP)
        signal.raise_signal(signal.SIGTERM)
        os._exit(7)
    print(os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]), flush=True)
    os.kill(child, signal.SIGCONT)
    print(os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM, flush=True)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert ended.stdout == "True\nTrue\n"


def test_nobody_listens_in_another_thread() -> None:
    """Signals are the main thread's."""
    numbers = signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP
    before = [signal.getsignal(number) for number in numbers]
    found: list[object] = []

    def elsewhere() -> None:
        with taken_as_interrupts():
            before_a_stop(lambda: None)
            found.extend(map(signal.getsignal, numbers))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(100)
    assert found == before == [signal.SIG_DFL] * 3
