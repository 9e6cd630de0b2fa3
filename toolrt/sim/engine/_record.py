"""Records one execution while it runs: its steps, their accesses, its events, and its outcome.

Rules.  A step is recorded when it has ended.  A choice that is made within a step divides it in two, with a step of its
own between them, so that the policy is asked once for each recorded step.  A step that no task makes has a name of its
own (`_paths`).  Nothing is recorded once the execution is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trio.lowlevel import Task

from toolrt._plain import frozen, plain, stable_text
from toolrt.events import EventRecord
from toolrt.probe import ANYTHING, Resource
from toolrt.sim._paths import TaskPath
from toolrt.sim._trio_internals._things import Primitives
from toolrt.sim.engine._clock import VirtualClock
from toolrt.sim.engine._extra_choices import ExtraChoices
from toolrt.sim.engine._polls import PolledTime
from toolrt.sim.engine._roster import Actor, RawStep
from toolrt.sim.engine._watched_contents import WATCHED_OUTSIDE, WatchedContents

#: What a claim says where worker threads hand over at each access.
THREADS_AT_ACCESSES = "threads atomic between accesses of tracked code"


class ExecutionRecord:
    """What is kept of one execution.  It is the probe's sink while the execution lasts.

    Args:
        clock: the Trio run's clock.
        steps: an empty list to keep the steps in.
        things: what Trio's primitives report to.
    """

    def __init__(self, clock: VirtualClock, steps: list[RawStep], things: Primitives) -> None:
        self._clock = clock
        self.steps = steps
        self.events: list[tuple[int | None, float, str, str, Mapping[str, Any] | EventRecord]] = []
        #: What the enabled lists are made from (`Roster.changes`); None: they are in the steps, or nowhere.
        self.changes: list[tuple[int, str | None]] | None = None
        #: The actor whose step runs now.
        self.running: Actor | None = None
        #: What the running step has touched so far, in order.
        self.touched: list[tuple[Resource, bool]] = things.touched
        #: True once value, error, schedule and trace are final.
        self.over = False
        #: What the program returned or raised; None until it is over.
        self.value: Any = None
        self.error: BaseException | None = None
        #: What the caller gets instead of an execution: what the policy raised, or why this execution means nothing.
        self.fault: BaseException | None = None
        #: The first foreign task or callback that ran, in words; None: none has.
        self.beside: str | None = None
        #: What watched containers hold, and the step after which each may have done anything; None: none has.
        self.watched: list[WatchedContents] = []
        self.wild_since: int | None = None
        if WATCHED_OUTSIDE:
            WATCHED_OUTSIDE[:] = [contents for contents in WATCHED_OUTSIDE if contents.thing() is not None]
            for contents in WATCHED_OUTSIDE:
                contents.look()
            self.watched += WATCHED_OUTSIDE
        #: True when the program's first task has ended, and did not have to wait for all others.
        self.cut = False
        #: In which orders tasks step: "any", or "trio" (`_passes`).
        self.order = "any"
        #: The choices that no task's step makes, or None.
        self.extra: ExtraChoices | None = None
        #: What a claim has to say of it besides, in words.
        self.caveats: set[str] = set()
        #: The worker threads and children that the program has started, by the tasks that stand for them.
        self.threads: dict[Task, Any] = {}
        #: Whether deadlines of one instant come one by one.
        self.has_deadlines = False
        #: The real files and sockets of the program, or None: it leaves none real.
        self.outside: Any = None
        #: Whether threads that the program starts itself are simulated; they are refused otherwise.
        self.own_threads = False
        #: Whether threads hand over at each access of rewritten code.
        self.threads_at_accesses = False
        #: Is called before the program has a thread; None: nothing is.
        self.before_threads: Callable[[], None] | None = None
        #: So many seconds on the wall each may keep the turn.
        self.thread_seconds = 10.0
        #: The name of the task that may cancel the program at any moment, or None.
        self.canceller: str | None = None
        # The actors of steps that no task makes, by name.
        self._others: dict[str, Actor] = {}

        #: The steps that wrote nothing, of those that were looked at.
        self.quiet: set[int] = set()
        #: The last step of each round after which its task yielded, with all steps of the round.
        self.yields: dict[int, tuple[int, ...]] = {}

        # The rest is for an explorer that swaps steps.
        #: The names of Trio's objects, and what the running step implied.
        self.things = things
        #: The cancel status that each step began under.
        self.begun_under: list[Any] = []
        #: What each step read because of where it runs, by step.
        self.implied: dict[int, tuple[tuple[Resource, bool], ...]] = {}
        #: The steps that are choices within another one, and whether one was being made when it was given up.
        self.choices_within: list[int] = []
        self.cut_within = False
        #: The steps before which nothing could run, and those with which a pass begins, where there are passes.
        self.rests: list[int] = []
        self.passes: list[int] = []

    @property
    def has_optional(self) -> bool:
        """Whether there are steps that come whenever they like: a cancel, the clock.

        And, in Trio's orders, threads and deadlines that come apart.
        """
        beside = bool(self.threads) or self.has_deadlines
        return self.extra is not None or self.canceller is not None or (beside and self.order == "trio")

    # ------------------------------------------------------------------ the probe's sink

    def event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Keep an event, unless the execution is over."""
        if self.over:
            return
        running = self.running
        if running is None:
            self.events.append((None, self._clock.now, "system", kind, fields))
        else:
            self.events.append((len(self.steps), self._clock.now, running.name, kind, fields))

    def tell(self, record: EventRecord) -> None:
        """Keep a record of an event, unless the execution is over."""
        if self.over:
            return
        running = self.running
        if running is None:
            self.events.append((None, self._clock.now, "system", record.kind, record.kept()))
        else:
            self.events.append((len(self.steps), self._clock.now, running.name, record.kind, record.kept()))

    def access(self, resource: Resource, write: bool) -> None:
        """Keep what the running step touched, unless the execution is over."""
        if not self.over:
            self.touched.append((resource, write))

    def imply(self, resource: Resource, write: bool) -> None:
        """Keep what the running step touches because of where it runs, unless the execution is over."""
        if not self.over:
            self.things.implied.append((resource, write))

    # ------------------------------------------------------------------ one step

    def reached_below(self) -> None:
        """Note that the running step got hold of an unwatched part of a watched object, and may keep it for later."""
        if self.wild_since is None and not self.over:
            self.wild_since = len(self.steps)

    def note_threads(self) -> None:
        """Note that the program has a thread, which does so much at once."""
        if self.before_threads is not None:
            self.before_threads()
        self.caveats.add(THREADS_AT_ACCESSES if self.threads_at_accesses else "threads atomic between hand-overs")

    def take_touched(self) -> tuple[tuple[Resource, bool], ...]:
        """Give what the running step has touched, sorted, and begin anew."""
        touched = self.touched
        if not touched:
            return ()
        noted = tuple(touched) if len(touched) == 1 else in_order(touched)
        touched.clear()
        return noted

    def take_implied(self) -> None:
        """Keep what the running step implied."""
        implied = self.things.implied
        if implied:
            self.implied[len(self.steps)] = tuple(implied)
            implied.clear()

    def compare_watched(self) -> None:
        """Note a change of a watched container that the step which has just run did not report."""
        touched = self.touched
        for contents in self.watched:
            if contents.look() and not contents.was_written(touched):
                touched.append((ANYTHING, True))

    def add(self, actor: Actor, enabled: tuple[str, ...], choice: int, causes: tuple[int, ...]) -> None:
        """Keep a step of a task, with what it has reported up to now."""
        self.take_implied()
        self.steps.append((actor, enabled, choice, self.take_touched(), self._clock.now, causes))

    def cut_at(self, step: int) -> None:
        """Note that `step` has ended the program, which did not wait for all: what was left never happens."""
        self.cut = True
        self.implied[step] = (*self.implied.get(step, ()), (ANYTHING, True))

    def add_other(self, name: str, enabled: tuple[str, ...], choice: int, causes: tuple[int, ...] = ()) -> None:
        """Keep a step that no task makes, with what it has reported."""
        actor = self._others.get(name)
        if actor is None:
            actor = self._others[name] = Actor(None, TaskPath((), name), -1)  # type: ignore[arg-type]
        self.begun_under.append(None)
        self.steps.append((actor, enabled, choice, self.take_touched(), self._clock.now, causes))

    # ------------------------------------------------------------------ the end

    def freeze(self, value: Any, error: BaseException | None) -> None:
        """Make this the program's outcome, unless it has one already; nothing is recorded from here on."""
        if not self.over:
            self.over = True
            self.value = float(value) if type(value) is PolledTime else value
            self.error = error


def in_order(touched: list[tuple[Resource, bool]]) -> tuple[tuple[Resource, bool], ...]:
    """Sort what a step touched by name, each once; a name that cannot be hashed is replaced by one that can."""
    try:
        if len(touched) == 2:
            first, second = touched
            if first == second:
                return (first,)
            return (first, second) if first < second else (second, first)
        unique = set(touched)
    except TypeError:
        unique = {(frozen(plain(resource)), write) for resource, write in touched}
    try:
        return tuple(sorted(unique))
    except TypeError:
        # Names of different shapes: a number where the other has a string.
        return tuple(sorted(unique, key=lambda access: (stable_text(access[0]), access[1])))
