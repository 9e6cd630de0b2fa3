"""What a call that changes one key costs, by how many keys the state has.

Run it with ``python -m tests.benchmarks.state [--json]``.  Processor microseconds; a ratio is to ten keys in one run.
"""

from __future__ import annotations

import statistics
import sys
import time

import trio

import toolrt
from tests.benchmarks._rows import Rows
from toolrt import Registry, Runtime, State, ToolCall, ToolContext, ToolOutput

_CALLS, _ROUNDS = 100, 9


@toolrt.tool(safe=True, schema=None)
async def put(ctx: ToolContext, number: int) -> ToolOutput:
    """Reads a key and sets another."""
    seen = ctx.state.get("key 5")
    return ToolOutput(str(seen), modifiers=[lambda state: state.set(f"new {number}", number)])


def main() -> None:
    """Print a row for each size."""
    rows = Rows("--json" in sys.argv)
    rows.begin("state", {"keys": ">10,", "processor us a call": ">22,.1f", "times ten keys": ">16.2f"})
    runtime = Runtime(Registry([put]))
    calls = [ToolCall(str(number), "put", {"number": number}) for number in range(_CALLS)]
    states = {
        size: State({f"key {number}": number for number in range(size)}) for size in (10, 100, 1_000, 10_000, 100_000)
    }
    spent: dict[int, list[float]] = {size: [] for size in states}
    for _ in range(_ROUNDS):
        for size, state in states.items():
            began = time.process_time()
            trio.run(runtime.run, calls, state)
            spent[size].append((time.process_time() - began) / _CALLS * 1e6)
    for size, found in spent.items():
        rows.add(size, statistics.median(found), statistics.median(map(float.__truediv__, found, spent[10])))


if __name__ == "__main__":
    main()
