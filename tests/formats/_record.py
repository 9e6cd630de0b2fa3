"""Writes one small file of each format: what later versions have to read.

    python -m tests.formats._record VERSION

The files of a version are never written again: they say what that version wrote.  A new version has its own folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import trio

from toolrt import Registry, Runtime, ToolCall, sim
from toolrt.cli.experiment._experiment import Experiment
from toolrt.cli.experiment._failure import FailureFile
from toolrt.cli.experiment._roots import roots_of
from toolrt.interop import parse_response
from toolrt.model import tool
from toolrt.testing._saved import ScheduleDirectory

RECORDED = Path(__file__).parent / "recorded"
#: The test that the kept failure belongs to.
TEST = "test_deposit.py::test_no_deposit_is_lost"
#: Two calls of one file: the second has to see what the first wrote.
RESPONSE = json.dumps(
    [
        {"name": "edit_file", "input": {"path": "prices.txt", "old": "2.10", "new": "2.30"}},
        {"name": "edit_file", "input": {"path": "prices.txt", "old": "7.50", "new": "7.90"}},
    ]
)


async def lost_update() -> int:
    """Two tasks add 1 to one number, and look at it too early."""
    value = 0

    async def add() -> None:
        nonlocal value
        seen = value
        await trio.lowlevel.checkpoint()
        value = seen + 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    return value


async def batch() -> list[str]:
    """Two calls in one lane; the second reports progress."""

    @tool(schema=None, safe=True)
    async def greet(ctx):  # type: ignore[no-untyped-def]
        ctx.progress("soon")
        await trio.sleep(1)
        return "hello"

    outcome = await Runtime(Registry([greet])).run([ToolCall("call-0", "greet"), ToolCall("call-1", "greet")])
    return [result.content for result in outcome.results]


def shop(directory: Path) -> Path:
    """Make the workspace that the replay file is of."""
    directory.mkdir()
    (directory / "prices.txt").write_text("tea 2.10\nmug 7.50\n", encoding="utf-8")
    return directory


def write(target: Path, scratch: Path) -> None:
    """Write every file into `target`."""
    target.mkdir()
    report = sim.explore(lost_update, check=lambda execution: execution.value == 2)
    schedule = report.failures[0].schedule
    (target / "schedule.json").write_text(schedule.to_json() + "\n", encoding="utf-8")
    ScheduleDirectory(target / "failures").add(TEST, schedule.short)
    trace = sim.run(batch, policy=sim.RandomWalk(seed=3)).trace
    (target / "trace.json").write_text(trace.to_json() + "\n", encoding="utf-8")
    experiment = Experiment.on(
        roots_of(str(shop(scratch / "shop")), []), parse_response(RESPONSE).calls, "by_claims", 10
    )
    execution = sim.run(experiment.program, policy=sim.RandomWalk(seed=3))
    kept = FailureFile(
        "response.json", RESPONSE, "/gone", experiment.tree_digest, "by_claims", 10, execution.schedule, ()
    )
    (target / "replay.json").write_text(kept.to_json() + "\n", encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        write(RECORDED / sys.argv[1], Path(made))
