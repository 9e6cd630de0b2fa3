"""What must hold for a streamed reply of any model's API; each API's tests say how it is spoken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolrt
from tests.plugins._models import FakeModel, Part, cut
from toolrt import WRITE, Claim, Outcome, aio
from toolrt.errors import DefinitionRefused, InputRefused, StreamBroken

#: A call as a reply has it: its id, its tool, and its arguments in the pieces that the model gives them in.
Spoken = tuple[str, str, Sequence[str]]

LOOPS = ("asyncio", "trio")

#: The tests of a class are those of each of its subclasses.
INHERITED = [HealthCheck.differing_executors]


def run_in(loop: str, function: Callable[[], Awaitable[Any]]) -> Any:
    """Run `function` in an event loop, for ten seconds at most."""

    async def limited() -> Any:
        with anyio.fail_after(10):
            return await function()

    return asyncio.run(limited()) if loop == "asyncio" else trio.run(limited)


def tool_of(loop: str) -> Callable[..., Any]:
    """The decorator for tools that wait by `anyio`."""
    return aio.tool if loop == "asyncio" else toolrt.tool


def opened(loop: str, runtime: toolrt.Runtime) -> Any:
    """A batch in that loop."""
    return aio.open_batch(runtime) if loop == "asyncio" else runtime.open_batch()


class Gates:
    """Tools that wait, and what they did: `look`, which is safe, and `append`, which writes to one resource."""

    def __init__(self, loop: str) -> None:
        self.started: list[str] = []
        self.running: dict[str, anyio.Event] = {}
        self.most = 0
        self.text = ""
        tool = tool_of(loop)

        @tool(schema=None, safe=True)
        async def look(ctx: Any, key: str = "nothing") -> str:
            """Wait."""
            await self._wait(key)
            return f"{key}!"

        @tool(schema=None, claims=[Claim("file:notes", WRITE)])
        async def append(ctx: Any, key: str) -> str:
            """Wait, and append to the one file."""
            seen = self.text
            await self._wait(key)
            self.text = seen + key
            return self.text

        self.runtime = toolrt.Runtime(toolrt.Registry([look, append]))

    async def _wait(self, key: str) -> None:
        self.started.append(key)
        gate = self.running[key] = anyio.Event()
        self.most = max(self.most, len(self.running))
        try:
            await gate.wait()
        finally:
            del self.running[key]

    async def until_started(self, key: str) -> None:
        """Wait until the call with this key runs."""
        while key not in self.started:
            await anyio.lowlevel.checkpoint()

    async def open_in(self, order: Sequence[str]) -> None:
        """Let calls end, of those that run always the first in `order`, until all have."""
        left = list(order)
        while left:
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            ready = [key for key in left if key in self.running]
            if ready:
                self.running[ready[0]].set()
                left.remove(ready[0])


# Trio warns of generators that the SDKs leave before their end, OpenAI's at each [DONE]; the response is closed.
@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
class TurnTests:
    """Tests of one API; its class says how the API speaks."""

    def client(self, model: FakeModel) -> Any:
        """The SDK's real client."""
        raise NotImplementedError

    def call(self, index: int, spoken: Spoken) -> list[Part]:
        """One call in the stream."""
        raise NotImplementedError

    def reply(self, parts: Iterable[Part], cut: bool = False) -> list[Part]:
        """A whole reply around these parts; `cut`: the model ran out of tokens."""
        raise NotImplementedError

    def request(self, client: Any, runtime: toolrt.Runtime, **more: Any) -> Any:
        """A streamed request."""
        raise NotImplementedError

    def helper(self, client: Any, runtime: toolrt.Runtime) -> Any:
        """The same request by the SDK's own helper."""
        raise NotImplementedError

    def turn(self, batch: Any) -> Any:
        """The turn of an open batch."""
        raise NotImplementedError

    async def run(self, runtime: toolrt.Runtime, stream: Any) -> Any:
        """The adapter's `run`."""
        raise NotImplementedError

    def answered(self, turn: Any) -> list[tuple[str, str]]:
        """The id and the text of each answer."""
        raise NotImplementedError

    def calls(self, *spoken: Spoken) -> list[Part]:
        """These calls, one after another."""
        return [part for index, one in enumerate(spoken) for part in self.call(index, one)]

    def said(self, runtime: toolrt.Runtime, parts: Iterable[Part], loop: str = "asyncio") -> Any:
        """The turn of a reply whose tools end at once."""

        async def main() -> Any:
            return await self.run(runtime, self.request(self.client(FakeModel(parts)), runtime))

        return run_in(loop, main)

    @pytest.mark.parametrize("loop", LOOPS)
    def test_a_call_starts_while_the_model_still_speaks(self, loop: str) -> None:
        """The stream goes on only when its first call runs, and the second begins after that."""
        gates = Gates(loop)
        seen_before_end: list[str] = []

        async def first_runs() -> None:
            await gates.until_started("one")
            seen_before_end.extend(gates.started)

        async def main() -> Any:
            parts = [
                *self.call(0, ("a", "look", ['{"key": "one"}'])),
                first_runs,
                *self.call(1, ("b", "look", ['{"key": ', '"two"}'])),
            ]
            client = self.client(FakeModel(self.reply(parts)))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(gates.open_in, ["two", "one"])
                return await self.run(gates.runtime, self.request(client, gates.runtime))

        turn = run_in(loop, main)
        assert seen_before_end == ["one"]
        assert self.answered(turn) == [("a", "one!"), ("b", "two!")]
        assert turn.is_over
        assert turn.has_calls

    @pytest.mark.parametrize("loop", LOOPS)
    @settings(max_examples=6, suppress_health_check=INHERITED)
    @given(order=st.permutations(["p", "q", "1", "2", "3"]), sizes=st.lists(st.integers(1, 40), max_size=3))
    def test_calls_overlap_and_keep_their_order(self, loop: str, order: list[str], sizes: list[int]) -> None:
        """In every order of completion the file has the appends in call order, and so have the answers."""
        gates = Gates(loop)
        spoken = [("look", "p"), ("append", "1"), ("append", "2"), ("look", "q"), ("append", "3")]
        calls = [(f"call_{key}", name, [json.dumps({"key": key})]) for name, key in spoken]

        async def main() -> Any:
            client = self.client(FakeModel(cut(self.reply(self.calls(*calls)), sizes)))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(gates.open_in, order)
                return await self.run(gates.runtime, self.request(client, gates.runtime))

        turn = run_in(loop, main)
        answers = {"p": "p!", "q": "q!", "1": "1", "2": "12", "3": "123"}
        assert self.answered(turn) == [(f"call_{key}", answers[key]) for _, key in spoken]
        assert gates.text == "123"
        assert gates.most >= 2

    @settings(max_examples=8, suppress_health_check=INHERITED)
    @given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=5))
    def test_the_cut_of_the_bytes_decides_nothing(self, sizes: list[int]) -> None:
        """Text of several bytes, escapes of half a character and nested arguments come out whole."""
        first = ("a", "echo", ['{"value": {"é中😀": [1, {"x": "}', '\\"{"}]}', "}"])
        spoken = [first, ("b", "echo", ['{"value": "\\ud83d', '\\ude00"}']), ("c", "echo", ['{"value"', ': "\\"}"}'])]
        turn = self.said(echoing(), cut(self.reply(self.calls(*spoken)), sizes))
        values = [{"é中😀": [1, {"x": '}"{'}]}, "😀", '"}']
        assert [call.input for call in turn.calls] == [{"value": value} for value in values]
        assert [text for _, text in self.answered(turn)][1:] == ["😀", '"}']

    @pytest.mark.parametrize("loop", LOOPS)
    def test_each_call_is_answered_whatever_it_is(self, loop: str) -> None:
        """Malformed arguments, no arguments, an unknown tool and an id that stands twice: each has its own answer."""
        turn = self.said(
            echoing(),
            self.reply(
                self.calls(
                    ("a", "echo", ['{"value": 1}']),
                    ("b", "echo", ['{"value": ]}']),
                    ("a", "echo", [""]),
                    ("c", "nothing", ["{}"]),
                    ("d", "echo", ["[1]"]),
                    ("e", "echo", ['{"value": 1, "value": 2}']),
                    ("f", "fail", ["{}"]),
                )
            ),
            loop,
        )
        outcomes = [result.outcome for result in turn.batch.outcome.results]
        invalid = Outcome.INVALID
        assert outcomes == [Outcome.OK, invalid, Outcome.OK, invalid, invalid, invalid, Outcome.ERROR]
        answers = self.answered(turn)
        assert [call_id for call_id, _ in answers] == ["a", "b", "a", "c", "d", "e", "f"]
        assert answers[0][1] == "1"
        assert answers[2][1] == "nothing"
        assert answers[1][1].startswith("[invalid] invalid call of tool 'echo': input: expected object, got string")
        assert answers[6][1] == "[error] ValueError: it failed"

    def test_a_call_that_was_cut_off_is_not_run(self) -> None:
        """The model had no tokens left: not even a call without arguments is taken for whole."""
        for pieces in ([""], ['{"value": "pass'], []):
            spoken = [("a", "echo", ['{"value": 1}']), ("b", "echo", pieces)]
            turn = self.said(echoing(), self.reply(self.calls(*spoken), cut=True))
            outcomes = [result.outcome for result in turn.batch.outcome.results]
            assert outcomes == [Outcome.OK, Outcome.INVALID]

    @pytest.mark.parametrize("loop", LOOPS)
    @pytest.mark.parametrize("how", ["error", "end"])
    def test_a_stream_that_breaks_cancels_the_batch(self, loop: str, how: str) -> None:
        """What had ended is ok, what ran is interrupted, and the turn has an answer to each; nothing runs on."""
        gates = Gates(loop)

        async def both_run() -> None:
            await gates.until_started("1")
            await gates.until_started("2")
            gates.running["1"].set()
            while "1" in gates.running:
                await anyio.lowlevel.checkpoint()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()

        whole = self.reply(
            [
                *self.calls(("a", "look", ['{"key": "1"}']), ("b", "look", ['{"key": "2"}'])),
                both_run,
                *self.call(2, ("c", "look", ['{"key": ', '"3"}'])),
            ]
        )
        at = whole.index(both_run) + 2
        parts = whole[:at] + ([ConnectionError("gone")] if how == "error" else [])
        turns = []

        async def main() -> None:
            async with opened(loop, gates.runtime) as batch:
                turns.append(self.turn(batch))
                await turns[0].hear(self.request(self.client(FakeModel(parts)), gates.runtime))

        with pytest.raises(ConnectionError if how == "error" else StreamBroken):
            run_in(loop, main)
        turn = turns[0]
        assert [result.outcome for result in turn.batch.outcome.results] == [Outcome.OK, Outcome.INTERRUPTED]
        assert [call_id for call_id, _ in self.answered(turn)] == ["a", "b"]
        assert len(turn.messages) >= 2
        assert "c" not in json.dumps([call.call_id for call in turn.calls])
        assert not gates.running
        assert not turn.is_over

    @pytest.mark.parametrize("loop", LOOPS)
    def test_a_cancel_cancels_the_batch(self, loop: str) -> None:
        """The task is cancelled while the model speaks: what ran has ended by then."""
        gates = Gates(loop)
        turns = []

        async def main() -> None:
            async with anyio.create_task_group() as tasks:

                async def cancel() -> None:
                    await gates.until_started("1")
                    tasks.cancel_scope.cancel()
                    await anyio.sleep_forever()

                parts = self.reply([*self.call(0, ("a", "look", ['{"key": "1"}'])), cancel])
                async with opened(loop, gates.runtime) as batch:
                    turns.append(self.turn(batch))
                    await turns[0].hear(self.request(self.client(FakeModel(parts)), gates.runtime))

        run_in(loop, main)
        assert [result.outcome for result in turns[0].batch.outcome.results] == [Outcome.INTERRUPTED]
        assert not gates.running

    @pytest.mark.parametrize("loop", LOOPS)
    def test_a_reply_without_calls_ends_the_conversation(self, loop: str) -> None:
        """There are no answers to send."""
        turn = self.said(echoing(), self.reply([]), loop)
        assert not turn.has_calls
        assert turn.answers == []
        assert turn.calls == ()

    @pytest.mark.parametrize("loop", LOOPS)
    def test_a_call_without_a_name_is_refused(self, loop: str) -> None:
        """It cannot be answered: the batch is cancelled, and the text says what is wrong."""
        spoken: Any = ("a", None, ['{"value": 1}'])
        with pytest.raises(InputRefused, match="name"):
            self.said(echoing(), self.reply(self.call(0, spoken)), loop)

    @pytest.mark.parametrize("loop", LOOPS)
    def test_the_helper_of_the_sdk_may_be_given(self, loop: str) -> None:
        """It may raise where arguments are malformed; here that call alone is answered."""
        model = FakeModel(self.reply(self.calls(("a", "echo", ['{"value" 1}']), ("b", "echo", ['{"value": 1}']))))

        async def main() -> Any:
            client, runtime = self.client(model), echoing()
            return await self.run(runtime, self.helper(client, runtime))

        turn = run_in(loop, main)
        assert [result.outcome for result in turn.batch.outcome.results] == [Outcome.INVALID, Outcome.OK]

    def test_what_is_no_stream_is_refused(self) -> None:
        """A whole reply, or a stream of a client that blocks."""
        runtime = echoing()
        for wrong in ([], {"content": []}, None):
            with pytest.raises(DefinitionRefused, match="a stream of an asynchronous client"):
                run_in("asyncio", lambda wrong=wrong: self.run(runtime, wrong))  # type: ignore[misc]

    def test_events_are_shown_and_may_be_plain(self) -> None:
        """JSON objects of any asynchronous iterator do as well as the SDK's events."""
        seen: list[Any] = []

        async def main() -> Any:
            model = FakeModel(self.reply(self.calls(("a", "echo", ['{"value": 1}']))))
            runtime = echoing()
            async with aio.open_batch(runtime) as batch:
                await self.turn(batch).hear(self.request(self.client(model), runtime), seen.append)

            async def events() -> Any:
                for event in seen:
                    yield event.to_dict()

            async with aio.open_batch(runtime) as batch:
                turn = self.turn(batch)
                await turn.hear(events())
            return turn

        turn = run_in("asyncio", main)
        assert len(seen) >= 3
        assert self.answered(turn) == [("a", "1")]


def echoing() -> toolrt.Runtime:
    @toolrt.tool(schema=None, safe=True)
    async def echo(ctx: Any, value: Any = "nothing") -> Any:
        """Give the value."""
        return value

    @toolrt.tool(schema=None, safe=True)
    async def fail(ctx: Any) -> None:
        """Fail."""
        raise ValueError("it failed")

    return toolrt.Runtime(toolrt.Registry([echo, fail]))
