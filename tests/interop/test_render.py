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


@pytest.mark.parametrize("format", ["anthropic", "openai-responses", "openai-chat", "calls"])
def test_no_results_are_no_answers(format: str) -> None:
    """A batch without calls has nothing to send."""
    rendered = render_results([], format)
    assert (rendered["content"] if isinstance(rendered, dict) else rendered) == []


def test_results_go_in_call_order() -> None:
    """Whatever order they come in, they go out by call_index."""
    assert render_results([HALF, OK, LATE], "openai") == render_results([OK, LATE, HALF], "openai")


def test_results_of_one_id_both_go() -> None:
    """Two calls that carry one id get two answers, in call order."""
    twins = [ToolResult("same", index, "t", Outcome.OK, str(index)) for index in (0, 1)]
    rendered = render_results(twins, "openai")
    assert rendered == [{"type": "function_call_output", "call_id": "same", "output": text} for text in "01"]


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


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.OK])
def test_failure_names_its_outcome(outcome: Outcome) -> None:
    """Every outcome but OK stands before the error."""
    assert text_of(ToolResult("a", 0, "t", outcome, None, "because")) == f"[{outcome.value}] because"


def test_failure_without_error_is_its_outcome() -> None:
    """An outcome alone is said without a trailing blank."""
    assert text_of(ToolResult("a", 0, "t", Outcome.INTERRUPTED)) == "[interrupted]"


def test_failure_that_utf_8_cannot_hold_is_replaced() -> None:
    """An error is sent as content is."""
    assert text_of(ToolResult("a", 0, "t", Outcome.ERROR, None, "cut \ud83d")) == "[error] cut \ufffd"


def test_failure_keeps_its_content() -> None:
    """What a failed tool had to say follows its error."""
    assert text_of(HALF) == '[error] it failed\n{"exit":1,"out":"é"}'


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


@pytest.mark.parametrize("format", ["anthropic", "json"])
def test_tools_have_an_input_schema(format: str) -> None:
    """Name, description and input_schema of each tool, in the registry's order."""
    rendered = render_tools(REGISTRY, format)
    assert rendered[0] == {"name": "lookup", "description": "Find what a key stands for.", "input_schema": SCHEMA}
    assert [definition["name"] for definition in rendered] == ["lookup", "now"]


def test_responses_tools_are_not_strict() -> None:
    """The Responses API is strict unless told otherwise, and strict admits no optional fields."""
    assert render_tools([lookup], "openai") == [
        {
            "type": "function",
            "name": "lookup",
            "description": "Find what a key stands for.",
            "parameters": SCHEMA,
            "strict": False,
        }
    ]


def test_chat_tools_stand_under_function() -> None:
    """The Chat Completions API nests the definition."""
    assert render_tools([lookup], "chat") == [
        {
            "type": "function",
            "function": {"name": "lookup", "description": "Find what a key stands for.", "parameters": SCHEMA},
        }
    ]


def test_tools_are_copied() -> None:
    """Changing a definition changes no tool."""
    render_tools([lookup], "anthropic")[0]["input_schema"]["properties"]["key"]["type"] = "integer"
    assert lookup.schema == SCHEMA
    assert SCHEMA["properties"] == {"key": {"type": "string"}}
