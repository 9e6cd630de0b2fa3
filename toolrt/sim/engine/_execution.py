"""The result of one execution."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any

import trio

from toolrt._plain import counted, frozen
from toolrt.errors import NotSimulated
from toolrt.probe import Resource
from toolrt.sim._paths import ROOT
from toolrt.sim._schedule import Schedule
from toolrt.sim.engine._roster import with_enabled
from toolrt.trace import Access, Step, Trace, plain, stable_text

if TYPE_CHECKING:
    from toolrt.sim.engine._roster import RawStep
    from toolrt.trace._trace import RawEvent


class Execution:
    """The result of one execution: frozen when the program ended or could not go on.

    Schedule and trace are built when they are first asked for.  Where an exploration kept neither what steps touched
    nor events, the program runs again for them, with the same choices.
    """

    def __init__(
        self,
        value: Any,
        error: BaseException | None,
        steps: Sequence[RawStep],
        events: Sequence[RawEvent],
        stopped: bool,
        index: int,
        beside: str | None = None,
        order: str = "any",
        caveats: frozenset[str] = frozenset(),
        heard: tuple[Any, ...] = (),
        chance: int | None = None,
        changes: Sequence[tuple[int, str | None]] | None = None,
    ) -> None:
        #: What the program returned; None when there is an error.
        self.value = value
        #: What the program raised, a `Deadlock`, a `StepLimit`, or None.
        self.error = error
        #: Its place among the executions of one exploration, from 0.
        self.index = index
        #: What ran beside the program's tasks, in an order that no schedule holds (system tasks, callbacks); or None.
        self.beside = beside
        #: In which orders tasks stepped: "any", or "trio".
        self.order = order
        #: What a claim has to say of it besides: what was real in it, and what is atomic.
        self.caveats = caveats
        #: What was read of real files and sockets: which, which of its reads, how many bytes, and their sum.
        self.heard = heard
        #: The stream of random numbers that the program drew from; None: it drew none.
        self.chance = chance
        # The steps, and what their enabled lists are made from; None: these are in the steps, or nowhere.
        self._made, self._changes = steps, changes
        self._raw_events = events
        self._stopped = stopped
        #: What `details` collected, for the trace's notes.
        self._notes: Mapping[str, Any] = {}
        #: Gives the trace with details: set where it stands in a failure, which can be run again.
        self._again: Callable[[], Trace] | None = None
        # Gives another run of the same choices that has a record: set where this one kept none.
        self._make_again: Callable[[Execution], Execution] | None = None
        # True once a reader has asked for the record: what steps touched, and events.
        self._is_read = False

    def _keep_record(self) -> None:
        """Take the record from another run of the same choices, where this one kept none.

        Raises:
            ReplayDiverged: that run is another execution, so the program depends on more than its schedule.
            NotSimulated: this code runs inside a Trio loop.
        """
        self._is_read = True
        if self._make_again is not None:
            again = self._make_again(self)
            self._made, self._changes, self._raw_events = again._made, again._changes, again._raw_events
            self.__dict__.pop("_raw_steps", None)
            self._make_again = None

    @cached_property
    def _raw_steps(self) -> Sequence[RawStep]:
        """The steps with their enabled lists."""
        if self._changes is not None:
            self._made, self._changes = list(self._one_by_one()), None
        return self._made

    def _one_by_one(self) -> Iterable[RawStep]:
        """Give the steps with their enabled lists, which are made one after the other."""
        return self._made if self._changes is None else with_enabled(self._made, self._changes)

    def _steps(self, with_causes: bool) -> tuple[Step, ...]:
        return tuple(
            Step(
                index,
                actor.name,
                enabled,
                choice,
                tuple(_access(resource, write) for resource, write in touched),
                time,
                causes if with_causes else (),
            )
            for index, (actor, enabled, choice, touched, time, causes) in enumerate(self._raw_steps)
        )

    @cached_property
    def schedule(self) -> Schedule:
        """The choices that made it, enough to make it again with `toolrt.sim.replay`."""
        self._keep_record()
        # What woke a task follows from the choices, and is in no form of a schedule.
        steps = self._steps(with_causes=False)
        return Schedule(steps, self._stopped, self.order, self._functions(), self.chance or 0)

    def _functions(self) -> dict[str, str]:
        """Give the function that each task runs, where Trio has a name for it; the first task's is the program."""
        tasks = {actor.name: actor.task for actor, *_ in self._made if actor.task is not None}
        # Trio names a task by its function's module and qualified name.
        names = {path: task.name.rpartition(".")[2] for path, task in tasks.items() if path != ROOT}
        return {path: name for path, name in names.items() if name.isidentifier()}

    @cached_property
    def trace(self) -> Trace:
        """Everything observed, up to the moment the execution ended."""
        self._keep_record()
        return Trace(self._raw_events, lambda: self._steps(with_causes=True), self._meta(), self._notes)

    def detailed(self) -> Trace:
        """Give the trace with lines and values: of an execution that failed it is made again, of others as it is.

        Checkpoint: never.
        """
        if self._again is None or self._notes:
            return self.trace
        try:
            return self._again()
        except NotSimulated:
            return self.trace

    @cached_property
    def choices(self) -> tuple[int, ...]:
        """The choices alone, one for each step: cheaper than `schedule`."""
        return tuple([step[2] for step in self._made])

    @property
    def enabled(self) -> tuple[tuple[str, ...], ...]:
        """The paths of the tasks that could run, for each step, in canonical order: cheaper than `schedule`."""
        return tuple([step[1] for step in self._raw_steps])

    @property
    def outcome(self) -> Any:
        """What it is counted under in a report: its value, or the name of its error's type."""
        return self.value if self.error is None else type(self.error).__name__

    def show(self) -> Any:
        """Give a page that shows it step by step: a notebook displays it, ``.save(path)`` writes it.

        The same as ``toolrt.view.show(execution)``, which takes a second one beside it.
        """
        # Imported by name, because the simulator is below the room that draws (docs/explanation/house).
        return importlib.import_module("toolrt.view").show(self)

    def _meta(self) -> Mapping[str, Any]:
        # Neither policy nor seed: the same schedule gives the same trace, however it was found.
        order = {} if self.order == "any" else {"order": self.order}
        return {
            **_versions(),
            **order,
            **({"chance": self.chance} if self.chance else {}),
            "ended": "returned" if self.error is None else type(self.error).__name__,
        }

    def __repr__(self) -> str:
        ended = f"value={self.value!r}" if self.error is None else f"error={self.error!r}"
        return f"<Execution of {counted(len(self._made), 'step')}, {ended}>"


def is_same_outcome(one: Any, other: Any) -> bool:
    """Say whether two outcomes are one, or a reader could not tell."""
    try:
        if one is other or one == other:
            return True
    except Exception:
        # Values that cannot be compared are compared by their text.
        pass
    return stable_text(one) == stable_text(other)


def _access(resource: Resource, write: bool) -> Access:
    """Give the access; a resource that cannot be hashed is named by its JSON value."""
    try:
        hash(resource)
    except TypeError:
        resource = frozen(plain(resource))
    return Access(resource, write)


@cache
def _versions() -> dict[str, str]:
    try:
        own = metadata.version("toolrt")
    except metadata.PackageNotFoundError:
        own = "not installed"
    return {"toolrt": own, "trio": trio.__version__, "python": ".".join(map(str, sys.version_info[:3]))}
