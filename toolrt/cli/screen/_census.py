"""How the calls of a running batch stand, without asking all of them each time.

Rules.  A look asks a bounded number of calls, in turn, and those that run; where there are no more than that, each look
is exact, and else a number is as old as it takes to come round.  A result that was handed over counts at once.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import islice

from toolrt.model import Outcome, ToolResult
from toolrt.order import CallState, Status, TrackedCall

#: So many calls are asked in one look.
_MOST = 5_000

#: So many calls that wait are looked at for those that say most.
_FIRST = 64


class CallStage(enum.Enum):
    """Where a call is, by what keeps it."""

    #: Its lane has not started.
    LANE = "lane"
    #: It waits for an answer to its approval request.
    APPROVAL = "approval"
    #: Calls before it hold what it claims.
    CLAIMS = "claims"
    #: Only the limit is in the way.
    SLOT = "slot"
    RUNNING = "running"
    ENDED = "ended"

    __hash__ = object.__hash__


def _standing(call: TrackedCall) -> CallStage:
    state = call.state
    if state.status is Status.QUEUED:
        return _QUEUED[state]
    return CallStage.RUNNING if state.status is Status.EXECUTING else CallStage.ENDED


#: Of a call whose tool has not begun.
_QUEUED = {
    CallState.PLACED: CallStage.LANE,
    CallState.ASKING: CallStage.CLAIMS,
    CallState.UNAPPROVED: CallStage.APPROVAL,
    CallState.WAITING: CallStage.CLAIMS,
    CallState.READY: CallStage.SLOT,
    CallState.SPAWNED: CallStage.RUNNING,  # its task is about to take its first step
}


#: Which of the calls that wait are shown rather than others.
_TELLING = (CallStage.APPROVAL, CallStage.CLAIMS, CallStage.SLOT, CallStage.LANE)


class Census:
    """Counts the calls of one batch.

    Args:
        calls: all there are, by call_index; more may come.
        most: how many are asked in one look.
    """

    def __init__(self, calls: Sequence[TrackedCall], most: int = _MOST) -> None:
        self._calls = calls
        self._most = most
        self._known: list[CallStage] = []
        #: How many stand how.
        self.counts: Counter[CallStage] = Counter()
        #: How many ended how.
        self.outcomes: Counter[Outcome] = Counter()
        #: When each call that runs was first seen to, by call_index.
        self.running: dict[int, float] = {}
        # The calls that may not have ended, in call order: those of this round, how far it is, those of the next.
        self._live: list[int] = []
        self._at = 0
        self._next: list[int] = []
        # Before this place of the first list all have ended.
        self._front = 0
        # A result that was not read yet: a stop may replace it.
        self._unread: dict[int, Outcome] = {}

    def look(self, now: float) -> None:
        """Ask as many calls as one look may."""
        self._meet(len(self._calls))
        for index in list(islice(self.running, self._most)):
            self._ask(index, now)
        chunk = self._live[self._at : self._at + self._most]
        for index in chunk:
            if self._known[index] is not CallStage.ENDED and self._ask(index, now) is not CallStage.ENDED:
                self._next.append(index)
        self._at += len(chunk)
        if self._at >= len(self._live):
            self._live, self._next, self._at, self._front = self._next, [], 0, 0
        for index in islice(self._live, self._front, self._front + self._most):
            if self._known[index] is not CallStage.ENDED:
                break
            self._front += 1

    def handed_over(self, result: ToolResult) -> None:
        """Take note of a result that was read."""
        self._meet(result.call_index + 1)
        self._stands(result.call_index, CallStage.ENDED, 0.0)
        before = self._unread.pop(result.call_index, None)
        if before is not result.outcome:
            if before is not None:
                self.outcomes[before] -= 1
            self.outcomes[result.outcome] += 1

    def _meet(self, count: int) -> None:
        """Know of the first `count` calls; they wait, until they are asked."""
        new = range(len(self._known), count)
        if new:
            self._known += [CallStage.LANE] * len(new)
            self.counts[CallStage.LANE] += len(new)
            self._live += new

    def _ask(self, index: int, now: float) -> CallStage:
        call = self._calls[index]
        found = _standing(call)
        if found is not self._known[index]:
            self._stands(index, found, now)
            if found is CallStage.ENDED and call.results:
                outcome = self._unread[index] = call.results[0].outcome
                self.outcomes[outcome] += 1
        return found

    def _stands(self, index: int, found: CallStage, now: float) -> None:
        before = self._known[index]
        if found is before:
            return
        self._known[index] = found
        self.counts[before] -= 1
        self.counts[found] += 1
        if before is CallStage.RUNNING:
            self.running.pop(index, None)
        if found is CallStage.RUNNING:
            self.running[index] = now

    @property
    def waiting(self) -> int:
        """How many wait, for whatever it is."""
        return sum(self.counts[standing] for standing in _TELLING)

    def first_running(self, most: int) -> list[TrackedCall]:
        """The first `most` calls that run, in call order."""
        return [self._calls[index] for index in nsmallest(most, self.running)]

    def first_waiting(self, most: int) -> list[TrackedCall]:
        """Up to `most` calls that wait, in call order: of the first ones those whose reason says most."""
        if most <= 0:
            return []
        first = list(islice(self._waiting(), max(_FIRST, most)))
        chosen = sorted(first, key=lambda index: _TELLING.index(self._known[index]))[:most]
        return [self._calls[index] for index in sorted(chosen)]

    def standing(self, call: TrackedCall) -> CallStage:
        """How the call stood when it was last asked."""
        return self._known[call.call_index]

    @property
    def first_left(self) -> TrackedCall | None:
        """The first call that has not ended; None when all have."""
        return self._calls[self._live[self._front]] if self._front < len(self._live) else None

    def _waiting(self) -> Iterator[int]:
        for index in islice(self._live, self._front, self._front + self._most):
            if self._known[index] not in (CallStage.ENDED, CallStage.RUNNING):
                yield index
