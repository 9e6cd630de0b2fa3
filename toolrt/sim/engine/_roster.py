"""The tasks of one execution: their names, and which of them can run.

Rules.  A task's name is its path: its parent's path, and how many tasks that parent had spawned before it.  The parent
is the task that called ``start_soon``.  The tasks that can run are kept sorted by path; choice 0 continues with the one
that stepped last, wherever it is.  Tasks that do not belong to the program are *foreign* and are kept apart.

Theory.  A task that merely passes a checkpoint keeps its place in the list, and the list is searched by bisection, so a
step costs the same with 3 tasks and with 3,000.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import trio
from trio.lowlevel import Task

from toolrt.probe import Resource
from toolrt.sim._paths import (
    CALLBACKS,
    DEADLINE,
    PROCESS,
    REAL,
    THREAD,
    TaskPath,
    key_of_path,
    path_beside,
    path_of_deadline,
)
from toolrt.sim._trio_internals._seam import Seam, nursery_of
from toolrt.sim._trio_internals._things import SOON, Primitives
from toolrt.sim.engine._waiting import waits_for

# Shared by those that have started nothing.
_NONE_BESIDE: dict[str, int] = {}


class Actor:
    """A task of the program, as the scheduler sees it."""

    __slots__ = (
        "alone",
        "beside",
        "cause",
        "exits",
        "is_watched",
        "key",
        "made",
        "name",
        "passed",
        "path",
        "since",
        "spawned",
        "task",
    )

    def __init__(self, task: Task, path: TaskPath, cause: int) -> None:
        self.task = task
        self.path = path
        self.key = path.key
        self.name = path.name
        #: The enabled list when it alone can run.
        self.alone = path.alone
        #: How many tasks it has spawned.
        self.spawned = 0
        #: How many worker threads, child processes, and waits for real files and sockets it has started, by kind.
        self.beside: dict[str, int] = _NONE_BESIDE
        #: How many things it has made that are named by their maker.
        self.made = 0
        #: The step before which it was last spawned or woken.
        self.since = 0
        #: The step that spawned or woke it, or -1.
        self.cause = cause
        #: The last steps of the ended children of each of its open nurseries.
        self.exits: dict[trio.Nursery, list[int]] = {}
        #: How many checkpoints it has merely passed since it last waited; less than that while it is not to be watched.
        self.passed = 0
        #: True when its steps are looked at, because it may be in a circle; see `_fairness`.
        self.is_watched = False


#: One recorded step: actor, enabled names, choice, what it touched, time in virtual seconds, causes.
RawStep = tuple[Actor, tuple[str, ...], int, tuple[tuple[Resource, bool], ...], float, tuple[int, ...]]

#: In a step a mark stands for an enabled list that is made later: how many changes were made before, times this, and
#: the place of the actor to go on plus 1.
MARK = 1 << 20


def with_enabled(steps: Sequence[RawStep], changes: Sequence[tuple[int, str | None]]) -> Iterator[RawStep]:
    """Give each step with its enabled list, where a mark stands for it."""
    names: list[str] = []
    made = 0
    for step in steps:
        mark: Any = step[1]
        if type(mark) is not int:
            yield step
            continue
        until, place = mark // MARK, mark % MARK - 1
        for at, name in changes[made:until]:
            if name is None:
                del names[at]
            else:
                names.insert(at, name)
        made = until
        enabled = tuple(names) if place < 0 else (names[place], *names[:place], *names[place + 1 :])
        yield (step[0], enabled, *step[2:])


class Roster:
    """The tasks of one execution.

    Args:
        seam: the Trio run it happens in.
        nursery: the harness's, in which the root task is spawned.
        steps: the steps that were recorded so far; the scheduler appends to it.
        things: what reports, which asks for the tasks of this execution.
        refuse: refuses what leaves it.
    """

    __slots__ = (
        "_nursery",
        "_seam",
        "_steps",
        "actors",
        "callbacks",
        "changes",
        "deadlines",
        "foreign",
        "has_beside",
        "held",
        "keys",
        "last",
        "later",
        "names",
        "origin",
        "place",
        "ready",
        "spawner",
        "stopped",
        "threads",
        "yielded",
    )

    def __init__(
        self,
        seam: Seam,
        nursery: trio.Nursery,
        steps: list[RawStep],
        things: Primitives,
        refuse: Callable[[BaseException], None],
    ) -> None:
        self._seam = seam
        self._nursery = nursery
        self._steps = steps
        self.actors: dict[Task, Actor] = {}
        #: The runnable actors by path: keys, actors and names in step.
        self.keys: list[tuple[int, ...]] = []
        self.ready: list[Actor] = []
        self.names: list[str] = []
        #: Where a name was put among them, or taken out (None): enabled lists can be made from it (`with_enabled`).
        #: None: they are made at each step, or never.
        self.changes: list[tuple[int, str | None]] | None = None
        #: The actor that steps, or stepped last; and its place among the runnable ones, or -1 when it is not the one to
        #: go on.
        self.last: Actor | None = None
        self.place = -1
        #: Those that can run in the next pass, where there are passes (`_passes`).
        self.later: list[Actor] = []
        #: Foreign tasks from Trio's run queue.
        self.foreign: list[Task] = []
        #: Trio's task that calls callbacks, once the program has given one; and whether the program has tasks that its
        #: first task does not wait for.
        self.callbacks: Actor | None = None
        self.has_beside = False
        #: The worker threads, processes and real waits that have not ended: the tasks whose steps are theirs, in order
        #: of start.
        self.threads: dict[Task, Actor] = {}
        #: The tasks whose one step is that a deadline comes, in the order in which they were made.
        self.deadlines: dict[Task, Actor] = {}
        #: The step that spawned or woke the tasks in the run queue, or -1; and the actor of that step.
        self.origin = -1
        self.spawner: Actor | None = None
        #: The actors that could go on, in circles: they cannot run until something is written.
        self.yielded: list[Actor] = []
        #: The keys of processes that are stopped, and the actors of theirs that could go on.
        self.stopped: list[tuple[int, ...]] = []
        self.held: list[Actor] = []
        things.actors, things.actor_of = self.actors, self.actors.__getitem__
        seam.owns, seam.key_of = self.actors.__contains__, self.key_of
        seam.count_runnable, seam.refused = self._count_others, refuse
        seam.adopts, seam.count_threads = self.adopt_callbacks, self._count_beside

    def _count_others(self) -> int:
        """Give how many tasks can run beside the one that steps."""
        return len(self.ready) - (self.place >= 0)

    def _count_beside(self) -> int:
        """Give how many living tasks stand for threads, processes, real waits and deadlines."""
        return sum(task in self._seam.tasks for task in (*self.threads, *self.deadlines))

    def begin_first(self) -> Actor:
        """Let the first of the enabled tasks step."""
        if self.place < 0:
            self.place = 0
            self.last = self.ready[0]
        return self.last  # type: ignore[return-value]

    def leave(self) -> None:
        """Take the one that stepped last out of those that can run."""
        place, self.place = self.place, -1
        self._take_out(place)

    def _take_out(self, place: int) -> None:
        del self.keys[place], self.ready[place], self.names[place]
        if self.changes is not None:
            self.changes.append((place, None))

    def insert(self, actor: Actor) -> int:
        """Put an actor among those that can run, and give its place; -1: its process is stopped."""
        if self.stopped and self._is_stopped(actor):
            self.held.append(actor)
            return -1
        place = bisect_left(self.keys, actor.key)
        self.keys.insert(place, actor.key)
        self.ready.insert(place, actor)
        self.names.insert(place, actor.name)
        if self.changes is not None:
            self.changes.append((place, actor.name))
        if place <= self.place:
            self.place += 1
        return place

    def remove(self, actor: Actor) -> None:
        """Take an actor out of those that can run."""
        place = self.ready.index(actor)
        self._take_out(place)
        if place <= self.place:
            self.place = -1 if place == self.place else self.place - 1

    def _is_stopped(self, actor: Actor) -> bool:
        """Say whether an actor is one of a stopped process: the process, or a task of its script."""
        # The processes that a script starts have even numbers.
        return any(
            actor.key[: len(key)] == key and all(number % 2 for number in actor.key[len(key) :]) for key in self.stopped
        )

    def stop(self, task: Task) -> None:
        """Let the actors of a process go on no longer."""
        self.stopped.append(self.actors[task].key)
        for actor in filter(self._is_stopped, (*self.ready, *self.later, *self.yielded)):
            if actor in self.ready:
                self.remove(actor)
            else:
                (self.later if actor in self.later else self.yielded).remove(actor)
            self.held.append(actor)

    def resume(self, task: Task) -> None:
        """Let the actors of a stopped process go on."""
        self.stopped.remove(self.actors[task].key)
        held, self.held = self.held, []
        for actor in held:
            self.go_on_with(actor)

    def wake_yielded(self) -> None:
        """Let the actors that have yielded run again."""
        for actor in self.yielded:
            # In Trio's orders it is in this pass or the next one anyway.
            if actor not in self.later and actor not in self.ready:
                actor.since = len(self._steps)
                self.insert(actor)
        self.yielded.clear()

    def clear_runnable(self) -> None:
        """Forget which tasks can run; the one that calls callbacks is Trio's again."""
        self.release_callbacks()
        self.later.clear()
        self.yielded.clear()
        self.stopped.clear()
        self.held.clear()
        self.clear_ready()

    def clear_ready(self) -> None:
        """Forget which tasks can run, but for those of the next pass."""
        self.keys.clear()
        self.ready.clear()
        self.names.clear()
        self.place = -1

    def take(self, task: Task) -> None:
        """Take a task from Trio's run queue: it was spawned or woken since the last step began."""
        actor = self.actors.get(task)
        if actor is None:
            actor = self._name_new(task)
            if actor is None:
                self.foreign.append(task)
                return
            actor.since = len(self._steps)
        else:
            actor.cause = self.origin
            actor.since = len(self._steps)
            if actor is self.last:
                if self.place < 0:
                    self.place = self.insert(actor)
                return
        self.insert(actor)

    def take_later(self, task: Task) -> None:
        """Take a task from Trio's run queue as `take` does, for the next pass."""
        actor = self.actors.get(task)
        if actor is None:
            actor = self._name_new(task)
            if actor is None:
                self.foreign.append(task)
                return
        else:
            actor.cause = self.origin
        actor.since = len(self._steps)
        if task in self.threads:
            self.go_on_with(actor)
        else:
            self.later.append(actor)

    def go_on_with(self, actor: Actor) -> None:
        """Let a thread step whenever it likes, where there are passes: also in the one that is under way."""
        if self.ready or self._is_stopped(actor):
            self.insert(actor)
        else:
            self.later.append(actor)

    def begin_thread(self, act: Callable[[], Awaitable[None]], name: str, kind: str = THREAD) -> Task:
        """Begin a task whose steps are those of a thread that the running step starts, and give it.

        Args:
            act: takes the steps.
            name: the thread's.
            kind: what it is instead: a child process, or a wait for a real file or socket.
        """
        starter = self.actors[self._seam.current_task()]  # type: ignore[index]
        with self._seam.between_steps():
            task = self._seam.spawn(act, self._nursery, name, self._nursery.parent_task)
        if starter is self.callbacks or starter.name.startswith(CALLBACKS):
            path = starter.path.child(starter.spawned)
            starter.spawned += 1
        else:
            named = PROCESS if starter.name.startswith(PROCESS) else kind
            number = starter.beside.get(named, 0)
            path = path_beside(named, starter.path, number)
            starter.beside = {**starter.beside, named: number + 1}
        # A real wait ends with the task that waits.
        self.has_beside |= kind is not REAL
        actor = self.actors[task] = self.threads[task] = Actor(task, path, self.origin)
        actor.since = len(self._steps)
        return task

    def begin_deadline(self, act: Callable[[], Awaitable[None]]) -> None:
        """Begin a task whose one step is that a deadline comes, between two steps of the program."""
        task = self._seam.spawn(act, self._nursery, DEADLINE, self._nursery.parent_task)
        actor = Actor(task, path_of_deadline(len(self.deadlines)), self.origin)
        actor.since = len(self._steps)
        self.actors[task] = self.deadlines[task] = actor
        # The program may end before it has come.
        self.has_beside = True

    def _name_new(self, task: Task) -> Actor | None:
        """Name a task seen for the first time; None when it is foreign."""
        nursery = nursery_of(task)
        if nursery is None:
            return None
        if not self.actors and nursery is self._nursery:
            path: TaskPath = self._seam.root_path
        else:
            parent = self.actors.get(nursery.parent_task)
            if parent is None and nursery is not self._nursery:
                if self.spawner is None or not self._seam.has_system_nursery(nursery):
                    return None
                self.has_beside = True
            # The caller of start_soon is the parent, not the owner of the nursery: a name then depends on what one task
            # did, not on the order in which several tasks used the same nursery.
            parent = self.spawner or parent
            if parent is None:
                return None
            is_process = parent.name.startswith(PROCESS)
            path = parent.path.child(2 * parent.spawned + 1 if is_process else parent.spawned)
            parent.spawned += 1
            if is_process:
                actor = self.actors[task] = self.threads[task] = Actor(task, path, self.origin)
                return actor
        actor = self.actors[task] = Actor(task, path, self.origin)
        return actor

    def adopt_callbacks(self, task: Task) -> None:
        """Take Trio's task that calls callbacks for one of the program's."""
        if self.callbacks is None:
            self.has_beside = True
            self.callbacks = self.actors[task] = Actor(task, self._seam.callbacks_path, -1)
            # So that its steps are looked at before they begin.
            self.callbacks.exits[None] = []  # type: ignore[index]

    def release_callbacks(self) -> None:
        """Give that task back to Trio."""
        actor, self.callbacks = self.callbacks, None
        if actor is None:
            return
        del self.actors[actor.task]
        if actor in self.ready:
            self.remove(actor)
        elif actor in self.later:
            self.later.remove(actor)
        else:
            return
        self.foreign.append(actor.task)

    def with_joined(
        self, actor: Actor, causes: tuple[int, ...], implied: list[tuple[Resource, bool]]
    ) -> tuple[int, ...]:
        """Add the last steps of the children whose nursery `actor` has just left."""
        if actor is self.callbacks:
            # It takes all callbacks there are.
            implied.append((SOON, True))
            return causes
        joined = set(causes)
        for nursery in [*actor.exits]:
            if self._seam.is_closed(nursery):
                joined.update(actor.exits.pop(nursery))
        return tuple(sorted(joined))

    def key_of(self, task: Task) -> tuple[int, ...]:
        """Give a task's sort key; foreign tasks come first, by age."""
        actor = self.actors.get(task)
        return (-1, self._seam.age_of(task)) if actor is None else actor.key

    def name_thing(self) -> tuple[Any, ...] | None:
        """Name something new by the task that makes it, so that it has the same name in every schedule."""
        actor = self.actors.get(self._seam.current_task())  # type: ignore[arg-type]
        if actor is None:
            return None
        actor.made += 1
        return (actor.name, actor.made - 1)

    def waiting(self, waits_on: list[tuple[str, tuple[str, ...]]] | None = None) -> list[tuple[str, str]]:
        """Say in words what each living task waits for, by path; add to `waits_on` the tasks it waits for."""
        waiting = []
        living = [
            actor for actor in self.actors.values() if actor.task in self._seam.tasks and actor is not self.callbacks
        ]
        can_run = {*self.ready, *self.later, *self.yielded}
        for actor in sorted(living, key=attrgetter("key")):
            asked: dict[str, None] = {}

            def name_of(task: object, asked: dict[str, None] = asked) -> str | None:
                # `waits_for` asks for the name of each task that this one waits for.
                other = self.actors.get(task)  # type: ignore[call-overload]
                if other is None:
                    return None
                asked[other.name] = None
                return other.name  # type: ignore[no-any-return]

            stopped = "SIGCONT: it is stopped" if self._is_stopped(actor) else None
            waiting.append((actor.name, stopped or waits_for(actor.task, name_of, actor in can_run)))
            if asked and waits_on is not None:
                waits_on.append((actor.name, tuple(sorted(asked, key=key_of_path))))
        return waiting
