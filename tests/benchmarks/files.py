"""What the file tools cost, as a ratio to a plain loop that does the same system calls.

Run it as ``python tests/benchmarks/files.py``.  The plain loop is one thread that reaches each file through open
directories, reads it, appends new contents to a log, writes a locked temporary file beside it and moves that into
place: what `edit_file` asks of the system, and nothing else.  Rounds of both are taken in turn, on a fresh tree each,
and medians are given.  The *naive* column is ``read_text``, ``replace``, ``write_text``, which loses edits and leaves
half files.

The last table says where the time of an edit goes: the batch with its tickets (the same batch of no-op calls with
the same claims), the worker threads (as many calls that do nothing in one), the disk (the plain loop), and the
rest: names, text, freshness and history.

``--json`` prints rows as JSON lines; ``--quick`` takes fewer rounds; ``--sizes`` says how many calls a batch has.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import os
import stat
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import trio

import toolrt
from toolrt.workspace import RealDisk

#: What each file has: 60 lines, about 2 kB, as a small module of source.
TEXT = "".join(f"line {number:03} of a file of ordinary size\n" for number in range(60))

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: Longer ago than the time step of any file system: what is read then may be kept.
_LONG_AGO = 1_000_000_000
#: As long as what history says of one edit.
_HEAD = b"." * 300


@attrs.frozen
class Work:
    """One tree, and what is done to it."""

    #: The directory.
    root: Path
    #: The file of each call, relative to it.
    names: list[str]
    #: Whether that is always the same.
    one_file: bool


class _LaterDisk(RealDisk):
    """A disk whose clock is an hour ahead: what the tree was made of just now is settled, as an old tree is."""

    def now_ns(self) -> int:
        return super().now_ns() + 3600 * 10**9


def tree(base: Path, files: int, calls: int) -> Work:
    """`files` files in directories of 100, and `calls` calls that go round them."""
    names = [f"d{number // 100:03}/f{number:05}.txt" for number in range(files)]
    for name in names:
        path = base / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(TEXT)
        os.utime(path, (_LONG_AGO, _LONG_AGO))
    return Work(base, [names[number % files] for number in range(calls)], files == 1)


# ---------------------------------------------------------------------- the plain loops


def _opened(root: str, name: str) -> tuple[int, str]:
    """The open directory of `name`, and its name in it."""
    here = os.open(root, _DIRECTORY)
    *parents, own = name.split("/")
    for parent in parents:
        below = os.open(parent, _DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    return here, own


def _looked_at(root: str, name: str) -> None:
    path = root
    for part in name.split("/"):
        path = f"{path}/{part}"
        os.lstat(path)


def _read(here: int, own: str, *, attributes: bool = False) -> tuple[bytes, os.stat_result]:
    os.lstat(own, dir_fd=here)
    descriptor = os.open(own, _READ, dir_fd=here)
    found = os.fstat(descriptor)
    content = os.read(descriptor, 1 << 20)
    os.read(descriptor, 1 << 20)
    if attributes:
        os.listxattr(descriptor)
    os.fstat(descriptor)
    os.close(descriptor)
    return content, found


def plain_edits(work: Work) -> None:
    """Every edit, one after the other, with the system calls that `edit_file` makes."""
    root, serial = str(work.root), itertools.count()
    log = os.open(os.path.join(os.environ["TOOLRT_STATE_DIR"], "log"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    logged = 0
    logged_contents: set[bytes] = set()
    for number, name in enumerate(work.names):
        _looked_at(root, name)
        _looked_at(root, name)
        here, own = _opened(root, name)
        content, found = _read(here, own, attributes=True)
        old, new = _edit(number if work.one_file else 0)
        before, content = content, content.decode().replace(old, new, 1).encode()
        # A content that the log has is not written again.
        fresh = [one for one in (before, content) if one not in logged_contents]
        logged_contents.update(fresh)
        logged += os.pwritev(log, [_HEAD, *fresh], logged)
        os.access(own, os.W_OK, dir_fd=here, effective_ids=True, follow_symlinks=False)
        temporary = f".plain-{next(serial)}"
        descriptor = os.open(temporary, _NEW, 0o600, dir_fd=here)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.fstat(descriptor)
        os.fstat(descriptor)
        os.write(descriptor, content)
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode))
        again, _ = _opened(root, name)
        os.fstat(again)
        os.fstat(here)
        os.close(again)
        os.lstat(own, dir_fd=here)
        os.replace(temporary, own, src_dir_fd=here, dst_dir_fd=here)
        os.fstat(descriptor)
        os.close(descriptor)
        os.close(here)
    os.close(log)


def plain_reads(work: Work) -> None:
    """Every read, one after the other, with the system calls that a cold `read_file` makes."""
    root = str(work.root)
    for name in work.names:
        _looked_at(root, name)
        _looked_at(root, name)
        here, own = _opened(root, name)
        _read(here, own)[0].decode()
        os.close(here)


def naive_edits(work: Work) -> None:
    """Every edit as most tools do it."""
    for number, name in enumerate(work.names):
        path = work.root / name
        old, new = _edit(number if work.one_file else 0)
        path.write_text(path.read_text().replace(old, new, 1))


def naive_reads(work: Work) -> None:
    """Every read as most tools do it."""
    for name in work.names:
        (work.root / name).read_text()


# ---------------------------------------------------------------------- the batches


def _edit(number: int) -> tuple[str, str]:
    """What call `number` replaces, and by what; so that any number of calls may go round one file."""
    there, back = divmod(number, 60)
    texts = f"line {back:03} of", f"LINE {back:03} OF"
    return texts if there % 2 == 0 else texts[::-1]


def _calls(work: Work, kind: str) -> list[toolrt.ToolCall]:
    if kind == "read":
        return [toolrt.ToolCall(str(n), "read_file", {"path": name}) for n, name in enumerate(work.names)]
    calls = []
    for number, name in enumerate(work.names):
        old, new = _edit(number if work.one_file else 0)
        calls.append(toolrt.ToolCall(str(number), "edit_file", {"path": name, "old": old, "new": new}))
    return calls


async def _run(runtime: toolrt.Runtime, calls: list[toolrt.ToolCall]) -> float:
    began = time.perf_counter()
    done = await runtime.run(calls)
    took = time.perf_counter() - began
    refused = [result for result in done.results if not result.ok]
    assert not refused, refused[0].error
    return took


async def batch_edits(work: Work) -> float:
    """Every edit, as one batch on a workspace of its own."""
    workspace = toolrt.Workspace(_LaterDisk(work.root))
    return await _run(toolrt.Runtime(toolrt.Registry(workspace.tools())), _calls(work, "edit"))


async def batch_reads(work: Work) -> float:
    """Every read, as one batch on a new workspace."""
    workspace = toolrt.Workspace(_LaterDisk(work.root))
    return await _run(toolrt.Runtime(toolrt.Registry(workspace.tools())), _calls(work, "read"))


async def warm_reads(work: Work) -> float:
    """Every read for the second time."""
    workspace = toolrt.Workspace(_LaterDisk(work.root))
    runtime, calls = toolrt.Runtime(toolrt.Registry(workspace.tools())), _calls(work, "read")
    await _run(runtime, calls)
    return await _run(runtime, calls)


async def tickets_alone(work: Work) -> float:
    """A batch of no-op calls that claim what the edits claim."""
    workspace = toolrt.Workspace(_LaterDisk(work.root))

    @toolrt.tool(
        name="edit_file",
        claims=lambda input, state: workspace.claims(input["path"], state, toolrt.WRITE),
        owner=workspace,
    )
    async def nothing(ctx: toolrt.ToolContext, path: str, old: str, new: str) -> None:
        """Nothing."""

    return await _run(toolrt.Runtime(toolrt.Registry([nothing])), _calls(work, "edit"))


async def threads_alone(work: Work) -> float:
    """As many calls that do nothing in a worker thread, ten at a time."""
    limit = trio.CapacityLimiter(10)

    async def hop() -> None:
        await trio.to_thread.run_sync(int, limiter=limit)

    began = time.perf_counter()
    for first in range(0, len(work.names), 10):
        async with trio.open_nursery() as nursery:
            for _ in work.names[first : first + 10]:
                nursery.start_soon(hop)
    return time.perf_counter() - began


# ---------------------------------------------------------------------- measuring


def timed(loop: Callable[[Work], None], files: int, calls: int) -> float:
    with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory() as state:
        os.environ["TOOLRT_STATE_DIR"] = state
        work = tree(Path(base).resolve(), files, calls)
        began = time.perf_counter()
        loop(work)
        return time.perf_counter() - began


def timed_batch(batch: Callable[[Work], Any], files: int, calls: int) -> float:
    with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory() as state:
        os.environ["TOOLRT_STATE_DIR"] = state
        return float(trio.run(batch, tree(Path(base).resolve(), files, calls)))


@attrs.frozen
class Row:
    """One line of the table."""

    name: str
    ours: Callable[[Work], Any]
    plain: Callable[[Work], None]
    naive: Callable[[Work], None]
    #: Whether all calls are about one file.
    one_file: bool
    #: The ratio wanted at most, or None.
    wanted: float | None


ROWS = [
    Row("edits, a file each", batch_edits, plain_edits, naive_edits, False, 2.0),
    Row("edits of one file", batch_edits, plain_edits, naive_edits, True, 2.0),
    Row("reads, cold", batch_reads, plain_reads, naive_reads, False, None),
    Row("reads, warm", warm_reads, plain_reads, naive_reads, False, None),
]


def measured(row: Row, calls: int, rounds: int) -> dict[str, Any]:
    """Medians of `rounds` rounds, in microseconds a call."""
    files = 1 if row.one_file else calls
    ours, plain, naive = [], [], []
    for _ in range(rounds):
        plain.append(timed(row.plain, files, calls))
        ours.append(timed_batch(row.ours, files, calls))
        naive.append(timed(row.naive, files, calls))
    ratios = [a / b for a, b in zip(ours, plain, strict=True)]
    return {
        "row": row.name,
        "n": calls,
        "us_per_call": statistics.median(ours) / calls * 1e6,
        "plain_us": statistics.median(plain) / calls * 1e6,
        "naive_us": statistics.median(naive) / calls * 1e6,
        "ratio": statistics.median(ratios),
        "wanted": row.wanted,
    }


def shares(calls: int, rounds: int) -> dict[str, float]:
    """Where the time of one edit of a file of its own goes, in microseconds."""

    def median(measure: Callable[[], float]) -> float:
        return statistics.median(measure() for _ in range(rounds)) / calls * 1e6

    whole = median(lambda: timed_batch(batch_edits, calls, calls))
    parts = {
        "batch and tickets": median(lambda: timed_batch(tickets_alone, calls, calls)),
        "threads": median(lambda: timed_batch(threads_alone, calls, calls)),
        "disk": median(lambda: timed(plain_edits, calls, calls)),
    }
    return {"whole": whole, **parts, "the rest": whole - sum(parts.values())}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print rows as JSON lines")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--sizes", default="100,1000,10000", help="numbers of calls, by commas")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if not options.json:
        print(f"{'calls':20} {'n':>6} {'us/call':>9} {'plain':>9} {'naive':>9} {'ratio':>7} {'wanted':>7}")
    for row in ROWS:
        for calls in sizes:
            rounds = max(3, min(15, 15_000 // calls)) // (3 if options.quick else 1)
            found = measured(row, calls, max(rounds, 1))
            if options.json:
                print(json.dumps(found), flush=True)
                continue
            wanted = "" if row.wanted is None else f"{row.wanted:.1f}  {_met(found)}"
            print(
                f"{row.name:20} {calls:>6} {found['us_per_call']:>9.1f} {found['plain_us']:>9.1f} "
                f"{found['naive_us']:>9.1f} {found['ratio']:>7.2f} {wanted:>11}",
                flush=True,
            )
    found = shares(1000, 2 if options.quick else 7)
    if options.json:
        print(json.dumps({"row": "shares of one edit, us", **found}), flush=True)
        return
    print("\nwhere an edit of a file of its own goes, microseconds (threads overlap with the rest):")
    for name, value in found.items():
        print(f"  {name:20} {value:>8.1f}")


def _met(found: dict[str, Any]) -> str:
    return "ok" if found["ratio"] <= found["wanted"] else "OVER"


if __name__ == "__main__":
    main()
