"""The laws of the design for the workspace's own tools: every spelling, cancels and faults at every step.

What is drawn is a batch of any calls of any tools, with every spelling of few files, a lane policy, a limit, a
fault, a cancel and a schedule.  What is held against it: the oracle (laws 4 and 7), and what the trace says of
laws 9, 10, 12 and 13; and all other laws as well.

A fault stands for all operations of one kind on one file: so it meets the same calls under every schedule.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolrt
from tests._profile import FULL
from tests.workspace._every_tool import FOLDED, calls_of, inputs_at, names_of
from tests.workspace._everywhere import REPEATS, ROOT, plant
from toolrt import Registry, Runtime, State, ToolCall, by_claims, by_safety, parallel, serial, sim
from toolrt.invariants import require
from toolrt.invariants.oracle import run_one_by_one
from toolrt.testing import schedules
from toolrt.trace import Trace
from toolrt.workspace import EXACT, Directory, Folding, HardLink, MemoryDisk, Special, Symlink, Workspace

SETTINGS = settings(max_examples=1_000 if FULL else 30, suppress_health_check=list(HealthCheck), derandomize=not FULL)

CONTENT = {
    "a.txt": "one\ntwo\n",
    "b.txt": "one\n",
    "d/b.txt": "one\n",
    "d/deep/c.txt": "one\ntwo\n",
    "hard.txt": HardLink("a.txt"),
    "link": Symlink("d/b.txt"),
    "chain": Symlink("way/../a.txt"),
    "way": Symlink("d"),
    "dangling": Symlink("d/new.txt"),
    "loop": Symlink("loop"),
    "out": Symlink("../outside"),
    "pipe": Special(),
    "e": Directory(),
}

TOOLS = Workspace(MemoryDisk()).tools()

POLICIES = {policy.__name__: policy for policy in (by_claims, parallel, by_safety, serial)}

#: What a fault may be, and where.
ERRNOS = [errno.ENOSPC, errno.EIO, errno.EACCES]
EFFECTS = ["read", "write", "move", "make directory", "overwrite", "look", "list", "remove"]
PLACES = ["a.txt", "d/b.txt", "d/new.txt", "new.txt", "later", "hard.txt", "d", "e"]


@attrs.frozen
class Fault:
    """Every operation of this kind on this file fails so."""

    effect: str
    path: str
    number: int

    def __call__(self, effect: str, path: str) -> None:
        if (effect, path) == (self.effect, self.path):
            raise OSError(self.number, os.strerror(self.number))


@attrs.frozen
class FileMix:
    """One batch of file calls, and how it is run."""

    calls: list[ToolCall]
    policy: str = "by_claims"
    limit: int | None = 10
    fault: Fault | None = None
    #: How the disk's directories fold names.
    fold: Folding = EXACT

    def twin(self, more: Callable[[str, str], None] | None = None) -> MemoryDisk:
        def fault(effect: str, path: str) -> None:
            if more is not None:
                more(effect, path)
            if self.fault is not None:
                self.fault(effect, path)

        disk = MemoryDisk(CONTENT, root=ROOT, home="/home/me", fault=fault, fold=self.fold)
        disk.put("/home/me/outside/x.txt", "one secret\n")
        return disk

    def called(self, root: str) -> list[ToolCall]:
        def filled(value: Any) -> Any:
            return value.replace("{root}", root) if isinstance(value, str) else value

        return [
            attrs.evolve(call, input={key: filled(value) for key, value in call.input.items()}) for call in self.calls
        ]

    def oracle(self) -> dict[str, Any]:
        """What one call at a time gives, and every version that anything had at any step."""
        history: list[dict[str, Any]] = []

        async def run() -> dict[str, Any]:
            workspace: Workspace
            workspace = Workspace(self.twin(lambda effect, path: history.append(workspace.snapshot())))
            history.append(workspace.snapshot())
            done = await run_one_by_one(
                self.called(ROOT), Registry(workspace.tools()), State(), lanes=POLICIES[self.policy]
            )
            files = self.left(workspace)
            names = {name for one in history for name in one} | set(files)
            return {
                "results": [result.to_json() for result in done.results],
                "state": done.state.to_json(),
                "files": files,
                "versions": {name: [None, *(one.get(name) for one in history)] for name in names},
            }

        execution = sim.run(run)
        assert execution.error is None, execution.error
        return execution.value

    def left(self, workspace: Workspace) -> dict[str, Any]:
        """What stands in the end."""
        if self.fault is not None and self.fault.effect == "remove":
            # A directory that the disk does not let go of is gone by its name, and the rest is there for `recover`.
            workspace.disk.recover()
        return workspace.snapshot()

    async def run(self, workspace: Workspace, cancel_at: int | None = None) -> None:
        """Run the batch; a task of its own cancels it after so many steps of that task."""
        runtime = Runtime(Registry(workspace.tools()), POLICIES[self.policy], self.limit)
        batch = runtime.open_batch(State(), batch_id="mix")

        async def cancel() -> None:
            for _ in range(cancel_at or 0):
                await trio.lowlevel.checkpoint()
            batch.cancel("the mix says so")

        async with trio.open_nursery() as nursery, batch:
            if cancel_at is not None:
                nursery.start_soon(cancel)
            for call in self.called(workspace.disk.root):
                batch.submit(call)
            batch.seal()
            async for _ in batch:
                pass
            nursery.cancel_scope.cancel()

    def judge(self, trace: Trace, workspace: Workspace, oracle: dict[str, Any], context: str) -> None:
        files = self.left(workspace)
        notes = trace.notes
        notes["oracle"], notes["files"] = oracle, files
        notes["temp_files"] = [name for name in files if ".toolrt" in name]
        notes["claims_left"] = ["in the table"] * workspace.claim_table.statistics()["groups"]
        require(trace, context=f"{self!r}\n{context}")
        shown = [event.fields for event in trace.events if event.kind == "call.settled"]
        assert "secret" not in repr(shown)
        assert "outside/x" not in repr([fields["content"] for fields in shown])

    def simulated(
        self, choices: list[int], cancel_at: int | None = None, more: Callable[[str, str], None] | None = None
    ) -> None:
        """One execution on the twin, held against every law."""
        workspace: list[Workspace] = []

        async def program() -> None:
            workspace[:] = [Workspace(self.twin(more))]
            await self.run(workspace[0], cancel_at)

        execution = sim.run(program, sim.Choices(choices))
        assert execution.error is None, (self, choices, cancel_at, execution.error)
        self.judge(execution.trace, workspace[0], self.oracle(), f"{choices} {cancel_at}")


@st.composite
def mixes(draw: st.DrawFn, *, faults: bool = False) -> FileMix:
    """Any batch of the workspace's tools."""
    return FileMix(
        draw(calls_of(TOOLS)),
        draw(st.sampled_from(list(POLICIES))),
        draw(st.sampled_from([10, 1, 2, 3])),
        draw(st.builds(Fault, st.sampled_from(EFFECTS), st.sampled_from(PLACES), st.sampled_from(ERRNOS)))
        if faults
        else None,
    )


@pytest.mark.seldom
@SETTINGS
@given(mix=mixes(), schedule=schedules(max_size=80))
def test_laws_hold_for_every_spelling_and_schedule(mix: FileMix, schedule: list[int]) -> None:
    """Any calls, however their files are spelled, end as the oracle, and keep every law."""
    mix.simulated(schedule)


@pytest.mark.seldom
@SETTINGS
@given(mix=mixes(), schedule=schedules(max_size=80), cancel_at=st.integers(0, 40))
def test_laws_hold_with_a_cancel(mix: FileMix, schedule: list[int], cancel_at: int) -> None:
    """Cancelled at any step, what had finished is as the oracle has it, and no file is half written."""
    mix.simulated(schedule, cancel_at)


@pytest.mark.seldom
@SETTINGS
@given(mix=mixes(faults=True), schedule=schedules(max_size=80))
def test_laws_hold_with_a_fault(mix: FileMix, schedule: list[int]) -> None:
    """A disk that fails somewhere fails the calls that need it, and nobody else."""
    mix.simulated(schedule)


@pytest.mark.seldom
@SETTINGS
@given(mix=mixes(faults=True), schedule=schedules(max_size=80), cancel_at=st.integers(0, 40))
def test_laws_hold_with_a_fault_and_a_cancel(mix: FileMix, schedule: list[int], cancel_at: int) -> None:
    """And both together."""
    mix.simulated(schedule, cancel_at)


@pytest.mark.seldom
@SETTINGS
@given(
    calls=calls_of(TOOLS, groups=FOLDED),
    policy=st.sampled_from(list(POLICIES)),
    schedule=schedules(max_size=80),
    cancel_at=st.none() | st.integers(0, 40),
)
def test_laws_hold_on_a_disk_that_folds_names(
    calls: list[ToolCall], policy: str, schedule: list[int], cancel_at: int | None
) -> None:
    """Where case and composition do not count, neither do they for the order."""
    FileMix(calls, policy, fold=Folding(case=True, unicode=True)).simulated(schedule, cancel_at)


#: What all tools say to whose name means something else by the time its turn has come.
CHANGED_MEANWHILE = "by now"


@pytest.mark.seldom
@SETTINGS
@given(
    batches=st.lists(calls_of(TOOLS, most=4), min_size=2, max_size=2),
    schedule=schedules(max_size=100),
    apart=st.booleans(),
)
def test_two_batches_end_as_one_after_the_other(
    batches: list[list[ToolCall]], schedule: list[int], apart: bool
) -> None:
    """Batches at one time, on one runtime or on two, leave the files as in one of their two orders.

    Where a name meant something else when its turn came, a call has said so and done nothing; and a batch of
    several lanes takes its place lane by lane: of those only the laws are asked.
    """
    mix = FileMix([])
    ended: list[Any] = []

    async def program() -> None:
        workspace = Workspace(mix.twin())
        shared = Runtime(Registry(workspace.tools()))
        results: list[Any] = []

        async def run(number: int) -> None:
            runtime = Runtime(Registry(workspace.tools())) if apart else shared
            mine = runtime.open_batch(State(), batch_id=f"batch {number}")
            async with mine:
                for call in FileMix(batches[number]).called(ROOT):
                    mine.submit(call)
                mine.seal()
            results.extend(mine.outcome.results)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, 0)
            nursery.start_soon(run, 1)
        ended[:] = [workspace, results]

    async def one_by_one(order: list[int]) -> Any:
        workspace = Workspace(mix.twin())
        for number in order:
            await run_one_by_one(FileMix(batches[number]).called(ROOT), Registry(workspace.tools()), State())
        return workspace.snapshot()

    execution = sim.run(program, sim.Choices(schedule))
    assert execution.error is None, execution.error
    require(execution.trace)
    workspace, results = ended
    assert workspace.claim_table.statistics()["groups"] == 0
    lanes = {
        (event.fields["batch"], event.fields["lane"])
        for event in execution.trace.events
        if event.kind == "call.started"
    }
    if len(lanes) <= 2 and not any(CHANGED_MEANWHILE in str(result.error) for result in results):
        orders = [sim.run(lambda order=order: one_by_one(order)).value for order in ([0, 1], [1, 0])]
        assert workspace.snapshot() in orders


@pytest.mark.seldom
def test_every_tool_comes_to_both_ends_in_what_is_drawn() -> None:
    """The mixes have calls of every tool that succeed, and calls of every tool that are refused."""
    found: set[tuple[str, str]] = set()
    for calls in drawn(calls_of(TOOLS, least=5, most=10), 200):
        value = FileMix(calls).oracle()
        found |= {(result["name"], result["outcome"]) for result in value["results"]}
    assert found >= {(name, outcome) for name in names_of(TOOLS) for outcome in ("ok", "error")}


# At every single step.


def crowd(name: str) -> list[ToolCall]:
    """A call of this tool in the middle of others that want the same files."""
    tool = next(tool for tool in TOOLS if tool.name == name)
    middle = [(name, input) for path in ("d/b.txt", "d") for input in inputs_at(tool, path, "d/fresh")]
    around = [
        ("edit_file", {"path": "link", "old": "one", "new": "one two"}),
        ("write_file", {"path": "way/new.txt", "content": "one\n"}),
        *middle[:3],
        ("edit_file", {"path": "way/b.txt", "old": "two", "new": "three"}),
        ("read_file", {"path": "d/b.txt"}),
        ("edit_file", {"path": "hard.txt", "old": "one", "new": "1"}),
    ]
    return [ToolCall(f"id{number}", *call) for number, call in enumerate(around)]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", names_of(TOOLS))
def test_laws_hold_cancelled_before_any_effect(name: str) -> None:
    """The batch is cancelled right before the n-th effect on the disk, for every n."""
    mix = FileMix(crowd(name))
    oracle = mix.oracle()
    at, reached = 0, True
    while reached:
        reached = False
        schedules_tried = ([], [1] * 60, [0, 1] * 40)
        for choices in schedules_tried if FULL else schedules_tried[at % 3 :][:1]:
            found: list[Any] = []

            async def program(at: int = at, found: list[Any] = found) -> None:
                count = 0

                def step(effect: str, path: str) -> None:
                    nonlocal count, reached
                    if count == at:
                        reached = True
                        batch.cancel("now")
                    count += 1

                workspace = Workspace(mix.twin(step))
                found.append(workspace)
                batch = Runtime(Registry(workspace.tools())).open_batch(State())
                async with batch:
                    for call in mix.calls:
                        batch.submit(call)
                    batch.seal()

            execution = sim.run(program, sim.Choices(choices))
            assert execution.error is None, (at, choices, execution.error)
            mix.judge(execution.trace, found[0], oracle, f"{at} {choices}")
        at += 1
    assert at > 5


@pytest.mark.drawn(12)
@pytest.mark.parametrize("name", names_of(TOOLS))
@pytest.mark.parametrize("number", ERRNOS, ids=lambda number: errno.errorcode[number])
def test_laws_hold_with_a_fault_of_any_effect(name: str, number: int) -> None:
    """Every kind of effect on every file fails, one after the other, under several schedules."""
    calls = crowd(name)
    effects: dict[tuple[str, str], None] = {}
    FileMix(calls).simulated([], more=lambda effect, path: effects.setdefault((effect, path)))
    assert len(effects) > 5
    # Where not all are asked for, each number fails at every third effect, and the three together at all.
    for effect, path in list(effects) if FULL else list(effects)[ERRNOS.index(number) :: 3]:
        mix = FileMix(calls, fault=Fault(effect, path, number))
        for choices in ([], [1] * 60):
            mix.simulated(choices)


# The same on a real directory with real threads.


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    """So many values of a strategy, the same in every run."""
    found: list[Any] = []

    @settings(max_examples=count, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(value=strategy)
    def draw(value: Any) -> None:
        found.append(value)

    draw()
    return found


def really(mix: FileMix, base: Path, cancel_at: int | None = None) -> None:
    (base / "work").mkdir(parents=True)
    (base / "outside").mkdir()
    (base / "outside/x.txt").write_text("one secret\n")
    plant(base / "work", CONTENT)
    workspace = Workspace(base / "work")
    with toolrt.record() as recorder:
        trio.run(mix.run, workspace, cancel_at)
    mix.judge(recorder.trace(), workspace, mix.oracle(), f"real {cancel_at}")
    assert (base / "outside/x.txt").read_text() == "one secret\n"
    assert os.listdir(base / "outside") == ["x.txt"]


@pytest.mark.seldom
def test_laws_hold_on_a_real_directory() -> None:
    """A hundred batches (a thousand in the full run) with real threads end as the oracle and keep every law."""
    with tempfile.TemporaryDirectory() as base:
        for number, mix in enumerate(drawn(mixes(), REPEATS)):
            really(mix, Path(base).resolve() / str(number))


@pytest.mark.seldom
def test_laws_hold_on_a_real_directory_with_a_cancel() -> None:
    """And with a cancel at whatever step the threads have come to."""
    with tempfile.TemporaryDirectory() as base:
        for number, (mix, at) in enumerate(drawn(st.tuples(mixes(), st.integers(0, 60)), REPEATS)):
            really(mix, Path(base).resolve() / str(number), at)
