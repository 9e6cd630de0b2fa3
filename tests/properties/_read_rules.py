"""The budget of reads, the file store with its cache, and the history."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import trio

from tests.properties._rule import Variant, call, calls_of, only_ending
from toolrt import MemoryDisk, Registry, Runtime, State, ToolContext, Workspace, sim
from toolrt.invariants import MUTANTS, patched
from toolrt.workspace.change import _reading
from toolrt.workspace.change._cache import Cache

SIZES = {"small": 100, "large": 12_000, "huge": 26_000}


FILES = {name: "".join(f"line {number:5d}\n" for number in range(size // 11)) for name, size in SIZES.items()}


def read_shares(reads: Sequence[tuple[str, dict[str, Any]]] = (), budget: int | None = 30_000) -> None:
    """The share is the same for every read of the batch; what is over it has a skeleton, whatever the schedule."""
    reads = reads or [("huge", {}), ("large", {}), ("small", {}), ("huge", {"offset": 5, "limit": 2000}), ("large", {})]
    share = None if budget is None else max(2000, budget // (5 * len(reads)))

    async def program() -> Any:
        workspace = Workspace(MemoryDisk(FILES))
        calls = calls_of(
            *(("read_file", {"path": name, **more}) for name, more in reads),
            ("write_file", {"path": "other", "content": "x"}),
        )
        done = await Runtime(Registry(workspace.tools())).run(calls, State(context_budget=budget))
        return [result.content for result in done.results[:-1]]

    for (name, more), content in zip(reads, only_ending(program, 6), strict=True):
        whole = share is None or -(-len(FILES[name]) // 4) <= share
        if more:
            assert content == "".join(FILES[name].splitlines(True)[more["offset"] - 1 :][: more["limit"]])
        elif whole:
            assert content == FILES[name]
        else:
            assert content.startswith(f"[{name} has")
            assert f"this read may answer {share}" in content
            assert -(-len(content) // 4) <= share


def _by_reads_so_far(_: Any) -> Any:
    """The share of who comes later is smaller."""
    reads: dict[str, int] = {}

    def share(self: ToolContext) -> int | None:
        budget = self.state.context_budget
        reads[self.batch_id] = reads.get(self.batch_id, 0) + 1
        return None if budget is None else max(2000, budget // (5 * reads[self.batch_id]))

    return property(share)


def cached_shares() -> None:
    """A file that was read under one share is not answered so under another."""

    async def program() -> Any:
        workspace = Workspace(MemoryDisk(FILES))
        runtime = Runtime(Registry(workspace.tools()))
        lengths = []
        for budget in (11_000, None, 20_000, 11_000):
            await trio.sleep(10)
            done = await runtime.run([call("read_file", path="huge")], State(context_budget=budget))
            lengths.append(len(done.results[0].content))
        return lengths, workspace.files.statistics()["cached"]["hits"]

    lengths, hits = only_ending(program, 4)
    assert lengths[0] == lengths[3] < lengths[2] < lengths[1] == len(FILES["huge"])
    assert hits == 1


def _key_without_share(make: Any) -> Any:
    async def read_as(self: Any, ctx: Any, identity: Any, part: Any, render: Any) -> Any:
        return await make(self, ctx, identity, part[:4], render)

    return read_as


def stored_contents() -> None:
    """What is kept of a file is never answered once the file is another."""

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"a": "1", "b": "1"}))
        calls = calls_of(
            ("read_file", {"path": "a"}),
            ("edit_file", {"path": "a", "old": "1", "new": "2"}),
            ("read_file", {"path": "a", "limit": 1}),
            ("read_file", {"path": "a"}),
            ("write_file", {"path": "a", "content": "3"}),
            ("read_file", {"path": "a"}),
        )
        await trio.sleep(10)  # what is younger than the disk's time step is not kept
        done = await Runtime(Registry(workspace.tools())).run(calls)
        return [result.content for result in done.results if result.name == "read_file"]

    assert only_ending(program) == ["1", "2", "2", "3"]


def _never_stale() -> AbstractContextManager[Any]:
    """What was kept once is answered for ever."""
    stack = ExitStack()
    stack.enter_context(patched(_reading, "stamp_of", lambda _: lambda stat: (0, 0, 0, 0)))
    stack.enter_context(patched(Cache, "drop", lambda _: lambda self, file: None))
    return stack


def versions_of_files() -> None:
    """A version for each mutation, in call order, and undoing the batch leaves what there was."""

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"a": "1", "b": "1"}))
        calls = calls_of(
            *(("edit_file", {"path": "a", "old": str(number), "new": str(number + 1)}) for number in range(1, 4)),
            ("write_file", {"path": "./a", "content": "last"}),
            ("write_file", {"path": "b", "content": "2"}),
        )
        async with Runtime(Registry(workspace.tools())).open_batch() as batch:
            for one in calls:
                batch.submit(one)
        versions = [(one.call_index, one.number) for one in await workspace.history.versions("a")]
        await workspace.history.undo(batch.batch_id)
        return versions, workspace.snapshot()

    # No law is asked here: the variant breaks one, and this rule has to notice by itself.
    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=3), 40))
    assert report.verdict is sim.PASS, report
    assert list(report.outcomes) == ["([(0, 1), (1, 2), (2, 3), (3, 4)], {'a': b'1', 'b': b'1'})"]


RULES = {
    "read budget": read_shares,
    "read cache": cached_shares,
    "file store": stored_contents,
    "file history": versions_of_files,
}


VARIANTS: dict[str, Variant] = {
    "the share depends on the reads so far": Variant(
        "read budget",
        lambda: patched(ToolContext, "read_budget", _by_reads_so_far),
        "this read may answer 2000",
    ),
    "the cache does not know the share": Variant(
        "read cache",
        lambda: patched(_reading.CachedReader, "read_as", _key_without_share),
        r"assert (\d+) < \1",
    ),
    "what was kept is answered for ever": Variant("file store", _never_stale, r"\['1', '1', '1', '1'\]"),
    "files are not ordered": Variant("file history", MUTANTS["files are not ordered"].apply, r"\(3, 1\)"),
}
