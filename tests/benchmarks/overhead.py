"""What a batch costs per call, as a ratio to a bare Trio nursery in the same process.

Run it as ``python tests/benchmarks/overhead.py``.  Each row pairs a batch of no-op calls with a nursery that
starts the same number of no-op tasks, in turn, many times, and gives medians of processor time, which other programs
on the machine disturb least.  Garbage collection is as Python sets it.  Then come the functions that are called for
each call, which nothing disturbs, and the bytes that Python allocates for each call that waits.  ``--json`` prints the
rows as JSON lines; ``--quick`` takes fewer rounds.

The bounds are what stands after decision 166, and some room for noise: OVER says that the core became slower.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio
import trio.testing

import toolrt

Timed = Callable[[], Awaitable[float]]


@toolrt.tool(safe=True)
async def noop(ctx: toolrt.ToolContext) -> None:
    """Nothing at all."""


def _one_file(input: Mapping[str, Any], state: toolrt.State) -> list[toolrt.Claim]:
    return [toolrt.Claim(("file", "one"), toolrt.WRITE)]


def _own_file(input: Mapping[str, Any], state: toolrt.State) -> list[toolrt.Claim]:
    return [toolrt.Claim(("file", input["name"]), toolrt.WRITE)]


@toolrt.tool(claims=_one_file)
async def one_file(ctx: toolrt.ToolContext) -> None:
    """Nothing, on the one file that every call claims."""


@toolrt.tool(claims=_own_file)
async def own_file(ctx: toolrt.ToolContext, name: str) -> None:
    """Nothing, on a file of its own."""


@toolrt.tool
async def exclusive(ctx: toolrt.ToolContext) -> None:
    """Nothing, alone."""


REGISTRY = toolrt.Registry([noop, one_file, own_file, exclusive])

#: name, tool, lane policy, the most that the ratio may be for any number of calls.
ROWS: list[tuple[str, str, Any, float]] = [
    ("safe, by_claims", "noop", toolrt.by_claims, 3.0),
    ("safe, by_safety", "noop", toolrt.by_safety, 3.0),
    ("one file for all", "one_file", toolrt.by_claims, 6.8),
    ("one file each", "own_file", toolrt.by_claims, 5.2),
    ("all exclusive", "exclusive", toolrt.by_claims, 7.2),
]


async def _bare() -> None:
    pass


def nursery(n: int) -> Timed:
    """The baseline: one nursery, `n` tasks that do nothing."""

    async def timed() -> float:
        began = time.thread_time()
        async with trio.open_nursery() as tasks:
            for _ in range(n):
                tasks.start_soon(_bare)
        return time.thread_time() - began

    return timed


def batch(tool: str, policy: Any, n: int, limit: int | None) -> Timed:
    """A batch of `n` calls of `tool`."""
    runtime = toolrt.Runtime(REGISTRY, lanes=policy, limit=limit)
    inputs = [{"name": str(i)} if tool == "own_file" else {} for i in range(n)]
    calls = [toolrt.ToolCall(str(i), tool, input) for i, input in enumerate(inputs)]
    state = toolrt.State()

    async def timed() -> float:
        began = time.thread_time()
        done = await runtime.run(calls, state)
        took = time.thread_time() - began
        assert all(result.ok for result in done.results)
        return took

    return timed


async def paired(ours: Timed, theirs: Timed, rounds: int) -> tuple[float, float, float]:
    """Medians of both and of the ratio, taken in turn."""
    for _ in range(3):
        await ours()
        await theirs()
    mine, bare = [], []
    for _ in range(rounds):
        bare.append(await theirs())
        mine.append(await ours())
    ratios = [a / b for a, b in zip(mine, bare, strict=True)]
    return statistics.median(mine), statistics.median(bare), statistics.median(ratios)


async def measure(sizes: list[int], quick: bool, emit: Callable[[dict[str, Any]], None]) -> None:
    for name, tool, policy, most in ROWS:
        for n in sizes:
            rounds = max(7, min(400, 20000 // n)) // (4 if quick else 1) + 3
            mine, bare, ratio = await paired(batch(tool, policy, n, 10), nursery(n), rounds)
            emit(
                {
                    "row": name,
                    "n": n,
                    "us_per_call": mine / n * 1e6,
                    "nursery_us": bare / n * 1e6,
                    "ratio": ratio,
                    "most": most,
                }
            )


async def function_calls(timed: Timed) -> int:
    """How many functions `timed` calls, those written in C included."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    await timed()
    sys.setprofile(profile)
    try:
        await timed()
    finally:
        sys.setprofile(None)
    return count


@toolrt.tool(safe=True)
async def blocked(ctx: toolrt.ToolContext) -> None:
    """Waits until it is cancelled."""
    await trio.sleep_forever()


async def bytes_per_waiting_call(tool: str, n: int) -> float:
    """What Python allocates for each of `n` calls of `tool` that wait for the one slot."""
    runtime = toolrt.Runtime(toolrt.Registry([blocked, noop, own_file]), limit=1)
    calls = [toolrt.ToolCall(str(i), tool, {"name": str(i)} if tool == "own_file" else {}) for i in range(n)]
    async with runtime.open_batch() as batch:
        batch.submit(toolrt.ToolCall("first", "blocked", {}))
        await trio.testing.wait_all_tasks_blocked()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for call in calls:
            batch.submit(call)
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        batch.cancel("measured")
    return (after - before) / n


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print rows as JSON lines")
    parser.add_argument("--quick", action="store_true", help="a quarter of the rounds")
    parser.add_argument("--sizes", default="1,10,100,1000,10000", help="numbers of calls, by commas")
    options = parser.parse_args()

    def emit(row: dict[str, Any]) -> None:
        if options.json:
            print(json.dumps(row), flush=True)
            return
        if "functions" in row:
            told = f"{row['functions']:>9.1f} functions for each call, {row['bare']:.1f} of them by a nursery"
            print(f"{row['row']:18} {row['n']:>6} {told}", flush=True)
            return
        if "bytes" in row:
            print(f"{row['row']:18} {row['n']:>6} {row['bytes']:>9.0f} bytes for each call that waits", flush=True)
            return
        met = "ok" if row["ratio"] <= row["most"] else "OVER"
        print(
            f"{row['row']:18} {row['n']:>6} {row['us_per_call']:>9.1f} {row['nursery_us']:>9.1f} "
            f"{row['ratio']:>7.2f} {row['most']:>7.1f}  {met}",
            flush=True,
        )

    if not options.json:
        print(f"{'calls':18} {'n':>6} {'us/call':>9} {'nursery':>9} {'ratio':>7} {'most':>7}")
    trio.run(measure, [int(size) for size in options.sizes.split(",")], options.quick, emit)
    for name, tool, policy, _ in ROWS:
        for n in (1, 100):
            mine, bare = (trio.run(function_calls, each) / n for each in (batch(tool, policy, n, 10), nursery(n)))
            emit({"row": name, "n": n, "functions": mine, "bare": bare})
    for name, tool in (("safe, waiting", "noop"), ("one file each", "own_file")):
        emit({"row": name, "n": 1000, "bytes": trio.run(bytes_per_waiting_call, tool, 1000)})


if __name__ == "__main__":
    main()
