"""System tasks and callbacks run beside the program's tasks: no strategy passes such a program."""

from __future__ import annotations

import pathlib

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim

pytest_plugins = ["pytester"]

STRATEGIES = [
    None,
    sim.Exhaustive(),
    sim.Bounded(2),
    sim.DPOR(),
    sim.Random(sim.RandomWalk(1), 20),
    sim.Random(sim.PCT(2, 1), 20),
    sim.Random(sim.Fifo(), 3),
    sim.Portfolio(20),
]


async def _refreshed() -> str:
    token = ["old"]

    async def refresh() -> None:
        await checkpoint()
        token[0] = "new"

    trio.lowlevel.spawn_system_task(refresh)
    await checkpoint()
    await checkpoint()
    return token[0]


async def _called_back() -> int:
    seen = [0]
    trio.lowlevel.current_trio_token().run_sync_soon(seen.append, 1)
    await checkpoint()
    return len(seen)


async def _called_back_once() -> int:
    seen = [0]
    trio.lowlevel.current_trio_token().run_sync_soon(seen.clear, idempotent=True)
    await checkpoint()
    return len(seen)


async def _dropped_generator() -> int:
    closed = [0]

    async def numbers():
        try:
            yield 1
        finally:
            closed[0] = 1

    generator = numbers()
    await anext(generator)
    del generator
    await checkpoint()
    return closed[0]


async def _left_at_once() -> None:  # noqa: ASYNC124
    trio.lowlevel.spawn_system_task(checkpoint)


PROGRAMS = [_refreshed, _called_back, _called_back_once, _dropped_generator, _left_at_once]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_issue8_25_no_strategy_passes_what_runs_beside_the_program(program, strategy) -> None:
    """The verdict is INCONCLUSIVE, nothing is complete, and the report names what ran."""
    report = sim.explore(program, strategy)
    assert report.verdict is sim.INCONCLUSIVE
    assert not report.complete
    assert not report.claim.startswith(("exhaustive", "bounded"))
    assert "ran beside the program's tasks" in str(report)
    name = "refresh" if program is _refreshed else "run_sync_soon" if program in PROGRAMS[1:3] else ""
    assert name in str(report.unfinished)


@pytest.mark.process
@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR(), sim.Portfolio(20)], ids=str)
def test_issue8_25_neither_does_a_divided_search(strategy, tmp_path: pathlib.Path) -> None:
    """With two processes, and with a checkpoint, it is the same."""
    assert sim.explore(_refreshed, strategy, jobs=2).verdict is sim.INCONCLUSIVE
    report = sim.explore(_refreshed, strategy, checkpoint=tmp_path / "kept")
    assert report.verdict is sim.INCONCLUSIVE
    assert "the system task" in str(report.unfinished)


def test_issue8_25_a_failure_is_still_a_failure() -> None:
    """What a schedule has shown is not lost."""
    assert sim.explore(_refreshed, sim.Exhaustive(), lambda execution: False).verdict is sim.FAIL


def test_issue8_25_a_program_without_them_passes() -> None:
    """Trio's own system tasks, and those of earlier executions, are no reason."""
    trio_only = trio.sleep_forever

    async def program() -> None:
        with trio.move_on_after(1):
            await trio_only()

    for strategy in STRATEGIES:
        assert sim.explore(program, strategy).verdict is sim.PASS


@pytest.mark.process
def test_issue8_25_the_marker_says_what_to_do(pytester: pytest.Pytester) -> None:
    """A marked test with a system task is no pass, and more executions are not the advice."""
    pytester.makepyfile(
        """
        import pytest, trio

        @pytest.mark.explore(strategy="exhaustive")
        async def test_it():
            trio.lowlevel.spawn_system_task(trio.lowlevel.checkpoint)
            await trio.lowlevel.checkpoint()
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--explore-database", "kept")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the system task *checkpoint ran beside*"])
    assert "More executions" not in result.stdout.str()
