"""What goes back to a model: results in call order, and the tools of a request."""

import json
import math

import attrs
import pytest

from toolrt.errors import InputRefused
from toolrt.interop import named_format, render_results, render_tools
from toolrt.model import Outcome, Registry, ToolResult, tool

OK = ToolResult("a", 0, "read_file", Outcome.OK, "text")
LATE = ToolResult("b", 1, "run", Outcome.TIMED_OUT, None, "no answer within 5.0 s")
HALF = ToolResult("c", 2, "run", Outcome.ERROR, {"exit": 1, "out": "é"}, "it failed")


def text_of(result: ToolResult) -> str:
    rendered = render_results([result], "chat")
    assert isinstance(rendered, list)
    return rendered[0]["content"]


def test_anthropic_results_are_one_user_message() -> None:
    """One tool_result block per result; those that are not OK are marked."""
    assert render_results([OK, LATE], "anthropic") == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "text"},
            {
                "type": "tool_result",
                "tool_use_id": "b",
                "content": "[timed_out] no answer within 5.0 s",
                "is_error": True,
            },
        ],
    }


def test_responses_results_are_function_call_outputs() -> None:
    """One output item per result."""
    assert render_results([OK, LATE], "openai") == [
        {"type": "function_call_output", "call_id": "a", "output": "text"},
        {"type": "function_call_output", "call_id": "b", "output": "[timed_out] no answer within 5.0 s"},
    ]


def test_chat_results_are_tool_messages() -> None:
    """One tool message per result."""
    assert render_results([OK, LATE], "chat") == [
        {"role": "tool", "tool_call_id": "a", "content": "text"},
        {"role": "tool", "tool_call_id": "b", "content": "[timed_out] no answer within 5.0 s"},
    ]


def test_json_results_are_the_results() -> None:
    """The JSON form of each result, content as a value."""
    assert render_results([OK, HALF], "json") == [OK.to_json(), HALF.to_json()]


def test_two_results_of_one_call_are_refused() -> None:
    """A call is answered once."""
    with pytest.raises(InputRefused, match="two of them answer call 0"):
        render_results([OK, attrs.evolve(LATE, call_index=0)], "json")


@pytest.mark.parametrize("render", [render_results, render_tools])
def test_unknown_format_is_refused(render) -> None:
    """A format that is not known is refused with those that are."""
    with pytest.raises(InputRefused, match=r"format 'xml': there is no such format\. Use one of anthropic, .*json\."):
        render([], "xml")


@pytest.mark.parametrize(
    ("short", "format"), [("openai", "openai-responses"), ("chat", "openai-chat"), ("json", "calls")]
)
def test_short_format_names_are_known(short: str, format: str) -> None:
    """What people type stands for the format's own name."""
    assert named_format(short) == format


@pytest.mark.parametrize(
    ("outcome", "content", "error", "text"),
    [
        *((outcome, None, "because", f"[{outcome.value}] because") for outcome in Outcome if outcome is not Outcome.OK),
        (Outcome.INTERRUPTED, None, None, "[interrupted]"),
        (Outcome.ERROR, None, "cut \ud83d", "[error] cut \ufffd"),
        (Outcome.ERROR, {"exit": 1, "out": "é"}, "it failed", '[error] it failed\n{"exit":1,"out":"é"}'),
    ],
)
def test_failure_is_its_outcome_its_error_and_its_content(
    outcome: Outcome, content: object, error: str | None, text: str
) -> None:
    """What there is of them, in this order; what UTF-8 cannot hold is replaced."""
    assert text_of(ToolResult("a", 0, "t", outcome, content, error)) == text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ("plain", "plain"),
        (7, "7"),
        (True, "true"),
        ([1, None], "[1,null]"),
        ({"b": 1, "a": (2, 3)}, '{"b":1,"a":[2,3]}'),
        (b"raw", "b'raw'"),
        (math.nan, "nan"),
        ([math.inf], '["inf"]'),
        ("cut \ud83d", "cut \ufffd"),
        ("\ud83d\ude00", "😀"),
        ({"\ud83d": "\udc00"}, '{"\ufffd":"\ufffd"}'),
    ],
    ids=repr,
)
def test_content_becomes_text(content: object, text: str) -> None:
    """Strings go as they are, other content as compact JSON; what cannot be sent is replaced."""
    assert text_of(ToolResult("a", 0, "t", Outcome.OK, content)) == text


def test_number_that_python_does_not_write_is_told_by_its_length() -> None:
    """Such as a factorial; the limit is Python's."""
    assert text_of(ToolResult("a", 0, "t", Outcome.OK, 10**4000)) == "1" + "0" * 4000
    assert text_of(ToolResult("a", 0, "t", Outcome.OK, 10**5000)) == "<int of about 5,000 digits>"
    assert text_of(ToolResult("a", 0, "t", Outcome.OK, [-(10**5000)])) == '["<int of about 5,000 digits>"]'


def holding_itself() -> list:
    circle: list = []
    circle.append(circle)
    return circle


def nested(levels: int) -> list:
    value: list = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("content", [holding_itself(), nested(201)], ids=["holds-itself", "201-levels"])
@pytest.mark.parametrize("format", ["chat", "json"])
def test_content_without_end_costs_only_its_own_answer(content: object, format: str) -> None:
    """Content that JSON cannot hold is told as such, and the other results go as they are."""
    rendered = render_results([attrs.evolve(OK, content=content), attrs.evolve(OK, call_index=1)], format)
    assert isinstance(rendered, list)
    assert [message["content"] for message in rendered] == [
        "(content nested in more than 200 levels, which is not sent: a list)",
        "text",
    ]


def test_content_up_to_the_limit_is_sent() -> None:
    """The limit itself is still sent."""
    assert text_of(attrs.evolve(OK, content=nested(200))) == "[" * 200 + "]" * 200


def test_json_results_hold_only_what_json_can() -> None:
    """Numbers without a name in JSON are told by their text."""
    rendered = render_results([attrs.evolve(OK, content={"n": math.nan})], "json")
    assert json.dumps(rendered, allow_nan=False) == json.dumps([{**OK.to_json(), "content": {"n": "nan"}}])


# Tools

SCHEMA = {
    "type": "object",
    "properties": {"key": {"type": "string"}},
    "required": ["key"],
    "additionalProperties": False,
}


@tool(schema=SCHEMA)
async def lookup(ctx: object, key: str) -> str:
    """Find what a key stands for."""
    return key


@tool(schema=None, name="now", description="Tell the time.")
async def tell_time(ctx: object) -> str:
    return "noon"


REGISTRY = Registry([lookup, tell_time])


SAID = {"name": "lookup", "description": "Find what a key stands for."}


@pytest.mark.parametrize(
    ("format", "definition"),
    [
        ("anthropic", {**SAID, "input_schema": SCHEMA}),
        ("json", {**SAID, "input_schema": SCHEMA}),
        # The Responses API is strict unless it is told otherwise, and strict admits no optional fields.
        ("openai", {"type": "function", **SAID, "parameters": SCHEMA, "strict": False}),
        ("chat", {"type": "function", "function": {**SAID, "parameters": SCHEMA}}),
    ],
)
def test_tools_are_defined_in_the_registry_s_order(format: str, definition: dict) -> None:
    """Name, description and schema of each tool, as the format nests them."""
    assert render_tools([lookup], format) == [definition]
    assert render_tools(REGISTRY, format) == [definition, *render_tools([tell_time], format)]


def test_tools_are_copied() -> None:
    """Changing a definition changes no tool."""
    render_tools([lookup], "anthropic")[0]["input_schema"]["properties"]["key"]["type"] = "integer"
    assert lookup.schema == SCHEMA
    assert SCHEMA["properties"] == {"key": {"type": "string"}}
