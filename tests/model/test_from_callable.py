"""Any function as a tool: its docstring, its annotations, its context, and the loop that it awaits."""

from __future__ import annotations

import asyncio
import functools
import sys
from typing import TYPE_CHECKING, Annotated, Any

import pytest
import trio

import toolrt
from toolrt import Outcome, Registry, Runtime, Tool, ToolCall, aio
from toolrt.errors import DefinitionRefused

pytest.importorskip("msgspec", reason="toolrt[schema] is not installed")

if TYPE_CHECKING:
    from toolrt import ToolContext


def google(net: int, rate: Annotated[float, "its own text"] = 0.19, *, note: str = "") -> float:
    """Give the price with VAT.

    A longer text.

    Args:
        net: the price in cents,
            without VAT
        rate: not this one
        note (str): any text

    Returns:
        the price
    """
    return net * (1 + rate)


def numpy(net: int, rate: float) -> float:
    """Give the price with VAT.

    Parameters
    ----------
    net : int
        the price
    rate : float
        the share
    """
    return net * rate


def rest(net: int) -> int:
    """Give the price.

    :param net: the price
    """
    return net


def run(tool: Tool, input: dict[str, Any], loop: str = "trio") -> toolrt.ToolResult:
    """The result of one call."""
    runtime, calls = Runtime(Registry([tool])), [ToolCall("a", tool.name, input)]
    done = trio.run(runtime.run, calls) if loop == "trio" else asyncio.run(aio.run(runtime, calls))
    return done.results[0]


def test_docstring_and_annotations_tell_the_schema() -> None:
    """The lines on arguments are the descriptions of fields, and no part of the tool's own."""
    tool = Tool.from_callable(google)
    assert tool.name == "google"
    assert tool.description == "Give the price with VAT.\n\nA longer text.\n\nReturns: the price"
    assert tool.schema == {
        "type": "object",
        "properties": {
            "net": {"type": "integer", "description": "the price in cents, without VAT"},
            "rate": {"type": "number", "description": "its own text", "default": 0.19},
            "note": {"type": "string", "description": "any text", "default": ""},
        },
        "required": ["net"],
        "additionalProperties": False,
    }
    assert run(tool, {"net": 100}).content == 119.0
    assert run(tool, {"net": "100"}).outcome is Outcome.INVALID


def test_a_docstring_is_told_whole_where_it_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without docstring-parser, which the extra `schema` installs."""
    monkeypatch.setitem(sys.modules, "docstring_parser", None)
    tool = Tool.from_callable(google)
    assert "net: the price in cents" in tool.description
    assert "description" not in tool.schema["properties"]["net"]


@pytest.mark.parametrize("function", [numpy, rest])
def test_other_docstrings_are_read(function: Any) -> None:
    """NumPy's and reST's."""
    tool = Tool.from_callable(function)
    assert tool.description.startswith("Give the price")
    assert "net" not in tool.description
    assert tool.schema["properties"]["net"] == {"type": "integer", "description": "the price"}


def test_options_are_those_of_tool() -> None:
    """They go before what the function says, and the promises are kept."""
    tool = Tool.from_callable(google, name="vat", description="VAT.", safe=True, timeout=3.0, schema=None)
    assert (tool.name, tool.description, tool.safe, tool.timeout) == ("vat", "VAT.", True, 3.0)
    assert tool.schema["properties"] == {"net": {}, "rate": {}, "note": {}}
    by_field = Tool.from_callable(google, claims={"net": toolrt.WRITE})
    assert by_field.claims_for({"net": 1}, toolrt.State()) != by_field.claims_for({"net": 2}, toolrt.State())
    with pytest.raises(DefinitionRefused, match="nett"):
        Tool.from_callable(google, claims={"nett": toolrt.WRITE})
    notes = toolrt.Claim("file:notes", toolrt.WRITE)
    assert Tool.from_callable(google, claims=[notes]).claims_for({"net": 1}, toolrt.State()) == (notes,)
    with pytest.raises(DefinitionRefused, match="two tools named 'google'"):
        Registry([Tool.from_callable(google), Tool.from_callable(google)])


async def annotated(context: ToolContext, key: str) -> str:
    """Its annotation is known to type checkers alone."""
    return f"{key} in {context.call_id}"


async def by_name(ctx, key: str, /) -> str:  # type: ignore[no-untyped-def]
    """Its context is known by its name, its parameter by its place."""
    return f"{key} in {ctx.call_id}"


def ctx_of_its_own(ctx: str) -> str:
    """It is a field, because its annotation says that it is something else."""
    return ctx


def test_the_context_is_given_to_those_that_take_it() -> None:
    """By annotation or by name."""
    assert run(Tool.from_callable(annotated), {"key": "k"}).content == "k in a"
    assert run(Tool.from_callable(by_name), {"key": "k"}).content == "k in a"
    assert run(Tool.from_callable(ctx_of_its_own), {"ctx": "mine"}).content == "mine"


class Shop:
    """A shop."""

    def __init__(self) -> None:
        self.sold = 0

    def sell(self, count: int, /, note: str = "") -> int:
        """Sell.

        Args:
            count: how many
        """
        self.sold += count
        return self.sold

    def __call__(self, **more: int) -> dict[str, int]:
        """Take anything."""
        return more


def test_methods_partials_and_objects_are_functions() -> None:
    """What a partial has bound is no field any more."""
    shop = Shop()
    sell = Tool.from_callable(shop.sell)
    assert list(sell.schema["properties"]) == ["count", "note"]
    assert run(sell, {"count": 2, "note": "x"}).content == 2
    fixed = Tool.from_callable(functools.partial(google, rate=1.0))
    assert fixed.name == "google"
    assert list(fixed.schema["properties"]) == ["net", "note"]
    assert run(fixed, {"net": 3}).content == 6.0
    assert run(Tool.from_callable(lambda context=1: context, name="own", schema=None), {"context": 2}).content == 2
    anything = Tool.from_callable(shop, schema={"type": "object"})
    assert (anything.name, anything.description) == ("Shop", "A shop.")
    assert run(anything, {"a": 1}).content == {"a": 1}


async def on_asyncio(value: int) -> int:
    """It awaits asyncio."""
    await asyncio.sleep(0)
    return value


async def on_trio(value: int) -> int:
    """It awaits Trio."""
    await trio.lowlevel.checkpoint()
    return value


class _Later:
    """An object that is called, later."""

    async def __call__(self, value: int) -> int:
        """Give the value."""
        await asyncio.sleep(0)
        return value


def test_an_async_function_awaits_the_loop_that_it_is_written_for() -> None:
    """Where asyncio awaits the batch both work; in Trio the other one is told as an error."""
    assert run(Tool.from_callable(on_asyncio), {"value": 1}, "asyncio").content == 1
    assert run(Tool.from_callable(on_trio), {"value": 2}, "asyncio").content == 2
    assert run(Tool.from_callable(on_trio), {"value": 3}).content == 3
    assert run(Tool.from_callable(functools.partial(_Later(), value=5)), {}, "asyncio").content == 5
    assert run(Tool.from_callable(on_asyncio), {"value": 4}).outcome is Outcome.ERROR


def test_a_timeout_cancels_an_asyncio_function() -> None:
    """Its task is cancelled and has ended before the result."""
    ended = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    assert run(Tool.from_callable(hang, timeout=0.01), {}, "asyncio").outcome is Outcome.TIMED_OUT
    assert ended


def test_a_parameter_may_be_a_pydantic_model() -> None:
    """Pydantic makes the schema and the value; input that does not fit it is invalid before the tool runs."""
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

    class Line(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        article: str
        count: int = 1

    def order(lines: Any, note: str = "") -> list[int]:
        """Order.

        Args:
            lines: what to order
        """
        return [line.count for line in lines]

    order.__annotations__["lines"] = list[Line]
    tool = Tool.from_callable(order)
    assert tool.schema["properties"]["lines"]["description"] == "what to order"
    assert run(tool, {"lines": [{"article": "tea"}, {"article": "mug", "count": 3}]}).content == [1, 3]
    wrong = run(tool, {"lines": [{"count": 1}]})
    assert wrong.outcome is Outcome.INVALID
    assert "input.lines[0].article" in (wrong.error or "")


def _generator(count: int) -> Any:
    yield count


def _starred(*counts: int) -> None:
    pass


def test_what_cannot_be_a_tool_is_refused() -> None:
    """The text says what is expected."""
    for wrong, text in [
        (Shop.sell, "a method of an object"),
        (Shop, "a function"),
        ("order", "a function"),
        (_generator, "returns its answer"),
        (_starred, "named parameters"),
        (max, "whose parameters Python knows"),
        (lambda count: count, 'name="..." for a function'),
    ]:
        with pytest.raises(DefinitionRefused, match=text):
            Tool.from_callable(wrong)  # type: ignore[arg-type]
