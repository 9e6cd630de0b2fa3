"""Tools: definition, schemas, strict input, promises that fail closed."""

from __future__ import annotations

import functools
import sys
from typing import Annotated, Any, Literal

import attrs
import msgspec
import pytest

import toolrt
from toolrt import EVERYTHING, READ, WRITE, Claim, Registry, State, ToolContext
from toolrt.errors import DefinitionRefused, MissingExtra


async def _later(input: Any, state: Any = None) -> Any:
    """What cannot be waited for."""


async def _stream(ctx: ToolContext) -> Any:
    """A tool returns its answer, and streams none."""
    yield 1


@attrs.frozen
class Edit:
    """A nested type of the tests."""

    old: str
    new: str = ""


@toolrt.tool
async def patch(
    ctx: ToolContext,
    path: str,
    edits: list[Edit],
    mode: Literal["all", "one"] = "one",
    limit: int | None = None,
    *,
    ratio: float = 0.5,
    count: Annotated[int, msgspec.Meta(ge=1)] = 1,
) -> str:
    """Change a file.

    In several places.
    """
    return path


def problems(tool: toolrt.Tool, input: object) -> list[str]:
    decoded = tool.decode(input)
    assert isinstance(decoded, list), decoded
    return [str(problem) for problem in decoded]


def test_schema_comes_from_the_type_hints() -> None:
    """Required fields, defaults, literals and nested types, closed to anything else."""
    schema = patch.schema
    assert schema["required"] == ["path", "edits"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["mode"] == {"enum": ["all", "one"], "default": "one"}
    assert schema["properties"]["limit"]["default"] is None
    assert schema["$defs"]["Edit"]["additionalProperties"] is False
    assert "ctx" not in schema["properties"]


def test_input_becomes_arguments_of_the_hinted_types() -> None:
    """Nested objects are made, defaults filled in, named-only parameters kept apart."""
    decoded = patch.decode({"path": "a", "edits": [{"old": "x"}], "ratio": 1})
    assert decoded == (("a", [Edit("x")], "one", None), {"ratio": 1.0, "count": 1})


@pytest.mark.parametrize(
    ("input", "problem"),
    [
        ({"edits": []}, "input.path: expected a value (it is required), got nothing"),
        ({"path": 1, "edits": []}, "input.path: expected string, got integer 1"),
        ({"path": "a", "edits": [{"new": "x"}]}, "input.edits[0].old: expected a value (it is required), got nothing"),
        ({"path": "a", "edits": [{"old": 1}]}, "input.edits[0].old: expected string, got integer 1"),
        ({"path": "a", "edits": [{"old": "", "z": 1}]}, "input.edits[0].z: expected no such field, got field z"),
        ({"path": "a", "edits": {}}, "input.edits: expected array, got object"),
        ({"path": "a", "edits": [], "count": True}, "input.count: expected integer, got boolean True"),
        ({"path": "a", "edits": [], "limit": 1.5}, "input.limit: expected what the schema allows"),
        ({"path": "a", "edits": [], "count": 0}, "input.count: expected what the schema allows"),
        ({"path": "a", "edits": [], "extra": 1}, "input.extra: expected no such field, got field extra"),
    ],
)
def test_input_that_does_not_fit_is_refused_with_its_path(input: Any, problem: str) -> None:
    """Missing, extra and wrongly typed fields at any depth; nothing is coerced."""
    assert problems(patch, input)[0].startswith(problem)
    assert len(problems(patch, {"edits": 1, "x": 2})) == 3
    assert problems(patch, {"path": {1}, "edits": []})  # a set is no JSON value


def test_tool_without_parameters_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Core alone runs tools that take nothing, bring a schema, or say schema=None."""
    monkeypatch.setitem(sys.modules, "msgspec", None)
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)

    async def takes(ctx: ToolContext, a: int, b: int = 2) -> None:
        """Take."""

    bare = toolrt.tool(name="bare", schema=None)(takes)
    own = toolrt.tool(name="own", schema={"type": "object", "properties": {"a": {"type": "integer"}}})(takes)
    nothing = toolrt.tool(name="nothing")(lambda ctx: None)
    Registry([bare, own, nothing])
    assert bare.decode({"a": "x"}) == (["x", 2], {})
    assert problems(own, {"c": 1}) == [
        "input.a: expected a value (it is required), got nothing",
        "input.c: expected no such field (the tool takes a, b), got integer 1",
    ]
    with pytest.raises(MissingExtra, match=r'pip install "toolrt\[schema\]"'):
        Registry([toolrt.tool(takes)])


def test_own_schema_is_checked_in_full() -> None:
    """With the schema extra a tool's own schema counts, and its names too."""
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]}

    @toolrt.tool(schema=schema)
    async def own(ctx: ToolContext, a: int) -> None:
        """Own."""

    assert own.schema == schema
    assert own.decode({"a": 3}) == ([3], {})
    assert problems(own, {"a": 2})[0].startswith("input.a: expected what the schema allows (2 is less than")
    assert problems(own, {"a": 3, "b": 1}) == ["input.b: expected no such field (the tool takes a), got integer 1"]


def test_own_schema_never_fetches_another() -> None:
    """A remote reference is refused when the tool is registered, without a request."""

    @toolrt.tool(schema={"$ref": "http://127.0.0.1:9/schema.json"})
    async def remote(ctx: ToolContext, a: int) -> None:
        """Remote."""

    with pytest.raises(DefinitionRefused, match="refers only to itself"):
        Registry([remote])


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (lambda: None, {}, "first parameter"),
        (lambda *args: None, {}, "first parameter"),
        (lambda ctx, *args: None, {}, "named parameters"),
        (lambda ctx: None, {"name": ""}, "not empty"),
        (lambda ctx: None, {"timeout": 0}, "seconds above 0"),
        (lambda ctx: None, {"timeout": True}, "seconds above 0"),
        (lambda ctx: None, {"safe": "yes"}, "a bool or a function"),
        (lambda ctx: None, {"stops_batch": 1}, "a bool or a function"),
        (lambda ctx: None, {"interrupt": "never"}, '"cancel" or "finish"'),
        (lambda ctx: None, {"claims": ["a"]}, "a list of claims"),
        (lambda ctx: None, {"claims": _later}, "a function that answers at once"),
        (lambda ctx: None, {"safe": _later}, "a function that answers at once"),
        (lambda ctx: None, {"stops_batch": _later}, "a function that answers at once"),
        (lambda self, ctx: None, {}, "a method"),
        ("text", {}, "a function"),
        (_stream, {}, "generator"),
        # What looks right: a claim without brackets, a timeout beyond all numbers, an owner without a table.
        (lambda ctx: None, {"claims": Claim("a", READ)}, "expected"),
        (lambda ctx: None, {"timeout": 10**400}, "expected"),
        (lambda ctx: None, {"owner": object()}, "expected"),
    ],
)
def test_definition_that_cannot_work_is_refused(function: Any, options: dict[str, Any], says: str) -> None:
    """The text says what was expected and got."""
    with pytest.raises(DefinitionRefused, match=says):
        toolrt.tool(**{"name": "t", **options})(function)


class _Odd(BaseException):
    """What no ``except Exception`` meets."""


@pytest.mark.parametrize("error", [ValueError, _Odd])
def test_what_an_authors_function_raises_is_the_cautious_answer(error: type[BaseException]) -> None:
    """Exclusive, everything, stops: whatever it raises, and where it gives no answer."""

    def fails(*_: object) -> Any:
        raise error

    odd = toolrt.tool(name="t", safe=fails, claims=fails, stops_batch=fails)(lambda ctx: None)
    assert (odd.is_safe({}), odd.may_stop({}), odd.claims_for({}, State())) == (False, True, (EVERYTHING,))
    no_answers: Any = {"safe": lambda input: 1, "claims": lambda input, state: ["f"]}
    odd = toolrt.tool(name="t", **no_answers)(lambda ctx: None)
    assert (odd.is_safe({}), odd.claims_for({}, State())) == (False, (EVERYTHING,))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_wish_to_exit_in_an_authors_function_goes_out(error: type[BaseException]) -> None:
    """It is nobody's answer."""

    def fails(*_: object) -> Any:
        raise error

    odd = toolrt.tool(name="t", safe=fails, claims=fails, stops_batch=fails)(lambda ctx: None)
    for ask in (lambda: odd.is_safe({}), lambda: odd.may_stop({}), lambda: odd.claims_for({}, State())):
        with pytest.raises(error):
            ask()


def test_definition_with_a_hint_without_schema_is_refused() -> None:
    """A type that JSON cannot hold is refused when the tool is registered."""

    @toolrt.tool
    async def odd(ctx: ToolContext, stream: type[int] | complex) -> None:
        """Odd."""

    with pytest.raises(DefinitionRefused, match="JSON schema"):
        Registry([odd])


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        ([patch, patch], "distinct names"),
        (None, "a list of tools"),
        ([lambda ctx: None], r"@toolrt\.tool, or toolrt\.Tool\.from_callable\(function\)"),
        ([_later], r"@toolrt\.tool, or toolrt\.Tool\.from_callable\(function\)"),
    ],
)
def test_registry_refuses_what_are_no_tools_of_distinct_names(tools: Any, says: str) -> None:
    """The text says how a function becomes a tool."""
    with pytest.raises(DefinitionRefused, match=says):
        Registry(tools)


@pytest.mark.parametrize(
    ("resource", "mode", "says"),
    [*[(resource, WRITE, "resource") for resource in (1, ["a"], ("a", None), ("a", 1.5))], ("a", "write", "READ or")],
)
def test_claim_refuses_what_is_no_resource_or_mode(resource: Any, mode: Any, says: str) -> None:
    """A resource is a string or a tuple of strings and integers."""
    with pytest.raises(DefinitionRefused, match=says):
        Claim(resource, mode)


def test_tool_takes_its_description_from_the_docstring() -> None:
    """The whole of it, without indentation."""
    assert patch.description == "Change a file.\n\nIn several places."


def test_tool_is_async_also_through_partial_and_callable_objects() -> None:
    """Whatever gives a coroutine is not sent to a thread."""

    async def base(x: int, ctx: ToolContext) -> None:
        """Do."""

    class Object:
        async def __call__(self, ctx: ToolContext) -> None:
            """Do."""

    assert toolrt.tool(name="p", schema=None)(functools.partial(base, 1)).is_async
    assert toolrt.tool(name="o", schema=None)(Object()).is_async
    assert not toolrt.tool(name="s")(lambda ctx: None).is_async


def test_promises_see_the_defaults() -> None:
    """Claims may look at a parameter that the model left out."""

    @toolrt.tool(claims=lambda input, state: [Claim(("dir", input["path"]), READ)])
    async def listing(ctx: ToolContext, path: str = ".") -> None:
        """List."""

    assert listing.claims_for({}, State()) == (Claim(("dir", "."), READ),)


@pytest.mark.parametrize("input", [{"\ud800": 1}, {"a": 1, "\ud800": 1}, {"a": [{"\ud800": "\ud800"}]}])
def test_input_that_utf8_cannot_hold_is_refused(input: Any) -> None:
    """Half a surrogate pair, as JSON may spell it, is a mismatch like any other, never an exception."""

    @toolrt.tool
    async def echo(ctx: ToolContext, a: str) -> str:
        return a

    assert isinstance(echo.decode(input), list)


def test_hints_of_the_context_and_of_the_answer_are_not_evaluated() -> None:
    """They may be known to type checkers alone."""

    async def typed(ctx: OnlyForCheckers, a: int) -> AlsoNot:  # type: ignore[name-defined]  # noqa: F821
        """Type."""

    assert toolrt.tool(typed).schema["properties"] == {"a": {"type": "integer"}}


def test_definition_of_a_nameless_function_asks_for_a_name() -> None:
    """No provider takes "<lambda>"."""
    with pytest.raises(DefinitionRefused, match="name="):
        toolrt.tool(lambda ctx: None)


def test_defaults_are_fresh_for_every_call() -> None:
    """What one call does to its list is not for the next."""

    @toolrt.tool
    async def listing(ctx: ToolContext, names: list[str] = []) -> None:  # noqa: B006
        """List."""

    for _ in range(2):
        (names,) = listing.decode({})[0]  # type: ignore[misc]
        assert names == []
        names.append("x")


def test_input_keys_may_be_numbers_where_the_hint_says_so() -> None:
    """JSON spells every key as text."""

    @toolrt.tool
    async def table(ctx: ToolContext, rows: dict[int, str]) -> None:
        """Table."""

    assert table.decode({"rows": {"1": "a"}}) == (({1: "a"},), {})


@pytest.mark.parametrize("claims", [lambda: (), lambda input: (), lambda input, state, more: ()])
def test_claims_that_cannot_be_called_are_refused(claims: Any) -> None:
    """A claims function that does not take the input and the state would have each call run alone, without a word."""
    with pytest.raises(DefinitionRefused, match="expected a function of input and state, got"):
        toolrt.tool(claims=claims)(patch.function)
    with pytest.raises(DefinitionRefused, match="claims_after: expected a function of input and state, got"):
        toolrt.tool(claims=lambda input, state: (), claims_after=claims)(patch.function)


@pytest.mark.parametrize("annotation", [int, "str", list[str], dict])
def test_tool_whose_context_is_a_field_is_refused(annotation: Any) -> None:
    """A function without a context is told how it becomes a tool."""

    async def price(article: Any) -> str:
        return str(article)

    price.__annotations__["article"] = annotation
    with pytest.raises(DefinitionRefused, match=r"toolrt\.Tool\.from_callable\(function\) makes a tool"):
        toolrt.tool(price)


@pytest.mark.parametrize("schema", [None, {"type": "object"}])
def test_field_may_have_the_name_of_the_context(schema: Any) -> None:
    """It reaches the ``**input`` of the tool; the context is handed over by its place."""

    @toolrt.tool(schema=schema)
    async def work(ctx: Any, **input: Any) -> Any:
        return input

    [result] = toolrt.run_sync(
        toolrt.Runtime(toolrt.Registry([work])), [toolrt.ToolCall("a", "work", {"ctx": 5})]
    ).results
    assert result.content == {"ctx": 5}
