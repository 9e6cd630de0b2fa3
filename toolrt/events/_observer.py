"""The one seam through which code says what happened.

Rules.
    1. Code builds a record only while something listens, so that the cost is one look at a flag otherwise::

           if observer.listens:
               observer.tell(CallStarted(...), batch.telemetry)

    2. There are two audiences.  A recorder (a recording, a simulation) listens for the whole process and keeps traces.
       The telemetry of a batch listens to that batch alone, so code hands its own batch's telemetry to `tell`.  What
       only one audience wants is guarded by ``if observer.records`` or ``if observer.measures``.
    3. A listener decides nothing: a program that is observed behaves exactly as one that is not.

Limits.  There is one observer in a process.
"""

from __future__ import annotations

import weakref
from typing import Protocol

from toolrt.events._base import EventRecord


class EventListener(Protocol):
    """Takes events: a recorder, a simulation, the telemetry of a batch."""

    def tell(self, record: EventRecord) -> None:
        """Take note of `record`; keep its ``to_json()`` rather than the record.  Checkpoint: never."""


class Listeners:
    """Those that listen, and whether there are any."""

    __slots__ = ("_measuring", "_recorder", "listens", "measures", "records")

    def __init__(self) -> None:
        self._recorder: EventListener | None = None
        self._measuring: weakref.WeakSet[EventListener] = weakref.WeakSet()
        #: Whether a recorder listens.
        self.records = False
        #: Whether the telemetry of any batch listens.
        self.measures = False
        #: Whether anything listens.
        self.listens = False

    def record_with(self, recorder: EventListener | None) -> None:
        """Let `recorder` take all that follows, in place of the one before; None: nothing is recorded."""
        self._recorder = recorder
        self._look()

    def measure_with(self, telemetry: EventListener) -> None:
        """Let the telemetry of a batch listen, until `stop_measuring`, or as long as it is referred to."""
        self._measuring.add(telemetry)
        self._look()

    def stop_measuring(self, telemetry: EventListener) -> None:
        """Let the telemetry of a batch listen no more; once more is no harm."""
        self._measuring.discard(telemetry)
        self._look()

    def _look(self) -> None:
        """Set the flags; another thread may come or go meanwhile, so look again until nothing has changed."""
        seen = None
        while seen != (now := (self._recorder is not None, bool(self._measuring))):
            seen = now
            self.records, self.measures = now
            self.listens = self.records or self.measures

    def tell(self, record: EventRecord, telemetry: EventListener | None = None) -> None:
        """Say that `record` happened.

        Args:
            record: what happened.
            telemetry: the telemetry of the batch in which it did; None: it has none, or has no interest in this.

        Checkpoint: never.
        """
        recorder = self._recorder
        if recorder is not None and record.traced:
            recorder.tell(record)
        if telemetry is not None:
            telemetry.tell(record)


#: Those that listen in this process.
observer = Listeners()
