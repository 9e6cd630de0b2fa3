"""What watching costs: `toolrt run` with its live view, against the same batch that nobody looks at.

    python tests/benchmarks/live_view.py [ROUNDS] [--json]

The terminal is a real pseudo-terminal whose other end is read and thrown away.  Each figure is the median of paired
ratios: both are run one after the other, in turn first, many times.
"""

from __future__ import annotations

import argparse
import os
import pty
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import trio
from _rows import Rows

from toolrt import Registry, Runtime, ToolCall, tool
from toolrt.cli.commands._run import perform
from toolrt.cli.screen._screen import Screen


@tool(safe=True)
async def instant(ctx: Any) -> str:
    """Nothing, at once: all there is, is bookkeeping."""
    return "done"


@tool(safe=True)
async def talking(ctx: Any) -> str:
    """Says how far it is, ten times."""
    for number in range(10):
        ctx.progress({"progress": number, "total": 10})
        await trio.lowlevel.checkpoint()
    return "done"


@tool(safe=True)
async def working(ctx: Any) -> str:
    """About a millisecond of work and one of waiting, as a small file tool has."""
    end = time.perf_counter() + 0.001
    while time.perf_counter() < end:
        pass
    await trio.sleep(0.001)
    return "done"


async def unwatched(calls: list[ToolCall], runtime: Runtime) -> None:
    """The same batch, read by nobody who shows it."""
    async with runtime.open_batch() as batch:
        for call in calls:
            batch.submit(call)
        batch.seal()
        async for _ in batch:
            pass


def seconds(function: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def drained(descriptor: int) -> None:
    """Read what comes, until nobody can write any more."""
    try:
        while os.read(descriptor, 65_536):
            pass
    except OSError:
        return


def main() -> None:
    """Print a line for each kind of call and size of batch."""
    os.environ.pop("CI", None)
    os.environ["TERM"] = "xterm-256color"
    ours, theirs = pty.openpty()
    threading.Thread(target=drained, args=(ours,), daemon=True).start()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--json", action="store_true", help="print each row as a JSON object")
    options = parser.parse_args()
    rounds, rows = options.rounds, Rows(options.json)
    rows.begin("of unwatched", {"calls": ">6,", "kind": "<8", "median": ">8.2f", "lowest": ">8.2f", "highest": ">8.2f"})
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        for kind, size in ((instant, 1_000), (instant, 10_000), (talking, 2_000), (working, 1_000)):
            calls = [ToolCall(str(number), kind.name) for number in range(size)]
            runtime = Runtime(Registry([kind]), limit=10)
            runs = (
                lambda runtime=runtime, calls=calls: trio.run(perform, runtime, calls, Screen(stream)),
                lambda runtime=runtime, calls=calls: trio.run(unwatched, calls, runtime),
            )
            ratios = []
            for number in range(rounds):
                taken = [0.0, 0.0]
                for place in (0, 1) if number % 2 else (1, 0):
                    taken[place] = seconds(runs[place])
                ratios.append(taken[0] / taken[1])
            rows.add(size, kind.name, statistics.median(ratios), min(ratios), max(ratios))


if __name__ == "__main__":
    main()
