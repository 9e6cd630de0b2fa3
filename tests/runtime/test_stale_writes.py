"""A write of state that rests on an old value: refused where it would undo an earlier call's change, and nowhere else.

All tests go through tools, `run` and the batch's updates.
"""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

import toolrt
from toolrt import WRITE, Claim, Registry, Runtime, State, ToolCall, ToolContext, ToolOutput, sim


@toolrt.tool(safe=True)
async def add(ctx: ToolContext, text: str, after: float = 0) -> ToolOutput:
    """The natural, wrong way: it reads the state it was shown, and sets what it makes of that."""
    todos = (*ctx.state.get("todos", ()), text)
    await trio.sleep(after)
    return ToolOutput(text, modifiers=[lambda state: state.set("todos", todos)])


@toolrt.tool(safe=True)
async def put(ctx: ToolContext, key: str, value: Any) -> ToolOutput:
    """Sets a key without having read it."""
    return ToolOutput(None, modifiers=[lambda state: state.set(key, value)])


def calls(*names: str, **shared: Any) -> list[ToolCall]:
    """Calls of these tools; a name may be followed by a text: ``"add a"``."""
    found = []
    for number, name in enumerate(names):
        tool, _, text = name.partition(" ")
        found.append(ToolCall(str(number), tool, {**({"text": text} if text else {}), **shared}))
    return found


def ended(tools: list[Any], asked: list[ToolCall], state: State | None = None, **options: Any) -> Any:
    """What comes of the calls, under many schedules: one outcome, or the test fails."""

    async def program() -> Any:
        done = await Runtime(Registry(tools), **options).run(asked, state)
        return tuple((result.outcome.value, result.error) for result in done.results), done.state.to_json()

    first = sim.run(program)
    assert first.error is None, first.error
    report = sim.explore(program, sim.Portfolio(40), check=lambda it: it.error is None and it.value == first.value)
    assert not report.failures, report.failures[0].explain()
    (results, left) = first.value
    return [outcome for outcome, _ in results], [error for _, error in results], left["values"]


def test_second_and_third_of_three_writes_are_refused_by_name() -> None:
    """Two of three writes were lost in silence; now both calls are errors that name the key and say what to write."""
    outcomes, errors, left = ended([add], calls("add a", "add b", "add c"))
    assert outcomes == ["ok", "error", "error"]
    assert left == {"todos": ["a"]}
    for error in errors[1:]:
        assert "'todos'" in error
        assert "call 0 (add)" in error
        assert "state.set('todos'" in error


def test_serial_is_as_it_was() -> None:
    """One after the other, every call sees what the one before it left."""
    outcomes, _, left = ended([add], calls("add a", "add b", "add c"), lanes=toolrt.serial)
    assert (outcomes, left) == (["ok"] * 3, {"todos": ["a", "b", "c"]})


@pytest.mark.parametrize("policy", [toolrt.by_claims, toolrt.by_safety, toolrt.parallel])
def test_every_policy_with_shared_lanes_refuses(policy: Any) -> None:
    """What a lane is for decides nothing."""
    assert ended([add], calls("add a", "add b"), lanes=policy)[0] == ["ok", "error"]


def test_read_inside_the_modifier_counts() -> None:
    """A modifier that looks at ctx.state works on the old value as well."""

    @toolrt.tool(safe=True)
    async def late(ctx: ToolContext, text: str) -> ToolOutput:
        return ToolOutput(text, modifiers=[lambda state: state.set("todos", (*ctx.state.get("todos", ()), text))])

    assert ended([late], calls("late a", "late b"))[0] == ["ok", "error"]


@pytest.mark.parametrize(
    "read",
    [
        lambda state: state["n"],
        lambda state: state.get("n"),
        lambda state: dict(state)["n"],
        lambda state: {**state}["n"],
        lambda state: dict(state.items())["n"],
        lambda state: next(iter(state.values())),
        lambda state: state.to_json()["values"]["n"],
        lambda state: 0 if state == State({"n": 0}) else 1,
        lambda state: 0 if State({"n": 0}) == state else 1,
        lambda state: int("0" not in repr(state)),
        lambda state: copy.copy(state)["n"],
        lambda state: copy.deepcopy(state)["n"],
        lambda state: pickle.loads(pickle.dumps(state))["n"],
        lambda state: state.set("other", 1)["n"],
        lambda state: state.replace(working_dir="src")["n"],
        lambda state: state.update({"a": 1}).delete("a")["n"],
    ],
)
def test_every_way_to_read_a_key_counts(read: Any) -> None:
    """However the tool got the value out of ctx.state, what it makes of it is old."""

    @toolrt.tool(safe=True)
    async def count(ctx: ToolContext) -> ToolOutput:
        seen = read(ctx.state)
        return ToolOutput(None, modifiers=[lambda state: state.set("n", seen + 1)])

    outcomes, errors, left = ended([count], calls("count", "count"), State({"n": 0}))
    assert (outcomes, left) == (["ok", "error"], {"n": 1})
    assert "'n'" in errors[1]


@pytest.mark.parametrize(
    "look",
    [lambda state: "n0" in state, len, lambda state: bool(state), list, lambda state: state.keys() & {"n0"}],
)
def test_a_key_that_was_looked_for_and_came_is_refused(look: Any) -> None:
    """A tool that chose a key because it was free must not take the place of the call that took it first."""

    @toolrt.tool(safe=True)
    async def append(ctx: ToolContext, text: str) -> ToolOutput:
        assert not look(ctx.state)
        return ToolOutput(None, modifiers=[lambda state: state.set("n0", text)])

    outcomes, _, left = ended([append], calls("append a", "append b"))
    assert (outcomes, left) == (["ok", "error"], {"n0": "a"})


def test_state_handed_on_as_it_was_is_refused() -> None:
    """A modifier that gives back ctx.state would undo every change since; nothing of the kind is applied."""

    @toolrt.tool(safe=True)
    async def whole(ctx: ToolContext, text: str) -> ToolOutput:
        return ToolOutput(None, modifiers=[lambda _: ctx.state.set(f"by {text}", text)])

    outcomes, errors, left = ended([put, whole], [ToolCall("0", "put", {"key": "k", "value": 1}), *calls("whole x")])
    assert (outcomes, left) == (["ok", "error"], {"k": 1})
    assert "'k'" in errors[1]


def test_field_of_the_state_is_a_key_too() -> None:
    """A typed field that was read and replaced from the old value is refused by its name."""

    @toolrt.tool(safe=True)
    async def hint(ctx: ToolContext, text: str) -> ToolOutput:
        hints = (*ctx.state.hints, text)
        return ToolOutput(None, modifiers=[lambda state: state.replace(hints=hints)])

    outcomes, errors, _ = ended([hint], calls("hint a", "hint b"))
    assert outcomes == ["ok", "error"]
    assert "field hints" in errors[1]
    assert "state.replace(hints=" in errors[1]


def test_none_of_the_modifiers_of_a_stale_call_applies() -> None:
    """A call is answered for as a whole: what it would also have changed is not changed either."""

    @toolrt.tool(safe=True)
    async def both(ctx: ToolContext, text: str) -> ToolOutput:
        old = ctx.state["n"]
        return ToolOutput(
            text, modifiers=[lambda state: state.set(text, "here"), lambda state: state.set("n", old + text)]
        )

    outcomes, _, left = ended([both], calls("both a", "both b"), State({"n": ""}))
    assert (outcomes, left) == (["ok", "error"], {"n": "a", "a": "here"})


# Never refused


@pytest.mark.parametrize(
    "change",
    [
        lambda state, text: state.set("todos", (*state.get("todos", ()), text)),
        lambda state, text: state.update({"todos": (*dict(state).get("todos", ()), text)}),
        lambda state, text: State({**state, "todos": (*state.get("todos", ()), text)}),
    ],
)
def test_modifier_that_reads_its_argument_is_never_refused(change: Any) -> None:
    """What it makes is made of the merged state, whatever the tool looked at before."""

    @toolrt.tool(safe=True)
    async def right(ctx: ToolContext, text: str) -> ToolOutput:
        assert ctx.state.get("todos") is None
        return ToolOutput(text, modifiers=[lambda state: change(state, text)])

    outcomes, _, left = ended([right], calls("right a", "right b", "right c"))
    assert (outcomes, left) == (["ok"] * 3, {"todos": ["a", "b", "c"]})


def test_claim_on_the_key_is_the_other_way() -> None:
    """A tool that claims the key sees what earlier calls made of it, and is never stale."""

    @toolrt.tool(claims=[Claim(("state", "todos"), WRITE)])
    async def claimed(ctx: ToolContext, text: str) -> ToolOutput:
        todos = (*ctx.state.get("todos", ()), text)
        return ToolOutput(text, modifiers=[lambda state: state.set("todos", todos)])

    outcomes, _, left = ended([claimed], calls("claimed a", "claimed b"))
    assert (outcomes, left) == (["ok", "ok"], {"todos": ["a", "b"]})


# Stops, cancels, limits


def test_stale_call_that_stops_the_batch_decides_before_later_ones_start() -> None:
    """No later call with effects has started when the stale one is known to have failed."""
    started: list[str] = []

    @toolrt.tool(safe=True, stops_batch=True)
    async def strict(ctx: ToolContext, text: str) -> ToolOutput:
        todos = (*ctx.state.get("todos", ()), text)
        return ToolOutput(text, modifiers=[lambda state: state.set("todos", todos)])

    @toolrt.tool(claims=lambda input, state: [Claim(("thing", input["text"]), WRITE)])
    async def effect(ctx: ToolContext, text: str) -> None:
        started.append(text)

    asked = [ToolCall("0", "add", {"text": "a", "after": 5}), *calls("strict b", "effect c", "effect d")]
    for limit in (1, 2, 10):
        outcomes, _, left = ended([add, strict, effect], asked, limit=limit)
        assert (outcomes, left) == (["ok", "error", "skipped", "skipped"], {"todos": ["a"]})
        assert started == []


def test_call_that_is_not_stale_lets_later_ones_go() -> None:
    """One that stops the batch when it fails keeps them waiting only until it is known that it did not."""

    @toolrt.tool(safe=True, stops_batch=True)
    async def strict(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(None, modifiers=[lambda state: state.set("n", state.get("n", 0) + 1)])

    @toolrt.tool(claims=[Claim("thing", WRITE)])
    async def effect(ctx: ToolContext) -> None:
        return None

    asked = [ToolCall("0", "add", {"text": "a", "after": 5}), *calls("strict", "effect", "strict", "effect")]
    for limit in (1, 2, 10):
        assert ended([add, strict, effect], asked, limit=limit)[0] == ["ok"] * 5


def test_call_that_waits_to_be_decided_holds_no_slot() -> None:
    """With one slot, the earlier call that it waits for can still run."""
    outcomes, _, _ = ended(
        [add], [ToolCall(str(at), "add", {"text": "abc"[at], "after": 3 - at}) for at in range(3)], limit=1
    )
    assert outcomes == ["ok", "error", "error"]


def test_call_that_returned_before_a_cancel_is_ok() -> None:
    """The earlier call is interrupted, so nothing changed what the later one had read: it is kept (law 10)."""

    async def program() -> Any:
        runtime = Runtime(Registry([add]))
        async with runtime.open_batch() as batch:
            batch.submit(ToolCall("0", "add", {"text": "a", "after": 10}))
            batch.submit(ToolCall("1", "add", {"text": "b", "after": 1}))
            batch.seal()
            await trio.sleep(2)
            batch.cancel("enough")
        return [result.outcome.value for result in batch.outcome.results], batch.outcome.state.get("todos")

    for seed in range(10):
        assert sim.run(program, sim.RandomWalk(seed=seed)).value == (["interrupted", "ok"], ("b",))


# Sub-batches and parts


def test_child_reads_for_its_parent() -> None:
    """What a child read of its parent's state is old for the parent's modifier, too."""

    @toolrt.tool(safe=True)
    async def look(ctx: ToolContext) -> Any:
        return ctx.state.get("n")

    @toolrt.tool(safe=True)
    async def parent(ctx: ToolContext) -> ToolOutput:
        done = await ctx.run([ToolCall("c", "look", {})])
        seen = done.results[0].content
        return ToolOutput(None, modifiers=[lambda state: state.set("n", seen + 1)])

    outcomes, _, left = ended([look, parent], calls("parent", "parent"), State({"n": 0}))
    assert (outcomes, left) == (["ok", "error"], {"n": 1})


def test_state_of_a_sub_batch_still_comes_from_the_parents() -> None:
    """What a sub-batch left alone in its outcome's state is the parent's old value; what it made itself is not."""

    @toolrt.tool(safe=True)
    async def parent(ctx: ToolContext, key: str) -> ToolOutput:
        done = await ctx.run([ToolCall("c", "put", {"key": "made", "value": 7})])
        seen = done.state[key]
        return ToolOutput(None, modifiers=[lambda state: state.set(key, seen + 1)])

    for key, wanted in (("n", ["ok", "error", "error"]), ("made", ["ok", "ok", "ok"])):
        asked = [ToolCall(str(at), "parent", {"key": key}) for at in (1, 2)]
        asked.insert(0, ToolCall("p", "put", {"key": "n", "value": 1}))
        assert ended([put, parent], asked, State({"n": 0, "made": 0}))[0] == wanted


def test_children_are_held_to_it_among_themselves() -> None:
    """A sub-batch is a batch: the second of two children that add to one list is refused."""

    @toolrt.tool(safe=True)
    async def parent(ctx: ToolContext) -> Any:
        done = await ctx.run(calls("add a", "add b"))
        return [result.outcome.value for result in done.results], done.state["todos"]

    async def program() -> Any:
        done = await Runtime(Registry([add, parent])).run(calls("parent"))
        return done.results[0].content

    assert sim.run(program).value == (["ok", "error"], ("a",))


def test_modifiers_that_a_sub_batch_hands_on_are_judged_as_the_parents() -> None:
    """A child's modifier that reads its argument is right at every level."""

    @toolrt.tool(safe=True)
    async def count(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(None, modifiers=[lambda state: state.set("n", state["n"] + 1)])

    @toolrt.tool(safe=True)
    async def parent(ctx: ToolContext) -> ToolOutput:
        done = await ctx.run(calls("count", "count"))
        return ToolOutput(done.state["n"], modifiers=done.modifiers)

    outcomes, _, left = ended([count, parent], calls("parent", "parent"), State({"n": 0}))
    assert (outcomes, left) == (["ok", "ok"], {"n": 4})


def test_part_of_a_tool_reads_for_its_call() -> None:
    """A context made by isolate shows the same state."""

    @toolrt.tool(safe=True)
    async def part(ctx: ToolContext) -> ToolOutput:
        seen = ctx.isolate(working_dir="src").state["n"]
        return ToolOutput(None, modifiers=[lambda state: state.set("n", seen + 1)])

    outcomes, _, left = ended([part], calls("part", "part"), State({"n": 0}))
    assert (outcomes, left) == (["ok", "error"], {"n": 1})


def test_state_that_a_tool_sees_is_a_state() -> None:
    """It is immutable, equal to the plain one both ways, can be copied and pickled, and the outcome's is plain."""

    @toolrt.tool(safe=True)
    async def look(ctx: ToolContext) -> ToolOutput:
        state, plain = ctx.state, State({"k": (1,)}, working_dir="src")
        assert isinstance(state, State)
        assert state == plain
        assert plain == state
        assert state is ctx.state
        assert pickle.loads(pickle.dumps(state)) == copy.deepcopy(state) == plain
        assert (repr(state), state.to_json(), dict(state)) == (repr(plain), plain.to_json(), dict(plain))
        assert (len(state), list(state), "k" in state, 1 in state) == (1, ["k"], True, False)
        assert str(state.working_dir) == "src"
        with pytest.raises(AttributeError):
            state.working_dir = None  # type: ignore[misc, assignment]
        with pytest.raises(KeyError):
            state["absent"]
        with pytest.raises(TypeError):
            hash(state)
        return ToolOutput(None, modifiers=[lambda given: given.set("seen", given == plain)])

    done = trio.run(Runtime(Registry([look])).run, calls("look"), State({"k": (1,)}, working_dir="src"))
    assert done.results[0].error is None
    assert done.state["seen"] is True
    assert type(done.state) is State


# Pure tools


def pure_add(runs: list[str], **options: Any) -> Any:
    """The natural, wrong way, of a tool whose calls may run again."""

    @toolrt.tool(name="add", safe=True, pure=True, **options)
    async def body(ctx: ToolContext, text: str, after: float = 0) -> ToolOutput:
        runs.append(text)
        todos = (*ctx.state.get("todos", ()), text)
        await trio.sleep(after)
        return ToolOutput(todos, modifiers=[lambda state: state.set("todos", todos)])

    return body


@pytest.mark.parametrize("limit", [1, 2, 10])
@pytest.mark.parametrize("delays", [(0, 0, 0), (3, 2, 1), (1, 2, 3), (2, 3, 1)])
def test_pure_tool_runs_again_and_ends_like_serial(limit: int, delays: tuple[int, ...]) -> None:
    """Instead of being refused it works on the merged state: the one exception to law 3."""
    asked = [ToolCall(str(at), "add", {"text": "abc"[at], "after": delays[at]}) for at in range(3)]
    outcomes, _, left = ended([pure_add([])], asked, limit=limit)
    assert (outcomes, left) == (["ok"] * 3, {"todos": ["a", "b", "c"]})
    done = trio.run(Runtime(Registry([pure_add([])])).run, calls("add a", "add b"))
    assert [result.content for result in done.results] == [("a",), ("a", "b")]


def test_pure_tool_that_is_not_stale_runs_once() -> None:
    """Only what would be refused runs again, and only once."""
    runs: list[str] = []
    trio.run(Runtime(Registry([pure_add(runs)])).run, calls("add a", "add b", "add c"))
    assert sorted(runs) == ["a", "b", "b", "c", "c"]


def test_pure_tool_with_a_timeout_counts_each_run() -> None:
    """A second run has its own time, and may time out, too."""
    asked = [ToolCall(str(at), "add", {"text": "abc"[at], "after": 3 - at}) for at in range(3)]
    assert ended([pure_add([], timeout=3.5)], asked)[0] == ["ok"] * 3


def test_cancel_while_a_pure_call_runs_again_is_truthful() -> None:
    """It is OK, refused or interrupted, never unanswered, and what it changed is there when it is OK."""

    async def program(wait: float) -> Any:
        runtime = Runtime(Registry([pure_add([])]), limit=2)
        async with runtime.open_batch() as batch:
            for at, text in enumerate("abc"):
                batch.submit(ToolCall(text, "add", {"text": text, "after": 3 - at}))
            batch.seal()
            await trio.sleep(wait)
            batch.cancel("enough")
        return [result.outcome.value for result in batch.outcome.results], batch.outcome.state.get("todos", ())

    for wait in (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 9.5):
        for seed in range(5):
            execution = sim.run(partial(program, wait), sim.RandomWalk(seed=seed))
            assert execution.error is None, execution.error
            outcomes, todos = execution.value
            assert set(outcomes) <= {"ok", "error", "interrupted", "not_started"}
            assert todos == tuple(text for text, outcome in zip("abc", outcomes, strict=True) if outcome == "ok")
