"""A mix executed by another runtime, so that the laws can judge it.

Rules.
    1. The runtime reports nothing itself.  It gets tools and a function that takes updates; the tools and that function
       report what happens in the form in which `toolrt.Runtime` would report it.
    2. The expected plan is that of `by_safety`: neighbours whose tool is safe share a lane, any other
       call is alone in its own.  A lane starts when its first call does, and merges when the next state is shown.
    3. A message and an answer carry the call that they are of, so that one that reaches another call's slot is seen.

Limits.  The laws on approvals, sub-batches, late submissions and schemas are not applied.  The runtime does not learn
of timeouts, stops and limits; the law about them trips where the mix has one.  Law 12 (nothing is left) checks calls
only.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import trio

from toolrt import events
from toolrt.errors import DefinitionRefused
from toolrt.events import BatchEvent, observer
from toolrt.invariants.mixes._mix import Mix, MixEnding
from toolrt.invariants.mixes._world import World
from toolrt.model import BatchOutcome, Modifier, Outcome, Registry, State, ToolCall
from toolrt.order import by_safety, partition

_BATCH = "mix"

_Handler = Callable[[Mapping[str, Any], State, Callable[[Any], None]], Awaitable[tuple[Any, list[Modifier]]]]


class Executor(Protocol):
    """A runtime, as `executed_by` calls it; the teaching runtime of the documentation is one.

    Args:
        calls: ``{"id", "name", "input"}`` each, in call order.
        tools: by name, ``{"is_concurrency_safe": input -> bool, "handler": async (input, context, say) -> (answer,
            modifiers)}``.  A handler may raise; `say` takes a message, and never blocks.
        context: the first state; modifiers take one and give the next.
        show: takes updates: ``{"call": index, "message": ...}``, ``{"call": index, "result": answer}``, and
            ``{"new_context": context}`` once for each lane.  It never blocks.

    Returns: one answer for each call, in call order, and the last state.
    """

    def __call__(
        self,
        calls: Sequence[Mapping[str, Any]],
        tools: Mapping[str, Mapping[str, Any]],
        context: State,
        show: Callable[[Mapping[str, Any]], None],
        /,
    ) -> Awaitable[tuple[Sequence[Any], State]]: ...


def executed_by(executor: Executor, mix: Mix) -> Callable[[], Awaitable[MixEnding]]:
    """A program for `toolrt.sim`: one execution of `mix` by `executor`, reported so that the laws can judge it.

    Give it to `sim.run`, `sim.explore` or `sim.replay`; ``mix.check(execution, laws)`` says which laws do not hold.

    Args:
        executor: see `Executor`.
        mix: lanes are those of `by_safety`; each call is safe, or claims or says nothing and so is alone.

    Raises:
        DefinitionRefused: the mix has what such a runtime cannot know.
    """
    calls = mix.calls
    refused = {
        'lanes="by_safety"': mix.lanes != "by_safety",
        "no slot policy": mix.slots is not None,
        "no delays": any(mix.delays),
        "an eager reader": mix.reader != "eager",
        "no cancel from inside": mix.cancel_after is not None
        and (not mix.cancel_outside or mix.cancel_call is not None),
        "no deadline, no crash and no other batch": bool(mix.deadline or mix.beside) or mix.crash_after is not None,
        "no uses of a conversation": mix.uses_evens is not None,
        "no approvals": mix.approves,
        "no sub-batches": any(call.sub_batches for call in calls),
        "no tools of a workspace": any(call.uses is not None for call in calls),
        "input that fits": any(call.invalid == "input" for call in calls),
        'calls that are safe, or not, whatever their input: not "by input"': any(c.says == "by input" for c in calls),
    }
    for wanted, is_refused in refused.items():
        if is_refused:
            raise DefinitionRefused("executed_by(mix)", f"a mix with {wanted}", mix)

    async def run() -> MixEnding:
        return await _ExecutorRun(executor, mix).run()

    return run


class _ObservedCall:
    """One call, as it was seen from its handler and from the reader."""

    def __init__(self, index: int, call: ToolCall) -> None:
        self.index = index
        self.call = call
        #: Its lane in the plan; None for a call that no tool answers.
        self.lane: int | None = None
        self.shared = True
        self.said = 0
        #: What it came to, once its handler has ended or the runtime has answered for it.
        self.settled: _Answer | None = None


@attrs.frozen
class _Answer:
    """What a handler gave, and whose it is; the runtime hands it on as it is."""

    index: int
    outcome: Outcome
    content: Any
    error: str | None


class _ExecutorContext:
    """What a scripted call uses of a `ToolContext`."""

    def __init__(self, call_index: int, state: State, say: Callable[[Any], None]) -> None:
        self.batch_id = _BATCH
        self.call_index = call_index
        self.state = state
        self.progress = say

    async def run(self, calls: Sequence[ToolCall]) -> BatchOutcome:
        # A mix that has some was refused before.
        raise DefinitionRefused("executed_by(mix)", "calls without sub-batches", calls)


class _ExecutorRun:
    def __init__(self, executor: Executor, mix: Mix) -> None:
        self._executor = executor
        self._mix = mix
        self._world = World(mix.calls, mix.files)
        self._registry = self._world.registry()
        calls = self._world.calls()
        self._calls = [_ObservedCall(index, call) for index, call in enumerate(calls)]
        for lane in partition(calls, self._registry, State(mix.state), by_safety):
            for call in self._calls:
                if any(call.call is planned for planned in lane.calls):
                    call.lane, call.shared = lane.index, lane.safe
        self._started: list[int] = []
        self._merged = 0
        self._applied: dict[int, tuple[list[list[int]], list[list[int]]]] = {}

    async def run(self) -> MixEnding:
        state = State(self._mix.state)
        limit = self._mix.limit
        self._tell(events.BatchOpened, policy="by_safety", limit=limit, state=state.to_json(), parent=None)
        for call in self._calls:
            asked = call.call
            self._tell(
                events.CallSubmitted, call=call.index, call_id=asked.call_id, name=asked.name, input=dict(asked.input)
            )
        self._tell(events.BatchSealed)
        self._tell(events.ReaderAsked)
        calls = [{"id": call.call.call_id, "name": call.call.name, "input": call.call.input} for call in self._calls]
        answers: Sequence[Any] = ()
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                if self._mix.cancel_after is not None:
                    # The nursery is cancelled as soon as the scope is left.
                    nursery.start_soon(self._cancel, scope, self._mix.cancel_after)  # noqa: ASYNC111
                answers, state = await self._executor(calls, self._tools(self._registry), state, self._show)
                self._tell(events.ReaderAsked)
            nursery.cancel_scope.cancel()
        results = [self._result(call, answer) for call, answer in zip(self._calls, answers, strict=False)]
        left = {"tasks": 0, "tickets": 0, "slots": 0, "progress": 0}
        self._tell(events.BatchLeft, results=results, state=state.to_json(), left=left)
        outcomes = tuple(str(result["outcome"]) for result in results)
        return MixEnding(outcomes, tuple(sorted(self._world.files.items())))

    async def _cancel(self, scope: trio.CancelScope, after: float) -> None:
        await trio.sleep(after)
        self._tell(events.BatchCancelled, reason="the mix says so", outside=True)
        scope.cancel()

    def _tell(self, record: type[BatchEvent], **fields: Any) -> None:
        if observer.records:
            observer.tell(record(batch=_BATCH, **fields))

    # What the tools are asked to do

    def _tools(self, registry: Registry) -> dict[str, dict[str, Any]]:
        made: dict[str, dict[str, Any]] = {}
        for call in self._calls:
            tool = registry.get(call.call.name)
            if tool is not None:
                made[tool.name] = {"is_concurrency_safe": tool.is_safe, "handler": self._handler(tool.function)}
        return made

    def _handler(self, function: Callable[..., Any]) -> _Handler:
        async def handler(
            input: Mapping[str, Any], context: State, say: Callable[[Any], None]
        ) -> tuple[_Answer, list[Modifier]]:
            call = self._calls[input["index"]]
            self._begin(call, context)

            def progress(message: Any) -> None:
                number, call.said = call.said, call.said + 1
                self._tell(events.ProgressSent, call=call.index, number=number, accepted=True)
                say((call.index, number, message))

            answer, modifiers = _Answer(call.index, Outcome.INTERRUPTED, None, "it was cancelled"), ()
            try:
                output = function(_ExecutorContext(call.index, context, progress), **input)
                if inspect.isawaitable(output):
                    output = await output
                outcome = Outcome.OK if output.error is None else Outcome.ERROR
                answer, modifiers = _Answer(call.index, outcome, output.content, output.error), output.modifiers
            except Exception as raised:
                answer = _Answer(call.index, Outcome.ERROR, None, f"{type(raised).__name__}: {raised}")
                raise
            finally:
                self._settle(call, answer, len(modifiers))
                self._tell(events.CallEnded, call=call.index)
            return answer, [self._seen(call, *each) for each in enumerate(modifiers)]

        return handler

    def _begin(self, call: _ObservedCall, context: State) -> None:
        if call.lane is not None and call.lane not in self._started:
            self._started.append(call.lane)
            of_lane = [other for other in self._calls if other.lane == call.lane]
            indices = [other.index for other in of_lane]
            shared = call.shared
            self._tell(events.LaneStarted, lane=call.lane, shared=shared, calls=indices, state=context.to_json())
            for other in of_lane:
                script = self._mix.calls[other.index]
                fields = {"shared": shared, "claims": [], "stops": script.stops, "reads_only": False}
                self._tell(events.TicketTaken, call=other.index, lane=call.lane, **fields)
        timeout = self._mix.calls[call.index].timeout
        self._tell(
            events.CallStarted, call=call.index, lane=call.lane, thread=False, timeout=timeout, interrupt="cancel"
        )

    def _settle(self, call: _ObservedCall, answer: _Answer, modifiers: int) -> None:
        call.settled = answer
        fields = {"outcome": answer.outcome.value, "content": answer.content, "error": answer.error}
        self._tell(events.CallSettled, call=call.index, **fields, modifiers=modifiers)

    def _seen(self, call: _ObservedCall, position: int, modifier: Modifier) -> Modifier:
        """The modifier, which says where and how it was applied."""

        def applied(state: State) -> State:
            good, bad = self._applied.setdefault(call.lane or 0, ([], []))
            try:
                after = modifier(state)
            except Exception:
                bad.append([call.index, position])
                self._tell(events.ModifierApplied, lane=call.lane, call=call.index, position=position, ok=False)
                raise
            good.append([call.index, position])
            self._tell(events.ModifierApplied, lane=call.lane, call=call.index, position=position, ok=True)
            return after

        return applied

    # What is shown

    def _show(self, update: Mapping[str, Any]) -> None:
        if "new_context" in update:
            # A call that is answered without a tool belongs to no lane; the runtime may show a state after it.
            if self._merged < len(self._started):
                lane = self._started[self._merged]
                self._merged += 1
                good, bad = self._applied.get(lane, ([], []))
                state = update["new_context"].to_json()
                self._tell(events.LaneMerged, lane=lane, state=state, applied=good, rejected=bad)
                self._tell(events.MergeDelivered, lane=lane)
        elif "message" in update:
            of, number, _ = update["message"]
            self._tell(events.ProgressDelivered, call=update["call"], number=number if of == update["call"] else -1)
        elif "result" in update:
            call = self._calls[update["call"]]
            if call.settled is None:
                self._settle(call, _Answer(call.index, Outcome.INVALID, None, str(update["result"])), 0)
            self._tell(events.ResultDelivered, call=call.index, outcome=self._result(call, update["result"])["outcome"])

    def _result(self, call: _ObservedCall, answer: Any) -> dict[str, Any]:
        """The result in a slot, from what the runtime put there: an answer of a handler, or a text for an error."""
        settled, asked = call.settled, call.call
        outcome, content, error = Outcome.ERROR, None, None if answer is None else str(answer)
        if isinstance(answer, _Answer) and answer.index == call.index:
            outcome, content, error = answer.outcome, answer.content, answer.error
        elif isinstance(answer, _Answer):
            error = f"the answer of call {answer.index}"
        elif settled is not None and settled.error is not None:
            outcome = settled.outcome
            # Any words will do that say what the tool raised.
            if error is not None and settled.error.partition(": ")[2] in error:
                error = settled.error
        return {
            "call_index": call.index,
            "call_id": asked.call_id,
            "name": asked.name,
            "outcome": outcome.value,
            "content": content,
            "error": error,
        }
