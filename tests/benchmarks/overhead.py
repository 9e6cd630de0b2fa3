"""What a batch costs per call, as a ratio to a bare Trio nursery in the same process.

Run it as ``python tests/benchmarks/overhead.py``.  Each row pairs a batch of no-op calls with a nursery that
starts the same number of no-op tasks, in turn, many times, and gives medians.  Garbage collection is as Python
sets it.  ``--json`` prints the rows as JSON lines; ``--quick`` takes fewer rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

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

#: name, tool, lane policy, wanted ratio by number of calls.
ROWS: list[tuple[str, str, Any, Callable[[int], float]]] = [
    ("safe, by_claims", "noop", toolrt.by_claims, lambda n: 3.0 if n <= 1000 else 3.5),
    ("safe, by_safety", "noop", toolrt.by_safety, lambda n: 3.0 if n <= 1000 else 3.5),
    ("one file for all", "one_file", toolrt.by_claims, lambda n: 4.0),
    ("one file each", "own_file", toolrt.by_claims, lambda n: 4.0),
    ("all exclusive", "exclusive", toolrt.by_claims, lambda n: 6.0),
]


async def _bare() -> None:
    pass


def nursery(n: int) -> Timed:
    """The baseline: one nursery, `n` tasks that do nothing."""

    async def timed() -> float:
        began = time.perf_counter()
        async with trio.open_nursery() as tasks:
            for _ in range(n):
                tasks.start_soon(_bare)
        return time.perf_counter() - began

    return timed


def batch(tool: str, policy: Any, n: int, limit: int | None) -> Timed:
    """A batch of `n` calls of `tool`."""
    runtime = toolrt.Runtime(REGISTRY, lanes=policy, limit=limit)
    inputs = [{"name": str(i)} if tool == "own_file" else {} for i in range(n)]
    calls = [toolrt.ToolCall(str(i), tool, input) for i, input in enumerate(inputs)]
    state = toolrt.State()

    async def timed() -> float:
        began = time.perf_counter()
        done = await runtime.run(calls, state)
        took = time.perf_counter() - began
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
    for name, tool, policy, wanted in ROWS:
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
                    "wanted": wanted(n),
                }
            )


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
        met = "ok" if row["ratio"] <= row["wanted"] else "OVER"
        print(
            f"{row['row']:18} {row['n']:>6} {row['us_per_call']:>9.1f} {row['nursery_us']:>9.1f} "
            f"{row['ratio']:>7.2f} {row['wanted']:>7.1f}  {met}",
            flush=True,
        )

    if not options.json:
        print(f"{'calls':18} {'n':>6} {'us/call':>9} {'nursery':>9} {'ratio':>7} {'wanted':>7}")
    trio.run(measure, [int(size) for size in options.sizes.split(",")], options.quick, emit)


if __name__ == "__main__":
    main()
