"""Modifiers as values: what a call changes in the state, in a form that a file can keep.

A modifier is any function from `State` to `State`, and most tools write a lambda.  A function cannot be written to a
journal, so a call whose runtime has one returns changes instead.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.model._state import State

#: What `Change` can do to the value under a key, or to the whole state.
KINDS = ("set", "append", "add", "call")


@attrs.frozen
class Change:
    """A modifier that is a value: a journal keeps it, and a later process applies it.

    Make one with `set`, `append`, `add` or `call`.  It is used like any other modifier:
    ``ToolOutput("ok", modifiers=[Change.add("total", 3)])``.

    Raises:
        DefinitionRefused: `kind` is none of these, or `name` is no text.
    """

    #: ``"set"``, ``"append"``, ``"add"`` or ``"call"``.
    kind: str = attrs.field()
    #: The key; of ``"call"`` the function, as ``"module:name"``.
    name: str = attrs.field()
    #: The value; of ``"call"`` what the function is given after the state.
    values: tuple[Any, ...] = ()

    @kind.validator
    def _check_kind(self, _: object, kind: object) -> None:
        if kind not in KINDS:
            raise DefinitionRefused("Change", f"one of {', '.join(KINDS)}", kind)

    @name.validator
    def _check_name(self, _: object, name: object) -> None:
        if not isinstance(name, str):
            raise DefinitionRefused(f"Change.{self.kind}", "a key of the state, which is a string", name)

    @classmethod
    def set(cls, key: str, value: Any) -> Change:
        """Give the change that puts `value` under `key`.

        Raises:
            DefinitionRefused: `key` is no string.
        """
        return cls("set", key, (value,))

    @classmethod
    def append(cls, key: str, value: Any) -> Change:
        """Give the change that puts `value` behind those of the tuple or list under `key`.

        A missing key counts as the empty tuple.

        Raises:
            DefinitionRefused: `key` is no string.
        """
        return cls("append", key, (value,))

    @classmethod
    def add(cls, key: str, amount: Any) -> Change:
        """Give the change that adds `amount` to the number under `key`; a missing key counts as 0.

        Raises:
            DefinitionRefused: `key` is no string.
        """
        return cls("add", key, (amount,))

    @classmethod
    def call(cls, function: Callable[..., State], *arguments: Any) -> Change:
        """Give the change that calls ``function(state, *arguments)``, which gives the next state.

        Args:
            function: a function at the top level of a module, or in a class there: a later process finds it by name.
            arguments: values that the journal's codec carries.

        Raises:
            DefinitionRefused: no module has the function under its name: it is a lambda, or defined in a function.

        Example::

            def rename(state, old, new):
                return state.set(new, state[old]).delete(old)

            Change.call(rename, "draft", "final")
        """
        name = name_of(function)
        if name is None:
            expected = "a function that its module has by name, so that a later process finds it"
            raise DefinitionRefused("Change.call", expected, function)
        return cls("call", name, arguments)

    def __call__(self, state: State) -> State:
        """The state after the change of `state`."""
        if self.kind == "call":
            changed: State = found(self.name)(state, *self.values)
            return changed
        [value] = self.values
        if self.kind == "append":
            there = state.get(self.name, ())
            value = [*there, value] if isinstance(there, list) else (*there, value)
        elif self.kind == "add":
            value = state.get(self.name, 0) + value
        return state.set(self.name, value)


def as_change(modifier: object) -> Change | None:
    """The `modifier` as a value; None: it is a lambda, a closure or another object without a name.

    A function that its module has by name is a value too.
    """
    if isinstance(modifier, Change):
        return modifier
    name = name_of(modifier)
    return None if name is None else Change("call", name)


def name_of(function: object) -> str | None:
    """The name under which a module has the `function`; None: none has it."""
    if not isinstance(function, FunctionType):
        return None
    name = f"{function.__module__}:{function.__qualname__}"
    try:
        return name if found(name) is function else None
    except (ImportError, AttributeError):
        return None


def found(name: str) -> Any:
    """What a module has under `name`.

    Raises:
        ImportError, AttributeError: there is no such module, or it has no such name.
    """
    module, _, path = name.partition(":")
    value: Any = importlib.import_module(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value
