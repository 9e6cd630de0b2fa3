"""Events and progress: law 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import trio

import toolrt
from tests.properties._rule import Variant
from toolrt import Progress, Registry, ResultReady, Runtime, ToolCall, ToolContext, sim
from toolrt.invariants import patched, require


@attrs.frozen
class Step(toolrt.Event):
    """An event of these tests' own."""

    number: int


@toolrt.tool(safe=True)
async def emits(ctx: ToolContext, count: int, pause: float) -> int:
    """Tells `count` things, events and progress in turn."""
    for number in range(count):
        if number % 2:
            ctx.progress(number)
        else:
            ctx.emit(Step(number))
        await trio.sleep(pause)
    return count


def event_order(batch_of: Sequence[tuple[int, float]], schedule: Sequence[int] = (), slow: float = 0.0) -> None:
    """Each call's events and progress come in one order, with its identity, before its result; none is lost unseen."""

    async def program() -> list[Any]:
        updates = []
        async with Runtime(Registry([emits])).open_batch() as batch:
            for count, pause in batch_of:
                batch.submit(ToolCall("same id", "emits", {"count": count, "pause": pause}))
            batch.seal()
            async for update in batch:
                updates.append(update)
                await trio.sleep(slow)
        return updates

    execution = sim.run(program, sim.Choices(list(schedule)))
    assert execution.error is None, execution.error
    require(execution.trace)
    ended: set[int] = set()
    said: dict[int, list[int]] = {index: [] for index in range(len(batch_of))}
    for update in execution.value:
        if isinstance(update, ResultReady):
            result = update.result
            ended.add(result.call_index)
            assert len(said[result.call_index]) + result.progress_dropped == batch_of[result.call_index][0]
        elif isinstance(update, Progress):
            assert update.call_index not in ended
            message = update.message
            if isinstance(message, Step):
                assert (message.call_index, message.call_id, message.batch_id) == (
                    update.call_index,
                    update.call_id,
                    "batch-1",
                )
                message = message.number
            said[update.call_index].append(message)
    assert ended == set(range(len(batch_of)))
    for index, (count, _) in enumerate(batch_of):
        assert said[index] == list(range(count))


def events_in_order() -> None:
    for seed in range(5):
        event_order([(4, 0.1), (3, 0.0), (5, 0.1)], [seed] * 60, 0.05)


def _of_latest(emit: Any) -> Any:
    """One channel for all calls: an event takes the id of the call that told something last."""
    latest: list[Any] = [None]

    def send(self: ToolContext, event: Any) -> None:
        before, latest[0] = latest[0], self._call
        other = before or self._call
        told = {"call_index": other.call_index, "call_id": other.call_id, "batch_id": self.batch_id}
        self._host.send(self._call, attrs.evolve(event, **told))

    return send


def _in_a_channel_of_its_own(emit: Any) -> Any:
    """Events wait in a queue beside the progress, until the next one is told."""
    waiting: dict[Any, Any] = {}

    def send(self: ToolContext, event: Any) -> None:
        key = (self.batch_id, self.call_index)
        if key in waiting:
            emit(self, waiting.pop(key))
        else:
            waiting[key] = event

    return send


RULES = {"events": events_in_order}


VARIANTS: dict[str, Variant] = {
    "an event takes the id of another call": Variant(
        "events", lambda: patched(ToolContext, "emit", _of_latest), r"At index 0 diff: \d != \d"
    ),
    "events have a channel of their own": Variant(
        "events", lambda: patched(ToolContext, "emit", _in_a_channel_of_its_own), r"assert \(3 \+ 0\) == 4"
    ),
}
