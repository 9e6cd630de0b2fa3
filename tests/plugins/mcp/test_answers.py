"""What MCP servers answer, and what is passed on of it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from tests.plugins.mcp._mcp import OF_PROGRAMS, answers, calls_of, connected, item_of, offers, outcome, rough, says
from toolrt import File, Image, Outcome, Progress, Registry, Runtime
from toolrt.plugins import mcp

pytestmark = OF_PROGRAMS


@pytest.mark.process
def test_input_is_held_against_the_servers_schema_as_deep_as_it_allows() -> None:
    """Deeper is INVALID before anything is checked or sent."""
    into = [{"properties": {"x": {"$ref": "#"}}} for _ in range(3)]
    tool = offers("echo", {"type": "object", "anyOf": into}, readOnlyHint=True)
    deep: dict[str, Any] = {}
    for _ in range(8):
        deep = {"x": deep}
    done = outcome(rough({"tools": [tool]}), ("r__echo", deep), ("r__echo", {"x": {}, "text": "a"}))
    assert done.results[0].outcome is Outcome.INVALID
    assert "input: expected at most 6 levels of nesting, got more" in str(done.results[0].error)
    assert done.results[1].content == "a"


@pytest.mark.process
def test_long_description_is_cut() -> None:
    """What models are told of a tool is bounded."""

    async def use(tools: mcp.McpTools) -> list[int]:
        return [len(tool.description) for tool in tools]

    assert connected(rough({"tools": [{**offers(), "description": "x" * 20_000}]}), use) == [10_004]


WRONG_ANSWERS = {
    "an error": (
        [{"id": "$id", "error": {"code": -32602, "message": "bad"}}],
        "the call with an error: bad (code -32602)",
    ),
    "nonsense": ([answers(content=17)], "its answer to the call is not what the protocol says"),
    "a failure": ([answers(content=[{"type": "text", "text": "no"}], isError=True)], "no"),
    "a failure without words": ([answers(content=[], isError=True)], "the tool failed and says no more"),
}


@pytest.mark.process
@pytest.mark.parametrize(("messages", "said"), WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
def test_answer_that_is_none_is_an_error_of_its_call(messages: list[Any], said: str) -> None:
    """The session goes on."""
    done = outcome(rough(), says(*messages), ("r__echo", {"text": "b"}))
    assert done.results[0].outcome is Outcome.ERROR
    assert said in str(done.results[0].error)
    assert done.results[1].content == "b"


CONTENT = {
    "texts": ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
    "a picture": ([{"type": "image", "mimeType": "image/png", "data": "AAAA"}], "[image/png, 3 bytes]"),
    "sound": ([{"type": "audio", "mimeType": "audio/wav", "data": "AA=="}], "[audio/wav, 1 byte]"),
    "a link": (
        [{"type": "resource_link", "name": "n", "uri": "file:///x", "size": 1234}],
        "[n: file:///x (1,234 bytes)]",
    ),
    "a file": ([{"type": "resource", "resource": {"uri": "file:///x", "text": "t"}}], "[file:///x]\nt"),
    "bytes": ([{"type": "resource", "resource": {"uri": "file:///x", "blob": "AAA="}}], "[file:///x: 2 bytes]"),
    "nothing": ([], ""),
}


@pytest.mark.process
@pytest.mark.parametrize(("blocks", "told"), CONTENT.values(), ids=CONTENT)
def test_content_is_told_in_words(blocks: list[Any], told: str) -> None:
    """Text as it is, everything else by kind and size."""
    assert outcome(rough(), says(answers(content=blocks))).results[0].content == told


PNG = b"\x89PNG\r\n\x1a\n and so on"
PDF = b"%PDF-1.4 and so on"


@pytest.mark.process
def test_picture_of_a_server_stays_a_picture() -> None:
    """Beside the texts that stand around it; a document stays one too."""
    encoded, document = base64.b64encode(PNG).decode(), base64.b64encode(PDF).decode()
    blocks = [
        {"type": "text", "text": "look:"},
        {"type": "image", "mimeType": "image/png", "data": encoded},
        {"type": "resource", "resource": {"uri": "file:///x.png", "mimeType": "image/png", "blob": encoded}},
        {"type": "resource", "resource": {"uri": "file:///d/x.pdf", "mimeType": "application/pdf", "blob": document}},
        {"type": "audio", "mimeType": "audio/wav", "data": "AA=="},
    ]
    done = outcome(rough(), says(answers(content=blocks)), says(answers(content=blocks, isError=True)))
    assert done.results[0].content == [
        "look:",
        Image(PNG),
        Image(PNG),
        File(PDF, "application/pdf", "x.pdf"),
        "[audio/wav, 1 byte]",
    ]
    assert str(done.results[1].error).startswith("look:\n[image/png, 18 bytes]")


@pytest.mark.process
def test_structured_content_is_told_where_there_is_no_text() -> None:
    """As JSON, and once."""
    blocks = [{"type": "text", "text": "one"}]
    done = outcome(
        rough(),
        says(answers(content=[], structuredContent={"a": [1]})),
        says(answers(content=blocks, structuredContent={"a": [1]})),
    )
    assert [result.content for result in done.results] == ['{"a":[1]}', "one"]


@pytest.mark.process
def test_structured_content_is_held_against_the_servers_own_schema() -> None:
    """What it said its answers are."""
    tool = {**offers("say"), "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    done = outcome(
        rough({"tools": [tool]}),
        says(answers(content=[], structuredContent={"n": 1})),
        says(answers(content=[], structuredContent={"n": "1"})),
    )
    assert done.results[0].content == '{"n":1}'
    assert "answer.n: expected integer, got string '1'" in str(done.results[1].error)


@pytest.mark.process
def test_long_answer_loses_its_middle() -> None:
    """Half of the limit from each end."""
    done = outcome(rough(output_limit=10), ("r__echo", {"text": "abcdefghijklmnop"}))
    assert done.results[0].content == "abcde\n[... 6 characters left out ...]\nlmnop"


@pytest.mark.process
def test_progress_that_is_none_is_not_passed_on() -> None:
    """Numbers and texts only, of the call that runs only, in their order."""

    async def use(tools: mcp.McpTools) -> list[Any]:
        def told(token: object, **fields: Any) -> dict[str, Any]:
            return {"method": "notifications/progress", "params": {"progressToken": token, **fields}}

        said = says(
            *(told("$token", progress=number) for number in range(20)),
            told("somebody", progress=1),
            told(["$token"], progress=1),
            told("$token", progress="many", total=True, message=7),
            told("$token", progress=1.5, total=3, message="m"),
            {"method": "notifications/progress"},
            answers(content=[]),
            told("$token", progress=99),
        )
        seen = []
        async with Runtime(Registry(tools)).open_batch() as batch:
            for call in calls_of(said, ("r__echo", {})):
                batch.submit(call)
            batch.seal()
            async for update in batch:
                if isinstance(update, Progress):
                    seen.append(update.message)
        return seen

    seen = connected(rough(), use)
    assert seen == [{"progress": number} for number in range(20)] + [{}, {"progress": 1.5, "total": 3, "message": "m"}]


def test_progress_behind_the_answer_is_not_taken() -> None:
    """Though the call itself has not heard of its answer yet: when it does is Trio's choice."""
    from mcp.types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

    from toolrt.plugins.mcp._sdk import _SdkSession

    session, seen = _SdkSession(), []
    session._running = {"mine": seen.append, "other": seen.append}
    for number, token in enumerate(("mine", "other"), 1):
        params = {"_meta": {"progressToken": token}}
        request = JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/call", params=params)
        session.sends(item_of(request))

    def say(token: str, progress: int) -> None:
        params = {"progressToken": token, "progress": progress}
        said = JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params=params)
        assert session.takes(item_of(said))

    say("mine", 1)
    assert not session.takes(item_of(JSONRPCResponse(jsonrpc="2.0", id=1, result={})))
    say("mine", 2)
    say("other", 3)
    assert seen == [{"progress": 1}, {"progress": 3}]
