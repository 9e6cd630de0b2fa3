"""What one change costs in history: appended segments against one SQLite database, in turn on one machine.

Run it as ``python tests/benchmarks/history.py``.  Decision 058 has the figures.

The first table is the store alone: one change that is begun and ended, with two contents of 10 KiB, one of them new to
the store.  The second is `edit_file` on files of 10 KiB through the whole runtime, as a ratio to the plain loop of
`files.py`, which makes the same system calls.  Rounds of all variants are taken in turn, each on a fresh directory;
medians are given, of processor time (of all threads; user and system) and of elapsed time, in microseconds a change.

`DatabaseStore` is the alternative that decision 058 weighs: one SQLite database in WAL mode with the rows and the
contents, one transaction a change.  A transaction writes the change that begins together with how earlier changes
ended; when no change is under way the ends are written at once.  It has what a batch of edits needs, and no more.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[2]))


import toolrt
import toolrt.workspace._workspace as opening
from tests.benchmarks import files
from toolrt.workspace.change._mutation import digest_of
from toolrt.workspace.change._version import ChangeRow, EntryState
from toolrt.workspace.disk._disk import Kind
from toolrt.workspace.journal._history_store import HistoryStore

#: 10 KiB in lines of 40 bytes.
TEXT = "".join(f"line {number:03} of a file of ordinary size\n" for number in range(280))

_TABLES = """
CREATE TABLE IF NOT EXISTS rows (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, serial INTEGER NOT NULL, stands INTEGER NOT NULL,
    batch TEXT NOT NULL, key TEXT NOT NULL, target_key TEXT, said TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS rows_by_key ON rows (key);
CREATE INDEX IF NOT EXISTS rows_by_target ON rows (target_key) WHERE target_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS rows_by_batch ON rows (batch);
CREATE INDEX IF NOT EXISTS rows_pending ON rows (session, serial) WHERE stands = 0;
CREATE TABLE IF NOT EXISTS contents (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, content BLOB NOT NULL);
"""


class DatabaseStore:
    """History in one SQLite database: the part of `ChangeStore` that a batch of edits uses."""

    blocks = True
    problem = None

    def __init__(self, directory: str, synchronous: str, page: int = 4096) -> None:
        os.makedirs(directory, exist_ok=True)
        connection = sqlite3.connect(f"{directory}/history.db", isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA page_size = {page}")
        connection.execute("PRAGMA busy_timeout = 100")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.executescript(_TABLES)
        self._connection = connection
        self._lock = threading.Lock()
        self._session = os.urandom(8).hex()
        self._serial = self._open = self._groups = 0
        self._ended: deque[tuple[int, bool]] = deque()
        self._known: set[bytes] = set()
        self._used: dict[str, tuple[int, int]] = {}

    def new_group(self) -> str:
        self._groups += 1
        return f"{self._session}-{self._groups}"

    def begin(self, rows: Sequence[ChangeRow], contents: Mapping[bytes, bytes]) -> object:
        with self._lock:
            self._serial += 1
            fresh = [(digest, content) for digest, content in contents.items() if digest not in self._known]
            values = [
                (
                    self._session,
                    self._serial,
                    files.json.dumps(row.batch_id),
                    files.json.dumps(row.key),
                    None if row.target_key is None else files.json.dumps(row.target_key),
                    files.json.dumps(row.to_json()),
                )
                for row in rows
            ]
            execute, keep = self._connection.execute, self._connection.executemany
            execute("BEGIN IMMEDIATE")
            self._write_ends([])
            keep("INSERT OR IGNORE INTO contents (digest, content) VALUES (?, ?)", fresh)
            keep(
                "INSERT INTO rows (session, serial, stands, batch, key, target_key, said) VALUES (?, ?, 0, ?, ?, ?, ?)",
                values,
            )
            execute("COMMIT")
            self._open += 1
            self._known.update(digest for digest, _ in fresh)
            count, size = self._used.get(rows[0].batch_id, (0, 0))
            self._used[rows[0].batch_id] = count + len(rows), size + sum(len(content) for _, content in fresh)
            return self._serial

    def _write_ends(self, more: Sequence[int]) -> None:
        ended = [(serial, True) for serial in more]
        while self._ended:
            ended.append(self._ended.popleft())
        if ended:
            one = "WHERE session = ? AND serial = ? AND stands = 0"
            keep = self._connection.executemany
            keep(f"UPDATE rows SET stands = 1 {one}", [(self._session, serial) for serial, landed in ended if landed])
            void = [(self._session, serial) for serial, landed in ended if not landed]
            if void:
                keep(f"DELETE FROM rows {one}", void)
            self._open -= len(ended)

    def end(self, token: Any, landed: bool) -> None:
        self._ended.append((token, landed))
        while self._ended and self._open <= len(self._ended) and self._lock.acquire(blocking=False):
            try:
                self._commit_ends([])
            finally:
                self._lock.release()

    def settle(self, tokens: Sequence[Any]) -> None:
        with self._lock:
            self._commit_ends(tokens)

    def _commit_ends(self, more: Sequence[int]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._write_ends(more)
        self._connection.execute("COMMIT")

    def used_by(self, batch_id: str) -> tuple[int, int]:
        return self._used.get(batch_id, (0, 0))

    def close(self) -> None:
        self._connection.close()


#: Each variant makes a store in a directory.
STORES: dict[str, Callable[[str], Any]] = {
    "segments": lambda directory: HistoryStore(directory, 100_000, 1 << 30),
    "segments, fsync": lambda directory: HistoryStore(directory, 100_000, 1 << 30, sync=True),
    "SQLite OFF": lambda directory: DatabaseStore(directory, "OFF"),
    "SQLite OFF, 16 KiB pages": lambda directory: DatabaseStore(directory, "OFF", 16_384),
    "SQLite NORMAL": lambda directory: DatabaseStore(directory, "NORMAL"),
    "SQLite FULL": lambda directory: DatabaseStore(directory, "FULL"),
}


def clocks() -> tuple[float, float]:
    """Processor time of this process and elapsed time, in seconds."""
    return time.process_time(), time.perf_counter()


def since(began: tuple[float, float], count: int) -> tuple[float, float]:
    """Both, in microseconds for one of `count`."""
    now = clocks()
    return (now[0] - began[0]) / count * 1e6, (now[1] - began[1]) / count * 1e6


def size_of(directory: str) -> int:
    """Bytes of all files in `directory`."""
    return sum(path.stat().st_size for path in Path(directory).rglob("*") if path.is_file())


def changes_alone(store: str, count: int) -> tuple[float, float, float]:
    """`count` changes, one after the other; gives both times and the size on disk, for one change."""
    with tempfile.TemporaryDirectory() as directory:
        made = STORES[store](directory)
        contents = [TEXT.encode() + b"%09d" % number for number in range(count + 1)]
        digests = [digest_of(content) for content in contents]
        rows = []
        for number in range(count):
            standing = [EntryState(Kind.FILE, digests[number + step], 0o644, (1, number), 1) for step in (0, 1)]
            key = ("d000", f"f{number:05}.txt")
            rows.append(ChangeRow("batch-1", number, f"call-{number}", key, key, *standing, time_ns=1))
        began = clocks()
        for number, row in enumerate(rows):
            kept = {digests[number]: contents[number], digests[number + 1]: contents[number + 1]}
            made.end(made.begin([row], kept), True)
        took = since(began, count)
        made.close()
        return *took, size_of(directory) / count


def edits(store: str | None, one_file: bool, count: int) -> tuple[float, float, float]:
    """`count` edits as one batch with that store, or as the plain loop; as `changes_alone`."""
    usual = opening.opened_store
    with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory() as state:
        os.environ["TOOLRT_STATE_DIR"] = state
        work = files.tree(Path(base).resolve(), 1 if one_file else count, count)
        for number, path in enumerate(sorted(Path(base).glob("*/*"))):
            path.write_text(f"{TEXT}{number:09}\n")  # so that each file brings contents of its own
            os.utime(path, (files._LONG_AGO, files._LONG_AGO))
        if store is None:
            began = clocks()
            files.plain_edits(work)
            return *since(began, count), 0.0
        name = store
        opening.opened_store = lambda *_: (STORES[name](f"{state}/history"), ())  # type: ignore[assignment]
        try:

            async def run() -> tuple[float, float]:
                workspace = toolrt.Workspace(files._LaterDisk(work.root))
                runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
                calls = files._calls(work, "edit")
                began = clocks()
                await files._run(runtime, calls)
                took = since(began, count)
                workspace.history.store.close()  # type: ignore[attr-defined]
                return took

            return *trio.run(run), size_of(state) / count
        finally:
            opening.opened_store = usual


def medians(found: Sequence[tuple[float, float, float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*found, strict=True)]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--count", type=int, default=300, help="changes in one round")
    parser.add_argument("--stores", default=",".join(STORES).replace(", ", "; "), help="variants, by commas")
    options = parser.parse_args()
    stores = [name.replace("; ", ", ") for name in options.stores.split(",")]
    files.TEXT = TEXT
    print(f"{'the store alone':26} {'processor us':>13} {'elapsed us':>11} {'bytes':>8}")
    alone: dict[str, list[tuple[float, float, float]]] = {name: [] for name in stores}
    for _ in range(options.rounds):
        for name in stores:
            alone[name].append(changes_alone(name, options.count))
    for name, found in alone.items():
        print("{:26} {:>13.1f} {:>11.1f} {:>8.0f}".format(name, *medians(found)), flush=True)
    for one_file in (False, True):
        title = "edits of one file" if one_file else "edits, a file each"
        print(f"\n{title:26} {'processor us':>13} {'ratio':>6} {'elapsed us':>11} {'ratio':>6} {'bytes':>8}")
        taken: dict[str | None, list[tuple[float, float, float]]] = {name: [] for name in (None, *stores)}
        for _ in range(options.rounds):
            for variant, into in taken.items():
                into.append(edits(variant, one_file, options.count))
        for variant, found in taken.items():
            both = [
                statistics.median(one[at] / plain[at] for one, plain in zip(found, taken[None], strict=True))
                for at in (0, 1)
            ]
            cpu, wall, size = medians(found)
            name = variant or "the plain loop"
            print(f"{name:26} {cpu:>13.1f} {both[0]:>6.2f} {wall:>11.1f} {both[1]:>6.2f} {size:>8.0f}", flush=True)


if __name__ == "__main__":
    main()
