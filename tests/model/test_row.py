"""Claims that the fields of a call's input name."""

from __future__ import annotations

from typing import Any

import pytest
import trio

import toolrt
from toolrt import EVERYTHING, READ, WRITE, Claim, Registry, Row, Runtime, State, ToolCall, ToolContext, sim
from toolrt.errors import DefinitionRefused
from toolrt.order import STATE_KEY, may_go_stale


def claims_of(claims: Any, **input: Any) -> tuple[Claim, ...]:
    """What a tool with these claims claims for an input of any fields."""
    made = toolrt.tool(name="t", claims=claims, schema=None)(lambda ctx, **fields: None)
    return made.claims_for(input, State())


def test_field_claims_its_value() -> None:
    """The name of a field is short for a row of a table of that name."""
    expected = (Claim(("order_id", "W1"), WRITE),)
    assert claims_of({"order_id": WRITE}, order_id="W1") == expected
    assert claims_of({Row("order_id", "order_id"): WRITE}, order_id="W1") == expected


def test_row_claims_table_and_key() -> None:
    """Several fields are one key of several parts; several rows are several claims, each once."""
    assert claims_of({Row("orders", "id"): READ}, id=7) == (Claim(("orders", 7), READ),)
    assert claims_of({Row("items", "order", "item"): WRITE}, order="W1", item=2) == (Claim(("items", "W1", 2), WRITE),)
    both = claims_of({Row("users", "payer"): WRITE, Row("users", "payee"): WRITE}, payer="a", payee="a")
    assert both == (Claim(("users", "a"), WRITE),)


def test_list_claims_each_element() -> None:
    """Once each, in the order of the list; lists of two fields are all pairs."""
    found = claims_of({Row("orders", "ids"): READ}, ids=["b", "a", "b"])
    assert found == (Claim(("orders", "b"), READ), Claim(("orders", "a"), READ))
    pairs = claims_of({Row("items", "order", "item"): READ}, order=["W1", "W2"], item=[1, 2])
    assert [claim.resource[1:] for claim in pairs] == [("W1", 1), ("W1", 2), ("W2", 1), ("W2", 2)]


@pytest.mark.parametrize(
    "value", [None, [], ["a", None], {"id": "a"}, 0.5, True, [["a"]], float("inf")], ids=lambda value: repr(value)
)
def test_value_that_is_no_key_claims_the_whole_table(value: Any) -> None:
    """What the call may touch then is not known, so it is all that the field could name."""
    assert claims_of({Row("orders", "id"): WRITE}, id=value) == (Claim(("orders",), WRITE, subtree=True),)


def test_missing_field_claims_the_whole_table() -> None:
    """Of a key in several parts, all rows below the parts that are there."""
    assert claims_of({"id": WRITE}) == (Claim(("id",), WRITE, subtree=True),)
    assert claims_of({Row("items", "order", "item"): READ}, order="W1") == (Claim(("items", "W1"), READ, subtree=True),)


def test_default_of_the_function_counts() -> None:
    """A field that the call leaves out has the value that the function gets."""

    @toolrt.tool(claims={"id": READ})
    async def look(ctx: ToolContext, id: str = "main") -> None:
        """Look."""

    assert look.claims_for({}, State()) == (Claim(("id", "main"), READ),)


def test_whole_table_conflicts_with_its_rows_alone() -> None:
    """A writer of the table excludes each row's reader; readers share; other tables are free."""
    (table,) = claims_of({Row("orders"): WRITE})
    (readers,) = claims_of({Row("orders"): READ})
    (row,) = claims_of({Row("orders", "id"): READ}, id="W1")
    (writer,) = claims_of({Row("orders", "id"): WRITE}, id="W1")
    (other,) = claims_of({Row("users", "id"): WRITE}, id="W1")
    assert table.conflicts_with(row)
    assert readers.conflicts_with(writer)
    assert not readers.conflicts_with(row)
    assert not table.conflicts_with(other)


def test_subtree_covers_what_is_below_the_row() -> None:
    """A row claims nothing below it by itself."""
    (item,) = claims_of({Row("items", "order", "item"): WRITE}, order="W1", item=1)
    (plain,) = claims_of({Row("items", "order"): READ}, order="W1")
    (below,) = claims_of({Row("items", "order", subtree=True): READ}, order="W1")
    assert below.conflicts_with(item)
    assert not plain.conflicts_with(item)


def test_one_number_and_one_spelling_are_one_key() -> None:
    """JSON has one kind of number; a key function makes one spelling of several."""
    assert claims_of({"id": READ}, id=7.0) == claims_of({"id": READ}, id=7)
    lower = Row("users", "email", key=str.lower)
    assert claims_of({lower: READ}, email="Ann@X.org") == (Claim(("users", "ann@x.org"), READ),)
    assert claims_of({Row("users", "email", key=str.lower): READ}, email=7) == (EVERYTHING,)
    assert claims_of({Row("users", "email", key=lambda part: [part]): READ}, email="a") == (EVERYTHING,)  # type: ignore[arg-type, return-value]


def test_unknown_field_is_refused_at_the_definition() -> None:
    """From the function's parameters, or from the schema that the tool brings."""
    with pytest.raises(DefinitionRefused, match=r"tool 'pay': claims: expected a field of its input \(order_id\), got"):

        @toolrt.tool(claims={"order": WRITE})
        async def pay(ctx: ToolContext, order_id: str) -> None:
            """Pay."""

    schema = {"type": "object", "properties": {"order_id": {"type": "string"}}}
    with pytest.raises(DefinitionRefused, match=r"\(order_id\), got 'order'"):
        toolrt.tool(name="pay", schema=schema, claims={Row("orders", "order"): WRITE})(lambda ctx, **fields: None)
    with pytest.raises(DefinitionRefused, match="claims_after: expected a field"):
        toolrt.tool(name="pay", claims=lambda input, state: [], claims_after={"order": READ})(
            lambda ctx, order_id: None
        )


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"a": "write"}, "toolrt.READ or toolrt.WRITE"),
        ({("a",): READ}, "the name of a field, or a toolrt.Row"),
        ({"": READ}, "the name of a field, or a toolrt.Row"),
        ({STATE_KEY: READ}, "is a key of the batch's state"),
        ([Row("a", "a")], "a list of claims such as .*, or a function"),
    ],
)
def test_other_mappings_are_refused(claims: Any, expected: str) -> None:
    """In words that say what a mapping of claims is."""
    with pytest.raises(DefinitionRefused, match=expected):
        toolrt.tool(claims=claims, name="t")(lambda ctx, a: None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Row(""),
        lambda: Row(7),  # type: ignore[arg-type]
        lambda: Row("a", ""),
        lambda: Row("a", "b", key="c"),  # type: ignore[arg-type]
        lambda: Row("a", "b", subtree=1),  # type: ignore[arg-type]
    ],
)
def test_row_refuses_what_cannot_be(make: Any) -> None:
    """Names are texts that are not empty, `key` is a function, `subtree` a bool."""
    with pytest.raises(DefinitionRefused):
        make()


def test_row_shows_how_it_is_written() -> None:
    """The text is the expression."""
    assert repr(Row("orders", "id", subtree=True)) == 'Row("orders", "id", subtree=True)'
    assert repr(Row("users", "email", key=str.lower)) == 'Row("users", "email", key=str.lower)'


def test_claims_by_field_are_asked_once() -> None:
    """They look at the input alone, so no call is looked at again before it starts."""
    made = toolrt.tool(name="t", claims={"a": READ})(lambda ctx, a: None)
    by_function = toolrt.tool(name="t", claims=lambda input, state: [])(lambda ctx, a: None)
    assert not may_go_stale(made, True)
    assert may_go_stale(by_function, True)


def test_calls_on_different_rows_overlap_and_on_one_row_keep_their_order() -> None:
    """Three calls of a second, two of them on one row: two virtual seconds."""
    done: list[str] = []

    @toolrt.tool(claims={Row("orders", "order_id"): WRITE})
    async def pay(ctx: ToolContext, order_id: str) -> None:
        await trio.sleep(1)
        done.append(ctx.call_id)

    calls = [ToolCall(f"{at}", "pay", {"order_id": order}) for at, order in enumerate(["W1", "W1", "W2"])]

    async def program() -> float:
        await Runtime(Registry([pay])).run(calls)
        return trio.current_time()

    assert sim.run(program).value == 2
    assert sorted(done) == ["0", "1", "2"]
    assert done.index("0") < done.index("1")
