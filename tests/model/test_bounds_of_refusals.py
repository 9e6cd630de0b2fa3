"""What a model reads of a call that was refused, and the time that this takes, are bounded."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import toolrt
from toolrt import Outcome, Registry, Runtime, ToolCall, ToolContext
from toolrt.errors import DefinitionRefused
from toolrt.interop import read_response

#: Ten problems of the longest kind, and the words around them.
TEXT_MOST = 12_000


@attrs.frozen
class Part:
    old: str


@toolrt.tool(safe=True)
async def derived(ctx: ToolContext, items: list[int] = [], parts: list[Part] = []) -> str:  # noqa: B006
    return "done"


@toolrt.tool(safe=True, schema=None)
async def bare(ctx: ToolContext, items: Any = None) -> str:
    return "done"


_ITEMS = {"type": "array", "items": {"type": "string", "pattern": "^a+$"}}


@toolrt.tool(safe=True, schema={"type": "object", "properties": {"items": _ITEMS}, "additionalProperties": False})
async def given_schema(ctx: ToolContext, items: Any = None) -> str:
    return "done"


TOOLS = Registry([derived, bare, given_schema])


def refusal(name: str, input: Any, **options: Any) -> str:
    result = trio.run(Runtime(TOOLS, **options).run, [ToolCall("1", name, input)]).results[0]
    assert result.outcome in (Outcome.INVALID, Outcome.DENIED)
    assert result.error is not None
    return result.error


@pytest.mark.parametrize("name", ["derived", "given_schema"])
def test_refusal_names_the_first_ten_problems_and_counts_the_rest(name: str) -> None:
    """However many there are."""
    said = refusal(name, {"items": [0.5] * 10_000})
    assert said.count("input.items[") == 10
    assert "input.items[9]" in said
    assert said.endswith("and 9,990 more")


@pytest.mark.parametrize("name", ["derived", "bare", "given_schema"])
def test_unknown_fields_are_named_up_to_ten(name: str) -> None:
    """Also where a schema's check would list them all."""
    said = refusal(name, {f"key{number}": 1 for number in range(20_000)})
    assert said.count("expected no such field") == 10
    assert said.endswith("and 19,990 more")


def test_unknown_fields_of_a_part_are_named_up_to_ten() -> None:
    """At any depth."""
    said = refusal("derived", {"parts": [{"old": "", **{f"key{number}": 1 for number in range(20_000)}}]})
    assert said.count("input.parts[0].key") == 10
    assert said.endswith("and 19,990 more")


def test_input_that_is_too_large_to_list_its_problems_has_its_first_one_told() -> None:
    """Listing all takes a hundred times as long as finding one."""
    said = refusal("given_schema", {"items": ["b"] * 300_000})
    assert "input.items[0]: expected what the schema allows" in said
    assert said.endswith("and perhaps more, in an input of this size")


def test_name_of_a_tool_is_cut() -> None:
    """A model that repeats itself does not read it all again."""
    said = refusal("derived" * 1_000_000, {})
    assert len(said) < 1_000
    assert "there are derived, bare, given_schema" in said


LONG = "k" * 3_000
VALUES = st.recursive(
    st.none() | st.integers() | st.sampled_from([LONG, "a", 10**3_000, float("nan"), -1.5e300]),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.sampled_from(["items", "old", LONG]), inner),
    max_leaves=60,
)


@given(
    st.sampled_from(["derived", "bare", "given_schema", LONG]),
    VALUES | st.fixed_dictionaries({"items": VALUES}) | st.fixed_dictionaries({"parts": st.lists(VALUES)}),
)
def test_every_refusal_is_bounded(name: str, input: Any) -> None:
    """Whatever a model sends, and whatever checks it."""

    async def rewrites(request: toolrt.ApprovalRequest) -> toolrt.Rewrite:
        return toolrt.Rewrite(input)

    runtime = Runtime(TOOLS)
    [result] = trio.run(runtime.run, [ToolCall("1", name, input)]).results
    assert result.ok or len(result.error or "") < TEXT_MOST
    [result] = trio.run(Runtime(TOOLS, approve=rewrites).run, [ToolCall("1", "bare", {})]).results
    assert result.ok or len(result.error or "") < TEXT_MOST


def test_arguments_that_are_no_json_are_refused_in_few_words() -> None:
    """They reach the runtime as the text that they are."""
    arguments = json.dumps({"items": "x" * 1_000_000})[:-1]
    [call] = read_response([{"type": "function_call", "call_id": "1", "name": "bare", "arguments": arguments}]).calls
    assert refusal("bare", call.input) == "invalid call of tool 'bare': input: expected object, got string"


def doubled(times: int, keyword: str, referred: bool) -> dict[str, Any]:
    """Two to the power of `times` checks of one value."""
    inner: dict[str, Any] = {"type": "integer"}
    definitions: dict[str, Any] = {"d0": inner}
    for number in range(times):
        inner = {keyword: [inner, inner]}
        definitions[f"d{number + 1}"] = {keyword: [{"$ref": f"#/$defs/d{number}"}] * 2}
    if referred:
        return {"type": "object", "properties": {"x": {"$ref": f"#/$defs/d{times}"}}, "$defs": definitions}
    return {"type": "object", "properties": {"x": inner}}


def of_schema(schema: Any) -> toolrt.Tool:
    @toolrt.tool(schema=schema, safe=True)
    async def own(ctx: ToolContext, /, **input: Any) -> str:
        return "done"

    Registry([own])
    return own


@pytest.mark.parametrize("referred", [True, False], ids=["by reference", "in place"])
@pytest.mark.parametrize("keyword", ["anyOf", "allOf", "oneOf"])
def test_schema_that_may_cost_too_much_is_refused_where_the_tool_is_defined(keyword: str, referred: bool) -> None:
    """A kilobyte of schema can ask for a quarter of a million checks of one value."""
    with pytest.raises(DefinitionRefused, match="at most 10,000 subschemas"):
        of_schema(doubled(18, keyword, referred))


def test_schema_that_may_be_costly_bounds_the_size_of_its_inputs() -> None:
    """What a check costs grows with both."""
    costly = doubled(11, "anyOf", True)
    of_schema(costly)
    many = of_schema({**costly, "properties": {"x": {"type": "array", "items": {"$ref": "#/$defs/d11"}}}})
    found = many.decode({"x": [0] * 100_000})
    assert isinstance(found, list)
    assert "values, by what its schema costs" in str(found)


def test_pattern_that_goes_back_and_forth_gives_up() -> None:
    """In time that grows with the input, not with two to the power of it."""
    own = of_schema({"type": "object", "properties": {"x": {"type": "string", "pattern": "^(?!b)((a+)+)+(?<=a)$"}}})
    assert "input.x: expected what the schema allows" in str(own.decode({"x": "a" * 5_000 + "b"}))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            {"type": "objekt"},
            r"expected what JSON Schema allows \(\"objekt\" is not one of .*\) at schema.type, got string 'objekt'",
        ),
        ({"properties": {"a": {"minimum": "x"}}}, "expected number at schema.properties.a.minimum, got string 'x'"),
        ({"properties": 5}, "expected object at schema.properties, got integer 5"),
        (
            {"properties": {"a": {"type": ["string", "strin"]}}},
            r"is not one of .* at schema.properties.a.type\[1\], got string 'strin'",
        ),
        (
            {"properties": {"a": {"pattern": "("}}},
            r"is not a \"regex\"\) at schema.properties.a.pattern, got string '\('",
        ),
        ({"required": "x"}, "expected array at schema.required, got string 'x'"),
        ({"$ref": "#/$defs/n"}, "expected a reference to something that is there, got '#/\\$defs/n'"),
        ({"$ref": "https://example.org/x"}, "refers only to itself, got one to 'https://example.org/x'"),
    ],
)
def test_refusal_of_a_malformed_schema_says_where_and_what_was_expected(schema: Any, said: str) -> None:
    """So that its author need not look for it."""
    with pytest.raises(DefinitionRefused, match=said):
        of_schema(schema)


_DEFS = {"$defs": {"a": {}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"$id": "https://example.org/x", "properties": {"a": {"$ref": "https://example.org/x#/$defs/a"}}, **_DEFS},
        {"properties": {"a": {"$dynamicRef": "#a"}}, "$defs": {"a": {"$dynamicAnchor": "a", "type": "integer"}}},
        {"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}},
    ],
    ids=["its own id", "a dynamic reference", "the schema of schemas"],
)  # fmt: skip
def test_references_inside_a_schema_are_followed(schema: Any) -> None:
    """Also those that do not look like it."""
    assert not isinstance(of_schema(schema).decode({"a": {}} if "$defs" not in schema else {"a": 1}), list)


def test_refusal_that_names_claims_names_ten_of_them() -> None:
    """Each cut: a model may have chosen what they name."""
    many = [toolrt.Claim(("file", LONG, number), toolrt.WRITE) for number in range(5_000)]

    @toolrt.tool(schema=None, claims=lambda input, state: many if input["x"] else [toolrt.Claim(LONG, toolrt.WRITE)])
    async def touch(ctx: ToolContext, x: bool = True) -> str:
        return "done"

    @toolrt.tool(schema=None, claims=many[1:])
    async def outer(ctx: ToolContext) -> Any:
        return (await ctx.run([ToolCall("1", "touch", {})])).results[0]

    runtime = Runtime(Registry([touch, outer]), approve=lambda request: toolrt.Rewrite({"x": False}))
    denied = trio.run(runtime.run, [ToolCall("1", "touch", {})]).results[0]
    assert denied.outcome is Outcome.DENIED
    child = trio.run(Runtime(Registry([touch, outer])).run, [ToolCall("1", "outer", {})]).results[0].content
    assert child.outcome is Outcome.INVALID
    for result, more in ((denied, "4,990"), (child, "4,989")):
        assert len(result.error) < TEXT_MOST
        assert f"and {more} more" in result.error


def test_path_that_a_model_chose_is_cut() -> None:
    """Where a file tool refuses it."""
    runtime = Runtime(Registry(toolrt.Workspace(toolrt.MemoryDisk()).tools()))
    for path in ("x" * 1_000_000, "x/" * 500_000, "../" * 300_000):
        result = trio.run(runtime.run, [ToolCall("1", "read_file", {"path": path})]).results[0]
        assert result.outcome is Outcome.ERROR
        assert len(result.error or "") < TEXT_MOST
