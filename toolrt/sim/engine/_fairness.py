"""Fairness: a task that goes round in a circle waits until something can be different.

Rules.  A *round* is one step or several of a task that begin and end at the same place, with the same values in all
frames of the task, and that write nothing (`_quiet`).  With the same things to see, the task would make the same round
for ever.  So when it has made one, and no other task has written since the round began, it has *yielded*: it cannot
run.  It can again after a step that may have written, after the clock has moved, and after anything beside the tasks'
steps has happened.  When nothing else can run, the clock moves to the next deadline, and stops before it where a round
that looks at the time would go another way (`_polls`); if no deadline is pending, that is a livelock.
With ``order="trio"`` it can run all the same, as Trio's loop has it: the rest holds.

Theory.  A round leads from a state of the program to the same state, so every state that is reached with more rounds is
reached without them: no outcome is lost.  Musuvathi and Qadeer, "Fair stateless model checking" (PLDI 2008), let a task
that yields wait until the others have had their turn; there a yield is the word of the program, here it is proved.

Limits.  A circle that writes, such as two tasks that take and give back the same locks for ever, is none of these: the
step limit ends it.  A round has at most 16 steps.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import CodeType, CoroutineType, FrameType, GeneratorType, MethodType
from typing import Any

from toolrt.errors import Livelock
from toolrt.sim.engine._clock import VirtualClock
from toolrt.sim.engine._polls import PolledTime, Polls
from toolrt.sim.engine._quiet import StepWatch, comes_back
from toolrt.sim.engine._record import ExecutionRecord
from toolrt.sim.engine._roster import Actor, Roster

#: The caveat of an execution in which time may have moved past what a loop would have seen.
POLLED_UNSEEN = "a loop that polls the clock unseen"

_MOST_STEPS = 16

_ATOMS = (int, float, PolledTime, complex, str, bytes, bool, type(None), range, CodeType)


class _Round:
    """A round that may be going on."""

    __slots__ = ("begin", "limit", "polls", "saw_time", "steps")

    def __init__(self, begin: _Standing) -> None:
        self.begin = begin
        self.steps: list[int] = []
        self.saw_time = False
        self.polls = Polls()
        # From another place it is begun anew after so many steps.
        self.limit = 1


class Fairness:
    """Says when a task yields, in one execution.

    Args:
        record: the execution.
        roster: its tasks.
        clock: the Trio run's clock.
        instead: is called in place of looking at a task that may be in a circle; None: it is looked at.
    """

    def __init__(
        self, record: ExecutionRecord, roster: Roster, clock: VirtualClock, instead: Callable[[], None] | None = None
    ) -> None:
        self._record = record
        self._clock = clock
        self._roster = roster
        self._instead = instead
        self._watch: StepWatch | None = None
        self._rounds: dict[Actor, _Round] = {}
        self._patience: dict[Actor, int] = {}

    def begin(self, actor: Actor) -> None:
        """Look at the step of `actor` that begins now."""
        watch = self._watch
        if watch is None:
            watch = self._watch = StepWatch()
        if self._roster.yielded and actor in self._roster.yielded:
            # In Trio's orders one that has yielded steps all the same.
            self._roster.yielded.remove(actor)
        self._clock.polls = self._rounds[actor].polls
        watch.begin(_frames(actor.task.coro))

    def end(self, actor: Actor, index: int, divided: bool) -> None:
        """Look no longer: the step is over.  One that a choice has divided counts as one that writes."""
        watch = self._watch
        assert watch is not None
        watch.end()
        self._clock.polls = None
        if watch.wrote or divided:
            self._drop(actor)
        else:
            self._record.quiet.add(index)
            self._rounds[actor].saw_time |= watch.saw_time

    def yields(self, actor: Actor, index: int) -> bool:
        """Say whether `actor`, whose step `index` has passed a checkpoint, is in a circle; then it can run no more."""
        if not actor.is_watched:
            # Not again before so many more checkpoints.
            actor.passed = -2
            if _may_come_back(actor.task.coro) and (now := _Standing.of(actor.task.coro)) is not None:
                if self._instead is not None:
                    self._instead()
                    return False
                self._rounds[actor] = _Round(now)
                actor.is_watched = True
                actor.passed = 0
            return False
        now = _Standing.of(actor.task.coro)
        going_on = self._rounds[actor]
        going_on.steps.append(index)
        if now is not None and now.equals(going_on.begin):
            steps, going_on.steps = going_on.steps, []
            if self._is_undisturbed(steps):
                self._record.yields[index] = tuple(steps)
                self._roster.yielded.append(actor)
                return True
            return False
        if len(going_on.steps) == going_on.limit:
            if now is None or going_on.limit == _MOST_STEPS:
                self._drop(actor)
            else:
                going_on.begin, going_on.steps = now, []
                going_on.limit *= 2
        return False

    def forget(self, actor: Actor) -> None:
        """Begin anew with `actor`, which has waited for something."""
        actor.is_watched = False
        del self._rounds[actor]

    def _drop(self, actor: Actor) -> None:
        """Look at the actor again after twice as many checkpoints as the last time."""
        self.forget(actor)
        self._patience[actor] = patience = 2 * self._patience.get(actor, 1)
        actor.passed = -patience

    def _is_undisturbed(self, steps: list[int]) -> bool:
        """Say whether no step since the first of these may have written."""
        quiet = self._record.quiet
        return all(index in quiet for index in range(steps[0], steps[-1] + 1))

    def next_poll(self, deadline: float) -> float:
        """Give the time to move to: where a loop that polls the clock goes another way, or else `deadline`."""
        times = [deadline]
        for actor in self._roster.yielded:
            going_on = self._rounds[actor]
            times += going_on.polls.times
            if going_on.saw_time and not going_on.polls.is_seen:
                # It may have gone another way before the deadline.
                self._record.caveats.add(POLLED_UNSEEN)
            going_on.polls.times.clear()
        return float(min(times))

    def livelocked(self, limit: int) -> Livelock:
        """Give the error of an execution in which only tasks that have yielded can run, and no deadline is pending."""
        record, roster = self._record, self._roster
        rounds = [
            record.yields[max(index for index in record.yields if record.steps[index][0] is actor)]
            for actor in roster.yielded
        ]
        cycle = [(index, record.steps[index][0].name) for index in sorted(index for steps in rounds for index in steps)]
        saw_time = any(self._rounds[actor].saw_time for actor in roster.yielded)
        return Livelock(len(record.steps), cycle, roster.waiting(), limit, saw_time)


def _may_come_back(coroutine: Any) -> bool:
    """Say whether a place where the task stands can come back; asked at many checkpoints."""
    while type(coroutine) is CoroutineType:
        places = comes_back(coroutine.cr_code)
        if places is None:
            return False
        frame: Any = coroutine.cr_frame
        if places and frame.f_lasti in places:
            return True
        coroutine = coroutine.cr_await
    return False


class _Standing:
    """Where a task stands, with what values."""

    __slots__ = ("places", "values")

    def __init__(self) -> None:
        self.places: list[tuple[CodeType, int]] = []
        self.values: list[Any] = []

    @staticmethod
    def of(coroutine: Any) -> _Standing | None:
        """Give the state of a task; None when it stands in something that does not show its state."""
        state = _Standing()
        frame: Any
        while coroutine is not None:
            if type(coroutine) is CoroutineType:
                frame, inner = coroutine.cr_frame, coroutine.cr_await
            elif type(coroutine) is GeneratorType:
                frame, inner = coroutine.gi_frame, coroutine.gi_yieldfrom
            else:
                return None
            state.places.append((frame.f_code, frame.f_lasti))
            if inner is not None:
                # Its frame's variables and stack, with what is awaited on top; then the exception that is handled, for
                # which there may or may not be a None.
                referents = gc.get_referents(coroutine)
                top = max((at for at, value in enumerate(referents) if value is inner), default=-1)
                if top < 0:
                    return None
                state.values += [value for value in referents[:top] if type(value) is not FrameType]
                state.values += [value for value in referents[top + 1 :] if value is not None]
            coroutine = inner
        return state

    def equals(self, other: _Standing) -> bool:
        """Say whether the task will do the same from here."""
        return (
            self.places == other.places
            and len(self.values) == len(other.values)
            and all(map(_is_same, self.values, other.values))
        )


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in _ATOMS:
        return bool(one == other)
    if kind is tuple:
        return len(one) == len(other) and all(map(_is_same, one, other))
    if kind is MethodType:
        return one.__self__ is other.__self__ and one.__func__ is other.__func__
    return isinstance(one, BaseException) and _is_same(one.args, other.args) and not (one.__dict__ or other.__dict__)


def _frames(coroutine: Any) -> list[FrameType]:
    frames: list[FrameType] = []
    while coroutine is not None:
        generator = type(coroutine) is GeneratorType
        frames.append(coroutine.gi_frame if generator else coroutine.cr_frame)
        coroutine = coroutine.gi_yieldfrom if generator else coroutine.cr_await
    return frames
