"""Nothing of an MCP server is left, whatever it does to stay, and no batch waits for that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from tests.plugins.mcp._mcp import OF_PROGRAMS, command_lines, connected, outcome, processes, rough, run
from toolrt import Outcome
from toolrt.plugins import mcp
from toolrt.processes import _supervised

pytestmark = OF_PROGRAMS


@pytest.mark.seldom
@pytest.mark.process
def test_server_that_closes_its_output_and_stays_is_ended() -> None:
    """It says nothing more, so it is of no use."""
    done = outcome(rough({"close_output": True}), ("r__echo", {}))
    assert done.results[0].outcome is Outcome.ERROR


LEFT = {
    "a child": ["sleep 1000 &"],
    "a session of its own": ["setsid sleep 1000 &"],
    "a daemon": ["(setsid sh -c '(setsid sleep 1000 &)' &)"],
    "one that ignores TERM": ["setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 1000; done' &"],
}


@pytest.mark.process
@pytest.mark.parametrize("children", LEFT.values(), ids=LEFT)
def test_nothing_that_a_server_started_is_left(children: list[str]) -> None:
    """Whatever that does to stay; the fixture counts."""
    done = outcome(rough({"children": children}), ("r__echo", {"text": "a"}))
    assert done.results[0].content == "a"


@pytest.mark.seldom
@pytest.mark.process
def test_server_that_ignores_the_end_of_its_input_and_term_is_killed() -> None:
    """And what it started, too; the fixture counts."""
    done = outcome(rough({"children": LEFT["one that ignores TERM"], "stubborn": True}), ("r__echo", {"text": "a"}))
    assert done.results[0].content == "a"


@pytest.mark.process
def test_batch_does_not_wait_for_a_server_that_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that died and left what does not end is cleared away behind the batch's back."""
    monkeypatch.setattr(_supervised, "GRACE", 2.0)
    ready = tmp_path / "ready"

    async def use(tools: mcp.McpTools) -> tuple[Any, list[str]]:
        while not ready.exists():  # before that TERM would end the child at once
            await trio.lowlevel.checkpoint()
        done = await run(tools, ("r__crash", {}))
        # It holds the server's output, and takes two seconds to kill: that is not over when the batch is.
        return done.results[0].outcome, [line for line in command_lines() if line.startswith("sh -c trap")]

    deaf = f"setsid sh -c 'trap \"\" TERM; : > {ready}; while :; do sleep 1000; done' &"
    outcome, left = connected(rough({"children": [deaf]}), use)
    assert outcome is Outcome.ERROR
    assert left


@pytest.mark.seldom
@pytest.mark.process
def test_server_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """When the program is killed, its servers and what they started are not left to themselves."""
    program = (
        "import sys, trio; from toolrt.plugins import mcp\n"
        "async def main():\n"
        "    env = {'TOOLRT_TEST_OWNER': sys.argv[1]}\n"
        "    async with mcp.connect([mcp.McpServer('r', sys.argv[2:], env=env)]):\n"
        "        print('ready', flush=True)\n"
        "        await trio.sleep_forever()\n"
        "trio.run(main)\n"
    )
    before = processes()
    server = rough({"children": ["setsid sleep 1000 &"], "stubborn": True}).command
    command = [sys.executable, "-c", program, str(os.getpid()), *(server or ())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        while len(processes() - before - {process.pid}) < 3:  # one that just forks or execs shows no environment
            os.sched_yield()
        process.kill()
    while processes() - before:
        os.sched_yield()


@pytest.mark.process
def test_new_server_is_started_when_nothing_of_the_old_one_is_left(tmp_path: Path) -> None:
    """Two of them never run side by side."""
    ready = tmp_path / "ready"

    async def use(tools: mcp.McpTools) -> tuple[set[int], Any, set[int]]:
        while not ready.exists():  # until then its child forks and execs, and /proc may show neither
            await trio.lowlevel.checkpoint()
        before = processes()
        done = await run(tools, ("r__crash", {}), ("r__echo", {"text": "a"}))
        return before, done.results[1].content, processes()

    deaf = f"setsid sh -c 'trap \"\" TERM; : > {ready}; while :; do sleep 1000; done' &"
    others = processes()  # multiprocessing keeps a child of its own for as long as this process lives
    before, content, after = connected(rough({"children": [deaf]}), use)
    assert content == "a"
    assert len(before & after - others) == 0
    assert len(before - others) >= 3


@pytest.mark.seldom
@pytest.mark.process
def test_cancel_from_outside_leaves_nothing() -> None:
    """Cancelled while it connects, and while a call runs: both are left, with nothing running."""

    async def main() -> None:
        for seconds in (0.0, 0.02, 0.1):
            with trio.move_on_after(seconds):
                async with mcp.connect([rough({"initialize": "mute"}), rough(name="s")]):
                    raise AssertionError
        with trio.move_on_after(0.5) as scope:
            async with mcp.connect([rough({"stubborn": True})]) as tools:
                await run(tools, ("r__echo", {"seconds": 1000}))
        assert scope.cancelled_caught

    trio.run(main)


@pytest.mark.process
def test_what_the_block_raises_is_raised_as_it_is() -> None:
    """In no group."""

    async def main() -> None:
        async with mcp.connect([rough()]):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trio.run(main)


@pytest.mark.process
def test_what_the_block_raises_is_raised_also_when_it_is_cancelled() -> None:
    """A cancel at the same time does not swallow it."""

    async def main() -> None:
        with trio.CancelScope() as scope:
            async with mcp.connect([rough()]):
                scope.cancel()
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trio.run(main)
