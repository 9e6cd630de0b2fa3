"""Programs under many schedules: what the contract's tests say holds under each of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolrt import MemoryDisk, Registry, Runtime, State, ToolCall, Workspace, sim
from toolrt.workspace import Planted

#: Schedules of each program.
SCHEDULES = 40


def every(program: Callable[[], Awaitable[Any]], schedules: int = SCHEDULES) -> Any:
    """Run `program` under many schedules, hold that all end alike and without an error, and give how."""
    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), schedules), lambda execution: None)
    assert report.verdict is not sim.FAIL, report.failures[0].explain()
    assert len(report.outcomes) == 1, report
    (ending,) = report.outcomes
    return ending


def edit(path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    """An Edit, without its id."""
    return "edit_file", {"path": path, "old": old, "new": new}


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    """A Write, without its id."""
    return "write_file", {"path": path, "content": content}


def read(path: str) -> tuple[str, dict[str, Any]]:
    """A Read, without its id."""
    return "read_file", {"path": path}


def calls_of(*named: tuple[str, Mapping[str, Any]]) -> list[ToolCall]:
    """Number the calls in the order of the response."""
    return [ToolCall(f"toolu_{number}", name, input) for number, (name, input) in enumerate(named)]


def batch(content: Mapping[str, Planted], *named: tuple[str, Mapping[str, Any]], **options: Any) -> Any:
    """Run one batch of file tools under many schedules; give outcomes, contents and the files at the end."""

    async def program() -> Any:
        workspace = Workspace(MemoryDisk(content))
        done = await Runtime(Registry(workspace.tools()), **options).run(calls_of(*named), State())
        await is_free(workspace)
        results = tuple((result.outcome.value, result.content) for result in done.results)
        return results, tuple(sorted(workspace.snapshot().items()))

    results, files = every(program)
    return [outcome for outcome, _ in results], [content for _, content in results], dict(files)


async def is_free(workspace: Workspace, path: str = "a.txt") -> None:
    """Hold that no call's lock is left on a file: a read of it, after the batch, does not wait."""
    async with Runtime(Registry(workspace.tools())).open_batch() as later:
        call = later.submit(ToolCall("later", "read_file", {"path": path}))
        assert call.waits_for != [0]
        later.seal()
        async for _ in later:
            pass
    assert call.waited == 0


async def streamed(runtime: Runtime, *calls: ToolCall, state: State | None = None, **options: Any) -> list[Any]:
    """Give the updates of one batch in the order in which its reader has them."""
    async with runtime.open_batch(state, **options) as opened:
        for call in calls:
            opened.submit(call)
        opened.seal()
        updates = [update async for update in opened]
    return updates


class Overlap:
    """Counts how many calls are inside at once."""

    def __init__(self) -> None:
        self.inside: list[Any] = []
        self.most = 0

    def enter(self, who: Any) -> None:
        """Note that `who` has begun."""
        self.inside.append(who)
        self.most = max(self.most, len(self.inside))

    def leave(self, who: Any) -> None:
        """Note that `who` has ended."""
        self.inside.remove(who)
