"""The programs that a reader of the page starts from: texts that run as they are.

Rules.  A program of the litmus gallery is one when its text can stand alone: its names are imported, and its outcomes
are literals.  The others are those of `programs.md`.
"""

from __future__ import annotations

import builtins
import inspect
from ast import literal_eval
from collections.abc import Iterator
from importlib import resources
from types import CodeType, ModuleType
from typing import Any

import attrs

from toolrt.teaching.litmus import THEMES, Litmus
from toolrt.teaching.litmus._litmus import outcome_of


@attrs.frozen
class StartingPoint:
    """A text to begin with."""

    #: Its group in the list, and its name there.
    group: str
    name: str
    #: What happens in it, in a few sentences.
    story: str
    source: str
    #: "program" or "batch".
    kind: str = "program"
    #: Whether plain objects are to be seen, and which orders are meant, as `toolrt.sim.explore` takes them.
    track: bool = False
    order: str = "any"


def starting_points() -> list[StartingPoint]:
    """Give all of them, in the order of the list."""
    return [
        *_written(),
        *(_of_litmus(theme, one) for theme, each in THEMES.items() for one in each if _stands_alone(one)),
    ]


def _stands_alone(litmus: Litmus) -> bool:
    made_with = inspect.getclosurevars(litmus.program).nonlocals.values()
    if any("Error" in str(outcome) for outcome in litmus.outcomes):
        return False  # parts of a group, which `Execution.outcome` does not name
    if litmus.text is not None or litmus.read is not outcome_of or "async def" not in litmus.source:
        return False
    if "to_thread" in litmus.source:
        return False  # a browser has no threads
    return all(isinstance(value, int | str) for value in made_with) and all(map(_is_literal, litmus.outcomes))


def _is_literal(value: Any) -> bool:
    try:
        return bool(literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _of_litmus(theme: str, litmus: Litmus) -> StartingPoint:
    name = getattr(litmus.program, "__name__", "program")
    body = litmus.source.replace(f"async def {name}(", "async def program(", 1)
    right = ", ".join(sorted(map(repr, litmus.right)))
    check = f"RIGHT = [{right}]\n\n\ndef check(execution):\n    return execution.outcome in RIGHT\n"
    imports = "\n".join(_imports(litmus.program))
    source = f"{imports}\n\n\n{body}\n\n\n{check}"
    return StartingPoint(f"litmus: {theme}", litmus.name, litmus.story, source, track=litmus.track, order=litmus.order)


def _imports(program: Any) -> list[str]:
    """Give a line for each name of its module that a program uses."""
    known = program.__globals__
    lines = set()
    for name in set(_names(program.__code__)):
        if name not in known or hasattr(builtins, name):
            continue
        value = known[name]
        if isinstance(value, ModuleType):
            package, _, last = value.__name__.rpartition(".")
            lines.add(f"from {package} import {last}" if package else f"import {last}")
        else:
            lines.add(f"from {_home(name, value, known)} import {name}")
    return sorted(lines, key=lambda line: (line.startswith("from"), line))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _home(name: str, value: Any, known: dict[str, Any]) -> str:
    """Give the module that a name is imported from: the public one where there is one."""
    found: str = getattr(value, "__module__", None) or known["__name__"]
    if found.startswith("trio."):
        return "trio.lowlevel"
    return "toolrt.sim" if found.startswith("toolrt.sim.") else found


def _written() -> Iterator[StartingPoint]:
    """The programs of `programs.md`."""
    _, *sections = (
        resources.files("toolrt.playground").joinpath("programs.md").read_text(encoding="utf-8").split("\n## ")
    )
    for section in sections:
        head, story, code = section.rstrip().removesuffix("```").split("\n\n", 2)
        name, kind = head.split(", ")
        text, is_tracked = code.removeprefix("```python\n"), kind == "tracked"
        kind = "program" if is_tracked else kind
        yield StartingPoint("begin here", name, " ".join(story.split("\n")), text, kind, is_tracked)
