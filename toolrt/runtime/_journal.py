"""Makes one batch durable: what is on the disk before a call starts, and before its result is handed out.

Rules.
    1. A call's intent is durable before its tool's first step.  What the tool returned or raised is durable before any
       code but the runtime sees it.  A result that no tool gave (INVALID, SKIPPED) follows from those, and is not kept.
    2. A batch is resumed by running it again.  A tool that has returned is not called: it gives what is kept of it.
       All else follows by the rules of a batch, which give one outcome under every timing.
    3. A call that was about to start and has no result may have happened.  It runs again where that does no harm: its
       tool is ``idempotent`` or ``pure``, it only reads, or the tool can look and sees that nothing happened.  A tool
       that sees that all of it happened says so.  Any other call is INTERRUPTED, and if it `stops_batch`, what
       follows is skipped, because it may have failed.
    4. An answer of the approval check that had to be awaited is durable before it counts, so no person is asked again.

Theory.  This is replay of a deterministic plan from a log of its nondeterministic steps (Elnozahy et al., *A Survey of
Rollback-Recovery Protocols*, 2002, section 3), where a step is a tool's return and the plan is the batch.

Limits.  A sub-batch is found again by the order in which its tool opens it, so a tool that opens several at once opens
them in one order.  A cancel of one waiting call is durable with the next record, not at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, cast

import attrs
import trio

from toolrt.errors import JournalFailed, JournalRefused
from toolrt.model import Allow, BatchOutcome, Deny, Outcome, Rewrite, State, Tool, ToolCall, ToolOutput, reads_only
from toolrt.model._watched_state import StateReads, bare_state, parts_json
from toolrt.order import CallRecord
from toolrt.runtime._execution import EndedBefore
from toolrt.store import Journal
from toolrt.store._codec import text_of
from toolrt.store._kept import CallPlace, KeptBatch, KeptCall, fingerprint
from toolrt.store._records import FULL

_HAPPENED = "interrupted: the process ended while it ran, so its effects may have landed"


@attrs.define(eq=False)
class _Shared:
    """What a batch and its sub-batches have in common."""

    journal: Journal
    kept: KeptBatch
    #: Whether the batch was begun by an earlier run.
    resumes: bool
    #: Records that are to be durable with the next commit.
    notes: list[list[Any]] = attrs.field(factory=list)


class BatchJournal:
    """The journal of one batch.

    Args:
        shared: what its sub-batches have, too.
        place: of the batch: of a sub-batch, its parent's place and its number there.
        abort: cancels the batch, and lets an error out when it is left.
    """

    def __init__(self, shared: _Shared, place: CallPlace, abort: Callable[[BaseException], None]) -> None:
        self._shared = shared
        self._place = place
        self._abort = abort
        #: How often the tool of a call has returned.
        self._returned: dict[int, int] = {}
        #: What is called in place of a call's tool.
        self._instead: dict[int, Callable[..., Any]] = {}

    @classmethod
    def of(
        cls,
        journal: Journal,
        batch_id: str,
        lanes: str,
        state: State,
        owner: object,
        abort: Callable[[BaseException], None],
        kept: KeptBatch | None = None,
    ) -> BatchJournal:
        """The journal of a new batch, or of the one that left `kept`.

        Raises:
            JournalRefused: the codec does not carry the state.
        """
        codec = journal.codec
        if kept is None:
            header: dict[str, Any] = {"codec": codec.name, "lanes": lanes}
            try:
                header["state"] = codec.encode(bare_state(state))
            except TypeError as error:
                why = f"its state holds {error}"
                remedy = "Keep plain values there, or give the journal a toolrt.store.Codec with that kind."
                raise JournalRefused(f"batch {batch_id}", why, remedy) from None
            with contextlib.suppress(TypeError):  # a later process has no such object
                header["owner"] = codec.encode(owner)
            return cls(_Shared(journal, KeptBatch(batch_id, header), False), (), abort)
        return cls(_Shared(journal, kept, True), (), abort)

    def inside(self, place: CallPlace, abort: Callable[[BaseException], None]) -> BatchJournal:
        """The journal of a sub-batch, by its place."""
        return BatchJournal(self._shared, place, abort)

    # The batch

    async def begin(self, calls: Sequence[ToolCall] = (), tools: Any = None) -> None:
        """The batch is durable, with the calls that are known.  Of a sub-batch its calls are durable as they start.

        Raises:
            JournalRefused: its id is used, or it runs now; nothing was changed.
            JournalFailed: the disk refuses; nothing was changed.

        Checkpoint: if something is written.
        """
        shared, journal = self._shared, self._shared.journal
        batch_id, running = shared.kept.batch_id, shared.journal.store.running
        if self._place:
            return
        if batch_id in running:
            raise JournalRefused(f"batch {batch_id}", "it runs now", "Wait for its end, or give another batch_id.")
        running[batch_id] = None
        if shared.resumes:
            return
        try:
            known = [self._known(call, None if tools is None else tools.get(call.name)) for call in calls]
            shared.kept.calls.update({(index,): call for index, call in enumerate(known)})
            header = text_of(["batch", {**shared.kept.header, "calls": [call.parts() for call in known]}])
            refused = await journal.ask(lambda store: store.begin(batch_id, header, journal.bounds))
        except BaseException:
            running.pop(batch_id, None)
            raise
        if refused is not None:
            running.pop(batch_id, None)
            if refused == FULL:
                remedy = "Remove what is over with `toolrt purge`, or raise Journal(most_bytes=)."
                raise JournalRefused(f"journal {journal.name}", f"over {journal.bounds.most_bytes} bytes", remedy)
            remedy = f"To go on with that batch: await runtime.resume({batch_id!r}); else give another batch_id."
            raise JournalRefused(f"batch {batch_id}", "its id was used before in this journal", remedy)

    async def over(self, outcome: BatchOutcome) -> None:
        """The outcome is durable; a later `Runtime.resume` gives it back.

        Raises:
            JournalFailed: the disk refuses.

        Checkpoint: if it is no sub-batch.
        """
        shared, journal = self._shared, self._shared.journal
        if self._place:
            return
        codec = journal.codec
        try:
            last = text_of(["over", codec.encode(list(outcome.results)), codec.encode(bare_state(outcome.state))])
        except TypeError:
            last = text_of(["over", None])  # what changes made cannot be kept, and follows from what was
        await self._flush()
        with trio.CancelScope(shield=True):
            await journal.ask(lambda store: store.over(shared.kept.batch_id, last, journal.bounds))

    def left(self) -> None:
        """The batch no longer runs in this process."""
        if not self._place:
            self._shared.journal.store.running.pop(self._shared.kept.batch_id, None)

    # A call, in the order in which things happen to it

    def submitted(self, call: CallRecord) -> str | None:
        """Take note of a call; gives why it cannot run."""
        place, known = self._place_of(call), self._known(call.call, call.tool)
        there = self._shared.kept.calls.get(place)
        if there is None:
            self._shared.kept.calls[place] = known
            self._shared.notes.append(["call", list(place), known.parts()])
        elif (there.name, there.input, there.schema) != (known.name, known.input, known.schema):
            return (
                f"the journal has another call in this place ({there.name!r}): the tool that opened this sub-batch "
                "asked for other calls, or for tools of another schema, when it ran before"
            )
        if known.input is None:
            return "the journal cannot keep its input: expected JSON values"
        return None

    def knows(self, call: CallRecord) -> bool:
        """Whether the call's answer is kept, so that its tool is not called."""
        return self._kept_of(call).is_answered

    def _known(self, call: ToolCall, tool: Tool | None) -> KeptCall:
        try:
            input = self._shared.journal.codec.encode(call.input)
        except TypeError:
            input = None
        return KeptCall(str(call.call_id), str(call.name), input, fingerprint(tool))

    def answer_of(self, call: CallRecord) -> Allow | Deny | Rewrite | None:
        """What the approval check answered before; None: it is to be asked."""
        kept = self._kept_of(call)
        if kept.answer is None:
            return Allow() if kept.is_answered else None
        word, value, within = self._shared.journal.codec.decode(kept.answer)
        if word == "deny":
            return Deny(value)
        return Allow(within) if word == "allow" else Rewrite(value, within)

    async def answered(self, call: CallRecord, verdict: Allow | Deny | Rewrite) -> None:
        """The answer of the approval check is durable, if the codec carries it.

        Checkpoint: if it is written.
        """
        if not isinstance(verdict, Deny) and verdict.withheld is not None:
            return
        value = verdict.reason if isinstance(verdict, Deny) else getattr(verdict, "input", None)
        word = type(verdict).__name__.lower()
        try:
            kept = self._shared.journal.codec.encode([word, value, getattr(verdict, "within", None)])
        except TypeError:
            return
        await self._commit(["answer", list(self._place_of(call)), kept])

    async def intend(self, call: CallRecord) -> None:
        """It is decided whether the call's tool runs, and if it does, that is durable.

        Checkpoint: if it runs.
        """
        kept, tool, codec = self._kept_of(call), cast(Tool, call.tool), self._shared.journal.codec
        refused = codec.refuses(tool.function)
        if kept.returns:
            return
        if kept.end is not None:
            cut_short = kept.end[0] in (Outcome.INTERRUPTED, Outcome.NOT_STARTED)
            self._instead[call.call_index] = self._raising(tool, EndedBefore(*kept.end, may_stop=not cut_short))
            return
        if refused is not None:
            text = (
                f"it was not started: it returns a {refused}, which the journal's codec does not carry; "
                "return plain values, or give the journal a toolrt.store.Codec with that kind"
            )
            self._instead[call.call_index] = self._raising(tool, EndedBefore(Outcome.ERROR, text))
            return
        # An exclusive call holds everything, whatever its tool declares.
        only_reads = call.reads_only or (isinstance(tool.claims, tuple) and reads_only(tool.claims))
        if kept.started and not (tool.idempotent or tool.pure or only_reads):
            happened = await self._look(tool, kept)
            if happened is None:
                self._instead[call.call_index] = self._raising(tool, EndedBefore(Outcome.INTERRUPTED, _HAPPENED))
                return
            if isinstance(happened, str):
                self._instead[call.call_index] = self._giving(tool, happened)
                return
        await self._commit(["start", list(self._place_of(call))])

    async def _look(self, tool: Tool, kept: KeptCall) -> str | bool | None:
        """What the call's tool sees of what it was about to do.

        Returns: what it answers, if all of it happened; False: nothing happened; None: that cannot be known.

        Checkpoint: as the tool does.
        """
        if tool.landed is None:
            return None
        if not kept.fronts:
            return False
        with trio.CancelScope(shield=True):
            try:
                return await tool.landed(self._shared.journal.codec.decode(kept.fronts))
            except Exception:
                pass
        return None

    def held_back(self, call: CallRecord) -> None:
        """The call did not start after all."""
        if self._instead.pop(call.call_index, None) is None and not self._kept_of(call).returns:
            self._shared.notes.append(["unstart", list(self._place_of(call))])

    def stands_in(self, call: CallRecord) -> bool:
        """Whether something stands for the call's tool: `function_of` gives that."""
        return call.call_index in self._instead or bool(self._kept_of(call).returns)

    def function_of(self, call: CallRecord) -> Callable[..., Any]:
        """What is called: the call's tool, or what stands for it."""
        instead = self._instead.pop(call.call_index, None)
        if instead is not None:
            return instead
        tool, count = cast(Tool, call.tool), self._returned.get(call.call_index, 0)
        returns = self._kept_of(call).returns
        return self._giving(tool, self._replayed(call, returns[count])) if count < len(returns) else tool.function

    def front(self, call: CallRecord, evidence: Any) -> None:
        """What the call's tool is about to do is durable when this returns; for any thread.

        Raises:
            JournalFailed: it is not.
            TypeError: the codec does not carry it.
        """
        journal, batch_id = self._shared.journal, self._shared.kept.batch_id
        record = text_of(["front", list(self._place_of(call)), journal.codec.encode(evidence)])
        journal._commit_now([(batch_id, record)])

    async def returned(self, call: CallRecord, value: Any) -> Any:
        """What the call's tool returned is durable; gives it with its modifiers as values.

        Raises:
            JournalRefused: the codec does not carry it.

        Checkpoint: if it is written.
        """
        index, codec = call.call_index, self._shared.journal.codec
        count = self._returned[index] = self._returned.get(index, 0) + 1
        if count <= len(self._kept_of(call).returns):
            return value
        output = value if isinstance(value, ToolOutput) else ToolOutput(value)
        try:
            changes = codec.modifiers(output.modifiers)
            said = [codec.encode(output.content), codec.encode(list(changes)), output.error]
        except TypeError as error:
            raise JournalRefused(
                f"what {call.name} returned holds {error}",
                "the journal cannot keep it, so the call ends as an error",
                "Its effects have landed.",
            ) from None
        reads = None if call.reads is None else parts_json(call.reads.parts)
        await self._commit(["return", list(self._place_of(call)), [*said, reads, isinstance(value, ToolOutput)]])
        return attrs.evolve(value, modifiers=changes) if output.modifiers else value

    async def ended(self, call: CallRecord, outcome: Outcome, text: str) -> None:
        """How the call ended is durable: its tool did not return.

        Checkpoint: if it is written.
        """
        if self._kept_of(call).end is None:
            await self._commit(["end", list(self._place_of(call)), outcome.value, text])

    def cancelled(self, call: CallRecord) -> None:
        """Take note that the call, which waited, was cancelled alone."""
        result = call.result
        if result is not None:
            record = ["end", list(self._place_of(call)), result.outcome.value, result.error or ""]
            self._shared.notes.append(record)

    async def settled(self) -> None:
        """All that is known of the batch's calls is durable; a result is about to be handed out.

        Checkpoint: if something is written.
        """
        try:
            await self._flush()
        except (JournalFailed, JournalRefused) as error:
            self._abort(error)

    # What stands for a tool

    def _replayed(self, call: CallRecord, kept: list[Any]) -> Any:
        """What the call's tool returned, as `kept` has it."""
        content, changes, error, reads, whole = kept
        codec = self._shared.journal.codec
        if reads is not None:
            call.reads = StateReads()
            call.reads.parts.update(name if kind == "value" else (kind, name) for kind, name in reads)
        output = ToolOutput(codec.decode(content), codec.decode(changes), error)
        return output if whole else output.content

    @staticmethod
    def _giving(tool: Tool, value: Any) -> Callable[..., Any]:
        async def given(*_: Any, **__: Any) -> Any:  # noqa: ASYNC124  it stands for a coroutine function
            return value

        return given if tool.is_async else lambda *_, **__: value

    @staticmethod
    def _raising(tool: Tool, error: Exception) -> Callable[..., Any]:
        def raised(*_: Any, **__: Any) -> Any:
            raise error

        async def raised_late(*_: Any, **__: Any) -> Any:  # noqa: ASYNC124  the same
            raise error

        return raised_late if tool.is_async else raised

    # Records

    def _place_of(self, call: CallRecord) -> CallPlace:
        return (*self._place, call.call_index)

    def _kept_of(self, call: CallRecord) -> KeptCall:
        return self._shared.kept.calls[self._place_of(call)]

    async def _commit(self, record: list[Any]) -> None:
        """The notes and this record are durable, or the batch is being cut short.

        Checkpoint: always.
        """
        self._shared.notes.append(record)
        await self.settled()

    async def _flush(self) -> None:
        notes, self._shared.notes = self._shared.notes, []
        if notes:
            batch_id = self._shared.kept.batch_id
            await self._shared.journal.commit([(batch_id, text_of(note)) for note in notes])
