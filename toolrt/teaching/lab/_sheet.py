"""The exercise sheet of a semester: every exercise, by week."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType

from toolrt.teaching.lab._by_notebook import BY_NOTEBOOK
from toolrt.teaching.lab._by_order import BY_ORDER
from toolrt.teaching.lab._by_program import BY_PROGRAM
from toolrt.teaching.lab._by_property import BY_PROPERTY
from toolrt.teaching.lab._by_schedule import BY_SCHEDULE
from toolrt.teaching.lab._by_tool import BY_TOOL
from toolrt.teaching.lab._exercise import Exercise, Grade, Graders


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


def _exercises(graders: Graders) -> Iterator[Exercise]:
    """The exercises of `exercises.md`, each with what grades it."""
    _, *sections = (
        resources.files("toolrt.teaching.lab").joinpath("exercises.md").read_text(encoding="utf-8").split("\n## ")
    )
    for section in sections:
        head, task, code = section.rstrip().removesuffix("\n```").split("\n\n", 2)
        named, title = head.split(": ", 1)
        name, week = named.split(", ")
        template = code.removeprefix("```python\n")
        yield Exercise(name, int(week), title, " ".join(task.split("\n")), template, graders[name])


_OF_SHEET: Graders = {**BY_SCHEDULE, **BY_PROGRAM, **BY_PROPERTY, **BY_TOOL}
_OF_NOTEBOOKS: Graders = {**BY_ORDER, **BY_NOTEBOOK}
_BY_NAME = {one.name: one for one in _exercises({**_OF_SHEET, **_OF_NOTEBOOKS})}

#: The exercises of the sheet.
SHEET = Sheet(*map(_BY_NAME.__getitem__, _OF_SHEET))

#: Exercises at the end of notebooks 02, 05, 11, 12 and 13: no part of the semester; the week is the notebook's number.
NOTEBOOK_EXERCISES = Sheet(*map(_BY_NAME.__getitem__, _OF_NOTEBOOKS))


def summary(*grades: Grade) -> str:
    """Give a line for each of `grades`, and how many are right."""
    lines = [f"{'✓' if grade.right else ' '} {grade.exercise:14} {grade.status.value}" for grade in grades]
    right = sum(grade.right for grade in grades)
    return "\n".join([*lines, f"{right} of {len(grades)} right"])
