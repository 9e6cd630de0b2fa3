"""Policies of a user's own on a running batch: which calls share a lane, and which ready call goes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from tests.runtime._tools import READ, WRITE, Diary, call, claims, outcomes, runtime
from toolrt import LaneChoice, PolicyCall, Registry, Runtime, State, ToolCall, sim
from toolrt.errors import DefinitionRefused, PolicyRefused
from toolrt.order import MOST_OVERTAKEN

Lane = tuple[PolicyCall, ...]


class TwoPerLane:
    """At most two calls share a lane."""

    def place(self, call: PolicyCall, lane: Lane) -> LaneChoice | bool:
        if not toolrt.by_claims(call.tool, call.input):
            return False
        return LaneChoice.JOIN if len(lane) < 2 else LaneChoice.OPEN


class SameAsNeighbour:
    """A call joins its neighbour where both are of one tool."""

    def place(self, call: PolicyCall, lane: Lane) -> LaneChoice:
        return LaneChoice.JOIN if lane and lane[-1].name == call.name else LaneChoice.OPEN


class Counting:
    """Every third call runs alone: it counts for itself, so batches that share it share the count."""

    def __init__(self) -> None:
        self.count = 0

    def place(self, call: PolicyCall, lane: Lane) -> bool:
        self.count += 1
        return self.count % 3 != 0


class CountingAnew:
    """The same with a counter for each batch."""

    def for_batch(self) -> Counting:
        return Counting()

    def place(self, call: PolicyCall, lane: Lane) -> bool:
        raise AssertionError("it is asked for a policy for each batch")


class Answering:
    """Gives what it was made with, or raises it."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def place(self, call: PolicyCall, lane: Lane) -> Any:
        return self(())

    def __call__(self, ready: Sequence[PolicyCall]) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def planned(policy: Any, calls: Sequence[ToolCall], *tools: toolrt.Tool) -> list[list[str]]:
    lanes = toolrt.partition(calls, Registry(tools), State(), policy)
    return [[one.call_id for one in lane.calls] for lane in lanes]


def lettered(names: str) -> list[ToolCall]:
    """One call for each letter: `a` is safe, `w` writes the state key `k`, `x` says nothing."""
    return [ToolCall(f"{name}{index}", name) for index, name in enumerate(names)]


def tools(diary: Diary | None = None) -> list[toolrt.Tool]:
    diary = diary or Diary()
    return [
        diary.tool("a", 1, safe=True),
        diary.tool("b", 1, safe=True),
        diary.tool("w", 1, claims=claims((("state", "k"), WRITE))),
        diary.tool("x", 1),
    ]


@pytest.mark.parametrize(
    ("policy", "names", "lanes"),
    [
        (TwoPerLane(), "aaaaa", [["a0", "a1"], ["a2", "a3"], ["a4"]]),
        (TwoPerLane(), "axaaa", [["a0"], ["x1"], ["a2", "a3"], ["a4"]]),
        (TwoPerLane(), "wwaa", [["w0"], ["w1"], ["a2", "a3"]]),
        (SameAsNeighbour(), "aabba", [["a0", "a1"], ["b2", "b3"], ["a4"]]),
        (CountingAnew(), "aaaaa", [["a0", "a1"], ["a2"], ["a3", "a4"]]),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "place") else None,
)
@pytest.mark.parametrize("delay", [0, 0.5, 5])
def test_rule_decides_on_the_lane_as_it_stands(policy: Any, names: str, lanes: list[list[str]], delay: float) -> None:
    """`partition` and a batch agree, however fast the calls come: a lane that was split looks whole to the rule."""
    given = runtime(*tools(), lanes=policy)

    async def program() -> list[list[str]]:
        async with given.open_batch() as batch:
            for one in lettered(names):
                batch.submit(one)
                await trio.sleep(delay)
        found: dict[int, list[str]] = {}
        for tracked in batch.calls:
            found.setdefault(tracked.lane, []).append(tracked.call_id)  # type: ignore[arg-type]
        return list(found.values())

    assert planned(policy, lettered(names), *tools()) == lanes
    assert sim.run(program).value == lanes


@pytest.mark.parametrize("count", [3, 4, 5, 6])
@pytest.mark.parametrize("as_function", [False, True])
def test_rule_that_keeps_state_between_batches_is_found_out(count: int, as_function: bool) -> None:
    """`partition` asks twice, out of step; the error names both plans and what to do."""
    rule = Counting()

    def counting(tool: toolrt.Tool, input: Any) -> bool:
        return rule.place(None, ())  # type: ignore[arg-type]

    with pytest.raises(PolicyRefused, match=r"and then .*for_batch\(\)") as caught:
        planned(counting if as_function else rule, lettered("a" * count), *tools())
    assert (caught.value.kind, caught.value.batch_id, caught.value.outcome) == ("lane", None, None)


WRONG = [ValueError("no idea"), None, "join", 1, [True], PolicyCall]


@pytest.mark.parametrize("answer", WRONG, ids=repr)
async def test_rule_that_fails_loses_nothing(answer: Any, autojump_clock: trio.testing.MockClock) -> None:
    """Its calls run alone, all are answered, and the error comes when the batch is left, with the outcome."""
    diary = Diary()
    given = runtime(*tools(diary), lanes=Answering(answer))
    with pytest.raises(PolicyRefused, match=r"lane policy Answering, batch .*, call 0: expected place") as caught:
        await given.run(lettered("aa"))
    assert outcomes(caught.value.outcome.results) == ["ok", "ok"]
    assert diary.lines == ["a+", "a-", "a+", "a-"]
    read = []
    with pytest.raises(PolicyRefused):
        async with given.open_batch() as batch:
            batch.submit(call("a"))
            batch.seal()
            async for update in batch:
                read.append(type(update).__name__)
    assert read == ["ResultReady", "StateMerged"]
    assert outcomes(batch.outcome.results) == ["ok"]
    with pytest.raises(PolicyRefused, match="Nothing was run"):
        planned(given.lanes, lettered("a"), *tools())


async def test_blocks_own_error_outranks_that_of_a_policy() -> None:
    """What the caller raised goes out as it is."""
    with pytest.raises(KeyError):
        async with runtime(*tools(), lanes=Answering(None)).open_batch() as batch:
            batch.submit(call("a"))
            raise KeyError


@pytest.mark.seldom
@pytest.mark.parametrize("refused", [ValueError("broken"), 5, lambda tool, input: True])
async def test_for_batch_that_fails_loses_nothing(refused: Any) -> None:
    """As a rule that fails: the calls run alone."""

    class Broken(TwoPerLane):
        def for_batch(self) -> Any:
            return Answering(refused)(())

    with pytest.raises(PolicyRefused, match=r"for_batch\(\) to give a policy") as caught:
        await runtime(*tools(), lanes=Broken()).run([call("a")] * 3)
    assert outcomes(caught.value.outcome.results) == ["ok"] * 3
    with pytest.raises(PolicyRefused, match="Nothing was run"):
        planned(Broken(), lettered("a"), *tools())


class _Async:
    async def place(self, call: PolicyCall, lane: Lane) -> bool:
        return True

    async def __call__(self, ready: Sequence[PolicyCall]) -> PolicyCall:
        return ready[0]


class _Declares(TwoPerLane):
    def __init__(self, gives_up: object) -> None:
        self.gives_up = gives_up

    def __call__(self, ready: Sequence[PolicyCall]) -> PolicyCall:
        return ready[0]


class _Factory(TwoPerLane):
    for_batch = 5


async def _picks(ready: Sequence[PolicyCall]) -> PolicyCall:
    return ready[0]


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("lanes", "by_claims", "a lane policy"),
        ("lanes", None, "a lane policy"),
        ("lanes", TwoPerLane, "give an instance"),
        ("lanes", _Async(), "not async def"),
        ("lanes", _Declares("batch_ends"), "names of laws"),
        ("lanes", _Declares([5]), "names of laws"),
        ("lanes", _Declares(["batch_ends"]), "never"),
        ("lanes", _Factory(), "a method without arguments"),
        ("slots", 5, "a slot policy"),
        ("slots", TwoPerLane(), "a slot policy"),
        ("slots", Answering, "give an instance"),
        ("slots", _picks, "not async def"),
        ("slots", _Async(), "not async def"),
        ("slots", _Declares(["no_needless_wait"]), "no gives_up"),
    ],
)
def test_policy_that_cannot_be_one_is_refused(option: str, value: Any, expected: str) -> None:
    """When the runtime is made; the text says what was expected and got."""
    with pytest.raises(DefinitionRefused, match=expected) as caught:
        Runtime(Registry([]), **{option: value})
    assert caught.value.what.startswith(f"Runtime({option})")
    if option == "lanes":
        with pytest.raises(DefinitionRefused, match=expected):
            toolrt.partition([], Registry([]), State(), value)


# Slots


def last_first(ready: Sequence[PolicyCall]) -> PolicyCall:
    """The ready call of the highest call_index."""
    return ready[-1]


def started(names: str, limit: int, slots: Any, **tool: Any) -> list[int]:
    """The calls by when they started."""
    diary: list[int] = []

    @toolrt.tool(schema=None, **(tool or {"safe": True}))
    async def t(ctx: toolrt.ToolContext) -> None:
        diary.append(ctx.call_index)
        await trio.sleep(1)

    async def program() -> None:
        await runtime(t, limit=limit, slots=slots).run([ToolCall(name, "t") for name in names])

    execution = sim.run(program)
    assert execution.error is None
    return diary


def test_slot_policy_says_who_goes_next() -> None:
    """It is asked where more calls are ready than there are slots, and no more where they all fit."""
    asked: list[list[int]] = []

    def slots(ready: Sequence[PolicyCall]) -> PolicyCall:
        asked.append([one.call_index for one in ready])
        return ready[-1]

    assert started("abcd", 1, slots) == [3, 2, 1, 0]
    assert asked == [[0, 1, 2, 3], [0, 1, 2], [0, 1]]
    assert started("abcd", 3, last_first)[:3] != [0, 1, 2]
    assert started("abcd", 4, last_first) == [0, 1, 2, 3]
    assert started("abcd", 2, None) == [0, 1, 2, 3]


def test_slot_policy_orders_ready_calls_alone() -> None:
    """Tickets come first: calls on one file run in call order, whatever the policy says."""
    assert started("abc", 1, last_first, claims=claims(("f", WRITE))) == [0, 1, 2]


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("no idea"), None, 0, PolicyCall(0, "t", {}, tools()[0]), "t"],
    ids=lambda one: repr(one)[:20],
)
def test_slot_policy_that_fails_loses_nothing(answer: Any) -> None:
    """A call that it was not shown, nothing, an error: calls go on in call order, and the error has the outcome."""
    diary = Diary()
    given = runtime(diary.tool("a", 1, safe=True), slots=Answering(answer), limit=1)

    async def program() -> None:
        await given.run([call("a")] * 3)

    error = sim.run(program).error
    assert isinstance(error, PolicyRefused)
    assert "slot policy Answering, batch " in str(error)
    assert "expected one of the ready calls" in str(error)
    assert outcomes(error.outcome.results) == ["ok"] * 3
    assert given.tables[0].busy is False


def test_slot_policy_that_names_a_call_that_waits_for_its_ticket_is_refused() -> None:
    """It remembers a call from earlier on, which is not ready now."""
    seen: list[PolicyCall] = []

    def remembers(ready: Sequence[PolicyCall]) -> PolicyCall:
        seen.extend(ready)
        return seen[0]

    given = runtime(Diary().tool("a", 1, safe=True), slots=remembers, limit=1)

    async def program() -> None:
        await given.run([call("a")] * 3)

    error = sim.run(program).error
    assert isinstance(error, PolicyRefused)
    assert "expected one of the ready calls (call 1, 2)" in str(error)


def test_slot_policy_that_starves_a_call_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newest first, while calls keep coming: the oldest call gets its turn all the same."""
    monkeypatch.setattr("toolrt.order._policies.MOST_OVERTAKEN", 5)
    given = runtime(Diary().tool("a", 1, safe=True), slots=last_first, limit=1)

    async def program() -> None:
        async with given.open_batch() as batch:
            for _ in range(20):
                batch.submit(call("a"))
                batch.submit(call("a"))
                await trio.sleep(1)

    error = sim.run(program).error
    assert isinstance(error, PolicyRefused)
    assert "overtaken more than 5 times by later ones" in str(error)
    assert outcomes(error.outcome.results) == ["ok"] * 40
    assert MOST_OVERTAKEN == 1_000


def test_slot_policy_of_a_sealed_batch_starves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once no call can come every call gets its turn, in whatever order."""
    monkeypatch.setattr("toolrt.order._policies.MOST_OVERTAKEN", 2)
    assert started("abcdefghij", 1, last_first) == list(range(9, -1, -1))


def test_slot_policy_with_state_has_one_for_each_batch() -> None:
    """``for_batch()`` gives it."""

    class Alternating:
        """The first and the last in turn."""

        def __init__(self) -> None:
            self.turn = 0

        def for_batch(self) -> Alternating:
            return Alternating()

        def __call__(self, ready: Sequence[PolicyCall]) -> PolicyCall:
            self.turn += 1
            return ready[-(self.turn % 2)]

    slots = Alternating()
    first = started("abcd", 1, slots)
    assert first == started("abcd", 1, slots) == [3, 0, 2, 1]


def test_slot_policy_says_it_in_sub_batches_too() -> None:
    """Children of one parent share its slot; the policy is asked about them as well."""
    order: list[int] = []

    @toolrt.tool(safe=True, schema=None)
    async def child(ctx: toolrt.ToolContext) -> None:
        order.append(ctx.call_index)
        await trio.sleep(1)

    @toolrt.tool(safe=True, schema=None)
    async def parent(ctx: toolrt.ToolContext) -> None:
        await ctx.run([ToolCall(str(index), "child") for index in range(4)])

    async def program() -> None:
        await runtime(child, parent, limit=1, slots=last_first).run([call("parent")])

    assert sim.run(program).error is None
    assert order == [3, 2, 1, 0]


@pytest.mark.parametrize("cancelled", [False, True])
def test_slot_policy_that_exits_ends_the_batch(cancelled: bool) -> None:
    """An exit goes out when the batch is left; every call is answered."""
    given = runtime(Diary().tool("a", 1, safe=True), slots=Answering(SystemExit()), limit=1)
    batches = []

    async def program() -> None:
        async with given.open_batch() as batch:
            batches.append(batch)
            batch.submit(call("a"))
            batch.submit(call("a"))
            if cancelled:
                batch.cancel("why")

    execution = sim.run(program)
    assert (execution.error is None) is cancelled
    assert all(result.outcome.value == "not_started" for result in batches[0].outcome.results)


def test_slot_policy_that_cancels_the_batch_breaks_nothing() -> None:
    """What it names is answered by then, and is not started."""
    holder: list[toolrt.Batch] = []

    def cancels(ready: Sequence[PolicyCall]) -> PolicyCall:
        holder[0].cancel("the policy")
        return ready[-1]

    given = runtime(Diary().tool("a", 1, safe=True), slots=cancels, limit=1)

    async def program() -> list[str]:
        async with given.open_batch() as batch:
            holder.append(batch)
            for _ in range(3):
                batch.submit(call("a"))
        return outcomes(batch.outcome.results)

    assert sim.run(program).value == ["not_started"] * 3


def test_every_order_of_slots_ends_alike() -> None:
    """Every trace of three calls below a limit, with a slot policy: one outcome, none is lost."""
    cell = claims(("f", READ))

    async def program() -> list[str]:
        t = Diary().tool("t", claims=cell)
        return outcomes((await runtime(t, limit=1, slots=last_first).run([call("t")] * 3)).results)

    report = sim.explore(program, sim.Exhaustive(), check=lambda it: it.value == ["ok"] * 3, max_executions=2_000)
    assert report.verdict is sim.PASS
