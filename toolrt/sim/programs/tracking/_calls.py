"""What calls touch: of functions, classes, methods and builtins.

Rules.  A call of code that was rewritten is left alone; it reports.  Trio's and toolrt's report too, and functions that
are handed to them are looked at.  Builtins and methods of builtin containers are modelled.  All other calls may do
anything.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
import typing
from contextlib import AsyncExitStack, ExitStack
from pathlib import PurePath
from types import AsyncGeneratorType, BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from toolrt.sim._trio_internals._lent import lent
from toolrt.sim.programs.tracking import _touch
from toolrt.sim.programs.tracking._builtins import CLASSES, FUNCTIONS, builtin, container_method, foreign, reads_deeply
from toolrt.sim.programs.tracking._kinds import (
    ATOM,
    CONTAINER,
    INSTANCE,
    LAZY,
    NEUTRAL,
    OPAQUE,
    TUPLE,
    code_reports,
    function_reports,
    is_generated,
    is_tracked,
    kind_of,
)
from toolrt.sim.programs.tracking._touch import (
    born,
    made,
    name_deeply,
    name_inside,
    name_of,
    now,
    read_attribute,
    report,
    use,
    wild,
)
from toolrt.sim.programs.tracking._uses import advances


def call(function: Any) -> Any:
    """Give what to call in place of `function`: itself where its code reports."""
    if now.names is None:
        return function
    found = _instead(function)
    return functools.partial(_in_turn, found) if lent.thread and found is not function else found


def _in_turn(found: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call what stands for a function of others, in a step of a worker thread that begins with it."""
    now.turn()
    return found(*args, **kwargs)


def _instead(function: Any) -> Any:
    kind = type(function)
    if kind is FunctionType:
        code = function.__code__
        if is_tracked(code):
            return functools.partial(_generator, function) if code.co_flags & _MAKES_GENERATOR else function
        if function in FUNCTIONS:
            return FUNCTIONS[function]
        return functools.partial(_neutral if code_reports(code) else foreign, function)
    if kind is MethodType:
        inner = function.__func__
        if isinstance(inner, FunctionType):
            if is_tracked(inner.__code__):
                return (
                    functools.partial(_generator, function) if inner.__code__.co_flags & _MAKES_GENERATOR else function
                )
            if kind_of(type(function.__self__)) == CONTAINER:
                return functools.partial(container_method, function.__self__, function.__name__)
            if code_reports(inner.__code__) and inner not in _CLOSES_STACKS:
                return functools.partial(_neutral, function)
        return functools.partial(foreign, function)
    if kind is BuiltinFunctionType:
        return builtin(function)
    if isinstance(function, type):
        return _class(function)
    if kind is functools.partial:
        return functools.partial(_partial, function)
    if kind in (types.MethodDescriptorType, types.WrapperDescriptorType):
        return functools.partial(_descriptor, function)
    if kind is types.MethodWrapperType:
        return functools.partial(_slot, function)
    if kind_of(kind) == NEUTRAL:
        return functools.partial(_neutral, function)
    if function_reports(_in_class_call(kind)):
        return function
    return functools.partial(foreign, function)


def method(thing: Any, name: str) -> Any:
    """Give what to call in place of a method of `thing`."""
    if now.names is None:
        return getattr(thing, name)
    cls = type(thing)
    kind = kind_of(cls)
    if kind == CONTAINER:
        found = functools.partial(container_method, thing, name)
        return functools.partial(_in_turn, found) if lent.thread else found
    if kind == ATOM:
        return functools.partial(reads_deeply if _looks_only(cls, name) else foreign, getattr(thing, name))
    if kind == TUPLE:
        use(thing, "eq")
        return getattr(thing, name)
    if kind == LAZY:
        use(thing, "iter")
        return getattr(thing, name)
    if cls is AsyncGeneratorType:
        return functools.partial(_advanced, thing, name)
    read_attribute(thing, name)
    return call(getattr(thing, name))


def _looks_only(cls: type, name: str) -> bool:
    """Say whether a method of what cannot change touches nothing else: one of `pathlib.Path` works on files."""
    found = _touch.in_class(cls, name)
    if not isinstance(found, FunctionType) or code_reports(found.__code__):
        return True
    return found is _touch.in_class(PurePath, name) or found.__module__ in _OF_ATOMS


# ---------------------------------------------------------------------- kinds of calls

#: Modules whose classes cannot change, with methods in Python that touch nothing.
_OF_ATOMS = ("datetime", "decimal", "enum", "fractions", "numbers", "uuid")

#: Modules whose functions look at what they are given; those of Trio and toolrt hand it on.
_LOOK_INSIDE = ("attr", "attrs", "contextlib", "functools", "typing")

# They call what the stack was given earlier, by code of any kind.
_CLOSES_STACKS = (ExitStack.close, ExitStack.__exit__, AsyncExitStack.aclose, AsyncExitStack.__aexit__)

_MAKES_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def _generator(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    return made(function(*args, **kwargs))


def _advanced(generator: Any, name: str, /, *args: Any) -> Any:
    result = getattr(generator, name)(*args)
    return advances(generator, result) if name in ("__anext__", "asend", "athrow", "aclose") else result


def _neutral(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    if (getattr(function, "__module__", None) or "").partition(".")[0] in _LOOK_INSIDE and function is not typing.cast:
        for value in (*args, *kwargs.values()):
            if kind_of(type(value)) in (CONTAINER, INSTANCE, LAZY, OPAQUE):
                wild()
    for value in (*args, *kwargs.values()):
        if callable(value) and not _may_be_handed(value):
            wild()
    return function(*args, **kwargs)


def _may_be_handed(function: Any) -> bool:
    if function_reports(function):
        return True
    kind = type(function)
    if kind is functools.partial:
        return _may_be_handed(function.func)
    if isinstance(function, type):
        return _class(function) is function
    return kind_of(kind) in (INSTANCE, NEUTRAL) and function_reports(_in_class_call(kind))


def _in_class_call(kind: Any) -> Any:
    """Give what a call of an instance runs; None where its class has no such method."""
    return _touch.in_class(kind, "__call__")


def _partial(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    return call(function.func)(*function.args, *args, **{**function.keywords, **kwargs})


def _descriptor(function: Any, thing: Any, /, *args: Any, **kwargs: Any) -> Any:
    of_object = function.__objclass__ is object
    if of_object and _is_of_attribute(function, thing, args):
        return function(thing, *args)
    if type(thing) is function.__objclass__:
        return method(thing, function.__name__)(*args, **kwargs)
    if of_object and function.__name__ == "__init__":
        return function(thing, *args, **kwargs)
    return foreign(function, thing, *args, **kwargs)


def _slot(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """A slot's wrapper, such as ``super().__init__``."""
    thing, name = function.__self__, function.__name__
    if _is_of_attribute(function, thing, args):
        pass
    elif kind_of(type(thing)) == CONTAINER:
        return container_method(thing, name, *args, **kwargs)
    elif name != "__init__" or not (
        kind_of(type(thing)) == INSTANCE and function.__objclass__ is object
        if hasattr(function, "__objclass__")
        else isinstance(thing, BaseException) or kind_of(type(thing)) == INSTANCE
    ):
        wild()
    return function(*args, **kwargs)


def _is_of_attribute(function: Any, thing: Any, args: tuple[Any, ...]) -> bool:
    """Report what `object`'s method for an attribute does, and say whether `function` is one."""
    if function.__name__ in ("__setattr__", "__delattr__"):
        _set_raw(thing, args[0])
    elif function.__name__ == "__getattribute__":
        read_attribute(thing, args[0])
    else:
        return False
    return True


def _set_raw(thing: Any, attribute: str) -> None:
    if kind_of(type(thing)) != INSTANCE:
        wild()
    else:
        found = _touch.in_class(type(thing), attribute)
        if found is not _touch.MISSING and hasattr(type(found), "__set__") and type(found) is not _touch.MEMBER:
            wild()
        report((*name_of(thing), attribute), True)


# ---------------------------------------------------------------------- classes


def _class(cls: Any) -> Any:
    model = CLASSES.get(cls)
    if model is not None:
        return model
    kind = kind_of(cls)
    if type(cls).__call__ is not type.__call__ and not isinstance(cls, _ENUMS):
        return functools.partial(_foreign_class, cls)
    if kind == NEUTRAL:
        return functools.partial(_neutral, cls)
    if kind in (ATOM, TUPLE):
        return functools.partial(reads_deeply, cls)
    init, new = cls.__init__, cls.__new__
    if kind != INSTANCE or not (new is object.__new__ or function_reports(new) or issubclass(cls, BaseException)):
        return functools.partial(_foreign_class, cls)
    if isinstance(init, FunctionType) and is_tracked(init.__code__):
        return cls
    if is_generated(init):
        return functools.partial(_generated_class, cls)
    of_error = issubclass(cls, BaseException) and not isinstance(init, FunctionType)
    if init is object.__init__ or of_error or cls is types.SimpleNamespace:
        return functools.partial(_plain_class, cls)
    return functools.partial(_foreign_class, cls)


_ENUMS = (type(__import__("enum").Enum),)


def _plain_class(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
    return born(cls(*args, **kwargs))


def _foreign_class(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
    wild()
    thing = name_deeply(cls(*args, **kwargs))
    wild()
    return thing


def _generated_class(cls: Any, /, *args: Any, **kwargs: Any) -> Any:
    if not _is_harmless(cls):
        return _foreign_class(cls, *args, **kwargs)
    for value in (*args, *kwargs.values()):
        if kind_of(type(value)) in (CONTAINER, INSTANCE):
            name_of(value)
    thing = born(cls(*args, **kwargs))
    name_inside(thing)
    return thing


@functools.lru_cache(maxsize=1000)
def _is_harmless(cls: Any) -> bool:
    """Say whether the generated ``__init__`` runs no code that does not report."""
    for field in getattr(cls, "__attrs_attrs__", ()):
        factory = getattr(field.default, "factory", None)
        if field.converter is not None or field.validator is not None or not _makes(factory):
            return False
    for field in getattr(cls, "__dataclass_fields__", {}).values():
        factory = None if field.default_factory is dataclasses.MISSING else field.default_factory
        if not _makes(factory) or type(field.default) is property:
            return False
    after = getattr(cls, "__post_init__", None) or getattr(cls, "__attrs_post_init__", None)
    is_plain = (after is None or function_reports(after)) and cls.__setattr__ is object.__setattr__
    return is_plain or is_generated(cls.__setattr__)


def _makes(factory: Any) -> bool:
    return (
        factory is None
        or function_reports(factory)
        or (isinstance(factory, type) and (factory in CLASSES or _class(factory) is factory))
    )
