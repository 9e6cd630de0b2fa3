"""Which objects can change, and which code reports what it touches.

Rules.  Code is *tracked* when it was rewritten, *neutral* when it reports for itself or touches only what it is handed
(Trio, toolrt, contextlib and their like), and *foreign* otherwise: a step in which foreign code ran may have done
anything.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import datetime
import decimal
import enum
import fractions
import functools
import inspect
import itertools
import pathlib
import re
import types
import uuid
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType
from typing import Any

import attr
import attrs
import outcome
import trio

from toolrt.sim.engine._looks import only_looks
from toolrt.sim.engine._polls import PolledTime

#: What cannot change; tuples and their like; builtin containers; iterators and views; what reports for itself, or is
#: code; objects with attributes; everything else.
ATOM, TUPLE, CONTAINER, LAZY, NEUTRAL, INSTANCE, OPAQUE = range(1, 8)

_ATOMS = (int, float, PolledTime, complex, str, bytes, bool, range, slice, type(None), type(...), type(NotImplemented))
_ATOM_BASES = (
    enum.Enum,
    decimal.Decimal,
    fractions.Fraction,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    uuid.UUID,
    pathlib.PurePath,
    re.Pattern,
    re.Match,
)
_CONTAINERS = (
    list,
    dict,
    set,
    bytearray,
    collections.deque,
    collections.Counter,
    collections.defaultdict,
    collections.OrderedDict,
)


def _some_generator() -> Any:
    yield


_ordered: Any = collections.OrderedDict()
_GONE_THROUGH: tuple[Any, ...] = (
    [],
    (),
    {},
    {}.values(),
    {}.items(),
    set(),
    "",
    b"",
    range(0),
    collections.deque(),
    _ordered,
)
_REVERSIBLE: tuple[Any, ...] = ([], {}, {}.values(), {}.items(), range(0))
_VIEWS: tuple[Any, ...] = ({}, _ordered)
_LAZY: tuple[Any, ...] = (
    *(type(iter(each)) for each in _GONE_THROUGH),
    *(type(reversed(each)) for each in _REVERSIBLE),
    *(type(view) for each in _VIEWS for view in (each.keys(), each.values(), each.items())),
    enumerate,
    zip,
    map,
    filter,
    reversed,
    type(_some_generator()),
    *(value for value in vars(itertools).values() if isinstance(value, type)),
)
_CODE: tuple[Any, ...] = (
    FunctionType,
    MethodType,
    types.BuiltinFunctionType,
    types.ModuleType,
    types.CodeType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
    types.FrameType,
    types.TracebackType,
    types.GenericAlias,
    functools.partial,
    property,
    staticmethod,
    classmethod,
    super,
    object,
)

_NEUTRAL_ROOMS = (
    "trio",
    "toolrt",
    "outcome",
    "sniffio",
    "_contextvars",
    "contextvars",
    "contextlib",
    "attr",
    "attrs",
    "typing",
)
_NEUTRAL_FOLDERS = tuple(
    str(PurePath(file).parent)
    for file in (trio.__file__, outcome.__file__, attr.__file__, attrs.__file__, PurePath(__file__).parents[2])
)
_NEUTRAL_FILES = (contextlib.__file__, functools.__file__)

_kinds: dict[type, int] = {
    **dict.fromkeys(_CODE, NEUTRAL),
    **dict.fromkeys(_LAZY, LAZY),
    **dict.fromkeys(_ATOMS, ATOM),
    **dict.fromkeys(_CONTAINERS, CONTAINER),
    tuple: TUPLE,
    frozenset: TUPLE,
    types.SimpleNamespace: INSTANCE,
    # They hold what tasks may share, in a room whose other classes hold nothing.
    **dict.fromkeys((contextvars.Context, contextlib.ExitStack, contextlib.AsyncExitStack), OPAQUE),
}

# By the id of a code object, which is kept: True when it is tracked or neutral.
_reports: dict[int, bool] = {}
_tracked: dict[int, CodeType] = {}
_kept: list[CodeType] = []


@only_looks
def kind_of(cls: type) -> int:
    """Give what instances of `cls` are."""
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _kind(cls)
    return kind


@only_looks
def _kind(cls: Any) -> int:
    if issubclass(cls, type):
        return NEUTRAL
    if cls.__module__.partition(".")[0] in _NEUTRAL_ROOMS:
        return NEUTRAL
    if issubclass(cls, _ATOM_BASES):
        return ATOM
    if issubclass(cls, tuple | frozenset) and not cls.__dictoffset__:
        return TUPLE
    getting = cls.__getattribute__
    if isinstance(getting, FunctionType) and PurePath(getting.__code__.co_filename).name == "_watch.py":
        return NEUTRAL
    if issubclass(cls, (*_CONTAINERS, int, str, float, bytes, tuple, frozenset)):
        # A subclass with attributes: it may be anything.
        return OPAQUE
    if issubclass(cls, BaseException):
        return INSTANCE
    if getting is object.__getattribute__ and cls.__flags__ & (1 << 9):
        return INSTANCE
    return OPAQUE


def note_tracked(code: CodeType) -> None:
    """Note that `code`, and all code within it, was rewritten."""
    _tracked[id(code)] = code
    _reports[id(code)] = True
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            note_tracked(inner)


def is_tracked(code: CodeType) -> bool:
    """Say whether `code` was rewritten."""
    return id(code) in _tracked


@only_looks
def code_reports(code: CodeType) -> bool:
    """Say whether `code` reports what it touches, or touches only what it is handed."""
    found = _reports.get(id(code))
    if found is None:
        file = code.co_filename
        found = file in _NEUTRAL_FILES or file.startswith(_NEUTRAL_FOLDERS)
        _reports[id(code)] = found
        _kept.append(code)
    return found


@only_looks
def function_reports(function: Any) -> bool:
    """The same of a function, a method, or what is called like one; False when it is none of them."""
    while True:
        if isinstance(function, MethodType | staticmethod | classmethod):
            function = function.__func__
        elif isinstance(function, functools.partial):
            function = function.func
        else:
            break
    return isinstance(function, FunctionType) and code_reports(function.__code__)


@only_looks
def is_generated(function: Any) -> bool:
    """Say whether dataclasses or attrs made the function."""
    return isinstance(function, FunctionType) and function.__code__.co_filename.startswith(("<string>", "<attrs gen"))


# ---------------------------------------------------------------------- what operators call

_OPERATIONS = "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or"
_ARITHMETIC = _OPERATIONS.split()
_DUNDERS: dict[str, tuple[str, ...]] = {
    "eq": ("__eq__", "__ne__"),
    "order": ("__lt__", "__gt__", "__le__", "__ge__", "__eq__"),
    "arith": (
        *(f"__{side}{name}__" for name in _ARITHMETIC for side in ("", "r", "i")),
        "__neg__",
        "__pos__",
        "__invert__",
        "__abs__",
        "__int__",
        "__float__",
        "__index__",
        "__round__",
        "__trunc__",
    ),
    "bool": ("__bool__", "__len__"),
    "len": ("__len__",),
    "str": ("__str__", "__repr__", "__format__"),
    "hash": ("__hash__", "__eq__"),
    "iter": ("__iter__", "__next__", "__getitem__", "__reversed__", "keys"),
    "contains": ("__contains__", "__iter__", "__eq__"),
    "item": ("__getitem__",),
    "setitem": ("__setitem__", "__delitem__"),
    "match": ("__eq__", "__getitem__", "__len__"),
}

#: Methods that give an iterator.  Where one is no generator function, its code has ended before the first item.
_GIVE_ITERATORS = ("__iter__", "__reversed__", "keys")

#: An operator runs code that reports; it reads all attributes; it may do anything.
FINE, DEEP, WILD = range(3)
_verdicts: dict[tuple[type, str], int] = {}


@only_looks
def dunders_of(cls: type, what: str) -> int:
    """Say what an operator does with an instance: 0: it runs code that reports; 1: it reads attributes; 2: anything."""
    key = (cls, what)
    found = _verdicts.get(key)
    if found is None:
        found = FINE
        for name in _DUNDERS[what]:
            method = getattr(cls, name, None)
            if method is None or method is getattr(object, name, None):
                continue
            if name == "keys" and not function_reports(method):
                continue
            if function_reports(method):
                if name in _GIVE_ITERATORS and not inspect.isgeneratorfunction(method):
                    found = WILD  # the caller goes through what it gives, in code that does not report
                continue
            if is_generated(method) or cls is types.SimpleNamespace or issubclass(cls, BaseException):
                found = max(found, DEEP)
            else:
                found = WILD
        _verdicts[key] = found
    return found


def forget_classes() -> None:
    """Forget what was known of methods of classes: some may have other code now."""
    _verdicts.clear()
