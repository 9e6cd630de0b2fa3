"""What it costs to undo a batch of edits, as a ratio to the edits.

Run it as ``python tests/benchmarks/undo.py``.  A batch edits so many files, 100 in a directory, and is undone; both are
given in seconds of elapsed time and of processor time (of all threads; user and system), for each round.  A heartbeat
task runs beside the undo: the longest time between two of its beats says how long the undo held Trio's loop.

``--files`` says how many files there are, 10,000 unless given; ``--rounds`` how often both are measured.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import trio

import toolrt
from toolrt.workspace import Limits


async def measured(root: Path, count: int) -> tuple[list[float], list[float], float]:
    """Elapsed and processor time of the edits, the same of the undo, and the longest pause of the heartbeat."""
    workspace = toolrt.Workspace(root, limits=Limits(versions=10 * count, history_bytes=2**31))
    runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
    calls = [
        toolrt.ToolCall(
            str(number),
            "edit_file",
            {"path": f"d{number // 100}/f{number}.txt", "old": f"head {number}\n", "new": f"HEAD {number}\n"},
        )
        for number in range(count)
    ]
    marks = [(time.perf_counter(), time.process_time())]
    done = await runtime.run(calls)
    assert all(result.ok for result in done.results)
    marks.append((time.perf_counter(), time.process_time()))
    longest = 0.0

    async def beat() -> None:
        nonlocal longest
        while True:
            began = time.perf_counter()
            await trio.sleep(0.001)
            longest = max(longest, time.perf_counter() - began)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        await workspace.history.undo(done.batch_id)
        nursery.cancel_scope.cancel()
    marks.append((time.perf_counter(), time.process_time()))
    edits, undo = (
        [after - before for before, after in zip(marks[step], marks[step + 1], strict=True)] for step in (0, 1)
    )
    return edits, undo, longest


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as directory:
            os.environ["TOOLRT_STATE_DIR"] = f"{directory}/state"
            root = Path(directory, "work")
            for number in range(given.files):
                path = root / f"d{number // 100}" / f"f{number}.txt"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"head {number}\n" + "one\ntwo\nthree\n" * 10)
            edits, undo, longest = trio.run(measured, root, given.files)
        print(
            f"{given.files:,} files: edits {edits[0]:.1f} s ({edits[1]:.1f} of processors), undo {undo[0]:.1f} s "
            f"({undo[1]:.1f}), ratio {undo[0] / edits[0]:.2f} ({undo[1] / edits[1]:.2f}), "
            f"loop held {longest * 1000:.0f} ms"
        )


if __name__ == "__main__":
    main()
