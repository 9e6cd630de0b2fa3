"""What `toolrt serve` keeps, many times over: ``python -m tests.benchmarks.serve [--times 200] [--calls 100000]``.

Ten raw lines that edit one file are sent in one piece to a server process, `--times` times; then `--calls` calls go
through one connection in this process, in bursts of 100, and what the process keeps is looked at on the way.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import trio

from tests.plugins.mcp._host import HELLO, call, edits, lines, served
from toolrt import Registry, Runtime, tool


def edits_in_order(times: int) -> int:
    """How many of `times` connections left what the ten edits leave in their order, each of them reported as done."""
    kept = 0
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "a.txt"
        for _ in range(times):
            file.write_text("<0>")
            done = subprocess.run(
                [sys.executable, "-m", "toolrt", "serve", "--mcp", "--workspace", directory],
                input=lines([HELLO, *edits("a.txt", 10)]),
                capture_output=True,
                check=True,
            )
            answers = [json.loads(line)["result"] for line in done.stdout.splitlines()]
            kept += file.read_text() == "<10>" and not any(one.get("isError") for one in answers) and len(answers) == 11
    return kept


async def many(calls: int) -> None:
    """Print seconds and memory while `calls` calls go through one connection."""

    @tool(safe=True)
    async def echo(ctx: Any, text: str) -> str:
        await trio.lowlevel.checkpoint()
        return text

    async with served(Runtime(Registry([echo]))) as host:
        began = time.perf_counter()
        for first in range(0, calls, 100):
            await host.send(*(call(n, "echo", text="x") for n in range(first, first + 100)))
            await host.take(100)
            if first % (calls // 5) == 0:
                gc.collect()
                size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                seconds = time.perf_counter() - began
                print(
                    f"{first + 100:,} calls, {seconds:.1f} s, {len(gc.get_objects()):,} objects, at most {size:,} KiB"
                )


def main() -> None:
    """Measure, and print."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--times", type=int, default=200)
    arguments.add_argument("--calls", type=int, default=100_000)
    given = arguments.parse_args()
    print(f"ten edits in order: {edits_in_order(given.times)} of {given.times}")
    trio.run(many, given.calls)


if __name__ == "__main__":
    main()
