"""What a program can reach at one moment of an execution, in a form that two executions can be compared in.

Rules.
- The walk begins at the coroutines of the living tasks, by path.  From a frame it goes to the variables, to what stands
  on its stack, and to its function; from a function to its closure, its defaults, and the globals that its code names;
  from an object to its attributes, slots and items.
- An object has the number of its first visit for a name, a task its path.  The order of a set does not count, nor that
  of the keys of a plain dict; that of an `OrderedDict` does.
- Modules that come with Python, Trio and toolrt have no globals here.  What belongs to pytest, to the simulator or to a
  workspace is known by its type: these number what they make in the order in which they make it, and report what they
  touch.

Limits.  An object of a compiled extension is known by what it refers to and by its text.  Where that has an address,
`Reachable.unseen` names the type.  What is behind a weak reference, or more than `MOST` objects, is not looked at.
"""

from __future__ import annotations

import contextlib
import copyreg
import gc
import io
import re
import sys
from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Iterator
from contextvars import ContextVar
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CellType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    TracebackType,
)
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolrt.sim.engine._record import ExecutionRecord

#: So many objects are looked at: 0.1 s.
MOST = 20_000

_PLAIN = (type(None), bool, int, str, bytes, complex, float, range, type(...), type(NotImplemented))

_SKIPPED = frozenset(
    (CodeType, ContextVar, FrameType, GetSetDescriptorType, MemberDescriptorType, ModuleType, TracebackType)
)

# What Trio's loop is made of, and tasks, whose names are asked for before.
_OF_TRIOS_LOOP = frozenset(
    ("CancelStatus", "EntryQueue", "EpollIOManager", "GuestState", "KqueueIOManager", "Runner", "Task", "ThreadCache")
)

# Modules of compiled types that hold nothing but what they refer to.
_FOLLOWED = frozenset(
    ("_contextvars", "_thread", "builtins", "collections", "functools", "itertools", "operator", "types", "weakref")
)

# What is not looked into, because it differs with the order: the simulator's bookkeeping; the numbers that a workspace
# gives to files, changes and rows; and what an observer was told, which decides nothing.
_OWN = ("toolrt.sim", "toolrt.workspace", "toolrt.plugins.otel")

# What runs a test holds the whole session, and no task of the test's reaches that but through a wrapper; and what an
# event loop waits with, which has nothing of the program's.
_RUNNERS = ("pytest", "_pytest", "pluggy", "select")

_FOREIGN = (*_RUNNERS, "trio", "outcome", "attr", "attrs", "toolrt")

Children = Iterable[tuple[str, Any]]


class Reachable:
    """What was reached, in the order of the walk."""

    __slots__ = ("entries", "unseen")

    def __init__(self) -> None:
        #: For each object: the number of the one it was reached from, the way from there, and what it is.
        self.entries: list[tuple[int, str, str]] = []
        #: The types of what could not be looked into.
        self.unseen: set[str] = set()

    def noise(self, again: Reachable) -> frozenset[int] | None:
        """Give the numbers of the objects that differ although nothing was exchanged; None: the walks part there."""
        mine, its = self.entries, again.entries
        if len(mine) != len(its) or any(one[:2] != other[:2] for one, other in zip(mine, its, strict=True)):
            return None
        return frozenset(at for at, entry in enumerate(mine) if entry != its[at])

    def differs_from(self, other: Reachable, noise: Collection[int]) -> str | None:
        """Say which variable differs from what was reached in another order, and how; None: none does."""
        if self.entries == other.entries:
            return None
        for number, (mine, its) in enumerate(zip(self.entries, other.entries, strict=False)):
            if mine != its and number not in noise:
                if mine[:2] == its[:2]:
                    return f"{self._path(number)} is {mine[2]} or {its[2]}"
                return f"{self._path(mine[0])} has{mine[1]} or {its[1]}"
        if len(self.entries) != len(other.entries):
            longer = max(self, other, key=lambda one: len(one.entries))
            return f"{longer._path(min(len(self.entries), len(other.entries)))} is there or not"
        return None

    def _path(self, number: int) -> str:
        way: list[str] = []
        while number >= 0:
            number, edge, _ = self.entries[number]
            way.append(edge)
        return "".join(reversed(way))


def reachable(record: ExecutionRecord) -> Reachable:
    """Walk through all that the living tasks of an execution can reach now."""
    actors = {actor.name: actor for actor, *_ in record.steps if actor.task is not None}
    names = {id(actor.task): name for name, actor in actors.items()}
    found = Reachable()
    entries, unseen = found.entries, found.unseen
    numbers: dict[int, int] = {}
    kept: list[Any] = []  # what was made on the way keeps its id
    touched = len(record.touched)
    roots = [(-1, name, actors[name].task.coro) for name in sorted(actors, key=lambda name: actors[name].key)]
    stack: list[tuple[int, str, Any]] = roots[::-1]
    while stack:
        parent, edge, value = stack.pop()
        kind = type(value)
        if kind in _PLAIN:
            entries.append((parent, edge, _plain_text(value)))
            continue
        name = names.get(id(value))
        if name is not None:
            entries.append((parent, edge, f"task {name}"))
            continue
        known = numbers.get(id(value))
        if known is not None:
            entries.append((parent, edge, f"#{known}"))
            continue
        number = numbers[id(value)] = len(entries)
        kept.append(value)
        if number >= MOST:
            unseen.add(f"more than {MOST} objects")
            break
        try:
            text, children = _inside(value, kind, unseen)
        except Exception:
            text, children = kind.__qualname__, ()
            unseen.add(f"{kind.__module__}.{text}")
        entries.append((parent, edge, text))
        if children:
            below = [(number, way, child) for way, child in children]
            below.reverse()
            stack += below
    del record.touched[touched:]
    return found


def _inside(value: Any, kind: type, unseen: set[str]) -> tuple[str, Children]:
    """Give what an object is, and what it leads to."""
    if kind is CellType:
        try:
            return "", [("", value.cell_contents)]
        except ValueError:
            return "empty", ()
    if kind in (CoroutineType, GeneratorType, AsyncGeneratorType):
        return _suspended(value)
    if kind is FunctionType:
        return f"function {value.__qualname__}", list(_of_function(value))
    if kind is MethodType:
        return f"method {value.__func__.__qualname__}", [("", value.__self__)]
    if kind in _SKIPPED or kind.__name__ in _OF_TRIOS_LOOP:
        return kind.__name__, ()
    if issubclass(kind, type):
        return f"class {value.__qualname__}", list(_of_class(value)) if _is_own(value.__module__) else ()
    if kind.__module__.partition(".")[0] in _RUNNERS:
        return kind.__name__, ()
    if kind.__module__.startswith(_OWN):
        return kind.__name__, [(".value", object.__getattribute__(value, "_value"))] if kind.__name__ == "Cell" else ()
    return _object(value, kind, unseen)


def _plain_text(value: Any) -> str:
    """Give the text of a plain value, without what is an address."""
    if type(value) is int:
        return repr(value) if value < _LEAST_ADDRESS else "large"
    return _ADDRESS.sub("0x", repr(value)) if type(value) is str else repr(value)


_LEAST_ADDRESS = 1 << 32
_ADDRESS = re.compile("0x[0-9a-f]+")


def _items(value: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    pairs = [(_shallow(key), key, item) for key, item in dict.items(value)]
    if not issubclass(type(value), OrderedDict):
        pairs.sort(key=_first)
    for text, key, item in pairs:
        yield f"[{text}]", item
        if type(key) not in _PLAIN:
            yield ".key", key


def _first(pair: tuple[Any, ...]) -> Any:
    return pair[0]


def _shallow(value: Any) -> str:
    """Give a text for a key or a member: itself where it is plain, else its type."""
    if type(value) in _PLAIN:
        return _plain_text(value)
    if type(value) in (tuple, frozenset):
        return f"({', '.join(map(_shallow, value))})"
    return type(value).__qualname__


def _suspended(value: Any) -> tuple[str, Children]:
    """Give where a coroutine or generator stands, its variables, its stack, and what it waits for."""
    prefix = {CoroutineType: "cr", GeneratorType: "gi"}.get(type(value), "ag")
    frame = getattr(value, f"{prefix}_frame")
    code = getattr(value, f"{prefix}_code")
    if frame is None:
        return f"{code.co_qualname}, ended", ()
    children = sorted(frame.f_locals.items())
    shown = {id(item) for _, item in children}
    stack = [item for item in gc.get_referents(value) if id(item) not in shown and type(item) not in _SKIPPED]
    children = [(f" {name}" if not name.startswith(".") else name, item) for name, item in children]
    children += [(f" <{index}>", item) for index, item in enumerate(stack) if type(item) not in (str, CellType)]
    line = "" if _is_foreign(frame.f_globals.get("__name__", "")) else f" at {frame.f_lasti}"
    return f"{code.co_qualname}{line}", children


def _of_function(value: FunctionType) -> Iterator[tuple[str, Any]]:
    code = value.__code__
    for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=False):
        yield f" {name}", cell
    if value.__defaults__:
        yield ".__defaults__", value.__defaults__
    if value.__kwdefaults__:
        yield ".__kwdefaults__", value.__kwdefaults__
    if value.__dict__:
        yield ".__dict__", value.__dict__
    if _is_own(value.__module__):
        for name in sorted(_names_of(code)):
            if name in value.__globals__:
                yield f" {name}", value.__globals__[name]


def _names_of(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= _names_of(inner)
    return names


def _of_class(value: type) -> Iterator[tuple[str, Any]]:
    for name, item in sorted(value.__dict__.items()):
        if not name.startswith("__") and type(item) not in (MemberDescriptorType, GetSetDescriptorType):
            if isinstance(item, (staticmethod, classmethod)):
                item = item.__func__
            if isinstance(item, property):
                item = item.fget
            yield f".{name}", item


def _object(value: Any, kind: type, unseen: set[str]) -> tuple[str, Children]:
    """Give what any other object is."""
    text = kind.__qualname__
    children: list[tuple[str, Any]] = []
    if kind is BuiltinFunctionType:
        return value.__qualname__, () if type(value.__self__) is ModuleType else [("", value.__self__)]
    slots = copyreg._slotnames(kind)  # type: ignore[attr-defined]
    for name in ("__dict__", *slots):
        # Not by the program's own code, which may do anything.
        with contextlib.suppress(AttributeError):
            item = object.__getattribute__(value, name)
            children += (
                sorted((f".{key}", one) for key, one in item.items()) if name == "__dict__" else [(f".{name}", item)]
            )
    is_followed = bool(children) or any("__slots__" in base.__dict__ for base in kind.__mro__)
    if issubclass(kind, dict):
        text = f"{text} of {dict.__len__(value)}"
        children += _items(value)
    elif issubclass(kind, (list, tuple, deque)):
        base = next(base for base in (list, tuple, deque) if issubclass(kind, base))
        children += [(f"[{index}]", item) for index, item in enumerate(base.__iter__(value))]
        text = f"{text} of {base.__len__(value)}"
    elif issubclass(kind, (set, frozenset)):
        text = f"{text} {sorted(map(_shallow, (set if issubclass(kind, set) else frozenset).__iter__(value)))}"
    elif issubclass(kind, BaseException):
        children += [(".args", value.args), (".__cause__", value.__cause__)]
    elif kind is bytearray:
        text = f"{text} {bytes(value)!r}"
    elif kind in (io.StringIO, io.BytesIO):
        text = f"{text} {value.getvalue()!r} at {value.tell()}"
    elif not is_followed:
        children += [(f"<{index}>", item) for index, item in enumerate(gc.get_referents(value)) if item is not kind]
        if hasattr(value, "__length_hint__"):
            text = f"{text} {value.__length_hint__()}"
        elif kind.__module__ not in _FOLLOWED:
            text = _ADDRESS.sub("0x", repr(value))
            if "0x" in text:
                unseen.add(f"{kind.__module__}.{kind.__qualname__}")
    return text, children


def _is_foreign(module: str) -> bool:
    return module.partition(".")[0] in _FOREIGN


def _is_own(module: str | None) -> bool:
    """Say whether code of a module is the program's: not Python's, Trio's, toolrt's."""
    top = (module or "").partition(".")[0]
    return (bool(top) and top not in sys.stdlib_module_names and top not in _FOREIGN) or top == "__main__"
