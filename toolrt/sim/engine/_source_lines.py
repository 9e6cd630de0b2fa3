"""Notes the source line of each step and access, and the value of each cell.

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
from collections.abc import Sequence
from pathlib import PurePath
from types import FrameType
from typing import Any

import attrs
import trio
from trio.lowlevel import Task

from toolrt import probe
from toolrt._plain import frozen, plain, stable_text
from toolrt.probe import Resource
from toolrt.sim._trio_internals import Primitives

__all__ = ["SourceLine", "SourceLines"]

_PASSED_OVER = (
    PurePath(trio.__file__).parent,
    PurePath(__file__).parents[1],
    PurePath(__file__).parents[2] / "testing",
)
_PASSED_OVER_FILES = (probe.__file__, contextlib.__file__)

# Of a value's text so many characters are kept.
_MOST_OF_A_VALUE = 200

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
        #: For each step, resource and kind what a `Cell` or a watched thing held then, as text; the last of several.
        self.values: dict[tuple[int, Resource, bool], str] = {}
        #: The function of each task that has stepped, by the task's path; those without a name are left out.
        self.functions: dict[str, str] = {}
        #: What the program calls a thing that a task has made, where a step touched it first.
        self.variables: dict[Resource, str] = {}
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
        self._note_where(task)
        assert self._things is not None
        if task in self._things.actors:
            # Trio names a task by its function's module and qualified name.
            function = task.name.rpartition(".")[2]
            if function.isidentifier():
                self.functions.setdefault(self._things.actor_of(task).name, function)

    def after_task_step(self, task: Task) -> None:
        """Note where `task` has come to, if it began nowhere: the first step of a program."""
        if len(self._steps) not in self.of_steps:
            self._note_where(task)

    def _note_where(self, task: Task) -> None:
        for frame, line in reversed(list(task.iter_await_frames())):
            if not _is_passed_over(frame):
                self.of_steps[len(self._steps)] = _place(frame, line)
                break

    def note(self, resource: Resource, write: bool) -> None:
        """Note where the running step touches `resource`."""
        frame: FrameType | None = sys._getframe(2)
        key = (len(self._steps), _hashable(resource), write)
        value: Any = _NO_VALUE
        while frame is not None and _is_passed_over(frame):
            if value is _NO_VALUE:
                value = _value_in(frame, write)
            frame = frame.f_back
        if value is not _NO_VALUE:
            text = stable_text(value)
            cut = len(text) > _MOST_OF_A_VALUE
            self.values[key] = f"{text[:_MOST_OF_A_VALUE]}..." if cut else text
        if frame is not None:
            self._note_variable(key[1], frame)
            self.of_accesses.setdefault(key, _place(frame, frame.f_lineno))

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
        return {"details": {"steps": steps, "accesses": accesses, "functions": self.functions}}


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
        try:
            places.note(*access)
        finally:
            places.is_noting = False
        super().append(access)


def _value_in(frame: FrameType, write: bool) -> Any:
    """What an access was about, if `frame` is that of a cell or of a watched thing."""
    if PurePath(frame.f_code.co_filename).name not in ("_cell.py", "_watch.py"):
        return _NO_VALUE
    if write:
        return frame.f_locals.get("value", _NO_VALUE)
    return getattr(frame.f_locals.get("self"), "_value", _NO_VALUE) if frame.f_code.co_name == "get" else _NO_VALUE


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
