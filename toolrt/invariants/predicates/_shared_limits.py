"""What keeps ready calls back besides the slots of their batch: limits that batches share, and rates.

Rules.
    1. A limit counts the calls of its tools that run, in all outermost batches that share it.
    2. A rate of n in w seconds has no more than n starts in any w seconds; a call may start when the n-th start before
       it is w seconds old.  All rates of one name are one.  Calls of different sub-batches may give it different
       numbers, and each keeps its own.  Of two such calls that start in one instant either may have been let in first.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator

from toolrt.invariants.predicates._story import NEVER, Breach, CallStory, TraceStory

#: Names one limit: that of the object, and the tools.
_Limit = tuple[str, tuple[str, ...]]

#: Seconds by which two sums of the same times may differ.
_SLACK = 1e-9


class SharedLimits:
    """What the calls of one trace share."""

    def __init__(self, story: TraceStory) -> None:
        self._events = [(event.seq, event.time) for event in story.events]
        self._most: dict[_Limit, int] = {}
        self._began: dict[_Limit, list[int]] = {}
        self._ended: dict[_Limit, list[int]] = {}
        #: Of each rate, in each process: one that crashed, and the one that goes on.
        self._starts: dict[tuple[str, bool], list[tuple[int, float, CallStory]]] = {}
        for batch in story.batches:
            for call in batch.calls.values():
                self._add(call)
        for starts in self._starts.values():
            starts.sort(key=lambda start: start[0])

    def _add(self, call: CallStory) -> None:
        for limit, most in self._limits(call):
            self._most[limit] = most
            for began, ended in call.runs:
                insort(self._began.setdefault(limit, []), began)
                insort(self._ended.setdefault(limit, []), ended)
        if call.started is not None:
            for rate in call.rates:
                starts = self._starts.setdefault((rate.name, call.batch.crashed is None), [])
                starts.append((call.started.seq, call.started.time, call))

    @staticmethod
    def _limits(call: CallStory) -> Iterator[tuple[_Limit, int]]:
        told = call.batch.shared_limits
        for tools, most in () if told is None else told["most"]:
            if not tools or call.name in tools:
                yield (str(told["name"]) if told else "", tuple(tools)), most

    def _taken(self, limit: _Limit, place: int) -> int:
        began, ended = self._began.get(limit, []), self._ended.get(limit, [])
        return bisect_right(began, place) - bisect_right(ended, place)

    def closed(self, call: CallStory, instant: int) -> bool:
        """Whether a limit or a rate keeps the call from starting at that place in the trace."""
        if any(self._taken(limit, instant) >= most for limit, most in self._limits(call)):
            return True
        for rate in call.rates:
            starts = self._starts.get((rate.name, call.batch.crashed is None), ())
            before = [time for seq, time, _ in starts if seq <= instant]
            now = self._events[bisect_right(self._events, (instant, NEVER)) - 1][1]
            if len(before) >= (rate.slots or 1) and before[-(rate.slots or 1)] + rate.window > now + _SLACK:
                return True
        return False

    def keeps_back(self, call: CallStory, other: CallStory) -> bool:
        """Whether the call may have to wait where the `other` need not."""
        mine, theirs = ({limit for limit, _ in self._limits(one)} for one in (call, other))
        return bool(call.rates) or not mine <= theirs

    def kept(self) -> Iterator[Breach]:
        """Where more run, or start, than may."""
        for limit, most in self._most.items():
            for place in self._began.get(limit, []):
                taken = self._taken(limit, place)
                if taken > most:
                    what = ", ".join(limit[1]) or "all tools"
                    text = f"limit of {what} in {limit[0]}: expected at most {most} calls to run at once, got {taken}"
                    yield Breach(text, None, None, place)
        for starts in self._starts.values():
            for at, (seq, time, call) in enumerate(starts):
                for rate in call.rates:
                    slots = rate.slots or 1
                    before = [then for _, then, one in starts[:at] if then < time or rate in one.rates]
                    if len(before) >= slots and time - before[-slots] < rate.window - _SLACK:
                        text = f"{rate}: expected no {slots + 1} starts in {rate.window:g} s"
                        yield Breach(f"{text}, got them in {time - before[-slots]:g} s", call.batch.id, call.index, seq)
