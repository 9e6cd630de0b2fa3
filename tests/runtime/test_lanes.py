"""Lanes, claims and slots on a running batch."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from tests.runtime._tools import READ, WRITE, Diary, call, claims, outcomes, runtime
from toolrt import Claim, Registry, Runtime, State, ToolCall, ToolContext, ToolOutput
from toolrt.errors import DefinitionRefused

DIARY = Diary()
SAFE = DIARY.tool("safe", safe=True)
CLAIMS = DIARY.tool("claims", claims=claims(("f", WRITE)))
NOTHING = DIARY.tool("nothing")
BY_INPUT = toolrt.tool(name="by_input", safe=lambda input: input["read"], schema=None)(lambda ctx, read: read)
BROKEN = toolrt.tool(name="broken", safe=lambda input: 1 / 0)(lambda ctx: None)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("policy", "lanes"),
    [
        (toolrt.by_claims, [(True, 2), (False, 1), (True, 1), (False, 1), (True, 1), (False, 1)]),
        (toolrt.by_safety, [(True, 1), (False, 1), (False, 1), (True, 1), (False, 1), (True, 1), (False, 1)]),
        (toolrt.parallel, [(True, 7)]),
        (toolrt.serial, [(False, 1)] * 7),
        (lambda tool, input: 1 / 0, [(False, 1)] * 7),
    ],
)
def test_partition_by_policy(policy: Any, lanes: list[tuple[bool, int]]) -> None:
    """Which calls share a lane, by each policy; one that raises means none. Invalid calls are in no lane."""
    calls = [
        call("safe"),
        call("unknown"),
        call("claims"),
        call("nothing"),
        call("by_input", read=True),
        call("by_input", read=False),
        call("safe"),
        call("broken"),
    ]
    plan = toolrt.partition(calls, Registry([SAFE, CLAIMS, NOTHING, BY_INPUT, BROKEN]), State(), policy)
    assert [(lane.safe, len(lane.calls)) for lane in plan] == lanes
    assert [lane.index for lane in plan] == list(range(len(plan)))


async def test_lane_policies_have_names() -> None:
    """A policy is a plain name."""
    names = [policy.__name__ for policy in (toolrt.by_claims, toolrt.by_safety, toolrt.parallel, toolrt.serial)]
    assert names == ["by_claims", "by_safety", "parallel", "serial"]


async def test_claims_that_raise_claim_everything(autojump_clock: trio.testing.MockClock) -> None:
    """The call has a lane of its own, behind all before it."""
    diary = Diary()
    broken = diary.tool("broken", 1, claims=lambda input, state: 1 / 0)  # type: ignore[arg-type, return-value]
    rt = runtime(diary.tool("a", 2, claims=claims(("f", WRITE))), broken)
    async with rt.open_batch() as batch:
        batch.submit(call("a"))
        batch.submit(call("broken"))
    assert diary.lines == ["a+", "a-", "broken+", "broken-"]
    assert [tracked.lane for tracked in batch.calls] == [0, 1]


async def test_tables_of_two_owners_are_both_taken_by_an_exclusive_call(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A runtime over two workspaces: an exclusive call waits for both."""

    class Owner:
        def __init__(self) -> None:
            self.claim_table = toolrt.ClaimTable()

    diary = Diary()
    one, two = Owner(), Owner()
    a = diary.tool("a", 2, claims=claims(("f", WRITE)), owner=one)
    b = diary.tool("b", 3, claims=claims(("f", WRITE)), owner=two)
    rt = runtime(a, b, diary.tool("alone", 1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rt.run, [call("a"), call("b")])
        await trio.sleep(1)
        nursery.start_soon(rt.run, [call("alone")])
    assert diary.lines == ["a+", "b+", "a-", "b-", "alone+", "alone-"] or diary.lines[:2] == ["b+", "a+"]
    assert trio.current_time() == 4
    assert not one.claim_table.busy
    assert not two.claim_table.busy


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 0},
        {"limit": True},
        {"limit": 1.5},
        {"lanes": "by_claims"},
        {"approve": 1},
        {"timeout": 0},
        {"timeout": "1"},
    ],
)
def test_runtime_refuses_options_that_cannot_work(options: dict[str, Any]) -> None:
    """The text says what was expected and got."""
    with pytest.raises(DefinitionRefused, match="expected"):
        Runtime(Registry([]), **options)


async def test_lane_of_ten_thousand_calls() -> None:
    """A very long response runs, in order."""
    rt = runtime(Diary().tool("a", safe=True))
    done = await rt.run([ToolCall(str(i), "a") for i in range(10_000)])
    assert outcomes(done.results) == ["ok"] * 10_000
    assert [result.call_id for result in done.results[:3]] == ["0", "1", "2"]


async def test_claims_and_arguments_are_those_of_the_moment_of_submission(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A caller that uses one dict for several calls gets the order of what is really executed."""
    diary: list[str] = []

    @toolrt.tool(claims=lambda input, state: [Claim(("file", input["path"]), WRITE)])
    async def write(ctx: ToolContext, path: str) -> str:
        diary.append(f"{path} {ctx.claims[0]}")
        return path

    input = {"path": ""}
    async with runtime(write, Diary().tool("alone", 1)).open_batch() as batch:
        batch.submit(call("alone"))
        for path in "abc":
            input["path"] = path
            batch.submit(ToolCall(path, "write", input))
    assert sorted(diary) == ["a write file/a", "b write file/b", "c write file/c"]


async def test_slots_go_to_the_lowest_call_also_when_two_tables_free_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The end of one call may make several ready through different tables; they take slots in call order."""
    diary = Diary()
    stopper = diary.tool("s", 1, claims=claims(("f", WRITE)), stops_batch=True)
    writer = [diary.tool(f"w{i}", 1, claims=claims((f"g{i}", WRITE))) for i in (1, 2)]
    reader = [diary.tool(f"r{i}", 1, claims=claims(("f", READ))) for i in (3, 4)]
    rt = runtime(stopper, *writer, *reader, limit=3)
    async with rt.open_batch() as batch:
        for name in ("s", "w1", "w2", "r3", "r4"):
            batch.submit(call(name))
    assert [tracked.waited for tracked in batch.calls] == [0, 1, 1, 1, 2]


async def test_claims_on_a_state_key_are_kept_apart_from_an_earlier_claim_on_everything() -> None:
    """Serial and by_claims agree also behind a call whose claims failed."""

    @toolrt.tool(claims=lambda input, state: [1 / 0])  # type: ignore[list-item]
    async def wide(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(0, modifiers=[lambda state: state.set("t", 1)])

    @toolrt.tool(claims=[Claim(("state", "t"), READ)])
    async def look(ctx: ToolContext) -> int:
        return int(ctx.state["t"])

    answers = [
        [
            result.content
            for result in (
                await runtime(wide, look, lanes=policy).run([call("wide"), call("look")], State({"t": 0}))
            ).results
        ]
        for policy in (toolrt.by_claims, toolrt.serial, toolrt.parallel)
    ]
    assert answers == [[0, 1], [0, 1], [0, 0]]


def test_partition_of_many_state_keys_is_linear() -> None:
    """Calls on state keys of their own share a lane, however many they are."""
    tool = toolrt.tool(name="t", schema=None, claims=lambda input, state: [Claim(("state", input["k"]), WRITE)])(
        lambda ctx, k: None
    )
    plan = toolrt.partition([call("t", k=str(i)) for i in range(5000)], Registry([tool]), State())
    assert len(plan) == 1


async def test_each_call_has_a_task_of_its_own_and_lanes_of_one_call_share_a_nursery() -> None:
    """A task is never used twice, so what it holds ends with its call; calls of one lane end with their nursery."""
    tasks: list[trio.lowlevel.Task] = []

    async def note(ctx: ToolContext) -> None:
        tasks.append(trio.lowlevel.current_task())

    alone, shared = (toolrt.tool(name=name, safe=safe)(note) for name, safe in (("alone", False), ("shared", True)))
    names = ["alone", "alone", "alone", "shared", "shared", "alone"]
    await runtime(alone, shared).run([call(name) for name in names])
    assert len(set(tasks)) == len(names)
    nurseries = [task.parent_nursery for task in tasks]
    assert [nursery is nurseries[0] for nursery in nurseries] == [True, True, True, True, True, False]
    assert nurseries[-1] is not nurseries[-2]


async def test_a_call_that_runs_alone_starts_in_the_pass_after_the_one_before_it_ended() -> None:
    """Trio's loop makes one pass for each such call, and a few for the batch."""
    passes = 0

    class Counting(trio.abc.Instrument):
        def before_io_wait(self, timeout: float) -> None:
            nonlocal passes
            passes += 1

    @toolrt.tool
    async def instant(ctx: ToolContext) -> None:
        """Has no checkpoint."""

    counting = Counting()
    trio.lowlevel.add_instrument(counting)
    await runtime(instant).run([call("instant")] * 20)
    trio.lowlevel.remove_instrument(counting)
    assert 20 <= passes <= 24


async def test_an_exit_as_a_lane_of_one_call_begins_ends_the_batch() -> None:
    """It goes out when the batch is left; what had ended keeps its result, and nothing behind it starts."""

    def leaves(input: Any, state: State) -> list[Claim]:
        raise SystemExit(3)

    leaving = toolrt.tool(name="leaving", claims=leaves, alone=True)(Diary().tool("body").function)
    with pytest.raises(SystemExit):
        async with runtime(NOTHING, leaving).open_batch() as batch:
            for name in ("nothing", "nothing", "leaving", "nothing"):
                batch.submit(call(name))
    assert outcomes(batch.outcome.results) == ["ok", "ok", "not_started", "not_started"]
    assert "SystemExit in a call" in str(batch.outcome.results[2].error)


@pytest.mark.parametrize(
    "names", [(), ("unknown",), ("safe",), ("nothing",), ("nothing", "nothing"), ("safe", "nothing", "unknown")]
)
async def test_run_is_always_a_checkpoint(names: tuple[str, ...]) -> None:
    """Whatever the calls are, other tasks get their turn, and a cancel is noticed."""
    with trio.testing.assert_checkpoints():
        await runtime(SAFE, NOTHING).run([call(name) for name in names])
    with trio.CancelScope() as scope:
        scope.cancel()
        await runtime(SAFE, NOTHING).run([call(name) for name in names])
    assert scope.cancelled_caught


async def test_a_cancel_between_two_lanes_of_one_call_starts_nothing_more() -> None:
    """The first lane keeps its result, and the calls behind it are answered."""

    async def cancels(ctx: ToolContext) -> str:
        batch.cancel("enough")
        return "done"

    first = toolrt.tool(cancels)
    async with runtime(first, NOTHING).open_batch() as batch:
        for name in ("cancels", "nothing", "nothing"):
            batch.submit(call(name))
    assert outcomes(batch.outcome.results) == ["ok", "not_started", "not_started"]
    assert [tracked.lane for tracked in batch.calls] == [0, 1, 2]


async def test_every_call_sees_the_context_variables_of_the_place_where_the_batch_was_opened() -> None:
    """Whether its lane began with it, or a slot that another call gave back let it start."""
    place = contextvars.ContextVar("place", default="")
    seen: list[str] = []

    @toolrt.tool(safe=True)
    async def looks(ctx: ToolContext) -> None:
        seen.append(place.get())
        place.set("another call")

    place.set("opened")
    batch = runtime(looks, limit=1).open_batch()
    place.set("entered")
    async with batch:
        for _ in range(3):
            batch.submit(call("looks"))
    assert seen == ["opened"] * 3
