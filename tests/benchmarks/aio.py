"""What a call costs when asyncio awaits the batch, against the same batch in native Trio, in one process.

Run it as ``python -m tests.benchmarks.aio``.  Each row gives the least processor time of a call over many batches, its
ratio to native Trio, and what `asyncio.gather` of the same functions costs.  ``--quick`` takes fewer batches,
``--json`` prints the rows as JSON lines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from toolrt import Registry, Runtime, ToolCall, aio, tool


@tool(safe=True)
async def on_trio(ctx: Any) -> None:
    """One checkpoint."""
    await trio.lowlevel.checkpoint()


@aio.tool(safe=True)
async def on_asyncio(ctx: Any) -> None:
    """One turn of the event loop."""
    await asyncio.sleep(0)


async def gathered(count: int) -> None:
    """What a program without a runtime writes: no checks, no order, no results of failures."""
    await asyncio.gather(*(asyncio.sleep(0) for _ in range(count)))


RUNTIME = Runtime(Registry([on_trio, on_asyncio]), limit=None)


async def least(batch: Callable[[], Awaitable[Any]], rounds: int) -> float:
    """Seconds of processor time that the quickest of `rounds` batches takes."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        await batch()
        times.append(time.process_time() - began)
    return min(times)


def rows(rounds: int) -> list[dict[str, Any]]:
    """One row for each number of calls: microseconds a call, and ratios to native Trio."""
    found = []
    for count in (1, 10, 100, 1000):
        native = [ToolCall(str(index), "on_trio") for index in range(count)]
        other = [ToolCall(str(index), "on_asyncio") for index in range(count)]
        trio_alone = trio.run(least, lambda calls=native: RUNTIME.run(calls), rounds)
        trio_tools = asyncio.run(least(lambda calls=native: aio.run(RUNTIME, calls), rounds))
        asyncio_tools = asyncio.run(least(lambda calls=other: aio.run(RUNTIME, calls), rounds))
        bare = asyncio.run(least(lambda count=count: gathered(count), rounds))
        found.append(
            {
                "calls": count,
                "native_us": round(trio_alone / count * 1e6, 1),
                "trio_tools": round(trio_tools / trio_alone, 2),
                "asyncio_tools": round(asyncio_tools / trio_alone, 2),
                "gather_us": round(bare / count * 1e6, 1),
            }
        )
    return found


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer batches")
    parser.add_argument("--json", action="store_true", help="rows as JSON lines")
    options = parser.parse_args()
    for row in rows(5 if options.quick else 60):
        if options.json:
            print(json.dumps(row))
        else:
            print(
                f"{row['calls']:5} calls: native Trio {row['native_us']:6.1f} us a call; through asyncio "
                f"{row['trio_tools']:.2f} times (Trio tools), {row['asyncio_tools']:.2f} times (asyncio tools); "
                f"gather {row['gather_us']:5.1f} us"
            )


if __name__ == "__main__":
    main()
