"""Guards never stay locked: however a call ends, the next mutation proceeds and the tables are empty."""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

import toolrt
from tests._profile import FULL
from toolrt import WRITE, MemoryDisk, Registry, Runtime, State, ToolCall, ToolContext, Workspace, sim
from toolrt.invariants import LAWS, require
from toolrt.workspace import HardLink, Permissions, Permit, Question, RealDisk, Rule, Symlink

START = {"a.txt": "<0>", "b.txt": "b", "alias": Symlink("a.txt"), "c.txt": "c", "hard": HardLink("c.txt")}

#: Whether the full repeat counts are wanted, as for the properties.

#: The contents that each file may have: none of them is half of one.
WHOLE = {
    "a.txt": {b"<0>", b"<1>", b"<2>", b"<3>"},
    "b.txt": {b"b", b"B"},
    "c.txt": {b"c", b"C"},
    "hard": {b"c", b"C"},
    "new/d.txt": {b"d"},
}

#: One after the other on a.txt by two of its names, one that fails, and others beside them.
CALLS = [
    ToolCall("1", "edit_file", {"path": "a.txt", "old": "<0>", "new": "<1>"}),
    ToolCall("2", "edit_file", {"path": "alias", "old": "<1>", "new": "<2>"}),
    ToolCall("3", "edit_file", {"path": "./a.txt", "old": "no such text", "new": ""}),
    ToolCall("4", "edit_file", {"path": "b.txt", "old": "b", "new": "B"}),
    ToolCall("5", "edit_file", {"path": "hard", "old": "c", "new": "C"}),
    ToolCall("6", "write_file", {"path": "new/d.txt", "content": "d"}),
    ToolCall("7", "read_file", {"path": "alias"}),
    ToolCall("8", "edit_file", {"path": "a.txt", "old": "<2>", "new": "<3>"}),
]

#: What the next batch does: one mutation of each file.
NEXT = [
    ToolCall(path, "write_file", {"path": path, "content": f"next {path}"})
    for path in ("a.txt", "alias", "b.txt", "c.txt", "hard", "new/d.txt")
]


def assert_nothing_is_held(workspace: Workspace) -> None:
    """No ticket, no lock entry."""
    assert workspace.claim_table.statistics()["groups"] == 0
    assert not workspace.claim_table.busy


def assert_whole(files: dict[str, Any], start: dict[str, Any]) -> None:
    """Every file is one of its versions, and no file is there that nobody wrote."""
    for path, content in files.items():
        assert path == "new/" or path == "alias" or content in WHOLE[path], (path, content)
    assert set(start) <= set(files)


async def assert_next_proceeds(workspace: Workspace) -> None:
    """Mutations of all the files, in a batch of their own, end well and at once."""
    runtime = Runtime(Registry(workspace.tools()))
    with trio.fail_after(30):
        async with runtime.open_batch(State(), batch_id="next") as batch:
            for call in NEXT:
                batch.submit(call)
    assert [result.error for result in batch.outcome.results] == [None] * len(NEXT)
    assert_nothing_is_held(workspace)


# In the simulator: something happens at every step


class At:
    """Lets everybody but one task step as `policy` says, and that task at step `number` or when nobody else can."""

    def __init__(self, number: int, policy: sim.Policy, task: str = "main.0") -> None:
        self.number, self.policy, self.task = number, policy, task
        #: Whether nobody else could step before that.
        self.forced = False

    def start(self, info: sim.RunInfo) -> None:
        self.policy.start(info)

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        others = tuple(path for path in enabled if path != self.task)
        if self.task in enabled and (step >= self.number or not others):
            self.forced = self.forced or step < self.number
            return enabled.index(self.task)
        return enabled.index(others[self.policy.choose(others, step)])


@attrs.define
class Disturbed:
    """One batch that something happens to, and the next one."""

    #: What happens: called once, with the batch and the scope around it.
    happening: Callable[[toolrt.Batch, trio.CancelScope], None]
    #: How approval is answered, or None for no approval.
    ask: Callable[[Question], Any] | None = None
    fault: Any = None
    limit: int | None = 3
    #: Whether it happened while the batch was there.
    hit: bool = False

    async def program(self) -> bool:
        workspace = Workspace(MemoryDisk(START, fault=self.fault))
        start = workspace.snapshot()
        approve = None if self.ask is None else Permissions(workspace, [Rule("read_file", "**", "allow")], self.ask)
        runtime = Runtime(Registry(workspace.tools()), limit=self.limit, approve=approve, timeout=1000)
        batch = runtime.open_batch(State(), batch_id="first")
        self.hit = False
        over = False

        async def disturb(scope: trio.CancelScope) -> None:
            await trio.lowlevel.checkpoint()
            if not over:
                self.hit = True
                self.happening(batch, scope)

        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(disturb, scope)
            with scope:
                async with batch:
                    for call in CALLS:
                        batch.submit(call)
                    batch.seal()
                    async for _ in batch:
                        pass
            over = True
        assert_nothing_is_held(workspace)
        assert_whole(workspace.snapshot(), start)
        self.fault = None
        workspace.disk._fault = None  # type: ignore[attr-defined]
        await assert_next_proceeds(workspace)
        return self.hit


def cancel_batch(batch: toolrt.Batch, scope: trio.CancelScope) -> None:
    batch.cancel("at this step")


def cancel_scope(batch: toolrt.Batch, scope: trio.CancelScope) -> None:
    scope.cancel()


def time_out(batch: toolrt.Batch, scope: trio.CancelScope) -> None:
    """All running calls at once have had their time."""
    for call in batch._engine.records:  # type: ignore[attr-defined]  # a call's own scope is the engine's
        if call.status is toolrt.Status.EXECUTING:
            call.scope.deadline = trio.current_time()


async def soon(question: Question) -> Any:
    await trio.lowlevel.checkpoint()
    return Permit.PATH


async def never(question: Question) -> Any:
    if "a.txt" in question.paths:
        await trio.sleep_forever()
    await trio.lowlevel.checkpoint()
    return True


@pytest.mark.drawn(5)
@pytest.mark.parametrize("seed", [None, *range(20 if FULL else 2)])
@pytest.mark.parametrize("ask", [None, soon, never], ids=["unasked", "asked", "never answered"])
@pytest.mark.parametrize("happening", [cancel_batch, cancel_scope, time_out])
def test_guard_is_free_after_anything_at_any_step(happening: Any, ask: Any, seed: int | None) -> None:
    """A cancel from inside or outside, or a timeout of what runs, at each step there is; all laws hold throughout."""
    if ask is never and happening is time_out:
        pytest.skip("nothing ends the batch: a timeout counts no waiting for an answer")
    # The timeouts are brought forward by hand, so they do come before their time.
    laws = {name: law for name, law in LAWS.items() if happening is not time_out or name != "timeout_own_time"}
    # Where others step at random, one step in four where not all are asked for.
    for number in range(0 if seed is None else seed, 10_000, 1 if FULL or seed is None else 4):
        disturbed = Disturbed(happening, ask)
        policy = At(number, sim.Fifo() if seed is None else sim.RandomWalk(seed=seed))
        execution = sim.run(disturbed.program, policy)
        assert execution.error is None, (number, execution.error)
        require(execution.trace, laws, f"step {number}")
        if not disturbed.hit or policy.forced:
            break
    assert number > 25


@pytest.mark.seldom
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_guard_is_free_after_a_fault_at_any_effect(code: int) -> None:
    """Each effect on the disk fails in turn; the other calls and the next mutations proceed."""
    for number in range(10_000):
        effects = 0

        def fault(effect: str, entry: str, number: int = number) -> None:
            nonlocal effects
            effects += 1
            if effects == number + 1:
                raise OSError(code, "planted")

        disturbed = Disturbed(lambda batch, scope: None, fault=fault)
        execution = sim.run(disturbed.program)
        assert execution.error is None, (number, execution.error)
        require(execution.trace, context=f"effect {number}")
        if effects <= number:
            break
    assert number > 10


# With real threads on a real disk


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """The same files on the real disk."""
    root = tmp_path / "work"
    root.mkdir()
    for name in "abc":
        (root / f"{name}.txt").write_text("<0>" if name == "a" else name)
    (root / "alias").symlink_to("a.txt")
    (root / "hard").hardlink_to(root / "c.txt")
    return Workspace(RealDisk(root))


@pytest.mark.parametrize("outside", [False, True])
async def test_guard_is_free_after_a_cancel_at_any_moment_of_real_threads(workspace: Workspace, outside: bool) -> None:
    """Wherever the cancel meets the worker threads."""
    start = workspace.snapshot()
    runtime = Runtime(Registry(workspace.tools()), limit=4)
    for number in range(1_000 if FULL else 40):
        draw = random.Random(number)
        with trio.CancelScope() as scope:
            async with runtime.open_batch() as batch:
                for call in CALLS:
                    batch.submit(call)
                batch.seal()
                for _ in range(draw.randrange(12)):
                    await trio.sleep(draw.choice([0, 0.0003]))
                if outside:
                    scope.cancel()
                    await trio.lowlevel.checkpoint()
                else:
                    batch.cancel("at this moment")
        assert_nothing_is_held(workspace)
        assert_whole(workspace.snapshot(), start)
        with trio.fail_after(30):
            done = await runtime.run([ToolCall("1", "write_file", {"path": "alias", "content": "<0>"})])
        assert done.results[0].ok
    await assert_next_proceeds(workspace)


def _blocking(workspace: Workspace, body: Callable[[], Any], **options: Any) -> toolrt.Tool:
    """A sync tool that claims to change a.txt, by another name, and runs in a thread."""

    @toolrt.tool(claims=lambda input, state: workspace.claims("alias", state, WRITE), owner=workspace, **options)
    def blocking(ctx: ToolContext) -> Any:
        return body()

    return blocking


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "error",
    [RuntimeError, OSError, SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, BaseException, MemoryError],
)
async def test_guard_is_free_after_a_crash_of_the_tools_thread(
    workspace: Workspace, error: type[BaseException], streaming: bool
) -> None:
    """What ends the thread is a result, or comes out of the batch; either way the files are free."""

    def crash() -> None:
        raise error("/home/me/secret")

    runtime = Runtime(Registry([_blocking(workspace, crash), *workspace.tools()]))
    calls = [ToolCall("0", "blocking", {}), *CALLS]
    out: BaseException | None = None
    try:
        if streaming:
            async with runtime.open_batch() as batch:
                for call in calls:
                    batch.submit(call)
            results = batch.outcome.results
        else:
            results = (await runtime.run(calls)).results
    except BaseException as caught:
        out = caught
        results = batch.outcome.results if streaming else ()
    assert (type(out) is error) == (error in (SystemExit, KeyboardInterrupt))
    assert not [result.error for result in results if "/home" in str(result.error)]
    assert_nothing_is_held(workspace)
    await assert_next_proceeds(workspace)


async def test_guard_is_held_by_a_thread_that_outlives_its_timeout(workspace: Workspace) -> None:
    """The next mutation waits for the thread that cannot be stopped, says so, and proceeds when it has ended."""
    let_go = threading.Event()
    runtime = Runtime(Registry([_blocking(workspace, let_go.wait, timeout=0.01), *workspace.tools()]))
    try:
        async with runtime.open_batch() as batch:
            batch.submit(ToolCall("0", "blocking", {}))
            batch.submit(CALLS[0])
            batch.submit(CALLS[3])
            batch.seal()
            while not (batch.calls[0].results and batch.calls[2].results):
                await trio.lowlevel.checkpoint()
            assert batch.calls[0].results[0].outcome is toolrt.Outcome.TIMED_OUT
            assert batch.calls[1].waits_for == [0]
            assert not batch.calls[1].results
            let_go.set()
    finally:
        let_go.set()
    assert [result.outcome.value for result in batch.outcome.results] == ["timed_out", "ok", "ok"]
    assert_nothing_is_held(workspace)


# Approval


@pytest.mark.parametrize("outside", [False, True])
async def test_guard_is_free_after_an_approval_that_never_came(workspace: Workspace, outside: bool) -> None:
    """A call that nobody answers holds its file, and says so, until its batch is cancelled."""

    async def ask(question: Question) -> None:
        await trio.sleep_forever()

    asking = Runtime(Registry(workspace.tools()), approve=Permissions(workspace, ask=ask))
    behind = Runtime(Registry(workspace.tools())).open_batch(batch_id="behind")

    async def mutate() -> None:
        async with behind:
            behind.submit(NEXT[0])
            behind.submit(NEXT[2])

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with asking.open_batch(batch_id="asked") as batch:
                batch.submit(CALLS[0])
                batch.submit(CALLS[1])
                await trio.testing.wait_all_tasks_blocked()
                assert [call.waits_for for call in batch.calls] == [["approval"], [0, "approval"]]
                nursery.start_soon(mutate)
                while len(behind.calls) < 2 or not behind.calls[1].results:
                    await trio.lowlevel.checkpoint()
                assert behind.calls[0].waits_for == ["asked#1"]
                assert behind.calls[0].status is toolrt.Status.QUEUED
                if outside:
                    scope.cancel()
                    await trio.lowlevel.checkpoint()
                else:
                    batch.cancel("nobody answers")
    assert [result.outcome.value for result in batch.outcome.results] == ["not_started"] * 2
    assert all(result.ok for result in behind.outcome.results)
    assert_nothing_is_held(workspace)
    await assert_next_proceeds(workspace)


# What waits can be seen


async def test_queue_waits_are_on_the_calls(autojump_clock: trio.testing.MockClock) -> None:
    """Each call says for whom it waits: by any name of the file, for all before it, and for another batch's."""
    workspace = Workspace(MemoryDisk(START))

    @toolrt.tool(claims=lambda input, state: workspace.claims(input["path"], state, WRITE), owner=workspace)
    async def hold(ctx: ToolContext, path: str) -> None:
        await trio.sleep(1)

    runtime = Runtime(Registry([hold]))
    async with (
        runtime.open_batch(batch_id="one") as one,
        runtime.open_batch(batch_id="two") as two,
    ):
        for path in ("a.txt", "alias", "b.txt", "./a.txt"):
            one.submit(ToolCall(path, "hold", {"path": path}))
        await trio.sleep(0.5)
        for path in ("b.txt", "alias", "c.txt", "hard"):
            two.submit(ToolCall(path, "hold", {"path": path}))
        await trio.testing.wait_all_tasks_blocked()
        seen = [[call.waits_for for call in batch.calls] for batch in (one, two)]
        assert seen == [[[], [0], [], [1]], [["one#2"], ["one#3"], [], [2]]]
        await trio.sleep(0.9)
        assert [[call.waits_for for call in batch.calls] for batch in (one, two)] == [
            [[], [], [], [1]],
            [[], ["one#3"], [], [2]],
        ]
    assert [call.waited for call in one.calls] == [0, 1, 0, 2]
    assert [call.waited for call in two.calls] == [0.5, 2.5, 0, 1]
    assert_nothing_is_held(workspace)
