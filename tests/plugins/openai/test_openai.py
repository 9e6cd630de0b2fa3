"""The adapter for the OpenAI SDK, with the real client over a model in memory: Responses and Chat Completions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

openai = pytest.importorskip("openai", reason="toolrt[openai] is not installed")

import toolrt  # noqa: E402
from tests.plugins._models import FakeModel, Part, sse  # noqa: E402
from tests.plugins._turns import Gates, Spoken, TurnTests, echoing, run_in  # noqa: E402
from toolrt.errors import InputRefused, StreamBroken  # noqa: E402
from toolrt.plugins import openai as adapter  # noqa: E402


def item(index: int, started: dict[str, Any], done: dict[str, Any], *between: Part) -> list[Part]:
    """One item of a response."""
    return [
        sse({"type": "response.output_item.added", "sequence_number": 0, "output_index": index, "item": started}),
        *between,
        sse({"type": "response.output_item.done", "sequence_number": 0, "output_index": index, "item": done}),
    ]


def response(kind: str, **fields: Any) -> bytes:
    """An event of the life of a response."""
    empty = {"id": "resp_1", "object": "response", "created_at": 0, "model": "m", "output": [], "tools": []}
    empty |= {"parallel_tool_calls": True, "tool_choice": "auto", "status": kind, **fields}
    return sse({"type": f"response.{kind}", "sequence_number": 0, "response": empty})


def said(index: int, text: str) -> list[Part]:
    """A message of a response."""
    start = {"type": "message", "id": f"msg_{index}", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": text, "annotations": []}
    return item(index, start, {**start, "status": "completed", "content": [part]})


class TestResponses(TurnTests):
    """The Responses API."""

    def client(self, model: FakeModel) -> Any:
        """The SDK's real client."""
        return model.client(openai.AsyncOpenAI)

    def call(self, index: int, spoken: Spoken) -> list[Part]:
        """An item of a function call."""
        call_id, name, pieces = spoken
        start = {"type": "function_call", "id": f"fc_{index}", "call_id": call_id, "name": name, "arguments": ""}
        place = {"sequence_number": 0, "item_id": f"fc_{index}", "output_index": index}
        kind = "response.function_call_arguments"
        whole = "".join(pieces)
        done = {**start, "arguments": whole, "status": "completed"}
        deltas = [sse({"type": f"{kind}.delta", **place, "delta": piece}) for piece in pieces]
        ended = sse({"type": f"{kind}.done", **place, "name": name, "arguments": whole})
        return item(index, {**start, "status": "in_progress"}, done, *deltas, ended)

    def reply(self, parts: Iterable[Part], cut: bool = False) -> list[Part]:
        """A response."""
        parts = list(parts)
        if not cut:
            return [response("created"), *parts, response("completed")]
        last = parts[-1]
        assert isinstance(last, bytes)
        parts[-1] = last.replace(b'"status": "completed"', b'"status": "incomplete"')
        return [response("created"), *parts, response("incomplete", incomplete_details={"reason": "max_output_tokens"})]

    def request(self, client: Any, runtime: toolrt.Runtime, **more: Any) -> Any:
        """A streamed request, not awaited."""
        return client.responses.create(**{"input": "go", **more}, model="m", tools=adapter.tools(runtime), stream=True)

    def helper(self, client: Any, runtime: toolrt.Runtime) -> Any:
        """`client.responses.stream`."""
        return client.responses.stream(model="m", input="go", tools=adapter.tools(runtime))

    def turn(self, batch: Any) -> adapter.ResponsesTurn:
        """The turn of a batch."""
        return adapter.ResponsesTurn(batch)

    async def run(self, runtime: toolrt.Runtime, stream: Any) -> adapter.ResponsesTurn:
        """The adapter's `run`."""
        return await adapter.run(runtime, stream)

    def answered(self, turn: Any) -> list[tuple[str, str]]:
        """The items of outputs."""
        assert {one["type"] for one in turn.answers} <= {"function_call_output"}
        return [(one["call_id"], one["output"]) for one in turn.answers]

    def test_the_next_request_takes_the_messages(self) -> None:
        """Reasoning, messages and calls of hosted tools go back as they came; then the outputs."""
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}
        search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
        parts = [
            *item(0, reasoning, reasoning),
            *item(1, search, search),
            *said(2, "Hé"),
            *self.call(3, ("a", "echo", ['{"value": "x"}'])),
            *self.call(4, ("b", "fail", ["{}"])),
        ]
        model = FakeModel(self.reply(parts), self.reply(said(0, "Done.")))

        async def main() -> Any:
            client, runtime = self.client(model), echoing()
            items: list[Any] = [{"role": "user", "content": "go"}]
            turn = await self.run(runtime, self.request(client, runtime, input=items))
            items += turn.messages
            return turn, await self.run(runtime, self.request(client, runtime, input=items))

        turn, last = run_in("trio", main)
        assert (turn.has_calls, turn.response_id, turn.unanswered) == (True, "resp_1", [])
        assert (last.has_calls, last.stop) == (False, "completed")
        sent = model.asked[1]["input"][1:]
        assert [one["type"] for one in sent[:5]] == [
            "reasoning",
            "web_search_call",
            "message",
            "function_call",
            "function_call",
        ]
        assert sent[0] == reasoning
        assert sent[2]["content"][0]["text"] == "Hé"
        assert sent[5:] == [
            {"type": "function_call_output", "call_id": "a", "output": "x"},
            {"type": "function_call_output", "call_id": "b", "output": "[error] ValueError: it failed"},
        ]
        assert model.asked[0]["tools"][0]["strict"] is False

    def test_calls_that_stand_only_at_the_end_are_run(self) -> None:
        """Some servers send the items with the end alone."""
        call = {"type": "function_call", "id": "f", "call_id": "a", "name": "echo", "arguments": '{"value": 1}'}
        turn = self.said(echoing(), [response("created"), response("completed", output=[call])])
        assert self.answered(turn) == [("a", "1")]
        assert turn.spoken[0]["call_id"] == "a"

    def test_a_response_that_failed_cancels_the_batch(self) -> None:
        """The error has the API's own words."""
        failed = response("failed", error={"code": "server_error", "message": "It broke"})
        with pytest.raises(StreamBroken, match="It broke"):
            self.said(echoing(), [*self.reply(self.calls(("a", "echo", ["{}"])))[:-1], failed], "trio")
        error = sse({"type": "error", "sequence_number": 0, "message": "Too fast", "code": "rate", "param": None})
        with pytest.raises(StreamBroken, match="Too fast"):
            self.said(echoing(), [response("created"), error])

    def test_what_no_function_answers_is_told(self) -> None:
        """A custom tool's call is the program's to answer; a hosted shell's call came with its output."""
        custom = {"type": "custom_tool_call", "id": "c", "call_id": "x", "name": "sql", "input": "select 1"}
        shell = {"type": "shell_call", "id": "s", "call_id": "y", "action": {"commands": []}, "status": "completed"}
        output = {"type": "shell_call_output", "id": "o", "call_id": "y", "output": [], "status": "completed"}
        parts = [*item(0, custom, custom), *item(1, shell, shell), *item(2, output, output)]
        turn = self.said(echoing(), self.reply([*parts, *self.call(3, ("a", "echo", ['{"value": 1}']))]))
        assert [one["type"] for one in turn.unanswered] == ["custom_tool_call"]
        assert self.answered(turn) == [("a", "1")]

    @pytest.mark.parametrize("loop", ["asyncio", "trio"])
    def test_a_call_starts_when_its_arguments_are_done(self, loop: str) -> None:
        """The end of its item may come later."""
        gates = Gates(loop)
        first = self.call(0, ("a", "look", ['{"key": "one"}']))

        async def runs() -> None:
            await gates.until_started("one")
            gates.running["one"].set()

        async def main() -> Any:
            client = self.client(FakeModel(self.reply([*first[:-1], runs, first[-1]])))
            return await self.run(gates.runtime, self.request(client, gates.runtime))

        assert self.answered(run_in(loop, main)) == [("a", "one!")]

    def test_why_it_is_incomplete_is_told(self) -> None:
        """The reason of the API, and what was whole has run."""
        turn = self.said(echoing(), self.reply(self.calls(("a", "echo", ['{"value": 1}'])), cut=True))
        assert turn.stop == "max_output_tokens"
        assert self.answered(turn) == [("a", "1")]

    def test_calls_that_arrive_mixed_keep_their_order(self) -> None:
        """The second call is complete before the first: it waits for it, because order is the reply's."""
        first = self.call(0, ("a", "echo", ['{"value": 1}']))
        second = self.call(1, ("b", "echo", ['{"value": 2}']))
        turn = self.said(echoing(), self.reply([first[0], *second, *first[1:]]))
        assert self.answered(turn) == [("a", "1"), ("b", "2")]


def chunk(choice: int = 0, reason: str | None = None, **delta: Any) -> bytes:
    """One chunk of a chat completion."""
    choices = [{"index": choice, "delta": delta, "finish_reason": reason, "logprobs": None}]
    return sse({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": choices})


def part_of_call(index: int | None, text: str | None = None, choice: int = 0, **fields: Any) -> bytes:
    """A piece of a call."""
    function = {} if text is None else {"function": {"arguments": text, **fields.pop("function", {})}}
    return chunk(choice, tool_calls=[{"index": index, **fields, **function}])


class TestChat(TurnTests):
    """The Chat Completions API."""

    def client(self, model: FakeModel) -> Any:
        """The SDK's real client."""
        return model.client(openai.AsyncOpenAI)

    def call(self, index: int, spoken: Spoken) -> list[Part]:
        """The deltas of a call."""
        call_id, name, pieces = spoken
        first = part_of_call(index, "", id=call_id, type="function", function={"name": name})
        return [first, *[part_of_call(index, piece) for piece in pieces]]

    def reply(self, parts: Iterable[Part], cut: bool = False) -> list[Part]:
        """A completion, with the usage after its end."""
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        last = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": []}
        start = chunk(role="assistant", content=None, refusal=None)
        end = chunk(reason="length" if cut else "tool_calls")
        return [start, *parts, end, sse({**last, "usage": usage}), b"data: [DONE]\n\n"]

    def request(self, client: Any, runtime: toolrt.Runtime, **more: Any) -> Any:
        """A streamed request, not awaited."""
        asked = {"messages": [{"role": "user", "content": "go"}], **more}
        return client.chat.completions.create(model="m", tools=adapter.chat_tools(runtime), stream=True, **asked)

    def helper(self, client: Any, runtime: toolrt.Runtime) -> Any:
        """`client.chat.completions.stream`."""
        messages = [{"role": "user", "content": "go"}]
        return client.chat.completions.stream(model="m", messages=messages, tools=adapter.chat_tools(runtime))

    def turn(self, batch: Any) -> adapter.ChatTurn:
        """The turn of a batch."""
        return adapter.ChatTurn(batch)

    async def run(self, runtime: toolrt.Runtime, stream: Any) -> adapter.ChatTurn:
        """The adapter's `run_chat`."""
        return await adapter.run_chat(runtime, stream)

    def answered(self, turn: Any) -> list[tuple[str, str]]:
        """The messages of tools."""
        assert {one["role"] for one in turn.answers} <= {"tool"}
        return [(one["tool_call_id"], one["content"]) for one in turn.answers]

    def test_the_next_request_takes_the_messages(self) -> None:
        """The assistant's message, with the fields of other servers, and one message for each result."""
        parts = [
            chunk(content="Hé"),
            chunk(content="llo", reasoning_content="so"),
            *self.call(0, ("a", "echo", ['{"value": "x"}'])),
            part_of_call(0, extra_content={"google": {"thought_signature": "sig"}}),
            *self.call(1, ("b", "fail", ["{}"])),
        ]
        model = FakeModel(self.reply(parts), [*self.reply([chunk(content="Done.")])[:-3], chunk(reason="stop")])

        async def main() -> Any:
            client, runtime = self.client(model), echoing()
            messages: list[Any] = [{"role": "user", "content": "go"}]
            turn = await self.run(runtime, self.request(client, runtime))
            messages += turn.messages
            return turn, await self.run(runtime, self.request(client, runtime, messages=messages))

        turn, last = run_in("trio", main)
        assert turn.has_calls
        assert (last.has_calls, last.stop) == (False, "stop")
        assert last.messages == [{"role": "assistant", "content": "Done."}]
        assistant, *tools = model.asked[1]["messages"][1:]
        assert (assistant["role"], assistant["content"], assistant["reasoning_content"]) == ("assistant", "Héllo", "so")
        first, second = assistant["tool_calls"]
        assert first["function"] == {"name": "echo", "arguments": '{"value": "x"}'}
        assert first["extra_content"] == {"google": {"thought_signature": "sig"}}
        assert (second["id"], second["type"]) == ("b", "function")
        assert tools == [
            {"role": "tool", "tool_call_id": "a", "content": "x"},
            {"role": "tool", "tool_call_id": "b", "content": "[error] ValueError: it failed"},
        ]

    def test_servers_that_number_calls_otherwise(self) -> None:
        """The same index for all with ids of their own, none at all, the name in each piece, arguments as an object."""
        parts: list[Part] = [
            part_of_call(0, '{"value": 1}', id="a", function={"name": "echo"}),
            part_of_call(0, '{"value"', id="b", function={"name": "echo"}),
            part_of_call(0, ": 2}", id="b", function={"name": "echo"}),
            part_of_call(None, '{"value": 3}', id="c", function={"name": "echo"}),
            chunk(tool_calls=[{"index": 9, "id": "d", "function": {"name": "echo", "arguments": {"value": 4}}}]),
        ]
        turn = self.said(echoing(), self.reply(parts))
        assert self.answered(turn) == [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]

    def test_calls_that_arrive_mixed_keep_their_order(self) -> None:
        """Pieces of two calls in turn; the second is complete first."""
        first = self.call(0, ("a", "echo", ['{"value": ', "1}"]))
        second = self.call(1, ("b", "echo", ['{"value": 2}']))
        turn = self.said(echoing(), self.reply([*first[:2], *second, first[2]]))
        assert self.answered(turn) == [("a", "1"), ("b", "2")]

    @pytest.mark.parametrize("pieces", [['{"value": 1}}'], ['{"value": 1}', "}"], ['{"value"', ": 1}  }"]])
    def test_text_after_the_arguments_decides_nothing(self, pieces: list[str]) -> None:
        """However it is cut into chunks, the first whole object counts, and the message has what the model wrote."""
        turn = self.said(echoing(), self.reply(self.calls(("a", "echo", pieces))))
        assert self.answered(turn) == [("a", "1")]
        assert turn.spoken[0]["tool_calls"][0]["function"]["arguments"] == "".join(pieces)

    def test_one_of_several_choices_may_call_tools(self) -> None:
        """Two that do are refused; one that does is answered, whichever it is."""
        first, second = (
            part_of_call(0, '{"value": 1}', choice, id=f"{choice}", function={"name": "echo"}) for choice in (0, 1)
        )
        with pytest.raises(InputRefused, match="choices 0 and 1 both call tools"):
            self.said(echoing(), self.reply([first, second]))
        talk = [chunk(0, content="Hi"), chunk(0, "stop"), second, chunk(1, "tool_calls")]
        turn = self.said(echoing(), talk)
        assert self.answered(turn) == [("1", "1")]
        assert turn.spoken[0]["content"] is None
        with pytest.raises(StreamBroken):
            self.said(echoing(), talk[:-1])

    def test_the_old_function_call_is_refused(self) -> None:
        """Its answer has another form."""
        with pytest.raises(InputRefused, match="old function_call"):
            self.said(echoing(), self.reply([chunk(function_call={"name": "echo", "arguments": "{}"})]))

    def test_a_refusal_is_what_the_model_said(self) -> None:
        """It stands in its own field."""
        turn = self.said(echoing(), self.reply([chunk(refusal="No"), chunk(refusal=".")]))
        assert turn.messages == [{"role": "assistant", "content": None, "refusal": "No."}]
