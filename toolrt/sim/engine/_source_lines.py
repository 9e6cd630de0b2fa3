"""Notes the source line of each step and access, and the value of each cell.

Rules.  Nothing is collected unless a job asks for it: a failure that is explained is run once more.  A place is a line
of the program: frames of Trio's, of the simulator's and of the probe's are passed over.  Paths of the machine are not
shown, a file is named by its last part.  A value is its text at the moment of the access; longer ones are cut.

Theory.  Whatever reports an access appends it to one list; a list that looks at the stack when it is appended to knows
the line, and an execution without details pays nothing.
"""

from __future__ import annotations

import contextlib
import inspect
import linecache
import sys
from collections.abc import Sequence
from pathlib import PurePath
from types import FrameType, MemberDescriptorType
from typing import Any

import attrs
import trio
from trio.lowlevel import Task

from toolrt import probe
from toolrt._plain import frozen, plain, stable_text
from toolrt.probe import Resource
from toolrt.sim._trio_internals import Primitives, begins_cancelled, is_loop
from toolrt.sim.engine._waiting import waited_for

__all__ = ["SourceLine", "SourceLines"]

_PASSED_OVER = (
    PurePath(trio.__file__).parent,
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

_NO_VALUE = object()

# Of the name of what a task has made: its kind, the task, and a number.
_PARTS_OF_A_NAME = 3


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
        #: For each step, resource and kind what the variable held then, as text: the first that the step read, and the
        #: last that it wrote.
        self.values: dict[tuple[int, Resource, bool], str] = {}
        #: The function of each task that has stepped, by the task's path; those without a name are left out.
        self.functions: dict[str, str] = {}
        #: For each step the program's lines where its task has stopped, outermost first; none when it has ended.
        self.stops: dict[int, list[SourceLine]] = {}
        #: What a task that cannot run waits for after a step, by the step and the task's path, where that is new.
        self.waits: dict[tuple[int, str], str] = {}
        # The stopped tasks with what each waits for, and whether that names tasks: then it may change while it waits.
        self._stopped: dict[Task, tuple[str, bool]] = {}
        # After which step that was noted last: when all is over, tasks are cancelled without further steps.
        self._noted = -1
        #: The steps that began with `trio.Cancelled`, raised where their task stood.
        self.cancelled: set[int] = set()
        #: The modules of the program's code that steps stood in, by name.
        self.modules: set[str] = set()
        #: What the program calls a thing that a task has made, where a step touched it first.
        self.variables: dict[Resource, str] = {}
        #: What the program calls each resource, as `toolrt.sim.exploring._names` finds it when the execution is over.
        self.names: dict[Resource, str] = {}
        # Attributes that the running step stores to, whose values are there when it is over.
        self._stored: list[tuple[tuple[int, Resource, bool], Any, str]] = []
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
        self.cancelled.discard(len(self._steps))
        if begins_cancelled(task):
            self.cancelled.add(len(self._steps))
        if task in self._things.actors:
            self._note_waits()
            self._stopped.pop(task, None)
            # Trio names a task by its function's module and qualified name.
            function = task.name.rpartition(".")[2]
            if function.isidentifier():
                self.functions.setdefault(self._things.actor_of(task).name, function)

    def after_task_step(self, task: Task) -> None:
        """Note where `task` has come to, if it began nowhere: the first step of a program."""
        if len(self._steps) not in self.of_steps:
            self._note_where(task)
        assert self._things is not None
        if task in self._things.actors:
            self._note_stop(task)
        if self._stored:
            self.is_noting = True
            try:
                for key, thing, attribute in self._stored:
                    self._note_value(key, _attribute_of(thing, attribute))
            finally:
                self.is_noting = False
                self._stored.clear()

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
        if not ended:
            self._stopped[task] = ("", True)

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
        key = (len(self._steps), _hashable(resource), write)
        value: Any = _NO_VALUE
        while frame is not None and _is_passed_over(frame):
            if value is _NO_VALUE:
                value = _value_in(frame, resource, write)
            if write and frame.f_code.co_name == "write_attribute" and frame.f_locals["attribute"] == resource[-1]:
                self._stored.append((key, frame.f_locals["thing"], resource[-1]))
            # What calls Trio's loop is no line of the program.
            frame = None if is_loop(frame) else frame.f_back
        self._note_value(key, value)
        if frame is not None:
            self._note_variable(key[1], frame)
            self.of_accesses.setdefault(key, _place(frame, frame.f_lineno))

    def _note_value(self, key: tuple[int, Resource, bool], value: Any) -> None:
        if value is not _NO_VALUE and (key[2] or key not in self.values):
            text = stable_text(value)
            cut = len(text) > _MOST_OF_A_VALUE
            self.values[key] = f"{text[:_MOST_OF_A_VALUE]}..." if cut else text

    def _note_variable(self, resource: Resource, frame: FrameType) -> None:
        """Note by which variable, or attribute of one, the program reaches a thing that a task has made."""
        things = self._things
        if things is None or resource in self.variables or len(resource) != _PARTS_OF_A_NAME:
            return
        for name, value in frame.f_locals.items():
            if things.own_name(value) == resource:
                self.variables[resource] = name
                return
        for owner, value in frame.f_locals.items():
            attributes = getattr(value, "__dict__", None)
            for name, part in list(attributes.items()) if type(attributes) is dict else ():
                if things.own_name(part) == resource:
                    self.variables[resource] = f"{owner}.{name}"
                    return

    def called(self, resource: Resource) -> str | None:
        """Give what the program calls `resource`, unless it calls two things so; None: nothing is known."""
        name = self.variables.get(_hashable(resource))
        return name if name is not None and list(self.variables.values()).count(name) == 1 else None

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


def _value_in(frame: FrameType, resource: Resource, write: bool) -> Any:
    """What an access was about, if `frame` is that of a cell, of a watched thing or of a tracked attribute."""
    file, name, has = PurePath(frame.f_code.co_filename).name, frame.f_code.co_name, frame.f_locals
    if file == "_cell.py":
        if write:
            return has.get("value", _NO_VALUE)
        return getattr(has.get("self"), "_value", _NO_VALUE) if name == "get" else _NO_VALUE
    if file == "_touch.py":
        is_its = name == "read_attribute" and has["attribute"] == resource[-1]
        return _attribute_of(has["thing"], has["attribute"]) if is_its and not write else _NO_VALUE
    if file != "_watch.py":
        return _NO_VALUE
    is_key = resource[-2:-1] == ("key",)
    if write:
        # Which keys a dict has is no matter of what is stored under one.
        return has.get("value", _NO_VALUE) if is_key or name != "__setitem__" else _NO_VALUE
    if name == "_attribute":
        return _attribute_of(has["thing"], has["attribute"])
    return dict.get(has["self"], has["key"], _NO_VALUE) if name == "_touch" and is_key else _NO_VALUE


def _attribute_of(thing: Any, attribute: str) -> Any:
    """Give what an attribute holds, without running code of its class."""
    found = inspect.getattr_static(thing, attribute, _NO_VALUE)
    if type(found) is MemberDescriptorType:
        try:
            return object.__getattribute__(thing, attribute)
        except AttributeError:
            return _NO_VALUE
    return _NO_VALUE if hasattr(type(found), "__get__") else found


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
    file = frame.f_code.co_filename
    return file in _PASSED_OVER_FILES or any(PurePath(file).is_relative_to(home) for home in _PASSED_OVER)


def _hashable(resource: Resource) -> Resource:
    try:
        hash(resource)
    except TypeError:
        return frozen(plain(resource))  # type: ignore[no-any-return]
    return resource
