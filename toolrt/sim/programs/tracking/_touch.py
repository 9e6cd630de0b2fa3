"""What rewritten code calls to report loads, stores and uses of plain objects.

Rules.  Each function reports and gives back what it was given, so that the load or store itself is the program's own
instruction.  Each attribute is a resource, and so is each key of a dict, beside its set of keys, and each item of a
list, beside its length; any other container is one resource.  While no execution is tracked, nothing is done.

Theory.  The report may come before or after the load, as long as no checkpoint lies between: what a step touches is a
set.
"""

from __future__ import annotations

import operator
import sys
import types
import weakref
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from functools import cached_property
from numbers import Number
from types import AsyncGeneratorType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

from toolrt import probe
from toolrt.probe import ANYTHING, Resource
from toolrt.sim._trio_internals._lent import lent
from toolrt.sim.engine._looks import only_looks
from toolrt.sim.programs.tracking._births import attributes_of
from toolrt.sim.programs.tracking._kinds import (
    ATOM,
    CONTAINER,
    INSTANCE,
    LAZY,
    NEUTRAL,
    OPAQUE,
    TUPLE,
    code_reports,
    dunders_of,
    forget_classes,
    function_reports,
    kind_of,
)

MISSING = object()
MEMBER = types.MemberDescriptorType
_GETSET = types.GetSetDescriptorType
_METHODS = (
    FunctionType,
    staticmethod,
    classmethod,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)

#: The attributes of an exception that change where it is raised, which no code reports.
_OF_RAISING = ("__cause__", "__context__", "__suppress_context__", "__traceback__")

#: The containers whose keys are resources of their own.
KEYED: frozenset[type] = frozenset((dict, defaultdict, Counter, OrderedDict))
# The items of a list from this one on are one resource.
_LAST_CELL = 32


class Touched:
    """What is called how in the execution that is tracked now; one for the whole process."""

    __slots__ = ("aside", "base", "held", "kept", "lazy", "name_new", "names", "turn")

    def __init__(self) -> None:
        #: The names of the objects of this execution, by id; None: nothing is tracked.
        self.names: dict[int, Resource] | None = None
        #: The names of what was there before.
        self.base: dict[int, Resource] = {}
        #: What has a name, by id: a weak reference, which takes the name away when the thing ends.
        self.kept: dict[int, weakref.KeyedRef[int, Any]] = {}
        #: What has a name and cannot be referred to weakly, by id: see `let_go`.
        self.held: dict[int, Any] = {}
        #: The objects that an iterator or a view goes through.
        self.lazy: dict[int, tuple[Any, ...]] = {}
        #: Takes what is touched in place of the probe; None: the probe does.
        self.aside: Callable[[Resource, bool], None] | None = None
        #: Gives the running task and how many things it has named; None: no task runs.
        self.name_new: Callable[[], tuple[Any, ...] | None] = lambda: None
        #: Hands the turn of a worker thread over; see `_turns`.
        self.turn: Callable[..., None] = lambda: None

    def begin(self, base: dict[int, Resource], name_new: Callable[[], tuple[Any, ...] | None]) -> None:
        """Begin with an execution."""
        self.base, self.name_new = base, name_new
        self.names, self.kept, self.held, self.lazy = {}, {}, {}, {}

    def end(self) -> None:
        """Track nothing any more."""
        self.names = self.aside = None
        self.base, self.kept, self.held, self.lazy = {}, {}, {}, {}


now = Touched()


@only_looks
def _counts(held: dict[int, Any]) -> list[tuple[int, int]]:
    return [(key, sys.getrefcount(thing)) for key, thing in held.items()]


#: How many references there are, while they are counted, to what is held by this room alone.
_ALONE = _counts({0: object()})[0][1]


def let_go() -> None:
    """Let what the program holds no longer end, as it would have without a name.  To be called after each step."""
    while now.names is not None:
        ended = [key for key, count in _counts(now.held) if count <= _ALONE]
        if not ended:
            return
        for key in ended:
            now.names.pop(key, None)
            now.lazy.pop(key, None)
            del now.held[key]  # which may run code of the program that ends other things


@only_looks
def report(resource: Resource, write: bool) -> None:
    if now.aside is not None:
        now.aside(resource, write)
        return
    sink = probe.sink
    if sink is not None:
        sink.access(resource, write)


def wild() -> None:
    """Say that the running step may do anything."""
    if now.names is not None:
        report(ANYTHING, True)


@only_looks
def _runs(function: Any) -> None:
    """Report what a function does that is called unseen: anything, unless it reports by itself."""
    if not function_reports(function):
        report(ANYTHING, True)


@only_looks
def born(thing: Any) -> Any:
    """Name what was just made, and give it back."""
    names = now.names
    if names is not None and kind_of(type(thing)) not in (ATOM, NEUTRAL, TUPLE):
        key = id(thing)
        if key not in names and key not in now.base:
            _name_it(thing, names)
    return thing


@only_looks
def made(thing: Any) -> Any:
    """Name the result of an expression that always makes something new."""
    if now.names is not None:
        _name_it(thing, now.names)
    return thing


@only_looks
def _name_it(thing: Any, names: dict[int, Resource]) -> Resource:
    by = now.name_new()
    if by is None:
        report(ANYTHING, True)
        by = ("outside", len(names))
    key = id(thing)
    name = names[key] = (type(thing).__name__, *by)
    try:
        now.kept[key] = weakref.KeyedRef(thing, _forget, key)
    except TypeError:
        now.held[key] = thing
    return name


def _forget(kept: weakref.KeyedRef[int, Any]) -> None:
    """Take the name of what has ended away, before another thing gets its id: the program sees its things end."""
    if now.kept.get(kept.key) is kept:
        del now.kept[kept.key]
        now.lazy.pop(kept.key, None)
        if now.names is not None:
            now.names.pop(kept.key, None)


@only_looks
def name_of(thing: Any) -> Resource:
    """Give what `thing` is called; the step that has to name it may have done anything."""
    names = now.names
    if names is None:
        return ("untracked",)
    key = id(thing)
    found = names.get(key) or now.base.get(key)
    if found is None:
        report(ANYTHING, True)
        found = _name_it(thing, names)
    return found


def name_inside(thing: Any, depth: int = 0) -> None:
    """Name what is within something new, where it has no name yet."""
    names = now.names
    if names is None or depth > 20:
        return
    for _, value in attributes_of(thing):
        name_deeply(value, depth + 1)


def name_deeply(thing: Any, depth: int = 0) -> Any:
    """Name `thing` and what is within, where it has no name yet."""
    names, kind = now.names, kind_of(type(thing))
    if names is None or kind in (ATOM, NEUTRAL) or depth > 20:
        return thing
    if kind != TUPLE:
        if id(thing) in names or id(thing) in now.base:
            return thing
        _name_it(thing, names)
    if kind in (CONTAINER, TUPLE):
        for value in items_of(thing):
            name_deeply(value, depth + 1)
    elif kind == INSTANCE:
        name_inside(thing, depth)
    return thing


@only_looks
def items_of(thing: Any) -> list[Any]:
    if isinstance(thing, dict):
        return [*dict.keys(thing), *dict.values(thing)]
    return list(thing)


# ---------------------------------------------------------------------- attributes


@only_looks
def load(thing: Any, attribute: str) -> Any:
    """Report a load of an attribute."""
    if now.names is not None and kind_of(type(thing)) >= LAZY:
        if lent.thread and (kind_of(type(thing)) != NEUTRAL or isinstance(thing, type)):
            now.turn()
        read_attribute(thing, attribute)
        if lent.thread and kind_of(type(thing)) == INSTANCE:
            _compute(thing, attribute)
    return thing


@only_looks
def _compute(thing: Any, attribute: str) -> None:
    """Compute a cached property whose thread may hand over within: the step that keeps its value has to say so."""
    if type(in_class(type(thing), attribute)) is cached_property and attribute not in _own(thing):
        getattr(thing, attribute)
        report((*name_of(thing), attribute), True)


@only_looks
def read_attribute(thing: Any, attribute: str) -> None:
    cls = type(thing)
    kind = kind_of(cls)
    if kind == NEUTRAL:
        if cls is ModuleType:
            _module_attribute(thing, attribute, False)
        elif isinstance(thing, type):
            _class_attribute(thing, attribute, False)
        elif cls is FunctionType and not attribute.startswith("__"):
            report((f"{thing.__module__}.{thing.__qualname__}", attribute), False)
        elif cls is MethodType and in_class(cls, attribute) is MISSING:
            read_attribute(thing.__func__, attribute)
        elif cls is super:
            _inherited(thing, attribute)
        elif _is_added(thing, attribute):
            report((*name_of(thing), attribute), False)
        elif cls is AsyncGeneratorType:
            report(ANYTHING, True)
        return
    if kind in (OPAQUE, LAZY):
        found = in_class(cls, attribute)
        if not isinstance(found, _METHODS):
            report(ANYTHING, True)
        return
    if kind != INSTANCE:
        return
    found = in_class(cls, attribute)
    of = type(found)
    if of in _METHODS:
        return
    if of is property:
        _runs(found.fget)
        return
    if attribute == "__dict__":
        report(ANYTHING, True)
        return
    if attribute.startswith("__") and attribute.endswith("__"):
        if attribute in _OF_RAISING:
            report(ANYTHING, True)
        return
    if of is MEMBER:
        # One slot may have several names in the class.
        attribute = found.__name__
    if of is cached_property:
        if attribute not in _own(thing):
            report((*name_of(thing), attribute), True)
            _runs(found.func)
            return
    elif of is not MEMBER and of is not _GETSET and hasattr(of, "__get__"):
        _runs(of.__get__)
    report((*name_of(thing), attribute), False)
    if of is MEMBER or of is _GETSET or attribute in _own(thing):
        return
    report(("class attribute", attribute), False)
    if found is MISSING:
        getter = getattr(cls, "__getattr__", None)
        if getter is not None:
            _runs(getter)


def store(thing: Any, attribute: str) -> Any:
    """Report a store, or a deletion, of an attribute."""
    if now.names is not None:
        if lent.thread:
            now.turn()
        write_attribute(thing, attribute)
    return thing


def write_attribute(thing: Any, attribute: str) -> None:
    cls = type(thing)
    kind = kind_of(cls)
    if kind == NEUTRAL:
        if cls is ModuleType:
            _module_attribute(thing, attribute, True)
        elif isinstance(thing, type):
            _class_attribute(thing, attribute, True)
        elif cls is FunctionType and not attribute.startswith("__"):
            report((f"{thing.__module__}.{thing.__qualname__}", attribute), True)
        elif _is_ours(cls) and in_class(cls, attribute) is MISSING:
            report((*name_of(thing), attribute), True)
        elif not _is_ours(cls) or type(in_class(cls, attribute)) is MEMBER:
            # Such as the name of a task: Trio reports neither its loads nor its stores.
            report(ANYTHING, True)
        return
    if kind != INSTANCE:
        report(ANYTHING, True)
        return
    setter: Any = cls.__setattr__
    if setter is not object.__setattr__ and not issubclass(cls, BaseException):
        if not function_reports(setter):
            report(ANYTHING, True)
        else:
            return
    found = in_class(cls, attribute)
    of = type(found)
    if of is property:
        if found.fset is not None:
            _runs(found.fset)
        return
    if of in _METHODS or (attribute.startswith("__") and attribute.endswith("__")):
        report(ANYTHING, True)
    elif of not in (MEMBER, _GETSET, cached_property) and hasattr(of, "__set__"):
        _runs(of.__set__)
        return
    if of is MEMBER:
        attribute = found.__name__
    report((*name_of(thing), attribute), True)


@only_looks
def _is_added(thing: Any, attribute: str) -> bool:
    """Whether it is an attribute that the program may have put on an object which reports for itself."""
    return not attribute.startswith("__") and in_class(type(thing), attribute) is MISSING and attribute in _own(thing)


@only_looks
def _inherited(found_by: Any, attribute: str) -> None:
    """Report a load through ``super()``."""
    for each in found_by.__self_class__.__mro__[found_by.__self_class__.__mro__.index(found_by.__thisclass__) + 1 :]:
        found = each.__dict__.get(attribute, MISSING)
        if found is MISSING:
            continue
        if isinstance(found, property):
            _runs(found.fget)
        elif not isinstance(found, _METHODS):
            report(("class attribute", attribute), False)
        return


@only_looks
def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in ("trio", "toolrt")


@only_looks
def _own(thing: Any) -> dict[str, Any]:
    try:
        return object.__getattribute__(thing, "__dict__")  # type: ignore[no-any-return]
    except AttributeError:
        return {}


@only_looks
def in_class(cls: type, attribute: str) -> Any:
    for each in cls.__mro__:
        own = each.__dict__
        if attribute in own:
            return own[attribute]
    return MISSING


@only_looks
def _class_attribute(cls: type, attribute: str, write: bool) -> None:
    if attribute.startswith("__") and attribute.endswith("__") and not write:
        return
    if attribute.startswith("__") and attribute.endswith("__"):
        report(ANYTHING, True)  # reads of such are not reported
    found = in_class(cls, attribute)
    if not isinstance(found, (*_METHODS, property, type)):
        report(("class attribute", attribute), write)
    if write and (found is MISSING or isinstance(found, (*_METHODS, property, type))):
        forget_classes()
        report(ANYTHING, True)
    if not isinstance(cls, type) or (type(cls) is not type and attribute in dir(type(cls)) and write):
        report(ANYTHING, True)


#: The names that `global` statements name, by module.
declared: dict[str, set[str]] = {}


@only_looks
def _module_attribute(module: Any, attribute: str, write: bool) -> None:
    name = getattr(module, "__name__", "")
    if write:
        report(ANYTHING, True)
    elif attribute not in declared.get(name, ()):
        return
    report((name, attribute), write)


# ---------------------------------------------------------------------- variables


@only_looks
def load_cell(cell: Callable[[], Any], value: Any) -> Any:
    """Report a load of a variable that an inner function shares; `cell` is a function of it alone."""
    if now.names is not None:
        report(_cell_name(cell), False)
        if lent.thread:
            now.turn()
    return value


def store_cell(cell: Callable[[], Any], value: Any = None) -> Any:
    """Report that a variable that inner functions share was bound, within an expression to `value`."""
    if now.names is not None:
        report(_cell_name(cell), True)
        if lent.thread:
            now.turn()
    return value


def new_cells(cells: Callable[[], Any]) -> None:
    """Name the variables that inner functions share, of a call that has just begun."""
    names = now.names
    if names is not None:
        for variable, cell in zip(cells.__code__.co_freevars, cells.__closure__ or (), strict=True):
            by = now.name_new() or ("outside", len(names))
            names[id(cell)] = (variable, *by)
            now.held[id(cell)] = cell


@only_looks
def _cell_name(of: Callable[[], Any]) -> Resource:
    cell = (of.__closure__ or (None,))[0]
    names = now.names
    assert names is not None
    key = id(cell)
    found = names.get(key) or now.base.get(key)
    if found is None:
        report(ANYTHING, True)
        by = now.name_new() or ("outside", len(names))
        found = names[key] = (of.__code__.co_freevars[0], *by)
        now.held[id(cell)] = cell
    return found


@only_looks
def load_global(resource: Resource, value: Any) -> Any:
    """Report a load of a global."""
    if now.names is not None:
        report(resource, False)
        if lent.thread:
            now.turn()
    return value


def store_global(resource: Resource, value: Any = None) -> Any:
    """Report that a global was bound, within an expression to `value`."""
    if now.names is not None:
        report(resource, True)
        if lent.thread:
            now.turn()
    return value


# ---------------------------------------------------------------------- items


@only_looks
def plain_key(key: Any) -> Any:
    """Give a name for a key: equal keys have one."""
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or (type(key) is int and abs(key) < sys.hash_info.modulus):
        return key
    if isinstance(key, tuple):
        return tuple(map(plain_key, key))
    if isinstance(key, Number):
        # Equal numbers have one hash.  Of a small int it is the int itself, except of -1.
        return -1 if operator.eq(key, -1) else hash(key)
    if isinstance(key, bytes):
        return repr(key)
    return "..."


@only_looks
def key_is_plain(key: Any) -> bool:
    """Say whether equal keys can be told by their names."""
    kind = kind_of(type(key))
    if kind in (ATOM, TUPLE, NEUTRAL):
        return True
    return kind == INSTANCE and dunders_of(type(key), "hash") != 2


@only_looks
def touch_key(thing: dict[Any, Any], key: Any, write: bool, keys: bool | None = None) -> None:
    """Report a load or store of one key of a dict; `keys`: whether its set of keys is changed too, or read."""
    name = name_of(thing)
    if not key_is_plain(key):
        report(ANYTHING, True)
    report((*name, "key", plain_key(key)), write)
    if keys is not None:
        report(name, keys)


@only_looks
def _is_older(thing: Any) -> bool:
    """Say whether `thing` was there before the execution: its length may differ from one execution to the next."""
    key = id(thing)
    return key in now.base and not (now.names and key in now.names)


@only_looks
def touch_index(thing: list[Any], index: int, write: bool) -> None:
    """Report a load or store of one item of a list: all that changes its length is a write of all its items."""
    name = name_of(thing)
    if _is_older(thing):
        report(name, write)
        return
    report(name, False)
    at = index + len(thing) if index < 0 else index
    if 0 <= at < len(thing):
        report((*name, "key", min(at, _LAST_CELL)), write)


# ---------------------------------------------------------------------- uses


@only_looks
def whole(thing: Any, write: bool) -> None:
    """Report that all of a builtin container is read, or may change."""
    name = name_of(thing)
    if type(thing) in KEYED:
        for key in dict.keys(thing):
            report((*name, "key", plain_key(key)), write)
    elif type(thing) is list and not write and not _is_older(thing):
        for at in range(min(len(thing), _LAST_CELL + 1)):
            report((*name, "key", at), False)
    report(name, write)


@only_looks
def use(thing: Any, what: str) -> Any:
    """Report what an operator reads of `thing`, and give it back.

    Args:
        thing: the operand.
        what: the operation, one of those `_kinds.dunders_of` knows.
    """
    if now.names is not None and kind_of(type(thing)) != ATOM:
        if lent.thread and kind_of(type(thing)) != NEUTRAL:
            now.turn(thing, what)
        _use(thing, what, {}, 0)
    return thing


def use_again(thing: Any, what: str) -> None:
    """Report what an operator reads of `thing`, which it may do in this step."""
    _use(thing, what, {}, 0)


# What looks at what is inside a container.
_DEEP = ("eq", "order", "str", "contains", "match", "hash")


# An operator that looks deeper than this, or at more objects, looks at anything.
_DEEPEST, _MOST_LOOKED_AT = 50, 1000


@only_looks
def _use(thing: Any, what: str, seen: dict[Any, Any], depth: int) -> None:
    cls = type(thing)
    kind = kind_of(cls)
    if kind in (ATOM, NEUTRAL):
        return
    looked = id(thing), what
    if looked in seen:
        return
    # Kept, because another one might have its id after it.
    seen[looked] = thing
    if depth > _DEEPEST or len(seen) > _MOST_LOOKED_AT:
        report(ANYTHING, True)
    elif kind == TUPLE:
        if what in _DEEP or what == "unpack":
            for value in tuple(thing):
                _use(value, what, seen, depth + 1)
    elif kind == CONTAINER:
        if what in ("len", "bool"):
            report(name_of(thing), False)
        else:
            whole(thing, False)
        if what in _DEEP or what == "unpack":
            for value in items_of(thing):
                _use(value, "eq" if what == "contains" else what, seen, depth + 1)
    elif kind == LAZY:
        _use_lazy(thing, seen, depth)
    elif kind == INSTANCE:
        verdict = dunders_of(cls, "iter" if what == "unpack" else what)
        if what == "match":
            verdict = max(verdict, 1)
        if verdict == 2:
            report(ANYTHING, True)
        elif verdict:
            for attribute, value in attributes_of(thing):
                report((*name_of(thing), attribute), False)
                _use(value, what, seen, depth + 1)
    else:
        report(ANYTHING, True)


def _use_lazy(thing: Any, seen: dict[Any, Any], depth: int) -> None:
    if type(thing).__name__ not in _VIEWS:
        report(name_of(thing), True)
    if type(thing) is GeneratorType:
        if not code_reports(thing.gi_code):
            report(ANYTHING, True)
        return
    sources = now.lazy.get(id(thing))
    if sources is None:
        report(ANYTHING, True)
        return
    for source in sources:
        _use(source, "iter", seen, depth + 1)


_VIEWS = frozenset(f"{kind}_{part}" for kind in ("dict", "odict") for part in ("keys", "values", "items"))


@only_looks
def goes_through(lazy: Any, *sources: Any) -> Any:
    """Note what an iterator or a view that was just made goes through, and give it back."""
    if now.names is not None and kind_of(type(lazy)) == LAZY:
        made(lazy)
        now.lazy[id(lazy)] = sources
    return lazy
