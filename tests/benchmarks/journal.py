"""What a journal costs each call, and what stores of two records a call cost by themselves.

Run it with ``python -m tests.benchmarks.journal [--json]``.  It writes below ``$TMPDIR``, and the figures are those of
the disk there: processor microseconds are what compares, elapsed ones include the disk's own.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import trio

import toolrt
from tests.benchmarks._rows import Rows
from toolrt import READ, WRITE, Claim, Registry, Runtime, ToolCall, ToolContext
from toolrt.store import MemoryRecords
from toolrt.store._records import Bounds
from toolrt.store._sqlite import SqliteRecords

_CALLS, _ROUNDS = 100, 15
_TEXT = "x" * 1000


@toolrt.tool(claims=[Claim("a", READ)], schema=None)
async def look(ctx: ToolContext) -> str:
    """Overlaps its neighbours."""
    return _TEXT


@toolrt.tool(claims=[Claim("a", WRITE)], schema=None)
async def change(ctx: ToolContext) -> str:
    """Waits for the one before it."""
    return _TEXT


_REGISTRY = Registry([look, change])


def _appended(directory: Path) -> Callable[[int], None]:
    """A log that is appended to and synced, as the segments of a workspace's history are."""
    descriptor = os.open(directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def commit(number: int) -> None:
        os.write(descriptor, _TEXT.encode() + b"\n")
        os.fdatasync(descriptor)

    return commit


def _in_sqlite(directory: Path) -> Callable[[int], None]:
    store = SqliteRecords(str(directory / "db"))
    store.begin("b", "{}", Bounds(1000, 1 << 30))
    return lambda number: store.commit([("b", _TEXT)])


def _measured(rows: Rows, name: str, count: int, round_of: Callable[[], None]) -> None:
    elapsed, spent = [], []
    for _ in range(_ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        round_of()
        elapsed.append((time.perf_counter() - wall) / count * 1e6)
        spent.append((time.process_time() - cpu) / count * 1e6)
    rows.add(name, statistics.median(spent), statistics.median(elapsed))


def main() -> None:
    """Print a table of stores, and one of batches."""
    rows = Rows("--json" in sys.argv)
    columns = {"processor us": ">14,.0f", "elapsed us": ">12,.0f"}
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        rows.begin("stores", {"one record of 1,000 bytes": "<32", **columns})
        for store, opened in (("appended and synced", _appended), ("SQLite, FULL", _in_sqlite)):
            commit = opened(directory)
            _measured(rows, store, _CALLS, lambda commit=commit: [commit(i) for i in range(_CALLS)] and None)  # type: ignore[misc]
        rows.begin("batches", {f"a batch of {_CALLS} calls, for each": "<32", **columns})
        for tool in ("look", "change"):
            for kind, journal in (
                ("no journal", None),
                ("in memory", toolrt.Journal(MemoryRecords())),
                ("SQLite", toolrt.Journal(directory / "journal.db", keep=5)),
            ):
                runtime = Runtime(_REGISTRY, journal=journal)
                calls = [ToolCall(str(index), tool, {}) for index in range(_CALLS)]
                _measured(rows, f"{tool}: {kind}", _CALLS, lambda: trio.run(runtime.run, calls) and None)  # noqa: B023


if __name__ == "__main__":
    main()
