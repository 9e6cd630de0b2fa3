"""Makes the accesses to a plain object visible to the simulator.

Rules.  Each attribute of a watched object is a resource of its own, and so is each key of a watched dict, beside the
dict's set of keys: two tasks that write different keys that are there do not conflict, two that add keys do, because
the order of the keys is then decided.  Lists, sets and deques are one resource each.  Whatever looks at all of a
container reads all of it.

What attributes and items hold when `watch` is called is watched, too, as `_watch_below` says, unless ``deep=False``.
A step that reaches something else below a watched value that can change (what was stored later, ``__dict__``) may have
done anything, and so may every step after it in that execution: the program may have kept what it reached.  What
reports for itself (a `Cell`, what is watched, Trio's primitives) is no reason.  A container that is another one after a
step in which nothing was reported written to it (``heapq`` and other C code work without its methods) was changed by
that step, which may then have done anything, too.

Limits.  An object is watched in place: its class is replaced by a subclass that looks and compares the same.  A
dict, list, set or deque is copied, and so are those among an object's attributes; code that holds the old one is not
seen.  C code that reads without methods and changes nothing (``heapq.heappushpop`` of the least, ``set.union`` of a
watched set) is not seen.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

from toolrt import probe
from toolrt._plain import stable_text
from toolrt.errors import DefinitionRefused
from toolrt.probe import Resource
from toolrt.sim.engine._host import current_scheduler
from toolrt.sim.engine._watched_contents import WATCHED_OUTSIDE, WatchedContents
from toolrt.sim.programs._cell import OUTSIDE
from toolrt.sim.programs._watch_below import (
    DEPTH_MOST,
    REPORTING,
    VALUES,
    Below,
    attributes_of,
    copied,
    is_frozen,
    name_of_attribute,
)

T = TypeVar("T")


_CODE = (type, FunctionType, MethodType, BuiltinFunctionType, ModuleType)
_ATOMS = (int, float, complex, str, bytes, tuple, frozenset, bool, range, type(None))

# What a class has that is no data.
_NO_DATA = (FunctionType, BuiltinFunctionType, property, classmethod, staticmethod)

_outside = count()

# What watched things are called, by id; an entry goes with its object.  The last part gives the record of the execution
# to which the name belongs; None: the name stays.
_names: dict[int, tuple[Resource, Any, Any]] = {}
_watching: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()
_subclasses: weakref.WeakSet[type] = weakref.WeakSet()


def watch(thing: T, name: str | None = None, *, deep: bool = True) -> T:
    """Give `thing`, with every access to it seen by the simulator, and to what is reached from it.

    Args:
        thing: an object with attributes, which is watched in place, or a dict, list, set or deque, which is copied.
        name: what its accesses are called; without one it is called after the task that watches it first, so call
            it inside the program.
        deep: whether what its attributes and items hold is watched, too, at any depth: objects of classes of your own
            in place, and dicts, lists, sets and deques that nothing else holds.  They are called by their paths, as
            ``account.items[0].n``.

    Raises:
        DefinitionRefused: it cannot change (a number, a tuple), is code, or its class admits no subclass; or the
            name is not a string.

    Checkpoint: never.

    Example:
        >>> from toolrt import sim
        >>> stock = sim.watch({"apples": 2})
        >>> stock["apples"] -= 1
        >>> stock
        {'apples': 1}
    """
    if name is not None and not isinstance(name, str):
        raise DefinitionRefused("watch(name)", "a string or None", name)
    known = _name_of(thing)
    if known is not None:
        if deep:
            _below().go_into(thing, known)
        return thing
    if isinstance(thing, (*_CODE, *_ATOMS)):
        raise DefinitionRefused("watch(thing)", "an object that can change, or a dict, list, set or deque", thing)
    return _watched(thing, _new_name(name), _below() if deep else None)  # type: ignore[no-any-return]


def _new_name(name: str | None) -> Resource:
    if name is not None:
        return ("watched", name)
    scheduler = current_scheduler()
    made_by = scheduler.roster.name_thing() if scheduler is not None else None
    # Like a cell's: nothing made outside an execution has a name that means anything in another process.
    return ("watched", *made_by) if made_by else ("cell", OUTSIDE, "watched", next(_outside))


def _below() -> Below:
    scheduler = current_scheduler()
    # What is below may be there before the next execution, which then must not see it before it is watched.
    during = None if scheduler is None else weakref.ref(scheduler.record)
    return Below(_COPIES, lambda thing, name: _is_watched(thing, name, during), _name_of)


def _is_watched(thing: Any, name: Resource, during: Any) -> bool:
    """Watch an object in place, or a copy, and say whether that is possible."""
    if type(thing) not in _WATCHED:
        try:
            _change_class(thing)
        except TypeError:
            return False
    _remember(thing, name, during)
    return True


def _change_class(thing: Any) -> None:
    cls = type(thing)
    if cls not in _subclasses:
        thing.__class__ = _subclass(cls)


def _watched(thing: Any, name: Resource, below: Below | None = None) -> Any:
    kind = _COPIES.get(type(thing))
    if kind is not None:
        copy = copied(kind, thing)
        if below is not None:
            below.go_into(copy, name, spare=1)
        _remember(copy, name)
        return copy
    try:
        _change_class(thing)
    except TypeError as error:
        raise DefinitionRefused("watch(thing)", f"an object whose class admits a subclass ({error})", thing) from None
    _remember(thing, name)
    for attribute, value in attributes_of(thing):
        if type(value) in _COPIES:
            copy = copied(_COPIES[type(value)], value)
            object.__setattr__(thing, attribute, copy)
            if below is not None:
                below.go_into(copy, name, f".{attribute}", 1, spare=1)
            _remember(copy, (*name, attribute))
    if below is not None:
        below.go_into(thing, name)
    return thing


def _remember(thing: Any, name: Resource, during: Any = None) -> None:
    if type(thing) in _WATCHED:
        contents = WatchedContents(thing, name)
        scheduler = current_scheduler()
        if scheduler is None:
            WATCHED_OUTSIDE.append(contents)
        elif probe.sink is not None:
            scheduler.record.watched.append(contents)
    key = id(thing)
    try:
        kept: Any = weakref.ref(thing, lambda _: _names.pop(key, None))
    except TypeError:
        # It stays for good, or its id could become another's.
        kept = thing
    _names[key] = (name, kept, during)


def _name_of(thing: Any) -> Resource | None:
    entry = _names.get(id(thing))
    if entry is None or entry[2] is None:
        return None if entry is None else entry[0]
    record = entry[2]()
    return None if record is None or record.over else entry[0]


# ---------------------------------------------------------------------- what is below


def _reached(value: Any) -> None:
    """Note that the running step has `value` in hand: something below a watched value."""
    sink = probe.sink
    if sink is not None and _can_change(value):
        sink.access(probe.ANYTHING, True)
        scheduler = current_scheduler()
        if scheduler is not None:
            scheduler.record.reached_below()


def _all_reached(values: Iterable[Any]) -> None:
    if probe.sink is not None:
        for value in values:
            if _can_change(value):
                _reached(value)
                return


def _can_change(value: Any, depth: int = 0) -> bool:
    """Say whether what can change and does not report is reached through `value`."""
    if isinstance(value, VALUES):
        return False
    if isinstance(value, (tuple, frozenset)):
        # One that holds itself, or is too deep to look into, may hold anything.
        return depth > DEPTH_MOST or any(_can_change(item, depth + 1) for item in value)
    if isinstance(value, (MethodType, BuiltinFunctionType)):
        return _can_change(value.__self__, depth + 1)
    if isinstance(value, REPORTING) or _name_of(value) is not None:
        return False
    if depth <= DEPTH_MOST and is_frozen(type(value)):
        return any(_can_change(item, depth + 1) for _, item in attributes_of(value))
    return True


# ---------------------------------------------------------------------- objects


def _subclass(cls: type) -> type:
    found = _watching.get(cls)
    if found is None:
        found = type(cls)(
            cls.__name__,
            (cls,),
            {
                "__slots__": (),
                "__module__": cls.__module__,
                "__qualname__": cls.__qualname__,
                "__doc__": cls.__doc__,
                "__getattribute__": _getting(cls),
                "__setattr__": _setting(cls),
                "__delattr__": _deleting(cls),
                # A subclass that has __eq__ and no __hash__ would lose it.
                "__hash__": cls.__hash__,
            },
        )
        _watching[cls] = found
        _subclasses.add(found)
    return found


# Through these everything an object has is reached.
_ALL_OF_IT = ("__dict__", "__getstate__", "__reduce__", "__reduce_ex__")


def _is_data(cls: type, attribute: str) -> bool:
    if attribute.startswith("__"):
        return False
    for each in cls.__mro__:
        if attribute in each.__dict__:
            return not isinstance(each.__dict__[attribute], _NO_DATA)
    return True


def _attribute(thing: Any, attribute: str, write: bool) -> None:
    sink = probe.sink
    if sink is not None:
        name = _name_of(thing)
        if name is not None:
            sink.access(name_of_attribute(name, attribute), write)


def _getting(cls: Any) -> Callable[[Any, str], Any]:
    def get(self: Any, attribute: str) -> Any:
        if probe.sink is None:
            return cls.__getattribute__(self, attribute)
        is_data = _is_data(cls, attribute)
        if is_data:
            _attribute(self, attribute, False)
        value = cls.__getattribute__(self, attribute)
        if (is_data or attribute in _ALL_OF_IT) and _name_of(self) is not None:
            _reached(value)
        return value

    return get


def _setting(cls: Any) -> Callable[[Any, str, Any], None]:
    def put(self: Any, attribute: str, value: Any) -> None:
        data = _is_data(cls, attribute)
        if data:
            _attribute(self, attribute, True)
            if type(value) in _COPIES:
                name = _name_of(self)
                if name is not None:
                    value = _watched(value, name_of_attribute(name, attribute))
        cls.__setattr__(self, attribute, value)

    return put


def _deleting(cls: Any) -> Callable[[Any, str], None]:
    def delete(self: Any, attribute: str) -> None:
        if _is_data(cls, attribute):
            _attribute(self, attribute, True)
        cls.__delattr__(self, attribute)

    return delete


# ---------------------------------------------------------------------- containers


def _whole(thing: Any, write: bool) -> None:
    sink = probe.sink
    if sink is not None:
        name = _name_of(thing)
        if name is not None:
            sink.access(name, write)


# What puts something in, or moves it, without looking at anything else.
_BLIND = (
    "append appendleft insert extend extendleft clear rotate reverse add update __len__ __setitem__ __delitem__ "
    "__iadd__ __imul__ __ior__"
)
# What gives one of the things within.
_GIVES_ONE = "__getitem__ pop popleft"


def _reporting(base: Any, method: str, write: bool) -> Any:
    real = getattr(base, method)
    one, blind = method in _GIVES_ONE.split(), method in _BLIND.split()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _whole(self, write)
        if not (one or blind) and _name_of(self) is not None:
            _all_reached(base.__iter__(self))
        value = real(self, *args, **kwargs)
        if one and _name_of(self) is not None:
            # A slice is a new list of them.
            _all_reached(value if type(value) is list else (value,))
        return value

    call.__name__ = method
    return call


def _iterating(base: Any, method: str) -> Any:
    real = getattr(base, method)

    def iterate(self: Any) -> Iterator[Any]:
        # It may go on in a later step.
        _whole(self, False)
        for item in real(self):
            if _name_of(self) is not None:
                _reached(item)
            yield item
            _whole(self, False)

    iterate.__name__ = method
    return iterate


def _container(base: Any, reads: str, writes: str) -> Any:
    namespace: dict[str, Any] = {"__slots__": ("__weakref__",) if base in (list, dict) else (), "__hash__": None}
    for methods, write in ((reads, False), (writes, True)):
        for method in methods.split():
            if hasattr(base, method):
                namespace[method] = _reporting(base, method, write)
    for method in ("__iter__", "__reversed__"):
        if hasattr(base, method):
            namespace[method] = _iterating(base, method)
    namespace["__reduce_ex__"] = lambda self, protocol: (base, (base(iter(self)),))
    return type(base.__name__, (base,), namespace)


_COMPARES = "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __len__ __contains__ __repr__ copy "

_List: Any = _container(
    list,
    _COMPARES + "__getitem__ __add__ __mul__ __rmul__ index count",
    "__setitem__ __delitem__ __iadd__ __imul__ append extend insert pop remove clear sort reverse",
)
_Set: Any = _container(
    set,
    _COMPARES + "__and__ __or__ __sub__ __xor__ __rand__ __ror__ __rsub__ __rxor__ isdisjoint issubset issuperset "
    "union intersection difference symmetric_difference",
    "__iand__ __ior__ __isub__ __ixor__ add discard remove pop clear update intersection_update difference_update "
    "symmetric_difference_update",
)
_Deque: Any = _container(
    deque,
    _COMPARES + "__getitem__ __add__ __mul__ __rmul__ index count",
    "__setitem__ __delitem__ __iadd__ __imul__ append appendleft extend extendleft insert pop popleft remove clear "
    "rotate reverse",
)


class _Dict(dict[Any, Any]):
    """A dict whose keys are resources."""

    __slots__ = ("__weakref__",)
    __hash__ = None

    def _touch(self, key: Any, write: bool) -> None:
        sink = probe.sink
        name = _name_of(self)
        if sink is not None and name is not None:
            sink.access((*name, "key", _plain_key(key)), write)
            if write:
                # Only adding or removing a key decides which keys there are.
                sink.access(name, not dict.__contains__(self, key))

    def _given(self, value: Any) -> Any:
        if _name_of(self) is not None:
            _reached(value)
        return value

    def _remove(self, key: Any) -> None:
        sink = probe.sink
        name = _name_of(self)
        if sink is not None and name is not None:
            there = dict.__contains__(self, key)
            sink.access((*name, "key", _plain_key(key)), there)
            sink.access(name, there)

    def _look(self) -> None:
        sink = probe.sink
        name = _name_of(self)
        if sink is not None and name is not None:
            sink.access(name, False)
            for key, value in dict.items(self):
                sink.access((*name, "key", _plain_key(key)), False)
                _all_reached((key, value))

    def __getitem__(self, key: Any) -> Any:
        self._touch(key, False)
        return self._given(dict.__getitem__(self, key))

    def get(self, key: Any, default: Any = None) -> Any:
        self._touch(key, False)
        return self._given(dict.get(self, key, default))

    def __contains__(self, key: object) -> bool:
        self._touch(key, False)
        return dict.__contains__(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._touch(key, True)
        dict.__setitem__(self, key, value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        self._touch(key, not dict.__contains__(self, key))
        return self._given(dict.setdefault(self, key, default))

    def __delitem__(self, key: Any) -> None:
        self._remove(key)
        dict.__delitem__(self, key)

    def pop(self, key: Any, *default: Any) -> Any:
        self._remove(key)
        return self._given(dict.pop(self, key, *default))

    def popitem(self) -> Any:
        self._look()
        for key in list(dict.__reversed__(self))[:1]:
            self._remove(key)
        return dict.popitem(self)

    def clear(self) -> None:
        for key in list(dict.__iter__(self)):
            self._remove(key)
        self._look()
        dict.clear(self)

    def update(self, *others: Any, **more: Any) -> None:
        for key, value in dict(*others, **more).items():
            self[key] = value

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (dict, (dict(self.items()),))


def _looking(method: str) -> Any:
    real = getattr(dict, method)

    def call(self: Any, *args: Any) -> Any:
        self._look()
        return real(self, *args)

    call.__name__ = method
    return call


_LOOKS = ("__iter__", "__reversed__", "__len__", "__eq__", "__ne__", "__or__", "__ror__", "__repr__")
for _method in (*_LOOKS, "keys", "values", "items", "copy"):
    setattr(_Dict, _method, _looking(_method))

_COPIES: dict[type, Any] = {dict: _Dict, list: _List, set: _Set, deque: _Deque}
_WATCHED = frozenset(_COPIES.values())


def _plain_key(key: Any) -> Any:
    return key if isinstance(key, str | int | None) else stable_text(key)
