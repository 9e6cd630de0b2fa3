"""Ctrl-C: the batch is cancelled, every result is printed as it was, and the exit code is 130."""

import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from toolrt import Outcome, Registry, Runtime, ToolCall, invariants, sim, tool
from toolrt.cli.commands._run import perform
from toolrt.cli.experiment import _experiment
from toolrt.cli.screen._screen import Screen

#: ``toolrt run`` with two more tools: one that waits until it is cancelled, and one that never ends.
WITH_SLOW_TOOLS = """
import sys, trio
from toolrt import tool
from toolrt.cli import main
from toolrt.workspace import Workspace

@tool(safe=True)
async def wait(ctx):
    ctx.progress("ready")
    await trio.sleep_forever()

@tool(safe=True)
async def hang(ctx):
    ctx.progress("ready")
    with trio.CancelScope(shield=True):
        await trio.sleep_forever()

files = Workspace.tools
Workspace.tools = lambda self: [*files(self), wait, hang]
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own; it is killed if the test fails."""
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_SLOW_TOOLS, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def interrupt_after(process: subprocess.Popen[str], stream: Any, text: str) -> str:
    """Send Ctrl-C once a line has `text` in it, and give what was printed so far."""
    seen = []
    for line in stream:
        seen.append(line)
        if text in line:
            process.send_signal(signal.SIGINT)
            return "".join(seen)
    raise AssertionError(f"{text!r} never came: {seen}")


@pytest.mark.seldom
@pytest.mark.process
def test_interrupted_run_prints_every_result_truthfully(shop: Path, written: Callable[..., Path]) -> None:
    """What had ended is OK, what ran is interrupted, what had not begun was not started."""
    calls = written(
        ("read_file", {"path": "README.md"}), ("wait", {}), ("write_file", {"path": "new.txt", "content": "x"})
    )
    # One at a time, so that the first has ended when the second is ready.
    with running("run", calls, "--workspace", shop, "--lanes", "by_safety", "--limit", "1") as process:
        interrupt_after(process, process.stdout, "ready")
        printed, complaint = process.communicate(timeout=100)
    results = printed.split("\n\n", 1)[1]
    assert re.findall(r"^\[(\d)\] (\w+)", results, re.MULTILINE) == [
        ("0", "ok"),
        ("1", "interrupted"),
        ("2", "not_started"),
    ]
    assert (process.returncode, complaint) == (130, "")
    assert not (shop / "new.txt").exists()


@pytest.mark.seldom
@pytest.mark.process
def test_interrupted_run_still_writes_its_trace(shop: Path, tmp_path: Path, written: Callable[..., Path]) -> None:
    """And the trace says how it ended."""
    target = tmp_path / "trace.json"
    with running("run", written(("wait", {})), "--workspace", shop, "--trace", target) as process:
        interrupt_after(process, process.stdout, "ready")
        process.communicate(timeout=100)
    assert json.loads(target.read_text())["meta"]["ended"] == "interrupted"


@pytest.mark.seldom
@pytest.mark.process
def test_second_interrupt_gives_up_on_what_does_not_end(shop: Path, written: Callable[..., Path]) -> None:
    """The call that still runs is named as such."""
    calls = written(("read_file", {"path": "README.md"}), ("hang", {}))
    # One at a time, so that the first has ended when the second is ready.
    with running("run", calls, "--workspace", shop, "--limit", "1") as process:
        interrupt_after(process, process.stdout, "ready")
        interrupt_after(process, process.stdout, "Ctrl-C again")
        printed, _ = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "[0] read_file README.md: ok" in printed
    assert "[1] hang: still running, given up" in printed


def test_perform_turns_the_signal_into_a_cancel() -> None:
    """In one process: the signal comes while a tool runs."""

    @tool(safe=True)
    async def press(ctx: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        await trio.sleep_forever()

    performed = trio.run(perform, Runtime(Registry([press])), [ToolCall("a", "press")], Screen(io.StringIO()))
    assert performed.interrupted
    assert [result.outcome for result in performed.results] == [Outcome.INTERRUPTED]


def test_interrupted_explore_reports_what_it_saw(explored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sample is cut short, and says so."""
    check = _experiment.Experiment.check

    def pressing(self: Any, execution: Any, twice: bool = False) -> Any:
        if execution.index == 2:
            signal.raise_signal(signal.SIGINT)
        return check(self, execution, twice)

    monkeypatch.setattr(_experiment.Experiment, "check", pressing)
    before = signal.getsignal(signal.SIGINT)
    ended = explored("--executions", 50)
    assert ended.code == 130
    assert "INTERRUPTED: sampled(n=3" in ended.out
    assert "the sample is smaller than asked for" in ended.out
    assert signal.getsignal(signal.SIGINT) is before


def test_interrupted_search_for_a_simpler_schedule_keeps_the_one_that_was_found(
    explored: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure is never lost to impatience."""

    def pressed(self: Any) -> Any:
        raise KeyboardInterrupt

    def complaining(self: Any, execution: Any, twice: bool = False) -> Any:
        return [invariants.Violation("mine", "My law holds.", "it does not")]

    monkeypatch.setattr(sim.Failure, "minimal", property(pressed))
    monkeypatch.setattr(_experiment.Experiment, "check", complaining)
    path = tmp_path / "failure.json"
    ended = explored("--executions", 2, "--save", path)
    assert ended.code == 130
    assert "My law holds." in ended.out
    assert json.loads(path.read_text())["toolrt_replay"] == 1


def test_interrupt_elsewhere_ends_without_a_traceback(toolrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """``toolrt laws`` has nothing to report half done."""

    def pressed(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolrt.invariants.table", pressed)
    ended = toolrt("laws")
    assert (ended.code, ended.err) == (130, "toolrt: interrupted\n")
