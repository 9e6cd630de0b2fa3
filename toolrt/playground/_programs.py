"""The programs that a reader of the page starts from: texts that run as they are.

Rules.  A program of the litmus gallery is one when its text can stand alone: its names are imported, and its outcomes
are literals.  The others are written here.
"""

from __future__ import annotations

import builtins
import inspect
from ast import literal_eval
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

import attrs

from toolrt.teaching.litmus import THEMES, Litmus
from toolrt.teaching.litmus._litmus import outcome_of

__all__ = ["StartingPoint", "starting_points"]


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
        *_WRITTEN,
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


def _program(name: str, story: str, source: str, **more: Any) -> StartingPoint:
    return StartingPoint("begin here", name, story, source.lstrip("\n"), **more)


_COUNTER = """
import trio

from toolrt import sim


async def program():
    counter = sim.Cell(0, name="counter")
    lock = trio.Lock()  # no task takes it yet

    async def add():
        seen = counter.get()
        await trio.lowlevel.checkpoint()
        counter.set(seen + 1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(add)
        nursery.start_soon(add)
    return counter.get()


def check(execution):
    return execution.value == 2
"""

_SHOP = """
import trio


async def sell(stock, sold):
    if stock["tea"] > 0:
        await trio.lowlevel.checkpoint()
        stock["tea"] -= 1
        sold.append("tea")


async def program():
    stock, sold = {"tea": 1}, []
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(sell, stock, sold)
    return len(sold)


def check(execution):
    return execution.value == 1
"""

_DEADLOCK = """
import trio


async def program():
    left, right = trio.Lock(), trio.Lock()

    async def eat(first, second):
        async with first:
            await trio.lowlevel.checkpoint()
            async with second:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(eat, left, right)
        nursery.start_soon(eat, right, left)
    return "both ate"
"""

_WAKE_UP = """
import trio


async def program():
    bell = trio.lowlevel.ParkingLot()
    rung = []

    async def sleeper():
        if not rung:
            await trio.lowlevel.checkpoint()
            await bell.park()

    async def ringer():
        await trio.lowlevel.checkpoint()
        rung.append(True)
        bell.unpark_all()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleeper)
        nursery.start_soon(ringer)
    return "awake"
"""

_COUNTERS = """
import toolrt
import trio

# Virtual seconds that each tool takes: move the sliders, and run it again.
seconds = {"add": 1.0, "look": 1.0}


@toolrt.tool(claims=lambda input, state: [toolrt.Claim(("counter", input["name"]), toolrt.WRITE)])
async def add(ctx, name, by):
    await trio.sleep(seconds["add"])
    return toolrt.ToolOutput(f"added {by}", modifiers=[lambda state: state.set(name, state[name] + by)])


@toolrt.tool(claims=lambda input, state: [toolrt.Claim(("counter", input["name"]), toolrt.READ)])
async def look(ctx, name):
    await trio.sleep(seconds["look"])
    return f"{name} is {ctx.state[name]}"


tools = [add, look]
state = toolrt.State({"apples": 1, "pears": 5})
response = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "I'll count what came in."},
        {"type": "tool_use", "id": "1", "name": "add", "input": {"name": "apples", "by": 2}},
        {"type": "tool_use", "id": "2", "name": "add", "input": {"name": "pears", "by": 1}},
        {"type": "tool_use", "id": "3", "name": "add", "input": {"name": "apples", "by": 3}},
        {"type": "tool_use", "id": "4", "name": "look", "input": {"name": "apples"}},
    ],
}
"""

_FILES = """
import toolrt
import trio

# Virtual seconds that each tool thinks before it touches its file.
seconds = {"edit": 1.0, "read": 1.5}
files = {"a.txt": "one two", "b.txt": "three"}


def touches(mode):
    return lambda input, state: [toolrt.Claim(("file", input["path"]), mode)]


@toolrt.tool(claims=touches(toolrt.WRITE))
async def edit(ctx, path, old, new):
    seen = files[path]
    await trio.sleep(seconds["edit"])
    if old not in seen:
        raise ValueError(f"{old!r} is not in {path}")
    files[path] = seen.replace(old, new)
    return f"{path}: {files[path]}"


@toolrt.tool(claims=touches(toolrt.READ))
async def read(ctx, path):
    await trio.sleep(seconds["read"])
    return files[path]


tools = [edit, read]


def begin():  # each schedule begins with these files
    files.update({"a.txt": "one two", "b.txt": "three"})


response = {
    "role": "assistant",
    "content": [
        {"type": "tool_use", "id": "1", "name": "edit", "input": {"path": "a.txt", "old": "one", "new": "1"}},
        {"type": "tool_use", "id": "2", "name": "edit", "input": {"path": "a.txt", "old": "two", "new": "2"}},
        {"type": "tool_use", "id": "3", "name": "read", "input": {"path": "b.txt"}},
        {"type": "tool_use", "id": "4", "name": "read", "input": {"path": "a.txt"}},
    ],
}
"""

_WRITTEN = (
    _program(
        "lost update",
        "Two tasks read a counter, wait, and write it. Take the lock round both, and explore again.",
        _COUNTER,
    ),
    _program(
        "one cup of tea",
        "A task looks whether there is tea, waits, and sells it. A plain dict: tracking sees what tasks do with it.",
        _SHOP,
        track=True,
    ),
    _program(
        "two forks",
        "Each task holds one lock and waits for the other: a deadlock, which is reported at once.",
        _DEADLOCK,
    ),
    _program("a lost wake-up", "The bell rings between the look and the wait: the sleeper never wakes.", _WAKE_UP),
    _program(
        "a batch of counters",
        "A model asks for four calls at once. Claims order those on one counter; the others overlap.",
        _COUNTERS,
        kind="batch",
    ),
    _program(
        "two edits of one file",
        "Both edits read the file, think, and write it. With claims neither is lost. Take `claims` out of both tools, "
        "choose parallel lanes, and one is.",
        _FILES,
        kind="batch",
    ),
)
