"""Whose word makes a step that reported nothing one that did nothing."""

from __future__ import annotations

import pytest
import trio
from trio.lowlevel import checkpoint

import toolrt
from toolrt import probe, sim


def fine(execution: sim.Execution) -> bool:
    """Say that all is well."""
    return True


def explored(vouched: bool) -> sim.Report:
    """Two tasks of two steps each, of which nothing is reported."""

    async def program() -> None:
        async def work() -> None:
            for _ in range(2):
                if vouched:
                    probe.vouch()
                await checkpoint()
            if vouched:
                probe.vouch()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            nursery.start_soon(work)

    return sim.explore(program, sim.DPOR(), fine)


def test_step_that_is_vouched_for_conflicts_with_nothing() -> None:
    """Two tasks of three steps each: 20 orders for those who know nothing of them, one for those who do."""
    assert explored(vouched=False).claim == "exhaustive(traces=20)"
    assert explored(vouched=True).claim == "exhaustive(traces=1)"


def test_what_is_reported_counts_all_the_same() -> None:
    """A word for a step is none against what it reports."""

    async def program() -> int:
        cell = sim.Cell(0, name="x")

        async def add() -> None:
            seen = cell.get()
            probe.vouch()
            await checkpoint()
            cell.set(seen + 1)
            probe.vouch()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add)
            nursery.start_soon(add)
        return cell.get()

    report = sim.explore(program, sim.DPOR(), fine)
    assert (report.claim, set(report.outcomes)) == ("exhaustive(traces=4)", {1, 2})


def test_word_is_for_one_step() -> None:
    """The step after the next checkpoint is somebody's own to vouch for."""

    async def program() -> str:
        log: list[str] = []

        async def note(name: str) -> None:
            probe.vouch()
            await checkpoint()
            log.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(note, "a")
            nursery.start_soon(note, "b")
        return "".join(log)

    assert set(sim.explore(program, sim.DPOR(), fine).outcomes) == {"ab", "ba"}


@pytest.mark.parametrize("reads", [True, False])
def test_runtime_vouches_for_no_tool(reads: bool) -> None:
    """A tool that keeps something of which it reports nothing is run in every order, whatever the runtime says."""

    async def program() -> str:
        log: list[str] = []

        @toolrt.tool(safe=True)
        async def note(ctx: toolrt.ToolContext, name: str) -> None:
            log.append(name)

        calls = [toolrt.ToolCall(name, "note", {"name": name}) for name in "ab"]
        runtime = toolrt.Runtime(toolrt.Registry([note]))
        if not reads:
            await runtime.run(calls)
        else:
            async with runtime.open_batch() as batch:
                for call in calls:
                    batch.submit(call)
                batch.seal()
                async for _ in batch:
                    pass
        return "".join(log)

    report = sim.explore(program, sim.DPOR(), fine)
    assert report.verdict is sim.PASS
    assert set(report.outcomes) == {"ab", "ba"}


def test_word_outside_a_simulation_is_no_harm() -> None:
    """Nobody asks."""
    probe.vouch()
    assert probe.implied is None
    # A failure has nothing run after it.
    sim.explore(checkpoint, sim.DPOR(), lambda execution: False)
    assert probe.implied is None
