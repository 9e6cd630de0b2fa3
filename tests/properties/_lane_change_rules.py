"""What services hear that a lane changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio

import toolrt
from tests.properties._rule import Variant, calls_of, only_ending
from toolrt import FileChanged, LaneChanges, MemoryDisk, Registry, Runtime, Services, ToolContext, Workspace, sim
from toolrt.invariants import patched, require
from toolrt.runtime import _after_lane, _run


@toolrt.tool(safe=True)
async def tells(ctx: ToolContext, paths: list[str], seconds: float) -> str:
    """Says that it changed some files."""
    for path in paths:
        await trio.sleep(seconds)
        ctx.emit(FileChanged(path))
    return "told"


def lane_changes() -> None:
    """Services hear between two lanes what the lane changed, in call order; what they do changes no result."""

    async def run(hooks: Sequence[Any]) -> tuple[Any, Any]:
        workspace = Workspace(MemoryDisk({"a": "1", "b": "1", "d/c": "1"}))
        registry = Registry([*workspace.tools(), tells])
        runtime = Runtime(registry, services=Services(after_lane=hooks))
        calls = calls_of(
            ("tells", {"paths": ["z", "y"], "seconds": 0.2}),
            ("write_file", {"path": "b", "content": "2"}),
            ("tells", {"paths": ["x"], "seconds": 0.0}),
            ("edit_file", {"path": "a", "old": "1", "new": "2"}),
            ("edit_file", {"path": "a", "old": "nowhere", "new": "2"}),
            ("change_dir", {"path": "d"}),
            ("read_file", {"path": "c"}),
            ("move_path", {"source": "c", "target": "e"}),
        )
        done = await runtime.run(calls)
        return [(result.outcome.value, result.content) for result in done.results], workspace.snapshot()

    wanted = sim.run(lambda: run([])).value

    async def program() -> Any:
        told: list[LaneChanges] = []
        assert await run([told.append, _slow, _fails]) == wanted
        return [(one.lane, one.paths, [change.change for change in one.changes], one.unknown) for one in told]

    assert only_ending(program) == [
        (0, ("z", "y", "b", "x", "a"), ["modified"] * 5, False),
        (2, ("d/c", "d/e"), ["moved"], False),
    ]


async def _slow(changes: LaneChanges) -> None:
    await trio.sleep(1)


async def _fails(changes: LaneChanges) -> None:
    await trio.lowlevel.checkpoint()
    raise ValueError("a service that fails")


def _as_told(changes_of: Any) -> Any:
    """The changes as they were made, not by call_index."""

    def as_told(batch_id: str, lane: Any, owner: Any = None) -> Any:
        lane.calls.sort(key=lambda call: (call.ended_at or 0.0) - (call.started_at or 0.0))
        return changes_of(batch_id, lane, owner)

    return as_told


def _that_may_fail(tell: Any) -> Any:
    async def tell_it(batch: Any, hook: Any, changes: Any) -> None:
        awaitable = hook(changes)
        if awaitable is not None:
            await awaitable

    return tell_it


def changes_under_cancel() -> None:
    """Whenever the batch is cancelled, services have heard of every file that is not what it was."""

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"a": "1", "b": "1"}))
        told: list[str] = []

        async def refresh(changes: LaneChanges) -> None:
            told.extend(changes.paths)
            await trio.sleep(1)

        given = Services(after_lane=[_slow, refresh])
        before = workspace.snapshot()
        with sim.scope("the batch"):
            await Runtime(Registry(workspace.tools()), services=given).run(
                calls_of(
                    ("write_file", {"path": "a", "content": "2"}),
                    ("write_file", {"path": "c", "content": "2"}),
                    ("change_dir", {"path": "."}),
                    ("edit_file", {"path": "b", "old": "1", "new": "2"}),
                )
            )
        after = workspace.snapshot()
        return sorted(path for path in {*before, *after} if before.get(path) != after.get(path)), told

    def check(execution: sim.Execution) -> list[str]:
        assert execution.error is None, execution.error
        require(execution.trace)
        changed, told = execution.value
        return [f"{path} changed and nobody was told" for path in changed if path not in told]

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=5), 300), check, cancel_at="the batch")
    assert report.verdict is sim.PASS, f"{report}\n{report.failures[0].explain() if report.failures else ''}"
    assert len(report.outcomes) > 3, report.outcomes


def _told_when_all_is_well(tell: Any) -> Any:
    """Services hear of a lane only if nobody cancelled it."""

    async def tell_them(batch: Any, lane: Any) -> None:
        if batch.cancel_reason is None:
            await tell(batch, lane)

    return tell_them


RULES = {"lane changes": lane_changes, "lane changes, cancelled": changes_under_cancel}


VARIANTS: dict[str, Variant] = {
    "changes are told by who finished first": Variant(
        "lane changes",
        lambda: patched(_after_lane, "changes_of", _as_told),
        r"diff: \(0, \('b', 'x', 'a', 'z', 'y'\)",
    ),
    "a cancelled lane is not told of": Variant(
        "lane changes, cancelled",
        lambda: patched(_run, "tell_services", _told_when_all_is_well),
        "changed and nobody was told",
    ),
    "a service that fails fails the batch": Variant(
        "lane changes", lambda: patched(_after_lane, "_tell", _that_may_fail), "a service that fails"
    ),
}
