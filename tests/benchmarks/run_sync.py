"""What `run_sync` costs: from the main thread, from another thread, from eight at once.

Run it with ``python -m tests.benchmarks.run_sync``.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

import trio

from toolrt import Registry, Runtime, ToolCall, ToolContext, run_sync, tool

_CALLS = 300
_THREADS = 8


@tool(safe=True)
async def nap(ctx: ToolContext) -> None:
    """A conversation of 0.1 s."""
    await trio.sleep(0.1)


@tool(safe=True)
async def quick(ctx: ToolContext) -> None:
    """No work at all."""


_RUNTIME = Runtime(Registry([nap, quick]))


def _call(name: str) -> None:
    run_sync(_RUNTIME, [ToolCall("a", name)])


def _in_threads(count: int, body: Callable[[], None]) -> None:
    threads = [threading.Thread(target=body) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Print a line for each measurement."""
    seconds: list[float] = []

    def in_a_row() -> None:
        for _ in range(_CALLS):
            start = time.perf_counter()
            _call("quick")
            seconds.append(time.perf_counter() - start)

    _call("quick")
    start = time.perf_counter()
    _in_threads(_THREADS, lambda: _call("nap"))
    print(f"{_THREADS} threads, 0.1 s each: {time.perf_counter() - start:.2f} s")
    in_a_row()
    print(f"one call from the main thread: {1e3 * statistics.median(seconds):.2f} ms")
    seconds.clear()
    _in_threads(1, in_a_row)
    print(f"one call from another thread: {1e3 * statistics.median(seconds):.2f} ms")
    start = time.process_time()
    _in_threads(_THREADS, in_a_row)
    spent = (time.process_time() - start) / (_THREADS * _CALLS)
    print(f"one call of {_THREADS} threads at once: {1e3 * spent:.2f} ms of processor time")


if __name__ == "__main__":
    main()
