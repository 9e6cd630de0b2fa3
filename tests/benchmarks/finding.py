"""What `glob` and `search` cost on a tree of 30,000 files, as ratios to `os.scandir`, ``rg`` and ``grep``.

Run it as ``python tests/benchmarks/finding.py``.  The tree is made anew, with links, binary files, ignore files,
several encodings and deep directories.  Every row is measured in turn with what it is compared to, on the same tree,
and medians are given, of wall time and of processor time, which other programs disturb less.  *Cold* is the first call
of a new workspace, *warm* a later one.  A heartbeat task runs beside each call; the longest time between two of its
beats says how long the call held Trio's loop, and the processor time of Trio's own thread between two of them how long
it was busy: other programs lengthen the first alone.  The last rows cancel a call in the middle and say how long the
call took to end, and hold the loop by many names, many ignore rules and many hunks.

``--json`` prints rows as JSON lines; ``--files`` says how many files there are; ``--rounds`` how often each is
measured.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import trio

import toolrt
from toolrt.workspace import RealDisk
from toolrt.workspace.finding import _ripgrep

#: How often the heartbeat beats, in seconds.
_BEAT = 0.001

#: What some files have, and what a search looks for: rare, in a hundredth of the files, and in none.
_RARE, _SOME = "xylophone_quartet", "Deprecated"

_WORDS = [
    "import", "return", "value", "self", "path", "name", "result", "error", "index", "state", "table", "field",
    "count", "limit", "token", "match", "while", "class", "async", "await", "yield", "raise", "from", "lambda",
    "print", "handler", "request", "response", "buffer", "config", "option", "default",
]  # fmt: skip


def make_tree(root: Path, files: int) -> None:
    """A tree of so many files: a dozen in each directory, some directories ten deep."""
    rng = random.Random(1)
    directories = [root]
    for number in range(files // 12):
        above = directories[-1] if number % 40 and rng.random() < 0.3 else rng.choice(directories[: 1 + number // 3])
        if len(above.relative_to(root).parts) > 10:
            above = root
        directory = above / f"{rng.choice(_WORDS)}{number}"
        directory.mkdir()
        directories.append(directory)
    for number in range(files):
        directory = directories[number % len(directories)]
        ending = rng.choice([".py"] * 6 + [".js", ".md", ".txt", ".c", ".h", ".json", ".pyc", ".o"])
        path = directory / f"{rng.choice(_WORDS)}_{number}{ending}"
        path.write_bytes(_content(rng, number, ending))
    for number, directory in enumerate(directories):
        if number % 25 == 0:
            lines = ["*.pyc", "*.o", "/build/", f"{_WORDS[number % len(_WORDS)]}_1*.md", "!keep.o", "# why", "*~"]
            (directory / ".gitignore").write_text("\n".join(lines) + "\n")
        if number % 50 == 0:
            (directory / "link").symlink_to(directories[number // 2])
            (directory / "link.py").symlink_to("../elsewhere.py")


def _content(rng: random.Random, number: int, ending: str) -> bytes:
    if ending in (".pyc", ".o") or number % 40 == 7:
        return rng.randbytes(rng.choice([200, 4_000, 40_000]))
    lines = [
        "    " * rng.randrange(4) + " ".join(rng.choices(_WORDS, k=rng.randrange(2, 10)))
        for _ in range(rng.choice([5, 40, 120, 400]))
    ]
    if number % 100 == 50:
        lines.insert(len(lines) // 2, f"class Deprecated{number}(Error): pass")
    if number % 5_000 == 1_234:
        lines.append(f"{_RARE} = {number}")
    encoding = {11: "utf-16", 12: "latin-1"}.get(number % 200, "utf-8")
    return ("\n".join([*lines, "café" if encoding != "utf-8" or number % 3 == 0 else "", ""])).encode(encoding)


def scandir_walk(root: str) -> int:
    """How many Python files there are, by a plain walk with `os.scandir`."""
    found, pending = 0, [root]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif entry.name.endswith(".py"):
                    found += 1
    return found


@attrs.frozen
class Run:
    """One call that was measured."""

    #: Seconds it took, and seconds of processor time that it and the programs it started took.
    seconds: float
    processor: float
    #: The longest time between two beats of a task beside it, in seconds.
    held: float
    #: The most processor time of Trio's own thread between two beats, in seconds.
    busy: float
    answer: str


def _processor() -> float:
    """Seconds of processor time of this process and of the programs that it waited for."""
    shares = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in shares)


async def _spent(work: Callable[[], Awaitable[str]]) -> tuple[float, float, str]:
    began, before = time.perf_counter(), _processor()
    answer = await work()
    return time.perf_counter() - began, _processor() - before, answer


async def _with_heartbeat(work: Callable[[], Awaitable[str]]) -> Run:
    longest = busiest = 0.0

    async def beat() -> None:
        nonlocal longest, busiest
        before, worked = time.perf_counter(), time.thread_time()
        while True:
            await trio.sleep(_BEAT)
            longest, before = max(longest, time.perf_counter() - before), time.perf_counter()
            busiest, worked = max(busiest, time.thread_time() - worked), time.thread_time()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        await trio.sleep(_BEAT)
        took, processor, answer = await _spent(work)
        await trio.sleep(_BEAT)
        nursery.cancel_scope.cancel()
    return Run(took, processor, longest, busiest, answer)


async def _call(runtime: toolrt.Runtime, name: str, input: dict[str, Any]) -> str:
    [result] = (await runtime.run([toolrt.ToolCall("1", name, input)])).results
    assert result.ok, result.error
    return str(result.content)


async def _runs(root: Path, name: str, input: dict[str, Any], warm: int) -> list[Run]:
    """A call on a new workspace, and `warm` more on the same."""
    runtime = toolrt.Runtime(toolrt.Registry(toolrt.Workspace(root).tools()))
    return [await _with_heartbeat(lambda: _call(runtime, name, input)) for _ in range(1 + warm)]


async def _cancelled(root: Path, name: str, input: dict[str, Any], after: float) -> float:
    """Seconds from a cancel, `after` seconds into a call, to its end."""
    runtime = toolrt.Runtime(toolrt.Registry(toolrt.Workspace(root).tools()))
    asked = 0.0
    with trio.CancelScope() as scope:

        async def cancel() -> None:
            nonlocal asked
            await trio.sleep(after)
            asked = time.perf_counter()
            scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel)
            await _call(runtime, name, input)
            nursery.cancel_scope.cancel()
    return time.perf_counter() - asked if scope.cancelled_caught else 0.0


@contextlib.contextmanager
def _without_ripgrep() -> Iterator[None]:
    kept, _ripgrep.program = _ripgrep.program, lambda: None  # type: ignore[assignment]
    try:
        yield
    finally:
        _ripgrep.program = kept


def _ripgrep_of(root: Path, *pattern: str) -> Callable[[], Any]:
    return lambda: subprocess.run(["rg", "-n", "--no-require-git", *pattern, str(root)], capture_output=True)


def _grep_of(root: Path, *pattern: str) -> Callable[[], Any]:
    return lambda: subprocess.run(["grep", "-rnI", *pattern, str(root)], capture_output=True)


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    began, before = time.perf_counter(), _processor()
    work()
    return time.perf_counter() - began, _processor() - before


@attrs.frozen
class Row:
    """One line of the table."""

    name: str
    #: What it is compared to, and does as much.
    plain: Callable[[], Any]
    tool: str
    input: dict[str, Any]
    #: Whether toolrt may use ripgrep.
    ripgrep: bool
    #: The ratio wanted at most.
    wanted: float


def rows(root: Path) -> list[Row]:
    """What is measured."""
    walk = lambda: scandir_walk(str(root))  # noqa: E731
    found = [Row("glob **/*.py, scandir", walk, "glob", {"pattern": "**/*.py"}, False, 1.5)]
    literal = {"pattern": _RARE, "literal": True}
    regexes = {
        "rare word": rf"{_RARE} = \d+",
        "word in 1 of 100": rf"class \w*{_SOME}\w*\(Err",
        "alternatives": r"(xylophone|zither)_(quart|quint)et",
        "classes alone": r"[A-Z]\w+[0-9]{4,}:",
        "any case": rf"(?i){_RARE.upper()}",
    }
    if shutil.which("rg"):
        found.append(Row("literal, rg", _ripgrep_of(root, "-F", _RARE), "search", literal, True, 2.0))
        for name, regex in regexes.items():
            found.append(Row(f"{name}, rg", _ripgrep_of(root, regex), "search", {"pattern": regex}, True, 2.0))
    found.append(Row("literal, grep", _grep_of(root, "-F", _RARE), "search", literal, False, 4.0))
    for name, regex in regexes.items():
        plain = ["-iE", regex[4:]] if regex.startswith("(?i)") else ["-P", regex]
        found.append(Row(f"{name}, grep", _grep_of(root, *plain), "search", {"pattern": regex}, False, 4.0))
    return found


def measured(row: Row, root: Path, rounds: int) -> dict[str, Any]:
    """Medians of `rounds` rounds."""
    plain: list[tuple[float, float]] = []
    cold: list[Run] = []
    warm: list[Run] = []
    row.plain()
    for _ in range(rounds):
        plain.append(_timed(row.plain))
        with contextlib.nullcontext() if row.ripgrep else _without_ripgrep():
            first, *later = trio.run(_runs, root, row.tool, row.input, 2)
        cold.append(first)
        warm += later
    wall = statistics.median(seconds for seconds, _ in plain)
    processor = statistics.median(seconds for _, seconds in plain)
    return {
        "row": row.name,
        "lines": len(first.answer.splitlines()),
        "plain_ms": wall * 1e3,
        "cold_ratio": statistics.median(run.seconds for run in cold) / wall,
        "warm_ratio": statistics.median(run.seconds for run in warm) / wall,
        "processor_ms": processor * 1e3,
        "cold_processor_ratio": statistics.median(run.processor for run in cold) / processor,
        "warm_processor_ratio": statistics.median(run.processor for run in warm) / processor,
        "wanted": row.wanted,
        **_longest_of(cold + warm),
    }


def _longest_of(runs: list[Run]) -> dict[str, float]:
    return {"held_ms": max(run.held for run in runs) * 1e3, "busy_ms": max(run.busy for run in runs) * 1e3}


def held_by_names(names: int, rules: int, rounds: int) -> dict[str, Any]:
    """How long the loop is held by one directory of so many names, under so many ignore rules."""
    with tempfile.TemporaryDirectory() as base:
        root = Path(base).resolve()
        for number in range(names):
            (root / f"name{(number * 7919) % names:06}.txt").touch()
        lines = [f"*.x{number}\nname*{number:05}y\n/d{number}/*.o" for number in range(rules // 3)]
        (root / ".gitignore").write_text("\n".join(lines))
        time.sleep(RealDisk(root).time_step_ns / 1e9)  # a directory that is just made is listed anew
        runs = [run for _ in range(rounds) for run in trio.run(_runs, root, "glob", {"pattern": "*9.txt"}, 1)]
        listed = [run for _ in range(rounds) for run in trio.run(_runs, root, "list_dir", {}, 1)]
    return {
        "row": f"{names} names, {rules} rules",
        "cold_ms": statistics.median(run.seconds for run in runs[::2]) * 1e3,
        "warm_ms": statistics.median(run.seconds for run in runs[1::2]) * 1e3,
        **_longest_of(runs + listed),
    }


def _text_and_patch(hunks: int) -> tuple[str, str]:
    lines = [f"line {number}\n" for number in range(4 * hunks)]
    patch = ["--- a/a\n", "+++ b/a\n"]
    for at in range(0, len(lines), 4):
        patch += [f"@@ -{at + 1},2 +{at + 1},2 @@\n", f" {lines[at]}", f"-{lines[at + 1]}", f"+new {lines[at + 1]}"]
    return "".join(lines), "".join(patch)


def held_by_hunks(hunks: int) -> dict[str, Any]:
    """How long the loop is held by one patch of so many hunks."""
    text, patch = _text_and_patch(hunks)
    with tempfile.TemporaryDirectory() as base:
        root = Path(base).resolve()
        (root / "a").write_text(text)
        [run] = trio.run(_runs, root, "apply_patch", {"patch": patch}, 0)
    return {"row": f"a patch of {hunks} hunks", "cold_ms": run.seconds * 1e3, **_longest_of([run])}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print rows as JSON lines")
    parser.add_argument("--files", type=int, default=30_000, help="how many files the tree has")
    parser.add_argument("--rounds", type=int, default=5, help="how often each row is measured")
    parser.add_argument("--only", default="", help="rows whose name has this")
    options = parser.parse_args()

    def say(found: dict[str, Any]) -> None:
        if options.json:
            print(json.dumps(found), flush=True)
            return
        numbers = [
            f"{name} {value:>6.{2 if name.endswith('ratio') else 0}f}"
            for name, value in found.items()
            if name.endswith(("ms", "ratio", "lines"))
        ]
        print(f"{found['row']:30}", *numbers, "wanted", found.get("wanted", "-"), flush=True)

    with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory() as state:
        os.environ["TOOLRT_STATE_DIR"] = state
        root = Path(base).resolve()
        make_tree(root, options.files)
        time.sleep(RealDisk(root).time_step_ns / 1e9)  # so that it has rested, as an old tree has
        for row in rows(root):
            if options.only in row.name:
                say(measured(row, root, options.rounds))
        for name, input in (("glob", {"pattern": "**/*.py"}), ("search", {"pattern": r"[A-Z]\w+[0-9]{9}:"})):
            with _without_ripgrep():
                waits = [trio.run(_cancelled, root, name, input, 0.02 * (1 + n)) for n in range(options.rounds)]
            say({"row": f"{name} cancelled", "longest_wait_ms": max(waits) * 1e3})
        say(held_by_names(100_000, 20_000, options.rounds))
        say(held_by_hunks(50_000))


if __name__ == "__main__":
    main()
