"""Pictures, files and other parts of a tool's answer, in the form that each provider has for them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

import toolrt
from toolrt import (
    File,
    Image,
    Json,
    Outcome,
    Registry,
    Runtime,
    Text,
    ToolCall,
    ToolContext,
    ToolOutput,
    ToolResult,
    Workspace,
)
from toolrt.interop import record, render_results
from toolrt.plugins.mcp._content import blocks_of
from toolrt.store import Codec

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
PDF = b"%PDF-1.4 a document"
ENCODED = base64.b64encode(PNG).decode()
DOCUMENT = base64.b64encode(PDF).decode()


def result_of(answer: Any, **options: Any) -> ToolResult:
    @toolrt.tool(safe=True, schema=None)
    async def look(ctx: ToolContext) -> Any:
        return answer

    return trio.run(Runtime(Registry([look]), **options).run, [ToolCall("1", "look", {})]).results[0]


def rendered(answer: Any, format: str) -> Any:
    message: Any = render_results([result_of(answer)], format)
    return {"anthropic": lambda: message["content"][0]["content"], "openai": lambda: message[0]["output"]}.get(
        format, lambda: message[0]["content"]
    )()


ANSWER = ["Look:", Image(PNG), File(PDF, "application/pdf", "a.pdf"), File(b"1,2", "text/csv", "a.csv"), Json({"a": 1})]
WORDS = [
    "Look:",
    f"[image/png, {len(PNG)} bytes: it cannot be shown here]",
    "[a.pdf: application/pdf, 19 bytes: it cannot be shown here]",
    "[a.csv]\n1,2",
    '{"a":1}',
]


def texts(kind: str, *which: int) -> list[dict[str, str]]:
    return [{"type": kind, "text": WORDS[one]} for one in which]


def test_anthropic_is_sent_pictures_and_documents() -> None:
    """Inside the tool's result."""
    assert rendered(ANSWER, "anthropic") == [
        *texts("text", 0),
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ENCODED}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": DOCUMENT}},
        *texts("text", 3, 4),
    ]


def test_responses_api_is_sent_pictures_and_documents() -> None:
    """Inside the function call's output."""
    assert rendered(ANSWER, "openai") == [
        *texts("input_text", 0),
        {"type": "input_image", "image_url": f"data:image/png;base64,{ENCODED}", "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{DOCUMENT}"},
        *texts("input_text", 3, 4),
    ]


def test_chat_completions_are_told_in_words_what_cannot_be_shown() -> None:
    """Its tool messages hold text alone."""
    assert rendered(ANSWER, "openai-chat") == "\n".join(WORDS)


def test_json_has_each_part_whole() -> None:
    """The format "calls", a result's own JSON, and a trace."""
    parts = rendered(ANSWER, "calls")
    assert parts[1] == {"type": "image", "media_type": "image/png", "data": ENCODED}
    assert json.loads(json.dumps(result_of(ANSWER).to_json()))["content"] == parts
    with record() as recorder:
        result_of(ANSWER)
    [settled] = [event for event in recorder.trace().events if event.kind == "call.settled"]
    assert settled.fields["content"] == parts


@pytest.mark.parametrize("answer", [PNG, Image(PNG), [PNG], ToolOutput(PNG), Image(PNG, "image/png")])
def test_bytes_of_a_picture_are_a_picture(answer: Any) -> None:
    """A tool need not say it."""
    [block] = rendered(answer, "anthropic")
    assert block["source"]["data"] == ENCODED


@pytest.mark.parametrize("answer", [Image(b"<svg/>", "image/svg+xml"), File(b"\0" * 4, "audio/wav", "a.wav")])
@pytest.mark.parametrize("format", ["anthropic", "openai", "openai-chat"])
def test_part_that_no_model_sees_is_told_in_words(answer: Any, format: str) -> None:
    """Never as base64 text; a provider would refuse the whole request."""
    told = rendered(answer, format)
    text = told if isinstance(told, str) else told[0]["text"]
    assert text == answer.in_words()
    assert "it cannot be shown here]" in text


def test_failure_is_told_in_words() -> None:
    """Providers take no pictures with one."""
    message: Any = render_results([result_of(ToolOutput(Image(PNG), error="no"))], "anthropic")
    assert message["content"][0]["content"].startswith("[error] no\n[image/png")


def test_list_without_parts_stays_json() -> None:
    """As does a value that only looks like one."""
    assert rendered(["a", {"type": "image"}], "anthropic") == '["a",{"type":"image"}]'
    assert rendered([Text("a"), 1], "openai-chat") == "a\n1"


def test_parts_are_bounded_as_all_content_is() -> None:
    """Text by characters, pictures and files by bytes; what is left out is told."""
    large = Image(PNG + b"\0" * 6_000_000)
    told = result_of(["x" * 1_000, large, Image(PNG), "y"], max_result=500).content
    assert len(told[0].text) <= 500
    assert "more parts left out" in told[-1].text
    told = result_of([Image(PNG), large, "y"]).content
    assert told[0] == Image(PNG)
    assert told[1].text.startswith("[image/png, 6,000,")
    assert told[2] == Text("y")


def test_whole_picture_of_a_workspace_is_shown(tmp_path: Path) -> None:
    """`read_file` gives it as one."""
    (tmp_path / "a.png").write_bytes(PNG)
    runtime = Runtime(Registry(Workspace(tmp_path).tools()))
    calls = [ToolCall("1", "read_file", {"path": "a.png"}), ToolCall("2", "read_file", {"path": "a.png", "limit": 1})]
    done = trio.run(runtime.run, calls)
    assert done.results[0].content == Image(PNG)
    assert done.results[1].outcome is Outcome.ERROR


#: With half of a character, which cannot be sent.
HALF = "half: \ud800"
TEXTS = st.text() | st.just(HALF)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
BYTES = st.sampled_from([PNG, b"GIF89a", PDF, b"text", b""]) | st.binary(max_size=20)
KINDS = st.sampled_from(["image/png", "image/svg+xml", "application/pdf", "text/csv", "audio/wav"])
PARTS = (
    st.builds(Text, TEXTS) | st.builds(Json, JSON) | st.builds(Image, BYTES) | st.builds(Image, BYTES, KINDS)
) | st.builds(File, BYTES, KINDS, TEXTS)


def sent(message: Any) -> Any:
    """What the other side reads of it."""
    return json.loads(json.dumps(message, allow_nan=False, ensure_ascii=False).encode())


@given(PARTS | st.lists(PARTS | JSON, max_size=4) | JSON, st.sampled_from([Outcome.OK, Outcome.ERROR]))
@example([Text(HALF), File(b"", "text/csv", HALF), Json({HALF: HALF})], Outcome.OK)
def test_answer_out_of_a_journal_is_sent_as_it_would_have_been(content: Any, outcome: Outcome) -> None:
    """To every provider and to an MCP host, and each message is JSON."""
    result = ToolResult("1", 0, "look", outcome, content, None if outcome is Outcome.OK else "no")
    kept = Codec().decode(json.loads(json.dumps(Codec().encode(result))))
    assert kept == result
    for format in ("anthropic", "openai", "openai-chat", "calls"):
        message = render_results([result], format)
        assert render_results([kept], format) == message
        assert sent(message) == message
    assert blocks_of(kept) == sent(blocks_of(result))
