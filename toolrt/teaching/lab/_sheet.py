"""The exercise sheet of a semester: every exercise, by week."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from toolrt.teaching.lab._by_notebook import BY_NOTEBOOK
from toolrt.teaching.lab._by_order import BY_ORDER
from toolrt.teaching.lab._by_program import BY_PROGRAM
from toolrt.teaching.lab._by_property import BY_PROPERTY
from toolrt.teaching.lab._by_schedule import BY_SCHEDULE
from toolrt.teaching.lab._by_tool import BY_TOOL
from toolrt.teaching.lab._exercise import Exercise, Grade


class Sheet(Mapping[str, Exercise]):
    """Exercises by name, in the order of their weeks."""

    def __init__(self, *exercises: Exercise) -> None:
        self._by_name = MappingProxyType({one.name: one for one in sorted(exercises, key=lambda one: one.week)})

    def __getitem__(self, name: str) -> Exercise:
        try:
            return self._by_name[name]
        except KeyError as error:
            error.add_note(f"The exercises are: {', '.join(self)}.")
            raise

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __str__(self) -> str:
        return "\n".join(f"week {one.week:>2}  {one.name:14} {one.title}" for one in self.values())

    __repr__ = __str__


#: The exercises of the sheet.
SHEET = Sheet(*BY_SCHEDULE, *BY_PROGRAM, *BY_PROPERTY, *BY_TOOL)

#: Exercises at the end of notebooks 02, 05, 11, 12 and 13: no part of the semester; the week is the notebook's number.
NOTEBOOK_EXERCISES = Sheet(*BY_ORDER, *BY_NOTEBOOK)


def summary(*grades: Grade) -> str:
    """Give a line for each of `grades`, and how many are right."""
    lines = [f"{'✓' if grade.right else ' '} {grade.exercise:14} {grade.status.value}" for grade in grades]
    right = sum(grade.right for grade in grades)
    return "\n".join([*lines, f"{right} of {len(grades)} right"])
