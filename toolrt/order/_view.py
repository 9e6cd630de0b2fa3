"""What a user sees of a call: a live view that cannot be written to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

from toolrt.model import Claim, Modifier, ToolCall, ToolResult
from toolrt.order._record import CallRecord
from toolrt.order._states import CallState, Status

__all__ = ["TrackedCall", "TrackedCalls"]


class TrackedCall:
    """One call of a batch, as it is now: where it is, what it waits for, and what it has given so far.

    `Batch.submit` gives one, and `Batch.calls` all of them.  A view is live: it shows what is so when it is asked.
    Nothing can be assigned to it, and views of one call are equal.

    Raises:
        AttributeError: something was assigned.
    """

    __slots__ = ("_record",)
    _record: CallRecord

    def __init__(self, record: CallRecord) -> None:
        object.__setattr__(self, "_record", record)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name}: a tracked call shows what happened; nothing can be assigned to it")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name}: a tracked call shows what happened; nothing can be deleted from it")

    @property
    def call(self) -> ToolCall:
        """What the model asked for."""
        return self._record.call

    @property
    def call_id(self) -> str:
        """The id the model gave it; two calls of one batch may carry the same."""
        return self._record.call_id

    @property
    def name(self) -> str:
        """The tool's name, as the model gave it."""
        return self._record.name

    @property
    def call_index(self) -> int:
        """Its place in the batch, from 0."""
        return self._record.call_index

    @property
    def status(self) -> Status:
        """Queued, executing, completed or yielded."""
        return self._record.state.status

    @property
    def state(self) -> CallState:
        """Where it is in full: what it waits for, and what it still holds."""
        return self._record.state

    @property
    def safe(self) -> bool:
        """Whether it may overlap its neighbours."""
        return self._record.safe

    @property
    def lane(self) -> int | None:
        """The index of its lane; None for calls that belong to none."""
        return self._record.lane

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What it claims, once its lane has started."""
        return self._record.claims

    @property
    def pending_progress(self) -> list[Any]:
        """Progress not yet handed to the reader, a copy."""
        return list(self._record.pending_progress)

    @property
    def progress_count(self) -> int:
        """How many progress messages it has sent."""
        return self._record.progress_count

    @property
    def results(self) -> list[ToolResult]:
        """Its result in a list, once that is fixed; else an empty one."""
        result = self._record.result
        return [] if result is None else [result]

    @property
    def modifiers(self) -> tuple[Modifier, ...]:
        """The modifiers that it returned, until its lane has ended."""
        return self._record.modifiers

    @property
    def waits_for(self) -> list[Any]:
        """What keeps a queued call from starting.

        The ``call_index`` of each call of this batch whose ticket is in the way, ``"batch_id#call_index"`` for those of
        other batches, then ``"approval"``; ``"lane"`` before its lane has started; ``"slot"`` when only the limit is in
        the way.  Empty when it does not wait.
        """
        return self._record.waits_for

    @property
    def waited(self) -> float | None:
        """Seconds from its submission to its start; None if it has not started."""
        record = self._record
        return None if record.started_at is None else record.started_at - record.submitted_at

    @property
    def ran(self) -> float | None:
        """Seconds of its own execution; None while that lasts or if it never started."""
        record = self._record
        if record.started_at is None or record.ended_at is None:
            return None
        return record.ended_at - record.started_at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrackedCall) and other._record is self._record

    def __hash__(self) -> int:
        return hash(self._record)

    def __repr__(self) -> str:
        return repr(self._record)


class TrackedCalls(Sequence[TrackedCall]):
    """All calls of a batch so far, by call_index: a live view.

    Args:
        records: the engine's own.
    """

    __slots__ = ("_records",)

    def __init__(self, records: Sequence[CallRecord]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> TrackedCall: ...

    @overload
    def __getitem__(self, index: slice) -> list[TrackedCall]: ...

    def __getitem__(self, index: int | slice) -> TrackedCall | list[TrackedCall]:
        if isinstance(index, slice):
            return [TrackedCall(record) for record in self._records[index]]
        return TrackedCall(self._records[index])

    def __iter__(self) -> Iterator[TrackedCall]:
        return map(TrackedCall, self._records)

    def __repr__(self) -> str:
        return repr(list(self._records))
