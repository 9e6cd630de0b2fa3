"""The program's tasks: what each is called, and which of them can run.

Rules.  A task's name is its path: its parent's and how many tasks that parent had spawned before it, where the parent
is whoever called ``start_soon``.  The tasks that can run are kept by path, but for the one that stepped last: choice 0
goes on with that one.  Tasks that are not the program's are kept apart.

Theory.  A list that is sorted by path and searched by bisection costs a step the same whether there are three tasks
or three thousand.
"""

from __future__ import annotations

from bisect import bisect_left

import trio
from trio.lowlevel import Task

from toolrt._plain import frozen, plain, stable_text
from toolrt.probe import Resource
from toolrt.sim._paths import Path, key_of_path
from toolrt.sim._trio_internals import Seam, nursery_of
from toolrt.sim.engine._waiting import waits_for

__all__ = ["Actor", "RawStep", "Roster", "in_order"]


class Actor:
    """A task of the program, as the scheduler sees it."""

    __slots__ = ("alone", "cause", "exits", "key", "made", "name", "path", "since", "spawned", "task")

    def __init__(self, task: Task, path: Path, cause: int) -> None:
        self.task = task
        self.path = path
        self.key = path.key
        self.name = path.name
        #: The enabled list when it alone can run.
        self.alone = path.alone
        #: How many tasks it has spawned.
        self.spawned = 0
        #: How many things it has made that are named by their maker.
        self.made = 0
        #: The step before which it was last spawned or woken.
        self.since = 0
        #: The step that spawned or woke it, or -1.
        self.cause = cause
        #: The last steps of the ended children of each of its open nurseries.
        self.exits: dict[trio.Nursery, list[int]] = {}


#: One step as it is kept: who, the names that were enabled, the choice, what was touched, when, and the causes.
RawStep = tuple[Actor, tuple[str, ...], int, tuple[tuple[Resource, bool], ...], float, tuple[int, ...]]


class Roster:
    """The tasks of one execution.

    Args:
        seam: the Trio run it happens in.
        nursery: the harness's, in which the root task is spawned.
    """

    __slots__ = (
        "__weakref__",
        "_actors",
        "_keys",
        "_last",
        "_last_ready",
        "_names",
        "_nursery",
        "_origin",
        "_ready",
        "_running",
        "_seam",
        "_spawner",
        "_strangers",
        "canceller",
        "spare",
    )

    #: The steps that were made.
    steps: list[RawStep]

    def __init__(self, seam: Seam, nursery: trio.Nursery) -> None:
        self._seam = seam
        self._nursery = nursery
        self._actors: dict[Task, Actor] = {}
        # The runnable actors but for the one that stepped last, by path: keys, actors and names in step.
        self._keys: list[tuple[int, ...]] = []
        self._ready: list[Actor] = []
        self._names: list[str] = []
        # The actor that stepped last, and whether it still can.
        self._last: Actor | None = None
        self._last_ready = False
        # The actor whose step runs now.
        self._running: Actor | None = None
        # Tasks in the run queue that are not the program's.
        self._strangers: list[Task] = []
        # Who spawned or woke what is found in the run queue: a step's index, or -1 for nobody.
        self._origin = -1
        self._spawner: Actor | None = None
        #: The tasks that are no reason to stand still when nothing else can run: the list of their names, or None.
        #: When these alone can run, that time passes (or, if none can, that nobody ever steps) is the first choice.
        self.spare: tuple[str, ...] | None = None
        #: The name of the task that may cancel the program at any moment, or None.
        self.canceller: str | None = None

    def _pop_first(self) -> Actor:
        """Take the first of the enabled tasks; it becomes the one that stepped last."""
        if self._last_ready:
            self._last_ready = False
        else:
            self._last = self._ready.pop(0)
            del self._keys[0], self._names[0]
        return self._last  # type: ignore[return-value]

    def _insert(self, actor: Actor) -> None:
        place = bisect_left(self._keys, actor.key)
        self._keys.insert(place, actor.key)
        self._ready.insert(place, actor)
        self._names.insert(place, actor.name)

    def _forget_who_can_run(self) -> None:
        self._keys.clear()
        self._ready.clear()
        self._names.clear()
        self._last_ready = False

    def _take(self, task: Task) -> None:
        """Take a task from Trio's run queue: it was spawned or woken since the last step began."""
        actor = self._actors.get(task)
        if actor is None:
            actor = self._meet(task)
            if actor is None:
                self._strangers.append(task)
                return
            actor.since = len(self.steps)
        else:
            actor.cause = self._origin
            actor.since = len(self.steps)
            if actor is self._last:
                self._last_ready = True
                return
        self._insert(actor)

    def _meet(self, task: Task) -> Actor | None:
        """Name a task seen for the first time; None when it is not the program's."""
        nursery = nursery_of(task)
        if nursery is None:
            return None
        if not self._actors and nursery is self._nursery:
            path: Path = self._seam.root_path
        else:
            parent = self._actors.get(nursery.parent_task)
            if parent is None and nursery is not self._nursery:
                return None
            # Who calls start_soon counts, not whose nursery it is: a name then depends on what one task did, not
            # on the order in which several used the same nursery.
            parent = self._spawner or parent
            if parent is None:
                return None
            path = parent.path.child(parent.spawned)
            parent.spawned += 1
        actor = self._actors[task] = Actor(task, path, self._origin)
        return actor

    def _key_of(self, task: Task) -> tuple[int, ...]:
        actor = self._actors.get(task)
        return (-1, self._seam.age_of(task)) if actor is None else actor.key

    def _name_of(self, task: object) -> str | None:
        actor = self._actors.get(task)  # type: ignore[call-overload]
        return None if actor is None else actor.name

    def _living(self) -> list[Actor]:
        """Give the tasks of the program that have not ended, by path."""
        return sorted((actor for actor in self._actors.values() if actor.task in self._seam.tasks), key=_by_key)

    def _waiting(self, waits_on: list[tuple[str, tuple[str, ...]]] | None = None) -> list[tuple[str, str]]:
        """Say of each living task what it waits for, by path; add to `waits_on` the tasks it waits for."""
        waiting = []
        for actor in self._living():
            asked: dict[str, None] = {}

            def name_of(task: object, asked: dict[str, None] = asked) -> str | None:
                # Who waits for a task asks what it is called.
                name = self._name_of(task)
                if name is not None:
                    asked[name] = None
                return name

            runnable = actor in self._ready or (self._last_ready and actor is self._last)
            waiting.append((actor.name, waits_for(actor.task, name_of, runnable)))
            if asked and waits_on is not None:
                waits_on.append((actor.name, tuple(sorted(asked, key=key_of_path))))
        return waiting


def _by_key(actor: Actor) -> tuple[int, ...]:
    return actor.key


def in_order(touched: list[tuple[Resource, bool]]) -> tuple[tuple[Resource, bool], ...]:
    """Sort what a step touched by name, each once; a name that cannot be hashed is made one that can."""
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
        return tuple(sorted(unique, key=_access_order))


def _access_order(access: tuple[Resource, bool]) -> tuple[str, bool]:
    return stable_text(access[0]), access[1]
