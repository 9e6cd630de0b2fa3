"""What rewritten code calls to report loads and stores of items."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from toolrt.probe import ANYTHING
from toolrt.sim._trio_internals._lent import lent
from toolrt.sim.engine._looks import only_looks
from toolrt.sim.programs.tracking._kinds import (
    ATOM,
    CONTAINER,
    INSTANCE,
    LAZY,
    OPAQUE,
    function_reports,
    kind_of,
)
from toolrt.sim.programs.tracking._touch import KEYED, born, now, report, touch_index, touch_key, use, whole


@only_looks
def item(thing: Any, key: Any) -> Any:
    """Report a load of an item, and do it."""
    if now.names is not None:
        if lent.thread:
            now.turn()
        read_item(thing, key)
    return thing[key]


@only_looks
def load_item(thing: Any, key: Any) -> Any:
    """Report a load of an item, and give back the container."""
    if now.names is not None:
        if lent.thread:
            now.turn()
        read_item(thing, key)
    return thing


@only_looks
def read_item(thing: Any, key: Any) -> None:
    cls = type(thing)
    kind = kind_of(cls)
    if kind == CONTAINER:
        if cls is defaultdict and not dict.__contains__(thing, key):
            touch_key(thing, key, True, True)
            factory = thing.default_factory
            if not (isinstance(factory, type) and kind_of(factory) in (ATOM, CONTAINER)):
                if not function_reports(factory):
                    report(ANYTHING, True)
            elif factory is not None:
                born(thing[key])
        elif cls in KEYED:
            touch_key(thing, key, False)
        elif cls is list and isinstance(key, int):
            touch_index(thing, key, False)
        else:
            whole(thing, False)
        if kind_of(type(key)) == INSTANCE:
            use(key, "hash")
    elif kind == INSTANCE:
        use(thing, "item")
    elif kind in (OPAQUE, LAZY):
        report(ANYTHING, True)


def write_item(thing: Any, key: Any, delete: bool) -> None:
    cls = type(thing)
    kind = kind_of(cls)
    if kind == CONTAINER:
        if cls in KEYED:
            there = dict.__contains__(thing, key)
            touch_key(thing, key, True, True if delete or not there else None)
        elif cls is list and isinstance(key, int) and not delete:
            touch_index(thing, key, True)
        else:
            whole(thing, True)
        if kind_of(type(key)) == INSTANCE:
            use(key, "hash")
    elif kind == INSTANCE:
        use(thing, "setitem")
    else:
        report(ANYTHING, True)


class _Storing:
    """Stands for a container in a store or a deletion of an item."""

    __slots__ = ("_thing",)

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __setitem__(self, key: Any, value: Any) -> None:
        if lent.thread:
            now.turn()
        write_item(self._thing, key, False)
        if type(key) is slice:
            use(value, "iter")
        self._thing[key] = value

    def __delitem__(self, key: Any) -> None:
        if lent.thread:
            now.turn()
        write_item(self._thing, key, True)
        del self._thing[key]


def storing(thing: Any) -> Any:
    """Give what stands for `thing` where an item is stored."""
    return thing if now.names is None else _Storing(thing)
