"""The public names, each with the one place where the reference tells of it.

Rules.  A room is a module or package of toolrt that has an ``__all__`` and no underscore in its path.  A package
without an ``__all__`` holds modules only; an alias of a room that moved has none and is not a room.  A name that
several rooms export is told of where a user would import it from: at the top, if it is there, else in the room with
the shortest path, else in the one that its code lives in.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import toolrt

__all__ = ["Name", "comments_of", "members_of", "names", "names_of", "rooms"]


class Name(NamedTuple):
    """One public name."""

    #: The room that exports it, as a module's path.
    room: str
    #: The name within the room.
    name: str
    #: What it names.
    value: Any

    @property
    def path(self) -> str:
        """What a program writes."""
        return f"{self.room}.{self.name}"


@cache
def rooms() -> tuple[str, ...]:
    """The path of every room, a room before the rooms in it."""
    found = [module.name for module in pkgutil.walk_packages(toolrt.__path__, "toolrt.")]
    named = [path for path in found if not any(part.startswith("_") for part in path.split("."))]
    return ("toolrt", *(path for path in named if "__all__" in vars(importlib.import_module(path))))


@cache
def names() -> dict[str, Name]:
    """Every public name by the path under which it is told of."""
    exported = [
        Name(path, name, getattr(importlib.import_module(path), name))
        for path in rooms()
        for name in importlib.import_module(path).__all__
    ]
    told: dict[tuple[str, int], Name] = {}
    for one in exported:
        key = (one.name, id(one.value))
        if key not in told or _rank(one) < _rank(told[key]):
            told[key] = one
    return {one.path: one for one in told.values() if not isinstance(one.value, ModuleType)}


def _rank(name: Name) -> tuple[int, bool]:
    lives = getattr(name.value, "__module__", None) or ""
    return name.room.count("."), not f"{lives}.".startswith(f"{name.room}.")


def names_of(room: str) -> tuple[list[Name], list[Name]]:
    """What a room exports: the names told of there, and those told of elsewhere."""
    own: list[Name] = []
    others: list[Name] = []
    by_value = {(one.name, id(one.value)): one for one in names().values()}
    module = importlib.import_module(room)
    for name in sorted(module.__all__, key=lambda text: (text.lower(), text)):
        told = by_value.get((name, id(getattr(module, name))))
        if told is not None:
            (own if told.room == room else others).append(told)
    return own, others


def members_of(owner: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that toolrt's own code defines for `owner`, as they are defined."""
    seen = set()
    for base in owner.__mro__:
        if not base.__module__.startswith("toolrt"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") and name not in ("__aenter__", "__anext__"):
                continue
            if name in seen or not (callable(member) or isinstance(member, (property, classmethod, staticmethod))):
                continue
            seen.add(name)
            if not isinstance(member, type):
                yield name, member


@cache
def comments_of(module: str) -> dict[tuple[str, str], str]:
    """The ``#:`` comments of a module, by class ("" for the module itself) and name.

    A comment is also that of what follows in the very next lines without one of its own.
    """
    source = inspect.getsource(importlib.import_module(module)).splitlines()
    found: dict[tuple[str, str], str] = {}

    def visit(body: list[ast.stmt], owner: str) -> None:
        shared, end = "", -1
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, node.name)
            elif (
                isinstance(node, (ast.If, ast.Try, ast.With, ast.FunctionDef))
                and getattr(node, "name", "__init__") == "__init__"
            ):
                visit(node.body, owner)
            text = _above(source, node) or (shared if node.lineno == end + 1 else "")
            shared, end = text, node.end_lineno or node.lineno
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets:
                name = getattr(target, "id", None) or getattr(target, "attr", None)
                if name and text:
                    found[owner, name] = text

    visit(ast.parse("\n".join(source)).body, "")
    return found


def _above(source: list[str], node: ast.stmt) -> str:
    line = node.lineno - 2
    lines: list[str] = []
    while line >= 0 and source[line].strip().startswith("#:"):
        lines.insert(0, source[line].strip()[2:].strip())
        line -= 1
    beside = source[(node.end_lineno or node.lineno) - 1].partition("#: ")[2]
    return "\n".join(lines) or beside.strip()


def comment_of(value: Any, name: str) -> str:
    """The ``#:`` comment on a module's value, wherever in toolrt it is made; "" where it has none."""
    names()  # imports every room, and with it whatever makes a public value
    holding = (module for module, loaded in sys.modules.items() if vars(loaded).get(name) is value)
    return next(
        (
            text
            for module in sorted(holding)
            if module.startswith("toolrt.") and (text := comments_of(module).get(("", name)))
        ),
        "",
    )
