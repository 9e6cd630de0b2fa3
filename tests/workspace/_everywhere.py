"""Batches of file calls, run everywhere: under many schedules on the twin, and again and again on a real directory.

Rules.  One batch has one ending, that of the oracle, whatever the schedule and however its threads run.  Every
execution keeps all laws, simulated or real, and leaves no ticket and no temporary file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

import toolrt
from tests._profile import FULL
from toolrt import Registry, Runtime, State, ToolCall, sim
from toolrt.invariants import require
from toolrt.invariants.oracle import run_one_by_one
from toolrt.workspace import Directory, HardLink, MemoryDisk, Planted, Special, Symlink, Workspace

#: How often a program runs on the real directory; a thousand times with the full profile.
REPEATS = 1_000 if FULL else 30

#: Under how many schedules a batch runs on the twin.
SCHEDULES = 60 if FULL else 30

#: Where the twin's workspace is.
ROOT = "/home/me/repo"

Content = Mapping[str, Planted]
MoreTools = Callable[[Workspace], Iterable[toolrt.Tool]]


def plant(root: Path, content: Content) -> None:
    """The real directory has what a twin with this content has; `{root}` in a link's target stands for it."""
    later: list[tuple[Path, Path]] = []
    for path, what in content.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, Symlink):
            target.symlink_to(what.target)
        elif isinstance(what, HardLink):
            later.append((target, root / what.target))
        elif isinstance(what, Directory):
            target.mkdir(exist_ok=True)
        elif isinstance(what, Special):
            os.mkfifo(target)
        else:
            target.write_bytes(what if isinstance(what, bytes) else what.encode())
    for target, source in later:
        target.hardlink_to(source)


@attrs.frozen
class Ending:
    """How a batch ended."""

    #: The outcome, content and error of each call, in call order.
    results: tuple[tuple[str, Any, str | None], ...]
    #: Everything in the workspace.
    files: dict[str, bytes | str]
    #: The state after it.
    state: State

    @property
    def outcomes(self) -> list[str]:
        return [outcome for outcome, _, _ in self.results]


def ending_of(results: Sequence[Any], state: State, workspace: Workspace) -> Ending:
    return Ending(
        tuple((result.outcome.value, result.content, result.error) for result in results), workspace.snapshot(), state
    )


def calls_of(spelled: Iterable[tuple[str, Mapping[str, Any]]], root: str) -> list[ToolCall]:
    """The calls with `{root}` in their inputs replaced."""

    def filled(value: Any) -> Any:
        return value.replace("{root}", root) if isinstance(value, str) else value

    return [
        ToolCall(f"id{number}", name, {key: filled(value) for key, value in input.items()})
        for number, (name, input) in enumerate(spelled)
    ]


def tidy(workspace: Workspace) -> None:
    """Nothing is left in the table, and no temporary file on the disk."""
    assert workspace.claim_table.statistics()["groups"] == 0
    assert not [name for name in workspace.snapshot() if ".toolrt" in name or name.endswith(".tmp")]


@attrs.frozen
class Everywhere:
    """One batch, and the ways to run it."""

    content: Content
    #: The calls: name and input.
    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    more: MoreTools = attrs.field(default=lambda workspace: ())
    #: Makes the runtime's options, anew for each execution.
    options: Callable[[], Mapping[str, Any]] = dict
    state: State = attrs.field(factory=State)

    def _registry(self, workspace: Workspace) -> Registry:
        return Registry([*workspace.tools(), *self.more(workspace)])

    async def _run(self, workspace: Workspace) -> Ending:
        runtime = Runtime(self._registry(workspace), **self.options())
        done = await runtime.run(calls_of(self.calls, workspace.disk.root), self.state)
        tidy(workspace)
        return ending_of(done.results, done.state, workspace)

    def oracle(self) -> Ending:
        """How one call at a time ends."""

        async def run() -> Ending:
            workspace = Workspace(MemoryDisk(self.content, root=ROOT, home="/home/me"))
            calls = calls_of(self.calls, ROOT)
            done = await run_one_by_one(calls, self._registry(workspace), self.state)
            return ending_of(done.results, done.state, workspace)

        execution = sim.run(run)
        assert execution.error is None, execution.error
        return execution.value

    def on_the_twin(self) -> Ending:
        """The ending that it has under many schedules."""
        wanted = self.oracle()

        async def program() -> Ending:
            return await self._run(Workspace(MemoryDisk(self.content, root=ROOT, home="/home/me")))

        def check(execution: sim.Execution) -> list[Any]:
            assert execution.error is None, execution.error
            assert execution.value == wanted
            require(execution.trace)
            return []

        report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), SCHEDULES), check)
        assert report.verdict is sim.PASS, f"{report}\n{report.failures[0].explain() if report.failures else ''}"
        return wanted

    def on_a_real_directory(self, repeats: int | None = None) -> Ending:
        """The ending that it has with real threads, again and again."""
        wanted = self.oracle()
        with tempfile.TemporaryDirectory() as base:
            for number in range(REPEATS // 10 if repeats is None else repeats):
                root = Path(base).resolve() / str(number)
                root.mkdir()
                plant(root, self.content)
                with toolrt.record() as recorder:
                    ending = trio.run(self._run, Workspace(root))
                require(recorder.trace())
                assert ending == wanted
        return wanted

    def __call__(self) -> Ending:
        """The one ending that it has everywhere."""
        self.on_the_twin()
        return self.on_a_real_directory()


def everywhere(content: Content, *calls: tuple[str, Mapping[str, Any]], **fields: Any) -> Ending:
    """The one ending that these calls have, as one batch, under every schedule and on every disk."""
    return Everywhere(content, calls, **fields)()
