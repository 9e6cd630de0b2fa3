"""The tools of an agent framework in a batch: the framework runs the function, the runtime says when.

A framework's tool promises nothing that the runtime knows of.  What its user promises for it is given by the tool's
name; a tool without promises has its turn alone (law `exclusive_alone`).
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import inspect
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import attrs
import trio

from toolrt.errors import DefinitionRefused
from toolrt.model import EVERYTHING, Claim, Registry, State, Tool, tool
from toolrt.model._bounded import RESULT_MOST
from toolrt.runtime import Runtime, ToolContext

_INSIDE: contextvars.ContextVar[Inside | None] = contextvars.ContextVar("toolrt framework call", default=None)


@attrs.define(eq=False)
class Inside:
    """The call inside which a framework's code runs: a batch that this code opens is a sub-batch of that call.

    Use it as a context manager around that code.
    """

    context: ToolContext
    #: The Trio run of the call, for code in other threads.
    token: trio.lowlevel.TrioToken
    is_over: bool = attrs.field(default=False, init=False)

    @classmethod
    def current(cls) -> Inside | None:
        """The call that the running code belongs to, as long as that runs."""
        found = _INSIDE.get()
        return None if found is None or found.is_over else found

    def __enter__(self) -> Inside:
        self._before = _INSIDE.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        self.is_over = True
        _INSIDE.reset(self._before)

    _before: Any = attrs.field(default=None, init=False)


class PromisedTools:
    """Makes the runtime of one batch: the tools of a base runtime, and a framework's tools beside them.

    Args:
        runtime: whose lanes, limit, approval check, services and tools are used; None: one without tools.
        safe: the framework's tools that touch nothing another call changes.
        claims: what others of them touch, by name.

    Raises:
        DefinitionRefused: one of these cannot work; the text says what.
    """

    def __init__(self, runtime: Runtime | None, safe: Collection[str], claims: Mapping[str, Any] | None) -> None:
        if runtime is not None and not isinstance(runtime, Runtime):
            raise DefinitionRefused("runtime", "a toolrt.Runtime or None", runtime)
        if isinstance(safe, str):
            raise DefinitionRefused("safe", "a collection of tools' names", safe)
        claims = claims or {}
        self.base = Runtime(Registry()) if runtime is None else runtime
        self._is_given = runtime is not None
        #: In place of `base`, where it was not given: a claim table serves one event loop at a time.
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Runtime] = weakref.WeakKeyDictionary()
        for name in (*safe, *claims):
            if name in self.base.registry:
                raise DefinitionRefused(
                    f"safe or claims for {name!r}",
                    "a tool of the framework",
                    "a tool of the runtime, which has its own",
                )
            if name in safe and name in claims:
                raise DefinitionRefused("safe", "tools without claims", f"{name!r}, which claims= names too")
        options: dict[str, dict[str, Any]] = {name: {"safe": True} for name in safe}
        options.update((name, {"claims": touched}) for name, touched in claims.items())
        self._models = {
            name: tool(name=name, schema=None, description="", **promised)(_nothing)
            for name, promised in options.items()
        }

    def named(self, name: str) -> Tool:
        """The tool of that name, by which its calls are ordered."""
        found = self.base.registry.get(name) or self._models.get(name)
        if found is None:
            found = copy.copy(_UNDECLARED)
            found.name = name
        return found

    def with_functions(
        self, functions: Mapping[str, Callable[..., Any]], *, unknown: Collection[str], is_awaited: bool
    ) -> Runtime:
        """The runtime of a batch in which the tools of these names run `functions`.

        Args:
            functions: by name.
            unknown: those of them that name no tool: their calls are answered and touch nothing.
            is_awaited: whether the running event loop awaits the batch.
        """
        base = self.base
        if is_awaited and not self._is_given:
            base = self._by_loop.setdefault(asyncio.get_running_loop(), Runtime(Registry()))
        foreign = []
        for name, function in functions.items():
            made = copy.copy(self.named(name))
            made.function, made.is_async = function, inspect.iscoroutinefunction(function)
            if name in unknown:
                made.safe = True
            if base.journal is not None:
                made.max_result = RESULT_MOST  # the journal gives the framework its answer back, which is whole
            foreign.append(made)
        own = [tool for tool in base.registry if tool.name not in functions]
        return base._with_registry(Registry([*own, *foreign]))

    def claims(self, name: str, input: Mapping[str, Any]) -> tuple[Claim, ...]:
        """What a call may touch, as its tool promises it."""
        known = self.named(name)
        if known.declares:
            return known.claims_for(input, State())
        return () if known.is_safe(input) else (EVERYTHING,)


def conflict(some: Iterable[Claim], others: Iterable[Claim]) -> bool:
    """Whether a call with the claims `some` and one with `others` may touch a common resource."""
    theirs = tuple(others)
    return any(claim.conflicts_with(other) for claim in some for other in theirs)


def _nothing(ctx: ToolContext, /, **input: Any) -> None:
    """Stands for a function of the framework."""


_UNDECLARED = tool(schema=None, description="")(_nothing)
