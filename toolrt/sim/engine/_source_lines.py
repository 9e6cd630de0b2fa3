"""Notes of each step and access the source line, what was called of Trio, and the values before and after.

Rules.  Nothing is collected unless a job asks for it: a failure that is explained is run once more.  A place is a line
of the program: frames of Trio's, of the simulator's and of the probe's are passed over.  Paths of the machine are not
shown, a file is named by its last part.  A value is its text at the moment of the access; longer ones are cut.

Theory.  Whatever reports an access appends it to one list; a list that looks at the stack when it is appended to knows
the line, and an execution without details pays nothing.
"""

from __future__ import annotations

import contextlib
import linecache
import sys
from collections.abc import Callable, Sequence
from functools import cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from pathlib import PurePath
from types import FrameType
from typing import Any

import attrs
import outcome
import trio
from trio.lowlevel import Task

from toolrt import probe
from toolrt._plain import frozen, plain, stable_text
from toolrt.probe import Resource
from toolrt.sim._paths import CALLBACKS
from toolrt.sim._trio_internals._reporter import deed_of
from toolrt.sim._trio_internals._seam import begins_awake, begins_cancelled, is_loop
from toolrt.sim._trio_internals._things import Primitives
from toolrt.sim.engine._variables import NO_VALUE, Held, Variables, held_in
from toolrt.sim.engine._waiting import waited_for

_PASSED_OVER = (
    PurePath(trio.__file__).parent,
    PurePath(outcome.__file__).parent,
    PurePath(__file__).parents[1],
    PurePath(__file__).parents[2] / "testing",
)
_PASSED_OVER_FILES = (probe.__file__, contextlib.__file__)

# Of a value's text so many characters are kept.
_MOST_OF_A_VALUE = 200

# Of each file so many lines are kept, and so many on either side of one that a step stood on.
_MOST_LINES = 200
_AROUND = 2

# Of a task that waits so many frames are kept, the innermost ones.
_MOST_FRAMES = 12

# Of so many tasks is noted at each step what they wait for.
_MOST_WAITING = 20

# Code that has a frame of its own and belongs to the function around it.
_WITHIN = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")

# Of a task's name, if the program gave it one, so many letters are kept.
_MOST_OF_A_NAME = 40


@attrs.frozen
class SourceLine:
    """A line of the program."""

    #: The file, by the last part of its path, or a notebook's cell.
    file: str
    #: The line, from 1.
    line: int
    #: What is written there, without indentation; "" when unknown.
    text: str
    #: The function it is in, and the file's whole path.
    function: str = ""
    path: str = attrs.field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class SourceLines(trio.abc.Instrument):
    """The places of one execution."""

    def __init__(self) -> None:
        #: For each step the line its task stood at when it began, or else when it was over.
        self.of_steps: dict[int, SourceLine] = {}
        #: For each step, resource and kind (True for a write) the line that touched it first.
        self.of_accesses: dict[tuple[int, Resource, bool], SourceLine] = {}
        #: The same where that is in a function that awaits nothing: the line of the async function that called it.
        self.callers: dict[tuple[int, Resource, bool], SourceLine] = {}
        #: For each step, resource and kind what the variable held then, as text: the first that the step read, and the
        #: last that it wrote.
        self.values: dict[tuple[int, Resource, bool], str] = {}
        #: For each step and resource what it held before the step wrote it first; none where it held nothing.
        self.before: dict[tuple[int, Resource], str] = {}
        #: For each step and resource the functions of Trio's that the program called, such as "acquire", in order.
        self.deeds: dict[tuple[int, Resource], list[str]] = {}
        #: What each task that has stepped is called, by its path: the name that the program gave it, else its function.
        self.functions: dict[str, str] = {}
        #: For each step the program's lines where its task has stopped, outermost first; none when it has ended.
        self.stops: dict[int, list[SourceLine]] = {}
        #: What a task that cannot run waits for after a step, by the step and the task's path, where that is new.
        self.waits: dict[tuple[int, str], str] = {}
        # The stopped tasks with what each waits for, and whether that names tasks: then it may change while it waits.
        self._stopped: dict[Task, tuple[str, bool]] = {}
        # After which step that was noted last: when all is over, tasks are cancelled without further steps.
        self._noted = -1
        #: The steps that began with `trio.Cancelled`, raised where their task stood, and those whose sleep had ended.
        self.cancelled: set[int] = set()
        self.woken: set[int] = set()
        #: By step the exception that its task ended with, as text, and the line that raised it.
        self.raised: dict[int, tuple[str, SourceLine | None]] = {}
        #: The modules of the program's code that steps stood in, by name.
        self.modules: set[str] = set()
        #: By which variables the program reaches what it touches.
        self.variables = Variables()
        #: What the program calls each resource, and what each step did in words, as `toolrt.sim.exploring._told` finds
        #: them when the execution is over.
        self.names: dict[Resource, str] = {}
        self.told: dict[int, list[str]] = {}
        # What the running step writes, whose values are there when it is over.
        self._written: dict[tuple[int, Resource, bool], Callable[[], Any]] = {}
        self._steps: Sequence[Any] = ()
        self._things: Primitives | None = None
        #: True while something is noted: to write what a watched thing holds reads it.
        self.is_noting = False

    def collect_from(self, things: Primitives, steps: Sequence[Any]) -> None:
        """Begin with the execution whose steps are kept in `steps`; call it in its Trio run."""
        self._steps = steps
        self._things = things
        things.touched = _AccessNotes(self)
        trio.lowlevel.add_instrument(self)

    def before_task_step(self, task: Task) -> None:
        """Note where `task` goes on."""
        # A task that is not the program's has its place taken by the next step's.
        self.of_steps.pop(len(self._steps), None)
        self.stops.pop(len(self._steps), None)
        self._note_where(task)
        assert self._things is not None
        for steps, is_so in ((self.woken, begins_awake), (self.cancelled, begins_cancelled)):
            steps.discard(len(self._steps))
            if is_so(task):
                steps.add(len(self._steps))
        self.cancelled -= self.woken
        if task in self._things.actors:
            self._note_waits()
            self._stopped.pop(task, None)
            path = self._things.actor_of(task).name
            if path != CALLBACKS and (name := _name_of_task(task.name)):
                self.functions.setdefault(path, name)

    def task_exited(self, task: Task) -> None:
        """Note what `task` ended with: Trio's own function for it, which calls this, knows."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != "task_exited":
            frame = frame.f_back
        error = None if frame is None else getattr(frame.f_locals.get("outcome"), "error", None)
        if isinstance(error, Exception) and self._things is not None and task in self._things.actors:
            self.note_raised(len(self._steps), error)

    def after_task_step(self, task: Task) -> None:
        """Note where `task` has come to, if it began nowhere: the first step of a program."""
        if len(self._steps) not in self.of_steps:
            self._note_where(task)
        assert self._things is not None
        if task in self._things.actors:
            self._note_stop(task)
        written, self._written = self._written, {}
        self.is_noting = True
        try:
            for key, look in written.items():
                self._note_value(key, look())
        finally:
            self.is_noting = False

    def _note_where(self, task: Task) -> None:
        frames = [each for each in task.iter_await_frames() if not _is_passed_over(each[0])]
        self.modules.update(str(frame.f_globals.get("__name__", "")) for frame, _ in frames)
        if frames:
            self.of_steps[len(self._steps)] = _place(*frames[-1])

    def _note_stop(self, task: Task) -> None:
        ended = getattr(task.coro, "cr_frame", None) is None
        frames = () if ended else task.iter_await_frames()
        own = [(frame, line) for frame, line in frames if not _is_passed_over(frame)]
        self.stops[len(self._steps)] = [_place(frame, line) for frame, line in own[-_MOST_FRAMES:]]
        self.is_noting = True
        try:
            for frame, _ in own[-_MOST_FRAMES:]:
                self.variables.look_into(frame, self._known)
        finally:
            self.is_noting = False
        if not ended:
            self._stopped[task] = ("", True)

    def note_raised(self, step: int, error: BaseException) -> None:
        """Note what a task ended with in `step`; a group of one error is that error."""
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        place, trace = None, error.__traceback__
        while trace is not None:
            if not _is_passed_over(trace.tb_frame):
                place = _place(trace.tb_frame, trace.tb_lineno)
            trace = trace.tb_next
        self.raised[step] = _cut(stable_text(error)), place

    def _known(self, thing: Any) -> Resource | None:
        return None if self._things is None else self._things.known(thing)

    def _note_waits(self) -> None:
        """Note what tasks wait for, before the next step: by now a nursery's children have their names."""
        if self._noted == len(self._steps) - 1:
            return
        self._noted = len(self._steps) - 1
        for task, (words, may_change) in list(self._stopped.items())[:_MOST_WAITING]:
            if not may_change:
                continue
            asked: list[Any] = []

            def name_of(other: Any, asked: list[Any] = asked) -> str | None:
                asked.append(other)
                return self._path_of(other)

            self.is_noting = True
            try:
                # To ask a lock who holds it is no step of the program's.
                now, _ = waited_for(task, name_of)
            finally:
                self.is_noting = False
            self._stopped[task] = (now, bool(asked))
            path = self._path_of(task)
            if now != words and path is not None:
                self.waits[self._noted, path] = now

    def _path_of(self, task: Any) -> str | None:
        things = self._things
        return things.actor_of(task).name if things is not None and task in things.actors else None

    def note(self, resource: Resource, write: bool) -> None:
        """Note where the running step touches `resource`."""
        frame: FrameType | None = sys._getframe(2)
        resource = _hashable(resource)
        key = (len(self._steps), resource, write)
        held, deed = None, ""
        while frame is not None and _is_passed_over(frame):
            held = held or held_in(frame, resource, write)
            deed = deed_of(frame) or deed
            # What calls Trio's loop is no line of the program.
            frame = None if is_loop(frame) else frame.f_back
        if held is not None:
            self._note_held(key, held)
        while frame is not None and frame.f_code.co_name in _WITHIN:
            frame = frame.f_back
        if frame is None:
            return
        if key not in self.of_accesses:
            self.of_accesses[key] = _place(frame, frame.f_lineno)
            caller: FrameType | None = frame
            while caller is not None and not caller.f_code.co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR):
                caller = None if is_loop(caller) else caller.f_back
            if caller not in (None, frame) and not _is_passed_over(caller):
                self.callers[key] = _place(caller, caller.f_lineno)
        if deed and deed not in (deeds := self.deeds.setdefault((len(self._steps), resource), [])):
            deeds.append(deed)
        self.variables.look_into(frame, self._known)

    def _note_held(self, key: tuple[int, Resource, bool], held: Held) -> None:
        step, resource, write = key
        if held.base is not None and self.variables.add(held.thing, held.base):
            # It is new here, and may stand in a variable of a task that waits.
            for task in list(self._stopped)[:_MOST_WAITING]:
                for frame, _ in task.iter_await_frames():
                    if not _is_passed_over(frame):
                        self.variables.look_into(frame, self._known)
        if not write:
            self._note_value(key, held.look())
            return
        if (step, resource) not in self.before and not held.is_over and (old := held.look()) is not NO_VALUE:
            self.before[step, resource] = _cut(stable_text(old))
        self._written[key] = held.look

    def _note_value(self, key: tuple[int, Resource, bool], value: Any) -> None:
        if value is not NO_VALUE and (key[2] or key not in self.values):
            self.values[key] = _cut(stable_text(value))

    def find_variables(self) -> None:
        """Find by which variables the program reaches what it touched: when the execution is over."""
        self.variables.decide(self._known)

    def of_access(self, step: int, resource: Resource, write: bool) -> SourceLine | None:
        """Give the line where step `step` touched `resource`, or None when unknown."""
        return self.of_accesses.get((step, resource, write))

    def notes(self) -> dict[str, Any]:
        """Give what was collected as JSON values, for the notes of a trace."""
        steps = {str(step): [str(place), place.text] for step, place in sorted(self.of_steps.items())}
        accesses = []
        for (step, resource, write), place in self.of_accesses.items():
            value = self.values.get((step, resource, write))
            accesses.append([step, plain(resource), write, str(place), place.text, value])
        return {
            "details": {
                "steps": steps,
                "accesses": accesses,
                "functions": self.functions,
                "names": [[plain(resource), name] for resource, name in self.names.items()],
                "told": {str(step): parts for step, parts in sorted(self.told.items())},
                "cancelled": sorted(self.cancelled),
                "sources": self._sources(),
                "stops": self._stops(),
            }
        }

    def _stops(self) -> dict[str, Any]:
        """Give where tasks stopped: each line once, by step the places of its lines, and what tasks waited for."""
        frames: dict[SourceLine, int] = {}
        steps = {
            str(step): [frames.setdefault(line, len(frames)) for line in lines]
            for step, lines in sorted(self.stops.items())
            if step < len(self._steps)
        }
        waits = [[step, path, words] for (step, path), words in self.waits.items()]
        return {
            "frames": [[str(line), line.function, line.text] for line in frames],
            "steps": steps,
            "waits": waits,
        }

    def _sources(self) -> dict[str, list[list[Any]]]:
        """Give the lines of the program that steps stood on, by file, with some around each; two of one name: none."""
        wanted: dict[str, set[int]] = {}
        stopped = (line for lines in self.stops.values() for line in lines)
        for place in (*self.of_steps.values(), *self.of_accesses.values(), *stopped):
            wanted.setdefault(place.path, set()).update(range(place.line - _AROUND, place.line + _AROUND + 1))
        found: dict[str, list[list[Any]]] = {}
        named: dict[str, str] = {}
        for path, numbers in wanted.items():
            lines = linecache.getlines(path)
            name = _name_of(path)
            if named.setdefault(name, path) != path:
                found.pop(name, None)
                continue
            kept = [number for number in sorted(numbers) if 0 < number <= len(lines)][:_MOST_LINES]
            if kept:
                found[name] = [[number, lines[number - 1].rstrip()[:_MOST_OF_A_VALUE]] for number in kept]
        return found


class _AccessNotes(list[tuple[Resource, bool]]):
    """What the running step touched, with the line that appended each access."""

    def __init__(self, places: SourceLines) -> None:
        super().__init__()
        self._places = places

    def append(self, access: tuple[Resource, bool]) -> None:
        places = self._places
        if places.is_noting:
            return
        places.is_noting = True
        # What looks at a step's instructions would take the notes for writes of the program (`Fairness`).
        trace, profile = sys.gettrace(), sys.getprofile()
        if profile is not None:
            sys.settrace(None)
            sys.setprofile(None)
        try:
            places.note(*access)
        finally:
            if profile is not None:
                sys.settrace(trace)
                sys.setprofile(profile)
            places.is_noting = False
        super().append(access)


def _name_of_task(name: str) -> str:
    """Give the name that the program gave a task; else that of its function, which Trio puts behind its module."""
    parts = name.split(".")
    if all(part.isidentifier() or part in ("<locals>", "<lambda>") for part in parts):
        return "" if parts[-1] == "<lambda>" else parts[-1]
    return " ".join(name.split())[:_MOST_OF_A_NAME]


def _cut(text: str) -> str:
    return f"{text[:_MOST_OF_A_VALUE]}..." if len(text) > _MOST_OF_A_VALUE else text


def _place(frame: FrameType, line: int) -> SourceLine:
    file = frame.f_code.co_filename
    text = linecache.getline(file, line, frame.f_globals).strip()
    return SourceLine(_name_of(file), line, text, frame.f_code.co_name, file)


def _name_of(file: str) -> str:
    """The last part of its path; of code that stands in a notebook, and in no file, the cell: ``In[3]``."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    label = getattr(getattr(shell, "compile", None), "format_code_name", lambda file: None)(file)
    return PurePath(file).name if label is None else str(label[1])


def _is_passed_over(frame: FrameType) -> bool:
    return _is_foreign(frame.f_code.co_filename)


@cache
def _is_foreign(file: str) -> bool:
    return file in _PASSED_OVER_FILES or any(PurePath(file).is_relative_to(home) for home in _PASSED_OVER)


def _hashable(resource: Resource) -> Resource:
    try:
        hash(resource)
    except TypeError:
        return frozen(plain(resource))  # type: ignore[no-any-return]
    return resource
