"""Properties of reading and rendering, over whatever JSON, bytes and results there are."""

import contextlib
import json

from hypothesis import given
from hypothesis import strategies as st

from toolrt.errors import InputRefused
from toolrt.interop import parse_response, read_response, render_results
from toolrt.model import Outcome, ToolCall, ToolResult

FORMATS = ("anthropic", "openai-responses", "openai-chat", "calls")

#: Keys and texts that mean something to the reader: arbitrary ones alone never come near a response.
KEYS = st.sampled_from(
    [
        "role",
        "content",
        "type",
        "id",
        "call_id",
        "name",
        "input",
        "arguments",
        "output",
        "choices",
        "message",
        "tool_calls",
        "function",
        "custom",
        "calls",
    ]
)
TYPES = st.sampled_from(
    [
        "text",
        "tool_use",
        "function_call",
        "function",
        "custom",
        "custom_tool_call",
        "shell_call",
        "shell_call_output",
        "message",
        "assistant",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | TYPES
JSON = st.recursive(
    SCALARS,
    lambda part: st.lists(part, max_size=4) | st.dictionaries(KEYS | st.text(max_size=3), part, max_size=5),
    max_leaves=25,
)

#: Halves of surrogate pairs too, which a Python string holds and UTF-8 does not.
ANY_CHARACTER = st.characters(exclude_categories=())

IDS = st.text(st.characters(codec="utf-8"), max_size=4)
INPUTS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=4),
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=8),
    max_size=3,
)
CALLS = st.lists(st.builds(ToolCall, IDS, IDS, INPUTS), min_size=1, max_size=6)

CONTENTS = st.recursive(
    SCALARS | st.binary(max_size=3) | st.text(ANY_CHARACTER, max_size=3),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), part, max_size=3),
    max_leaves=8,
)


@st.composite
def result_lists(draw: st.DrawFn) -> list[ToolResult]:
    """The results of one batch, in any order; ids repeat."""
    count = draw(st.integers(0, 8))
    results = [
        ToolResult(
            call_id=draw(IDS),
            call_index=index,
            name="t",
            outcome=draw(st.sampled_from(Outcome)),
            content=draw(CONTENTS),
            error=draw(st.none() | st.text(ANY_CHARACTER, max_size=5)),
        )
        for index in range(count)
    ]
    return draw(st.permutations(results))


def as_sent(call: ToolCall, format: str) -> dict:
    """A call as that provider writes it."""
    arguments = json.dumps(call.input)
    if format == "anthropic":
        return {"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.input}
    if format == "openai-responses":
        return {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": arguments}
    if format == "openai-chat":
        return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
    return {"call_id": call.call_id, "name": call.name, "input": call.input}


def in_a_response(items: list[dict], format: str) -> dict:
    """The items as that provider's whole response."""
    if format == "anthropic":
        return {"role": "assistant", "content": [{"type": "text", "text": ""}, *items]}
    if format == "openai-responses":
        return {"object": "response", "output": [{"type": "reasoning"}, *items]}
    if format == "openai-chat":
        return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": items}}]}
    return {"calls": items}


@given(JSON)
def test_read_refuses_or_gives_calls(source: object) -> None:
    """Whatever JSON there is, it is refused properly or has calls with text for ids and names."""
    with contextlib.suppress(InputRefused):
        response = read_response(source)
        assert response.calls
        assert response.format in FORMATS
        assert all(isinstance(call.call_id, str) and isinstance(call.name, str) for call in response.calls)


@given(JSON)
def test_parse_refuses_or_reads_any_json(source: object) -> None:
    """A text is read as its value is, or refused; Python writes NaN, which is refused."""
    with contextlib.suppress(InputRefused):
        assert parse_response(json.dumps(source), "r.json") == read_response(source)


@given(
    st.binary(max_size=60) | st.text(ANY_CHARACTER, max_size=60) | st.text('[]{}",:\\ut0eE1-. NaInfy\n', max_size=60)
)
def test_parse_refuses_or_reads_any_bytes(text: str | bytes) -> None:
    """Whatever bytes or text there are, nothing but InputRefused is raised."""
    with contextlib.suppress(InputRefused):
        parse_response(text, "r.json")


@given(CALLS, st.sampled_from(FORMATS), st.booleans(), st.booleans())
def test_calls_survive_every_format(calls: list[ToolCall], format: str, whole: bool, ascii_only: bool) -> None:
    """Calls written as a provider writes them, whole or bare, are read as they were, ids that repeat included."""
    items = [as_sent(call, format) for call in calls]
    text = json.dumps(in_a_response(items, format) if whole else items, ensure_ascii=ascii_only)
    response = parse_response(text.encode(), "r.json")
    assert (response.calls, response.format) == (tuple(calls), format)


@given(CALLS, st.sampled_from(FORMATS))
def test_answers_meet_their_calls(calls: list[ToolCall], format: str) -> None:
    """Reading a response and answering it in kind gives one answer per call, ids in the calls' order."""
    response = read_response([as_sent(call, format) for call in calls])
    results = [ToolResult(call.call_id, index, call.name, Outcome.OK) for index, call in enumerate(response.calls)]
    assert ids_of(render_results(results, response.format)) == [call.call_id for call in calls]


def ids_of(rendered: object) -> list[str]:
    items = rendered["content"] if isinstance(rendered, dict) else rendered
    assert isinstance(items, list)
    return [next(item[key] for key in ("tool_use_id", "tool_call_id", "call_id") if key in item) for item in items]


@given(result_lists(), st.sampled_from(FORMATS))
def test_render_answers_each_call_once_in_order(results: list[ToolResult], format: str) -> None:
    """As many answers as results, ids in call order, whatever the contents."""
    in_order = sorted(results, key=lambda result: result.call_index)
    assert ids_of(render_results(results, format)) == [result.call_id for result in in_order]


@given(result_lists(), st.sampled_from(FORMATS))
def test_render_can_be_sent(results: list[ToolResult], format: str) -> None:
    """What is rendered is strict JSON in UTF-8."""
    text = json.dumps(render_results(results, format), allow_nan=False, ensure_ascii=False)
    assert json.loads(text.encode()) == render_results(results, format)
