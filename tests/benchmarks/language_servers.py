"""What language servers cost on a real tree, as ratios to a process of the same program for each question.

Run it as ``python tests/benchmarks/language_servers.py [DIRECTORY]``; without one the tree is the running Python's
site-packages.  Nothing is written into it: what is asked about is a copy.  The servers are ruff, which looks at a file,
and ty, which looks at the workspace; the other way is ``ruff check --no-cache FILE`` and ``ty check FILE``.

*First.*  From nothing to the first findings: the start of the server is in it.  *Again.*  The same file, unchanged.
*Another.*  A file that the server was not asked about before.  *Edited.*  The file has another text: what a tool's edit
changed is told, and the file asked about.  *Beside.*  (ty) Another file has another text, and the first is asked about.
*Memory.*  What the server keeps in the end (VmRSS), and the most that a process for one question has.

All in one run, medians, each pair in turn.  ``--files`` and ``--rounds`` change the sizes, ``--json`` prints rows as
JSON lines.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio
from _tree import linked, python_files, told

from toolrt import FileChanged, LaneChanges, Workspace
from toolrt.model import FileChange
from toolrt.plugins.lsp import LanguageServer, LanguageServers
from toolrt.services._environment import environment_of

SERVERS = {
    "ruff": (
        LanguageServer("ruff", ["ruff", "server"], suffixes=[".py"], reads="file", wait=300.0),
        ["ruff", "check", "--no-cache", "--quiet", "--exit-zero"],
    ),
    "ty": (
        LanguageServer("ty", ["ty", "server"], suffixes=[".py"], wait=300.0),
        ["ty", "check", "--quiet", "--exit-zero"],
    ),
}


#: Starts a program, and prints the most memory that it had.
_SMALL = """
import os, sys
null = os.open(os.devnull, os.O_RDWR)
files = [(os.POSIX_SPAWN_DUP2, null, descriptor) for descriptor in range(3)]
print(os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=files), 0)[2].ru_maxrss)
"""


class Alternative:
    """A process for each question."""

    def __init__(self, root: Path, command: list[str]) -> None:
        self._root = root
        program = shutil.which(command[0])
        assert program is not None
        self._command = [program, *command[1:]]

    def check(self, path: str) -> float:
        """Seconds it took."""
        start = time.perf_counter()
        null = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, null, descriptor) for descriptor in range(3)]
        before = os.getcwd()
        os.chdir(self._root)  # posix_spawn starts where this process is
        try:
            pid = os.posix_spawn(self._command[0], [*self._command, path], environment_of({}), file_actions=actions)
        finally:
            os.chdir(before)
            os.close(null)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, path
        return time.perf_counter() - start

    def memory(self, path: str) -> int:
        """KiB that it had at most."""
        # Started by a small process: what is started counts what its starter has.
        asked = [sys.executable, "-I", "-S", "-c", _SMALL, *self._command, path]
        done = subprocess.run(asked, cwd=self._root, env=environment_of({}), capture_output=True, text=True, check=True)
        return int(done.stdout.split()[-1])


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    """Seconds it took."""
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


def memory_of(name: str) -> int:
    """KiB that the processes of that name below this one hold."""
    parents: dict[int, tuple[int, str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                before, _, after = Path(f"/proc/{entry}/stat").read_text().rpartition(")")
            except OSError:
                continue
            parents[int(entry)] = int(after.split()[1]), before.partition("(")[2]
    total = 0
    for pid, (_, program) in parents.items():
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above][0]
        if above == os.getpid() and program == name:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return total


def changed(root: Path, path: str, number: int) -> LaneChanges:
    """The file has one line more, in a file of its own; what a lane tells of that."""
    text = (root / path).read_bytes()
    (root / path).unlink()  # so that the file's other name keeps its text
    (root / path).write_bytes(text + f"\nadded_{number} = nowhere_{number}\n".encode())
    return LaneChanges("batch", number, (path,), (FileChanged(path, FileChange.MODIFIED),))


async def measure(root: Path, name: str, rounds: int, show: Callable[[dict[str, Any]], None]) -> None:
    """Show what one server costs."""
    server, command = SERVERS[name]
    process = Alternative(root, command)
    workspace = Workspace(root, state_dir=root.parent / "state")
    files = [str(path.relative_to(root)) for path in python_files(root) if 2_000 < path.stat().st_size < 100_000]
    chosen = files[:: max(1, len(files) // (rounds + 2))][: rounds + 1]
    one, *others = chosen

    def row(what: str, ours: list[float], theirs: list[float]) -> dict[str, Any]:
        return told(f"{name}: {what}", {"server": ours, "a process": theirs}, "server")

    process.check(one)  # so that neither side finds the disk cold
    first, alone = [], []
    for _ in range(rounds):
        async with LanguageServers(workspace, [server]) as lsp:
            first.append(await timed(functools.partial(lsp.diagnostics, one)))
        alone.append(process.check(one))
    show(row("first", first, alone))

    async with LanguageServers(workspace, [server]) as lsp:

        async def ask(path: str) -> None:
            checked = await lsp.diagnostics(path)
            assert checked.is_complete, checked.problems

        await ask(one)
        numbers = itertools.count()

        async def edited(path: str, then: str) -> float:
            changes = changed(root, path, next(numbers))

            async def told_and_asked() -> None:
                await lsp.after_lane(changes)
                await ask(then)

            return await timed(told_and_asked)

        found: dict[str, tuple[list[float], list[float]]] = {}
        for other in others:
            for what, work in (
                ("again", lambda: timed(lambda: ask(one))),
                ("another", lambda other=other: timed(lambda: ask(other))),
                ("edited", lambda: edited(one, one)),
                *([("beside", lambda other=other: edited(other, one))] if server.reads == "workspace" else ()),
            ):
                ours, theirs = found.setdefault(what, ([], []))
                ours.append(await work())
                theirs.append(process.check(other if what == "another" else one))
        for what, (ours, theirs) in found.items():
            show(row(what, ours, theirs))
        kept = memory_of(name)
    most = max(process.memory(path) for path in chosen)
    show(
        {
            "what": f"{name}: memory",
            "server MB": round(kept / 1024),
            "a process MB": round(most / 1024),
            "to a process": float(f"{kept / most:.2g}"),
        }
    )


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", default=sysconfig.get_path("purelib"))
    parser.add_argument("--files", type=int, default=6000, help="how many files of the tree (default: 6000)")
    parser.add_argument("--rounds", type=int, default=7, help="how often each is done (default: 7)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    def show(row: dict[str, Any]) -> None:
        print(
            json.dumps(row) if options.json else "; ".join(f"{key} {value}" for key, value in row.items()), flush=True
        )

    async def measured(root: Path) -> None:
        for name in SERVERS:
            if shutil.which(name) is None:
                print(f"{name} is not installed")
                continue
            await measure(root, name, options.rounds, show)

    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve() / "tree"
        linked(Path(options.directory).resolve(), root, options.files)
        show({"what": "tree", "files": sum(len(names) for _, _, names in os.walk(root))})
        trio.run(measured, root)


if __name__ == "__main__":
    main()
