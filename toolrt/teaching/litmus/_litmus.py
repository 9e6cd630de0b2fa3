"""Litmus programs as values, tables of them, and the helpers that programs share."""

from __future__ import annotations

import inspect
from ast import literal_eval
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from importlib import resources
from math import factorial
from textwrap import dedent
from typing import Any, ParamSpec

import attrs
import trio

from toolrt import sim
from toolrt.errors import DefinitionRefused, errors_in

_Arguments = ParamSpec("_Arguments")

Program = Callable[[], Awaitable[Any]]

#: A program, and fields of `Litmus`, by name.
Entry = tuple[Program, Mapping[str, Any]]


@attrs.frozen
class Count:
    """How many there are, and how that is known."""

    #: So many.
    number: int
    #: A formula, "enumerated", or the search that counted it.
    how: str = "enumerated"

    def __str__(self) -> str:
        return f"{self.number:,} ({self.how})"


def outcome_of(execution: sim.Execution) -> Any:
    """Its value, or the name of its error's type; errors in a group are named in the group's order."""
    error = execution.error
    if isinstance(error, BaseExceptionGroup):
        return " + ".join(type(part).__name__ for part in errors_in(error))
    return execution.outcome


def _frozen(outcomes: Iterable[Hashable]) -> frozenset[Any]:
    return frozenset(outcomes)


@attrs.frozen(repr=False)
class Litmus:
    """A small program, and exactly what can come of it.

    Raises:
        DefinitionRefused: an outcome is both right and wrong, or there is none at all.
    """

    #: What it is known by: letters, digits and underscores.
    name: str
    #: What happens in it, and what is to be learned from it, in a few sentences.
    story: str
    #: An async function without arguments, for `toolrt.sim`.
    program: Program
    #: The outcomes that are as they should be.
    right: frozenset[Any] = attrs.field(converter=_frozen)
    #: The outcomes that are the bug; empty when no schedule goes wrong.
    wrong: frozenset[Any] = attrs.field(converter=_frozen, default=())
    #: In how many orders its steps can come, or None when they were not counted.
    interleavings: Count | None = None
    #: How many of those are really different (Mazurkiewicz classes), or None when they were not counted.
    classes: Count | None = None
    #: How the exact outcome set is known where the program is too large to be enumerated.
    proof: str = ""
    #: How many random walks are run where it is too large to be enumerated.
    sample: int = 1_000
    #: What is looked at of an execution.
    read: Callable[[sim.Execution], Any] = outcome_of
    #: The program as people read it; None is its source.
    text: str | None = None
    #: Which orders are meant, "any" or "trio", as `toolrt.sim.explore` takes it.
    order: str = "any"
    #: Whether the program's module is tracked, so that plain Python reports what it touches.
    track: bool = False
    #: What it teaches, in a line.
    teaches: str = ""

    def __attrs_post_init__(self) -> None:
        if self.right & self.wrong or not self.outcomes:
            raise DefinitionRefused(f"litmus {self.name}", "outcomes that are right or wrong", self.right & self.wrong)

    @property
    def outcomes(self) -> frozenset[Any]:
        """Every outcome it has, and no other."""
        return self.right | self.wrong

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that `toolrt.sim.explore`, `run` and `replay` take with the program: order and tracking."""
        return {"order": self.order, "track": self.track}

    @property
    def source(self) -> str:
        """The program as people read it: what it was made with, and its lines."""
        if self.text is not None:
            return self.text
        lines = dedent(inspect.getsource(self.program)).rstrip()
        made_with = inspect.getclosurevars(self.program).nonlocals
        settings = [f"{name} = {value!r}" for name, value in made_with.items() if isinstance(value, int | str)]
        return "\n".join([*settings, lines])

    def check(self, execution: sim.Execution) -> bool | list[str]:
        """What is wrong with how an execution ended, or True: what `toolrt.sim.explore` takes as its check."""
        outcome = self.read(execution)
        if outcome in self.right:
            return True
        return [f"the outcome is {outcome!r}, which is {'the bug' if outcome in self.wrong else 'not stated'}"]

    def __repr__(self) -> str:
        return f"<Litmus {self.name}>"


def one_step(do: Callable[_Arguments, object]) -> Callable[_Arguments, Awaitable[None]]:
    """A task that does something in one step."""

    async def task(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> None:  # noqa: ASYNC124  that is the point
        do(*args, **kwargs)

    return task


async def together(*tasks: Callable[[], Awaitable[object]] | tuple[Any, ...]) -> None:
    """Run each in a task of its own, and return when all have ended: a function, or one with its arguments."""
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(*(task if isinstance(task, tuple) else (task,)))


def orders(*steps: int) -> Count:
    """Tasks of so many steps, in any order: the multinomial coefficient."""
    number = factorial(sum(steps))
    for each in steps:
        number //= factorial(each)
    below = " ".join(f"{each}!" for each in steps)
    return Count(number, f"{sum(steps)}! / ({below})")


@attrs.frozen
class _Described:
    """What `gallery.txt` says of one program."""

    #: A literal or a number for each column.
    cells: Sequence[str]
    #: Fields of `Litmus` that are texts.
    texts: Mapping[str, str]


def _read(text: str) -> tuple[dict[str, str], dict[str, _Described]]:
    """What each theme teaches, and the programs, by name."""
    themes, programs = {}, {}
    for block in text.split("\n\n")[1:]:
        row, *lines = block.splitlines()
        if row.startswith("# "):
            name, _, themes[name] = row.removeprefix("# ").partition(": ")
            continue
        name, *cells, teaches = (cell.strip() for cell in row.split("|"))
        story, _, proof = " ".join(map(str.strip, lines)).partition(" Proof: ")
        programs[name] = _Described(cells, {"story": story, "proof": proof, "teaches": teaches})
    return themes, programs


#: What the programs of each theme have in common, and what is known of each program.
LESSONS, DESCRIBED = _read(
    resources.files("toolrt.teaching.litmus").joinpath("gallery.txt").read_text(encoding="utf-8")
)


def gallery(common: Mapping[str, Any] | None = None, /, **programs: Program | Entry) -> tuple[Litmus, ...]:
    """Make litmus programs that `gallery.txt` describes.

    Args:
        common: fields of `Litmus` that all of them have.
        programs: by name the program, and what the file does not say: fields of `Litmus`, by name.

    Raises:
        DefinitionRefused: the file does not have one of them.
    """
    made = []
    for name, given in programs.items():
        program, more = given if isinstance(given, tuple) else (given, {})
        if name not in DESCRIBED:
            raise DefinitionRefused("gallery(programs)", "programs of gallery.txt", name)
        right, wrong, schedules, classes = DESCRIBED[name].cells
        known = {"right": outcomes(right), "wrong": outcomes(wrong)}
        counted = {"interleavings": count(schedules), "classes": count(classes)}
        fields = {**DESCRIBED[name].texts, **known, **counted, **(common or {}), **more}
        made.append(Litmus(name, program=program, **fields))
    return tuple(made)


def outcomes(cell: str) -> tuple[Any, ...]:
    """The outcomes in a cell, as Python literals."""
    return literal_eval(f"({cell},)") if cell else ()


def count(cell: str) -> Count | None:
    """The number in a cell; None: there is none."""
    if not cell:
        return None
    if cell.startswith("steps "):
        return orders(*map(int, cell.split()[1:]))
    number, _, how = cell.partition(": ")
    return Count(int(number.replace(",", "")), how or "enumerated")
