"""What builtins and the methods of builtin containers touch."""

from __future__ import annotations

import bisect
import copy
import functools
import heapq
import itertools
import math
import operator
import re
import struct
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from toolrt.probe import ANYTHING
from toolrt.sim.programs.tracking import _touch
from toolrt.sim.programs.tracking._items import item, storing
from toolrt.sim.programs.tracking._kinds import (
    ATOM,
    CONTAINER,
    INSTANCE,
    LAZY,
    NEUTRAL,
    TUPLE,
    function_reports,
    kind_of,
)
from toolrt.sim.programs.tracking._locks import LOCK_MODELS, lock_method
from toolrt.sim.programs.tracking._touch import (
    KEYED,
    born,
    goes_through,
    made,
    name_deeply,
    now,
    read_attribute,
    report,
    touch_key,
    use,
    whole,
    wild,
    write_attribute,
)
from toolrt.sim.programs.tracking._uses import advances

Model = Callable[..., Any]


def foreign(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    wild()
    result = function(*args, **kwargs)
    wild()
    return result


def reads_deeply(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    if function.__name__ in ("format", "format_map") and _FIELD_WITHIN.search(getattr(function, "__self__", "")):
        # What a field leads to is loaded by no code of the program's.
        wild()
    for value in (*args, *kwargs.values()):
        use(value, "iter")
        use(value, "str")
    return function(*args, **kwargs)


# A field of a text that is formatted, with an attribute or an item: "{0.name}", "{[key]}".
_FIELD_WITHIN = re.compile(r"\{[^{}:!]*[.\[]")


# ---------------------------------------------------------------------- methods of containers

# What reads, with what it does to what it is handed; all other methods write.
_READS_TEXT = (
    "get copy keys values items index count __len__ __contains__ __getitem__ __iter__ __eq__ __ne__ "
    "__reversed__ issubset issuperset isdisjoint union intersection difference symmetric_difference "
    "most_common elements total fromkeys decode hex find rfind startswith endswith __repr__ __str__ "
    "__and__ __or__ __sub__ __xor__ __lt__ __le__ __gt__ __ge__ __add__ __mul__"
)
_READS = frozenset(_READS_TEXT.split())
# What looks at what is within.
_LOOKS_WITHIN_TEXT = "index count remove __eq__ __contains__ __repr__ sort most_common __lt__ __ne__"
_LOOKS_WITHIN = frozenset(_LOOKS_WITHIN_TEXT.split())
# What only keeps what it is handed.
_KEEPS_TEXT = "append appendleft insert add setdefault get pop discard __setitem__ __delitem__"
_KEEPS = frozenset(_KEEPS_TEXT.split())


def container_method(thing: Any, name: str, /, *args: Any, **kwargs: Any) -> Any:
    cls = type(thing)
    real = getattr(thing, name)
    model = None
    if cls is list:
        model = _LIST.get(name)
    elif cls in KEYED and not (cls is Counter and name == "update"):
        model = _DICT.get(name)
    if model is not None:
        return model(thing, *args, **kwargs)
    writes = name not in _READS
    whole(thing, writes)
    if name in _LOOKS_WITHIN:
        use(thing, "order" if name == "sort" else "eq")
        for value in args:
            use(value, "eq")
    elif name not in _KEEPS:
        for value in (*args, *kwargs.values()):
            if not callable(value):
                use(value, "iter")
    elif name in ("add", "discard"):
        use(args[0] if args else None, "hash")
    for value in kwargs.values():
        _handed(value)
    if cls is defaultdict and name in ("__getitem__", "__missing__", "copy"):
        wild()
    try:
        result = real(*args, **kwargs)
    finally:
        if writes and cls in KEYED:
            # The keys that it has made.
            whole(thing, True)
    if kind_of(type(result)) == LAZY:
        return goes_through(result, thing)
    return born(result) if name not in ("get", "pop", "popleft", "popitem", "setdefault", "__getitem__") else result


def _handed(function: Any) -> None:
    """Report a function that a builtin will call."""
    if callable(function) and not _is_pure(function):
        wild()


def _is_pure(function: Any) -> bool:
    if function_reports(function) or function in _PURE or isinstance(function, operator.itemgetter):
        return True
    if isinstance(function, operator.attrgetter):
        return False
    return isinstance(function, type) and (kind_of(function) == ATOM or function in CLASSES)


def _dict_get(thing: Any, key: Any, *default: Any) -> Any:
    use(key, "hash")
    touch_key(thing, key, False)
    return thing.get(key, *default)


def _dict_contains(thing: Any, key: Any) -> Any:
    use(key, "hash")
    touch_key(thing, key, False)
    return key in thing


def _dict_setdefault(thing: Any, key: Any, *default: Any) -> Any:
    use(key, "hash")
    there = key in thing
    touch_key(thing, key, not there, None if there else True)
    return thing.setdefault(key, *default)


def _dict_pop(thing: Any, key: Any, *default: Any) -> Any:
    use(key, "hash")
    there = key in thing
    touch_key(thing, key, there, True if there else None)
    return thing.pop(key, *default)


def _dict_update(thing: Any, *others: Any, **more: Any) -> None:
    for other in others:
        use(other, "iter")
    if any(kind_of(type(other)) not in (CONTAINER, TUPLE) for other in others):
        whole(thing, True)
        wild()
        thing.update(*others, **more)
        return
    for key in dict(*others, **more):
        touch_key(thing, key, True, None if key in thing else True)
    thing.update(*others, **more)


def _dict_setitem(thing: Any, key: Any, value: Any) -> None:
    use(key, "hash")
    touch_key(thing, key, True, None if key in thing else True)
    thing[key] = value


def _list_setitem(thing: Any, key: Any, value: Any) -> None:
    storing(thing)[key] = value


def _list_len(thing: Any) -> int:
    use(thing, "len")
    return len(thing)


_LIST: dict[str, Model] = {"__getitem__": item, "__setitem__": _list_setitem, "__len__": _list_len}
_DICT: dict[str, Model] = {
    "get": _dict_get,
    "__contains__": _dict_contains,
    "setdefault": _dict_setdefault,
    "pop": _dict_pop,
    "update": _dict_update,
    "__setitem__": _dict_setitem,
}
_DICT["__getitem__"] = item


# ---------------------------------------------------------------------- builtin functions


def builtin(function: Any) -> Any:
    thing = function.__self__
    of_lock = lock_method(function)
    if of_lock is not None:
        return of_lock
    if thing is None or isinstance(thing, types.ModuleType):
        model = FUNCTIONS.get(function)
        if model is not None:
            return model
        return functools.partial(_pure if function.__module__ in _PURE_MODULES else foreign, function)
    kind = kind_of(type(thing))
    if kind == CONTAINER:
        return functools.partial(container_method, thing, function.__name__)
    if isinstance(thing, type):
        # A class method, such as dict.fromkeys.
        pure = kind_of(thing) in (ATOM, CONTAINER)
        return functools.partial(_pure if pure else foreign, function)
    if kind in (ATOM, TUPLE):
        return functools.partial(reads_deeply, function)
    if kind == LAZY:
        use(thing, "iter")
        return function
    return function if kind == NEUTRAL else functools.partial(foreign, function)


def _pure(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """A builtin that reads what it is handed."""
    for value in (*args, *kwargs.values()):
        kind = kind_of(type(value))
        if kind == ATOM:
            continue
        if callable(value):
            _handed(value)
        elif kind in (CONTAINER, TUPLE, LAZY):
            use(value, "iter")
            use(value, "eq")
        elif kind != NEUTRAL:
            wild()
    return born(function(*args, **kwargs))


def _with(function: Any, *whats: str) -> Model:
    """A builtin that uses what it is handed in these ways."""

    def model(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            for what in whats:
                use(value, what)
        for value in kwargs.values():
            if callable(value):
                _handed(value)
            else:
                use(value, "str")
        return born(function(*args, **kwargs))

    return model


def _elementwise(function: Any, what: str) -> Model:
    """A builtin that goes through its arguments and uses each of what is within."""

    def model(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            use(value, "iter")
            kind = kind_of(type(value))
            if kind in (CONTAINER, TUPLE):
                use(value, what)
                # What its items are used for.
                for inner in _touch.items_of(value):
                    use(inner, what)
            elif kind in (INSTANCE, LAZY):
                _use_all_of(value, what)
        _handed(kwargs.get("key"))
        return born(function(*args, **kwargs))

    return model


def _use_all_of(value: Any, what: str) -> None:
    """An iterator gives things that are not seen before: where a source holds what can change, it may be anything."""
    if kind_of(type(value)) == INSTANCE:
        use(value, what)
    for source in now.lazy.get(id(value), ()):
        if kind_of(type(source)) in (CONTAINER, TUPLE):
            for inner in _touch.items_of(source):
                use(inner, what)
        elif kind_of(type(source)) == LAZY:
            _use_all_of(source, what)


def _makes_iterator(function: Any) -> Model:
    def model(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if callable(value):
                _handed(value)
            elif kind_of(type(value)) == INSTANCE:
                use(value, "iter")
        sources = tuple(value for value in args if not callable(value))
        lazy = function(*args, **kwargs)
        if kind_of(type(lazy)) == LAZY and not any(lazy is value for value in args):
            return goes_through(lazy, *sources)
        return lazy

    return model


def _keeps_lists(function: Any) -> Model:
    """Heapq and bisect: they write, or read, the list they are handed first, and compare what is within."""
    writes = function.__module__ == "_heapq" or function.__name__.startswith("insort")

    def model(*args: Any, **kwargs: Any) -> Any:
        for place, value in enumerate(args):
            if kind_of(type(value)) == CONTAINER and place == 0:
                whole(value, writes)
            elif place == 0:
                wild()
            use(value, "order")
        for value in kwargs.values():
            _handed(value)
        return function(*args, **kwargs)

    return model


def _writes(function: Any, place: int) -> Model:
    """A builtin that changes the argument at `place`."""

    def model(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= place or kind_of(type(args[place])) != CONTAINER:
            wild()
        else:
            whole(args[place], True)
        try:
            return _pure(function, *args, **kwargs)
        finally:
            if len(args) > place and type(args[place]) in KEYED:
                # The keys that it has made.
                whole(args[place], True)

    return model


def _anext(iterator: Any, *default: Any) -> Any:
    return advances(iterator, anext(iterator, *default))


def _getattr(thing: Any, name: str, *default: Any) -> Any:
    read_attribute(thing, name)
    return getattr(thing, name, *default)


def _hasattr(thing: Any, name: str) -> bool:
    read_attribute(thing, name)
    return hasattr(thing, name)


def _setattr(thing: Any, name: str, value: Any) -> None:
    write_attribute(thing, name)
    setattr(thing, name, value)


def _delattr(thing: Any, name: str) -> None:
    write_attribute(thing, name)
    delattr(thing, name)


def _next(iterator: Any, *default: Any) -> Any:
    use(iterator, "iter")
    return next(iterator, *default)


def _nothing(function: Any) -> Model:
    return function  # type: ignore[no-any-return]


def _deep_copy(function: Any) -> Model:
    def model(*args: Any, **kwargs: Any) -> Any:
        for value in args:
            if not _is_plain(value):
                wild()
            use(value, "str")
        return name_deeply(function(*args, **kwargs))

    return model


def _is_plain(value: Any, depth: int = 0) -> bool:
    kind = kind_of(type(value))
    if kind == ATOM or depth > 20:
        return kind == ATOM
    if kind in (CONTAINER, TUPLE):
        return all(_is_plain(inner, depth + 1) for inner in _touch.items_of(value))
    return False


def _reduce(function: Any, items: Any, *first: Any) -> Any:
    _handed(function)
    use(items, "iter")
    use(items, "eq")
    return functools.reduce(function, items, *first)


def _defaultdict(*args: Any, **kwargs: Any) -> Any:
    for value in args[1:]:
        use(value, "iter")
    return made(defaultdict(*args, **kwargs))


def _type(*args: Any, **kwargs: Any) -> Any:
    if len(args) != 1:
        wild()
    return type(*args, **kwargs)


CLASSES: dict[Any, Model] = {
    **{cls: _with(cls, "iter") for cls in (list, tuple)},
    **{cls: _with(cls, "iter", "hash") for cls in (set, frozenset)},
    **{cls: _with(cls, "iter") for cls in (dict, deque, OrderedDict, bytearray, bytes)},
    Counter: _with(Counter, "iter"),
    defaultdict: _defaultdict,
    str: _with(str, "str"),
    **{cls: _with(cls, "arith") for cls in (int, float, complex)},
    bool: _with(bool, "bool"),
    range: _with(range, "arith"),
    slice: _nothing(slice),
    type: _type,
    object: lambda: born(object()),
    property: _nothing(property),
    staticmethod: _nothing(staticmethod),
    classmethod: _nothing(classmethod),
    functools.partial: _nothing(functools.partial),
    **{cls: _makes_iterator(cls) for cls in (enumerate, zip, map, filter, reversed)},
    **{cls: _makes_iterator(cls) for cls in vars(itertools).values() if isinstance(cls, type)},
    operator.itemgetter: _nothing(operator.itemgetter),
    operator.attrgetter: _nothing(operator.attrgetter),
}


def _print(*values: Any, **options: Any) -> None:
    for value in values:
        use(value, "str")
    file = options.get("file") or sys.stdout
    if file is not sys.__stdout__:
        report(("stdout",) if file is sys.stdout else ANYTHING, True)
    print(*values, **options)


_PURE_MODULES = (
    "math",
    "cmath",
    "_operator",
    "builtins",
    "itertools",
    "time",
    "_struct",
    "binascii",
    "zlib",
)

_IN_PLACE_TEXT = (
    "setitem delitem iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor"
)
_IN_PLACE = _IN_PLACE_TEXT.split()

FUNCTIONS: dict[Any, Model] = {
    **LOCK_MODELS,
    len: _with(len, "len"),
    repr: _with(repr, "str"),
    print: _print,
    format: _with(format, "str"),
    ascii: _with(ascii, "str"),
    hash: _with(hash, "hash"),
    abs: _with(abs, "arith"),
    round: _with(round, "arith"),
    divmod: _with(divmod, "arith"),
    pow: _with(pow, "arith"),
    isinstance: _nothing(isinstance),
    issubclass: _nothing(issubclass),
    id: _nothing(id),
    callable: _nothing(callable),
    sum: _elementwise(sum, "arith"),
    min: _elementwise(min, "order"),
    max: _elementwise(max, "order"),
    sorted: _elementwise(sorted, "order"),
    any: _elementwise(any, "bool"),
    all: _elementwise(all, "bool"),
    iter: _makes_iterator(iter),
    next: _next,
    getattr: _getattr,
    hasattr: _hasattr,
    setattr: _setattr,
    delattr: _delattr,
    copy.copy: _deep_copy(copy.copy),
    copy.deepcopy: _deep_copy(copy.deepcopy),
    **{
        function: _keeps_lists(function)
        for function in (
            heapq.heappush,
            heapq.heappop,
            heapq.heapify,
            heapq.heapreplace,
            heapq.heappushpop,
            bisect.bisect_left,
            bisect.bisect_right,
            bisect.insort_left,
            bisect.insort_right,
        )
    },
    heapq.nsmallest: _elementwise(heapq.nsmallest, "order"),
    heapq.nlargest: _elementwise(heapq.nlargest, "order"),
    functools.reduce: _reduce,
    **{getattr(operator, name): _writes(getattr(operator, name), 0) for name in _IN_PLACE},
    struct.pack_into: _writes(struct.pack_into, 1),
    anext: _anext,
}
_PURE = frozenset((len, repr, abs, hash, str, int, min, max, sum, id, math.floor, math.ceil))
