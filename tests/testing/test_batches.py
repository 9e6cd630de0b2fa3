"""Batches of a user's own tools: inputs fit their schemas, calls often meet, and what timing decides is found."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal import scrutineer

import toolrt
from toolrt import invariants, testing
from toolrt.errors import DefinitionRefused
from toolrt.testing._inputs import inputs

DRAW = settings(
    max_examples=60,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def check_all(batches: st.SearchStrategy[testing.BatchExample], number: int = 0, **more: Any) -> None:
    """Draw batches from the seed of this number, and check each."""

    @seed(number)
    @settings(DRAW, **more)
    @given(batch=batches)
    def ends_alike(batch: testing.BatchExample) -> None:
        batch.check()

    ends_alike()


def shop(*, honest: bool) -> tuple[list[toolrt.Tool], Callable[[], dict[str, int]]]:
    """Two tools on one stock; the second one says falsely that it touches nothing."""
    stock = {"tea": 5, "milk": 5}

    def the_item(input: Any, state: toolrt.State) -> list[toolrt.Claim]:
        return [toolrt.Claim(("stock", input["item"]), toolrt.WRITE)]

    @toolrt.tool(claims=the_item)
    async def take(ctx: toolrt.ToolContext, item: Literal["tea", "milk"], count: int = 1) -> int:
        left = stock[item] - count
        await trio.sleep(0.1)
        stock[item] = left
        return left

    @toolrt.tool(**({"claims": the_item} if honest else {"safe": True}))
    async def look(ctx: toolrt.ToolContext, item: Literal["tea", "milk"]) -> int:
        return stock[item]

    return [take, look], lambda: dict(stock)


def wrong_shop() -> Any:
    return shop(honest=False)


def right_shop() -> Any:
    return shop(honest=True)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("number", range(8))
def test_twenty_examples_find_the_tool_that_lies(number: int) -> None:
    with pytest.raises(testing.Wrong, match="timing decides"):
        check_all(testing.batches(wrong_shop), number, max_examples=20)


@pytest.mark.seldom
def test_failure_is_the_smallest_batch_with_its_race() -> None:
    """Hypothesis leaves two calls, and the explorer names the variable and both lines."""
    with pytest.raises(testing.Wrong) as caught:
        check_all(testing.batches(wrong_shop), phases=[Phase.generate, Phase.shrink])
    text = str(caught.value) + "\n".join(caught.value.__notes__)
    shown = re.search(r"BatchExample\((\w+)\(item='(\w+)'.*\), (\w+)\(item='(\w+)'.*\)\)", text)
    assert shown is not None, text
    assert {shown[1], shown[3]} == {"look", "take"}
    assert shown[2] == shown[4]
    item = shown[2]
    assert re.search(rf"The race: (take wrote|look read) `stock\['{item}'\]` \(test_batches.py:\d+\) before ", text)


@pytest.mark.seldom
def test_tools_that_say_what_they_touch_end_alike() -> None:
    check_all(testing.batches(right_shop), max_examples=12)


@pytest.mark.seldom
def test_calls_often_claim_the_same() -> None:
    """More than three of four batches have two calls that name one path; without pools it is 44 to 65 of 100."""
    drawn: list[testing.BatchExample] = []

    @seed(1)
    @settings(DRAW, max_examples=100)
    @given(batch=testing.batches(_files, min_calls=2))
    def collect(batch: testing.BatchExample) -> None:
        drawn.append(batch)

    collect()
    meet = [batch for batch in drawn if len({call.input["path"] for call in batch}) < len(batch)]
    assert len(meet) > len(drawn) * 3 / 4
    assert len({call.input["path"] for batch in drawn for call in batch}) > 20


def _files() -> list[toolrt.Tool]:
    @toolrt.tool(claims=lambda input, state: [toolrt.Claim(("file", input["path"]), toolrt.WRITE)])
    async def write(ctx: toolrt.ToolContext, path: str, text: str) -> None: ...

    @toolrt.tool(claims=lambda input, state: [toolrt.Claim(("file", input["path"]), toolrt.READ)])
    async def read(ctx: toolrt.ToolContext, path: str) -> None: ...

    return [write, read]


class _Node(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(pattern="^[a-z]+$", max_length=8)]
    weight: Annotated[float, msgspec.Meta(gt=0, le=2)]
    children: list[_Node] = []


@pytest.mark.seldom
@given(data=st.data())
@settings(DRAW)
def test_inputs_fit_nested_schemas(data: st.DataObject) -> None:
    """Structs that hold themselves, unions, tuples, patterns and bounds: the tool takes all that is drawn."""

    @toolrt.tool
    async def grow(
        ctx: toolrt.ToolContext,
        tree: _Node,
        depth: Annotated[int, msgspec.Meta(ge=1, lt=4)],
        pair: tuple[int, str],
        names: dict[str, bool] | None = None,
    ) -> None: ...

    fits = lambda input: not isinstance(grow.decode(input), list)  # noqa: E731
    drawn = data.draw(inputs(grow.schema, {}, fits))
    assert fits(drawn)
    json.dumps(drawn)


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": "integer", "exclusiveMinimum": 3, "maximum": 9, "multipleOf": 3}, lambda value: value in (6, 9)),
        (
            {"type": "array", "items": {"enum": [1, 2]}, "minItems": 2, "uniqueItems": True},
            lambda value: len(value) == 2,
        ),
        ({"type": "array", "prefixItems": [{"const": 1}], "items": False}, lambda value: value == [1]),
        ({"type": ["null", "boolean"]}, lambda value: value in (None, True, False)),
        ({"allOf": [{"type": "string"}, {"minLength": 2, "maxLength": 3}]}, lambda value: len(value) in (2, 3)),
        ({"type": "string", "format": "date"}, lambda value: value.count("-") == 2),
        ({"properties": {"a": {"const": 1}}, "required": ["a", "b"]}, lambda value: value["a"] == 1 and "b" in value),
        (True, lambda value: True),
    ],
)
def test_each_keyword_is_followed(schema: Any, fits: Callable[[Any], bool]) -> None:
    whole = {"type": "object", "properties": {"it": schema}, "required": ["it"]}

    @settings(DRAW, max_examples=30)
    @given(input=inputs(whole, {}, lambda input: True))
    def draw(input: Any) -> None:
        assert fits(input["it"])

    draw()


@given(batch=testing.batches(_files, values={"path": ["a", "b"], "text": st.just("x")}, max_calls=3))
@settings(DRAW)
def test_values_of_the_caller_outrank_the_schema(batch: testing.BatchExample) -> None:
    assert all(call.input["path"] in ("a", "b") and call.input.get("text", "x") == "x" for call in batch)
    assert batch[:1] == batch.calls[:1]
    assert 1 <= len(batch) <= 3


def test_laws_and_check_of_the_caller_are_asked() -> None:
    @invariants.law("no_write", "Nothing is written.")
    def no_write(trace: Any) -> list[invariants.Violation]:
        return [
            invariants.Violation("no_write", "Nothing is written.", "it was") for _ in trace.of_kind("call.started")
        ]

    mine = {**invariants.LAWS, "no_write": no_write}
    for options, words in (
        ({"laws": mine}, "Nothing is written"),
        ({"check": lambda execution: [f"{len(execution.value)} values"]}, "3 values"),
    ):
        with pytest.raises(testing.Wrong, match=words):
            check_all(testing.batches(_files, **options))  # type: ignore[arg-type]


@pytest.mark.seldom
def test_a_late_call_ends_as_the_clock_likes() -> None:
    """Where a call took too long, endings are not compared; a cancel is explored where the caller asks for it."""

    def slow() -> list[toolrt.Tool]:
        @toolrt.tool(timeout=1, safe=True)
        async def wait(ctx: toolrt.ToolContext) -> str:
            await trio.sleep(0.9)
            return "done"

        return [wait]

    check_all(testing.batches(slow), max_examples=10)
    check_all(testing.batches(slow, cancel_at="any"), max_examples=10)


def test_tools_that_keep_something_need_a_function() -> None:
    """A registry whose tools remember is the same in each execution: no verdict, and what to do."""
    tools = right_shop()[0]
    with pytest.raises((testing.Wrong, testing.NotShown)):
        check_all(testing.batches(tools))


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"registry": 3}, "registry"),
        ({"registry": []}, "registry"),
        ({"registry": lambda: "tools"}, "registry"),
        ({"executions": 0}, "executions"),
        ({"min_calls": -1}, "min_calls"),
        ({"min_calls": 3, "max_calls": 2}, "max_calls"),
        ({"values": {"nothing": [1]}}, "values"),
        ({"values": {"path": "text"}}, "values"),
        ({"values": [1]}, "values"),
        ({"laws": ["mine"]}, "laws"),
        ({"check": 1}, "check"),
        ({"state": {}}, "state"),
        ({"jobs": 2}, "batches"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], what: str) -> None:
    with pytest.raises(DefinitionRefused, match=what):
        testing.batches(**{"registry": _files, **arguments})


def _is_traced() -> bool:
    if sys.version_info >= (3, 12):
        tool = scrutineer.MONITORING_TOOL_ID
        return sys.monitoring.get_tool(tool) is not None and sys.monitoring.get_events(tool) != 0
    return sys.gettrace() is not None


@pytest.mark.skipif(not scrutineer.Tracer.can_trace(), reason="another tool traces lines")
def test_hypothesis_traces_no_line_of_an_exploration() -> None:
    """Tracing takes eight times as long, and what it says, the explorer says better."""
    traced: list[bool] = []

    def tools() -> list[toolrt.Tool]:
        @toolrt.tool(safe=True)
        async def look(ctx: toolrt.ToolContext) -> None:
            traced.append(_is_traced())

        return [look]

    @settings(DRAW, max_examples=1)
    @given(batch=testing.batches(tools))
    def test(batch: testing.BatchExample) -> None:
        with scrutineer.Tracer(should_trace=True):  # as Hypothesis does for examples that fail
            assert _is_traced()
            batch.check()
            assert _is_traced()

    test()
    assert traced
    assert not any(traced)
