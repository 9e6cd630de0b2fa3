"""What a mutant is: a variant of the runtime in which one thing is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.invariants.mixes._mix import Mix

Function = Callable[..., Any]

#: Gives a context manager; inside it the runtime is broken.
Break = Callable[[], AbstractContextManager[Any]]


@attrs.frozen
class Mutant:
    """A broken variant of the runtime.

    Make your own with `patched`, and hand it to `toolrt.invariants.table`::

        Mutant("hasty", "exclusive_alone", "Nothing waits.", lambda: patched(ClaimTable, "take", hasty), workload)
    """

    #: What it is known by.
    name: str
    #: The name of the law that has to catch it.
    law: str
    #: What is broken, in words.
    sentence: str
    #: Gives a context manager; inside it the runtime is broken.
    apply: Callable[[], AbstractContextManager[Any]] = attrs.field(repr=False)
    #: What it is caught on.
    workload: Mix


@contextmanager
def patched(owner: Any, name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Replace ``owner.name`` by ``make(what it was)`` inside the block.

    Args:
        owner: a class or a module.
        name: one of its attributes.
        make: gives the replacement.

    Raises:
        DefinitionRefused: `owner` has no such attribute of its own; nothing was changed.
    """
    if name not in vars(owner):
        raise DefinitionRefused(f"a mutant of {owner.__name__}", "the name of an attribute of its own", name)
    before = vars(owner)[name]
    setattr(owner, name, make(before))
    try:
        yield
    finally:
        setattr(owner, name, before)


def instead(owner: Any, name: str, function: Function) -> Break:
    """A break in which ``owner.name(...)`` is ``function(what it was, ...)``; a property stays one."""

    def make(before: Any) -> Any:
        if isinstance(before, property):
            return property(lambda self: function(before, self))

        def replaced(*arguments: Any, **named: Any) -> Any:
            return function(before, *arguments, **named)

        return replaced

    return lambda: patched(owner, name, make)


def together(*breaks: Break) -> Break:
    """A break that is all of these at once."""

    @contextmanager
    def applied() -> Iterator[None]:
        with ExitStack() as stack:
            for each in breaks:
                stack.enter_context(each())
            yield

    return applied


class MutantList:
    """Mutants, in the order in which they are declared."""

    def __init__(self) -> None:
        self.mutants: list[Mutant] = []

    def add(self, name: str, law: str, sentence: str, apply: Break, workload: Mix) -> None:
        """Declare one; the arguments are those of `Mutant`."""
        self.mutants.append(Mutant(name, law, sentence, apply, workload))

    def instead(self, name: str, law: str, owner: Any, attribute: str) -> _Declared:
        """Declare one: ``instead(...).on(workload)`` stands above the function that is run instead of the attribute."""
        return _Declared(self, name, law, owner, attribute)


@attrs.frozen
class _Declared:
    """A mutant whose function and workload are not known yet."""

    mutants: MutantList
    name: str
    law: str
    owner: Any
    attribute: str

    def on(self, workload: Mix) -> Callable[[Function], Function]:
        """Declare it with the function below; its docstring says what is broken."""

        def declare(function: Function) -> Function:
            sentence = " ".join((function.__doc__ or "").split())
            apply = instead(self.owner, self.attribute, function)
            self.mutants.add(self.name, self.law, sentence, apply, workload)
            return function

        return declare
