"""The adapter for the Anthropic SDK, with the real client over a model in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="toolrt[anthropic] is not installed")

import toolrt  # noqa: E402
from tests.plugins._models import FakeModel, Part, sse  # noqa: E402
from tests.plugins._turns import Spoken, TurnTests, echoing, run_in  # noqa: E402
from toolrt.errors import StreamBroken  # noqa: E402
from toolrt.plugins import anthropic as adapter  # noqa: E402

USAGE = {"input_tokens": 1, "output_tokens": 1}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[Part]:
    """One block of content."""
    return [
        sse({"type": "content_block_start", "index": index, "content_block": start}),
        *[sse({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas],
        sse({"type": "content_block_stop", "index": index}),
    ]


def message(parts: Iterable[Part], stop: str) -> list[Part]:
    """A whole message around these parts."""
    empty = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    start = {**empty, "stop_reason": None, "stop_sequence": None, "usage": USAGE}
    delta = {"stop_reason": stop, "stop_sequence": None}
    return [
        sse({"type": "message_start", "message": start}),
        sse({"type": "ping"}),
        *parts,
        sse({"type": "message_delta", "delta": delta, "usage": USAGE}),
        sse({"type": "message_stop"}),
    ]


def text(index: int, *pieces: str) -> list[Part]:
    """A block of text."""
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas)


class TestAnthropic(TurnTests):
    """The Messages API."""

    def client(self, model: FakeModel) -> Any:
        """The SDK's real client."""
        return model.client(anthropic.AsyncAnthropic)

    def call(self, index: int, spoken: Spoken) -> list[Part]:
        """A block of tool use."""
        call_id, name, pieces = spoken
        start = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        return block(index, start, *[{"type": "input_json_delta", "partial_json": piece} for piece in pieces])

    def reply(self, parts: Iterable[Part], cut: bool = False) -> list[Part]:
        """A message."""
        return message(parts, "max_tokens" if cut else "tool_use")

    def request(self, client: Any, runtime: toolrt.Runtime, **more: Any) -> Any:
        """A streamed request, not awaited."""
        asked = {"messages": [{"role": "user", "content": "go"}], **more}
        tools = adapter.tools(runtime)
        return client.messages.create(model="m", max_tokens=9, tools=tools, stream=True, **asked)

    def helper(self, client: Any, runtime: toolrt.Runtime) -> Any:
        """`client.messages.stream`, which would raise at malformed arguments."""
        messages = [{"role": "user", "content": "go"}]
        return client.messages.stream(model="m", max_tokens=9, messages=messages, tools=adapter.tools(runtime))

    def turn(self, batch: Any) -> adapter.AnthropicTurn:
        """The turn of a batch."""
        return adapter.AnthropicTurn(batch)

    async def run(self, runtime: toolrt.Runtime, stream: Any) -> adapter.AnthropicTurn:
        """The adapter's `run`."""
        return await adapter.run(runtime, stream)

    def answered(self, turn: Any) -> list[tuple[str, str]]:
        """The blocks of the user's message, which comes after the assistant's."""
        if not turn.answers:
            return []
        [user] = turn.answers
        assert user["role"] == "user"
        return [(part["tool_use_id"], part["content"]) for part in user["content"]]

    def test_what_the_model_said_goes_back_as_it_came(self) -> None:
        """Thinking with its signature, server tools, citations; text that is empty is left out, as the API asks."""
        citation = {"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": None}
        server = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
        found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
        thinking = [
            {"type": "thinking_delta", "thinking": "So "},
            {"type": "thinking_delta", "thinking": "be it."},
            {"type": "signature_delta", "signature": "sig"},
        ]
        parts = [
            *block(0, {"type": "thinking", "thinking": "", "signature": ""}, *thinking),
            *block(1, {"type": "redacted_thinking", "data": "xyz"}),
            *text(2),
            *block(
                3,
                {"type": "text", "text": ""},
                {"type": "text_delta", "text": "é"},
                {"type": "citations_delta", "citation": {**citation, "start_char_index": 0, "end_char_index": 1}},
            ),
            *block(4, server, {"type": "input_json_delta", "partial_json": '{"query": "q"}'}),
            *block(5, found),
            *self.call(6, ("a", "echo", ['{"value": 1}'])),
            *self.call(7, ("b", "echo", ['{"value"}'])),
        ]
        turn = self.said(echoing(), message(parts, "tool_use"))
        [assistant] = turn.spoken
        types = [part["type"] for part in assistant["content"]]
        assert types[:3] == ["thinking", "redacted_thinking", "text"]
        assert types[3:] == ["server_tool_use", "web_search_tool_result", "tool_use", "tool_use"]
        assert assistant["content"][0] == {"type": "thinking", "thinking": "So be it.", "signature": "sig"}
        assert assistant["content"][2]["text"] == "é"
        assert len(assistant["content"][2]["citations"]) == 1
        assert assistant["content"][3]["input"] == {"query": "q"}
        assert [part["input"] for part in assistant["content"][5:]] == [{"value": 1}, {"INVALID_JSON": '{"value"}'}]
        assert [call.call_id for call in turn.calls] == ["a", "b"]

    def test_the_next_request_takes_the_messages(self) -> None:
        """What the adapter gives is sent by the SDK as it is, errors with their flag."""
        calls = self.calls(("a", "echo", ['{"value": "x"}']), ("b", "fail", ["{}"]))
        model = FakeModel(self.reply(calls), message(text(0, "Done."), "end_turn"))

        async def main() -> Any:
            client, runtime = self.client(model), echoing()
            messages: list[Any] = [{"role": "user", "content": "go"}]
            turn = await self.run(runtime, self.request(client, runtime))
            messages += turn.messages
            last = await self.run(runtime, self.request(client, runtime, messages=messages))
            return turn, last

        turn, last = run_in("trio", main)
        assert turn.waits
        assert not last.waits
        assert last.stop == "end_turn"
        assert last.messages == [{"role": "assistant", "content": [{"type": "text", "text": "Done."}]}]
        answers = model.asked[1]["messages"][2]["content"]
        failed = {"content": "[error] ValueError: it failed", "is_error": True}
        assert answers == [
            {"type": "tool_result", "tool_use_id": "a", "content": "x"},
            {"type": "tool_result", "tool_use_id": "b", **failed},
        ]
        assert model.asked[0]["tools"][0]["input_schema"]["type"] == "object"

    def test_stops_are_told(self) -> None:
        """A pause goes on without calls; a refusal does not."""
        paused = self.said(echoing(), message(text(0, "Wait."), "pause_turn"))
        assert (paused.stop, paused.waits, paused.has_calls) == ("pause_turn", True, False)
        refused = self.said(echoing(), message([], "refusal"))
        assert (refused.stop, refused.waits, refused.messages) == ("refusal", False, [])

    def test_a_piece_of_a_block_that_did_not_begin_is_refused(self) -> None:
        """A part of the stream is missing."""
        whole = self.reply(self.calls(("a", "echo", ['{"value": 1}'])))
        for missing in (whole[:2] + whole[3:], whole[:2] + whole[4:]):
            with pytest.raises(StreamBroken, match="the start of block 0 is missing"):
                self.said(echoing(), missing)

    def test_an_error_of_the_api_goes_out_as_the_sdk_raises_it(self) -> None:
        """An error in the stream, after a call."""
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        parts = [*self.reply(self.calls(("a", "echo", ['{"value": 1}'])))[:-2], sse(error)]
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            self.said(echoing(), parts)


@pytest.mark.parametrize("in_trio", [False, True])
def test_the_loop_of_the_examples_runs(in_trio: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Three turns; the first call of each has started before the model stops."""
    from docs.examples.agents import loop

    messages = loop.main(in_trio)
    told = capsys.readouterr().out.splitlines()
    assert len(messages) == 6
    assert told[-1] == "SHIPPING = 6.90"
    assert told[0].startswith("I look at the files.  the model stops; call_0 is ")
    assert "call_0 is queued" not in told[0]
