"""Constraints on schedules, as values: `atomic`, `before`, `shielded`, `lock_order` and `again`.

Rules.
    1. A constraint is about lines of a file.  The program's source stays as it is: see `_weaving`.
    2. *Atomic* lines are entered by one task at a time, as in a lock.  All atomic lines of one exploration share it, so
       two places that touch one thing exclude each other.  A task that is inside may enter again.
    3. *Before*: a task that comes to the second place waits until a task has passed the first one, or has reached it.
    4. *Shielded* lines are not cancelled: a cancel is delivered behind them.
    5. *Lock order*: where an ``async with`` takes several locks, nested or side by side, a task takes all of them at
       the outermost one, in an order that is the same for all tasks of an execution.
    6. *Again*: an ``if`` with a wait inside looks at its condition again after the wait, as ``while`` does.

Theory.  A constraint is a wait like any other, at a lock or an event that the execution has for itself.  So every
strategy explores such a world as it explores the program, and a task that waits for one that the constraint holds back
is a deadlock, which is told: a lock there would hang.

Limits.  Atomic lines exclude other atomic lines, and nothing else: an access that stands in none of them still comes
between.  A lock order sees the locks that one function takes by name, attribute or item, not those of functions that
it calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from types import FunctionType
from typing import Any, Self

import attrs

from toolrt.errors import DefinitionRefused


@attrs.frozen
class CodeLine:
    """A line of a file."""

    file: str
    number: int
    #: The function whose line it is, by name; "" where it was named by its file.
    function: str = attrs.field(default="", eq=False)

    def __str__(self) -> str:
        return f"line {self.number} of {self.function or PurePath(self.file).name}"

    @property
    def where(self) -> str:
        """The function, or the path of the file, as a caller writes it."""
        return self.function or repr(self.file)


@attrs.frozen
class _InPlaces:
    """A constraint on lines of several places: ``one | other`` has the places of both."""

    #: The first and the last line of each.
    regions: tuple[tuple[CodeLine, CodeLine], ...]

    def __or__(self, other: Self) -> Self:
        return type(self)(tuple(dict.fromkeys((*self.regions, *other.regions))))

    def __str__(self) -> str:
        return " and ".join(in_words(*region) for region in self.regions)


@attrs.frozen
class Atomic(_InPlaces):
    """These lines are entered by one task at a time."""

    def __str__(self) -> str:
        return f"atomic {super().__str__()}"

    @property
    def code(self) -> str:
        """How a caller writes it."""
        return _written("atomic", self.regions)


@attrs.frozen
class LockOrder(_InPlaces):
    """The locks that these lines take are taken in one order."""

    def __str__(self) -> str:
        return f"one order of locks in {super().__str__()}"

    @property
    def code(self) -> str:
        """How a caller writes it."""
        return _written("lock_order", self.regions)


@attrs.frozen
class Again:
    """The ``if`` in this line looks at its condition again after the wait inside."""

    place: CodeLine

    def __str__(self) -> str:
        return f"{self.place} looks again"

    @property
    def code(self) -> str:
        """How a caller writes it."""
        return f"sim.again({self.place.where}, {self.place.number})"


@attrs.frozen
class Shielded:
    """In these lines nothing is cancelled."""

    first: CodeLine
    last: CodeLine

    def __str__(self) -> str:
        return f"shielded {in_words(self.first, self.last)}"

    @property
    def code(self) -> str:
        """How a caller writes it."""
        return _written("shielded", [(self.first, self.last)])


@attrs.frozen
class Before:
    """A task that comes to `second` waits until a task has passed `first`, or has reached it."""

    first: CodeLine
    second: CodeLine
    #: Whether to reach `first` is enough: a line that waits is passed when the wait is over.
    reached: bool = False

    def __str__(self) -> str:
        return f"{self.first} {'reached ' if self.reached else ''}before {self.second}"

    @property
    def code(self) -> str:
        """How a caller writes it."""
        places = ", ".join(f"sim.line({place.where}, {place.number})" for place in (self.first, self.second))
        return f"sim.before({places}{', reached=True' if self.reached else ''})"


Constraint = Atomic | LockOrder | Again | Shielded | Before


def _written(name: str, regions: Sequence[tuple[CodeLine, CodeLine]]) -> str:
    return " | ".join(f"sim.{name}({first.where}, {first.number}, {last.number})" for first, last in regions)


def line(function_or_path: Any, number: int) -> CodeLine:
    """Give a place: a line of a function or of a file.

    Args:
        function_or_path: a function, or the path of a file with the program's functions.
        number: the line's number in its file, from 1 on, as a traceback has it.

    Raises:
        DefinitionRefused: it is neither; or there is no such line in it.

    Checkpoint: never.
    """
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise DefinitionRefused("a line's number", "a whole number, 1 or more, as a traceback has it", number)
    function = function_or_path
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    function = getattr(function, "__func__", function)
    if isinstance(function, FunctionType):
        code = function.__code__
        numbers = [one for *_, one in code.co_lines() if one] + _inner_lines(code)
        low, high = min(numbers), max(numbers)
        if not low <= number <= high:
            what = f"a line of {code.co_qualname}, which has lines {low} to {high} of {PurePath(code.co_filename).name}"
            raise DefinitionRefused("a line", what, number)
        return CodeLine(code.co_filename, number, code.co_name)
    if isinstance(function, str | PurePath):
        return CodeLine(str(Path(function).absolute()) if Path(function).exists() else str(function), number)
    raise DefinitionRefused("a line", "a function or the path of its file", function_or_path)


def _inner_lines(code: Any) -> list[int]:
    found: list[int] = []
    for inner in code.co_consts:
        if hasattr(inner, "co_lines"):
            found += [one for *_, one in inner.co_lines() if one] + _inner_lines(inner)
    return found


def atomic(function_or_path: Any, first_line: int, last_line: int) -> Atomic:
    """Say that lines are entered by one task at a time, as ``async with lock:`` round them would see to it.

    Args:
        function_or_path: a function, or the path of its file.
        first_line: the number of the first line in the file.
        last_line: the number of the last one.

    Raises:
        DefinitionRefused: as `line`; or the last line stands before the first one.

    Checkpoint: never.

    Example:
        >>> from toolrt import sim
        >>> async def add(cell):
        ...     cell.set(cell.get() + 1)
        >>> print(sim.atomic(add, 2, 2))
        atomic line 2 of add
    """
    return Atomic((_region(function_or_path, first_line, last_line),))


def shielded(function_or_path: Any, first_line: int, last_line: int) -> Shielded:
    """Say that no cancel is delivered in these lines, as a shielded cancel scope would see to it.

    Args:
        function_or_path: a function, or the path of its file.
        first_line: the number of the first line in the file.
        last_line: the number of the last one.

    Raises:
        DefinitionRefused: as `line`; or the last line stands before the first one.

    Checkpoint: never.
    """
    return Shielded(*_region(function_or_path, first_line, last_line))


def lock_order(function_or_path: Any, first_line: int, last_line: int) -> LockOrder:
    """Say that the locks which lines take are taken in one order, as if each task sorted them by a number of each.

    Args:
        function_or_path: a function, or the path of its file.
        first_line: the number of the first line in the file.
        last_line: the number of the last one; among them is an ``async with`` that takes two locks or more.

    Raises:
        DefinitionRefused: as `line`; or the last line stands before the first one.

    Checkpoint: never.
    """
    return LockOrder((_region(function_or_path, first_line, last_line),))


def again(function_or_path: Any, number: int) -> Again:
    """Say that an ``if`` looks at its condition again after the wait inside, as ``while`` would.

    Args:
        function_or_path: a function, or the path of its file.
        number: the number of the line of the ``if`` in the file.

    Raises:
        DefinitionRefused: as `line`.

    Checkpoint: never.
    """
    return Again(line(function_or_path, number))


def before(first: CodeLine, second: CodeLine, *, reached: bool = False) -> Before:
    """Say that a task which comes to the `second` place waits until one has passed the `first`, as at an event.

    Args:
        first: a place, as `line` gives it.
        second: the place that waits.
        reached: whether to come to the `first` is enough, as for a line that waits itself.

    Raises:
        DefinitionRefused: they are no places.

    Checkpoint: never.
    """
    for place in (first, second):
        if not isinstance(place, CodeLine):
            raise DefinitionRefused("a place of sim.before", "sim.line(function_or_path, number)", place)
    return Before(first, second, reached)


def _region(function_or_path: Any, first_line: int, last_line: int) -> tuple[CodeLine, CodeLine]:
    first, last = line(function_or_path, first_line), line(function_or_path, last_line)
    if last.number < first.number:
        raise DefinitionRefused("the last line", f"one not before line {first.number}", last_line)
    return first, last


def in_words(first: CodeLine, last: CodeLine) -> str:
    """Say which lines these are: ``lines 6 to 8 of add``."""
    of = f" of {first.function}" if first.function else f" of {PurePath(first.file).name}"
    if first.number == last.number:
        return f"line {first.number}{of}"
    return f"lines {first.number} to {last.number}{of}"
