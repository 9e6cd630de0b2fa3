"""One run of a tool in a simulation, and what was seen of it."""

from __future__ import annotations

import contextlib
import functools
import inspect
from array import array
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import attrs
import trio

from toolrt import probe, sim
from toolrt.errors import DefinitionRefused, NotSimulated, SimulationStopped
from toolrt.invariants._one_by_one import OneByOneContext
from toolrt.invariants.serial import SerialRun
from toolrt.model import NO_SERVICES, Arguments, Claim, Registry, State, Tool, ToolOutput
from toolrt.sim.judging._model import attributes_of
from toolrt.testing._stepping import Steps, stepped
from toolrt.testing._stores import StoreContent
from toolrt.trace import Step, plain
from toolrt.workspace import MemoryDisk, Planted, Workspace

Maker = Tool | Callable[..., Tool]
Content = Workspace | Mapping[str, Planted] | StoreContent | None


#: Stands for a file or row that there is not.
_ABSENT = object()


@attrs.define
class Trial:
    """What one run of a tool did."""

    workspace: Workspace | None
    #: The user's store, or None.
    store: StoreContent | None = None
    #: What it answered or raised, as JSON.
    answer: Any = None
    #: Why it did not end: what the simulator says, or None.
    stuck: str | None = None
    modifiers: tuple[Any, ...] = ()
    before: Mapping[str, Any] = attrs.field(factory=dict)
    after: Mapping[str, Any] = attrs.field(factory=dict)
    #: Files it read through the disk, by path.
    reads: list[str] = attrs.field(factory=list)
    #: Cells and watched things it wrote.
    cells: list[str] = attrs.field(factory=list)
    claims: tuple[Claim, ...] = ()
    #: Its checkpoints, and what it did there; of an async tool.
    steps: Steps = attrs.field(factory=Steps)
    #: Whether it put another state into its context.
    swapped: bool = False
    #: Whether more than one task was at work.
    parallel: bool = False

    @property
    def changed(self) -> list[str]:
        """Files, and rows of the store, that are not as they were."""
        names = dict.fromkeys([*self.before, *self.after])
        return [name for name in names if self.before.get(name, _ABSENT) != self.after.get(name, _ABSENT)]

    def looks(self) -> Mapping[str, Any]:
        """The files, or the rows of the store, as they are now."""
        if self.store is not None:
            return self.store.named_rows()
        return {} if self.workspace is None else self.workspace.snapshot()


def made(maker: Maker, content: Content) -> tuple[Tool, Trial]:
    """Give the tool, in a workspace of its own where it is made for one.

    Raises:
        DefinitionRefused: what makes the tool makes something else.
    """
    trial = Trial(content if isinstance(content, Workspace) else None)
    if isinstance(content, StoreContent):
        trial.store = content
        content.renew()
    if isinstance(content, Mapping):

        def spy(effect: str, path: str) -> None:
            if effect == "read":
                trial.reads.append(path)

        trial.workspace = Workspace(MemoryDisk(content, fault=spy))
    tool = maker
    if not isinstance(tool, Tool):
        tool = tool(trial.workspace) if isinstance(content, Mapping) else tool()
    if not isinstance(tool, Tool):
        raise DefinitionRefused("check_tool(tool)", "a function that makes a tool", tool)
    return tool, trial


def call_of(tool: Tool, arguments: Arguments, context: OneByOneContext, steps: Steps | None) -> Awaitable[Any]:
    """Give one call of `tool`."""
    positional, named = arguments

    async def call() -> Any:
        value = tool.function(context, *positional, **named)
        if not tool.is_async:
            return value
        return await (value if steps is None or not inspect.iscoroutine(value) else stepped(value, steps))

    return call()


def answer_of(value: Any, error: BaseException | None) -> Any:
    """Give an answer as JSON; an error is one."""
    if error is not None:
        return [type(error).__name__, str(error)]
    return [plain(value.content), value.error] if isinstance(value, ToolOutput) else plain(value)


def context_of(tool: Tool, index: int, state: State, claims: tuple[Claim, ...], call_id: str) -> OneByOneContext:
    """What the tool is given: the services are its owner's."""
    services = getattr(tool.owner, "services", NO_SERVICES)
    return OneByOneContext(call_id, "check", index, state, claims, SerialRun(Registry()), services=services)


def run(tool: Tool, arguments: Arguments, state: State, trial: Trial, at: float = 0.0) -> None:
    """Run the tool once, from `at` virtual seconds on, and write down in `trial` what it did.

    Raises:
        NotSimulated: the tool needs a thread, a socket or a subprocess.
    """
    context = context_of(tool, 0, state, trial.claims, "checked")

    async def program() -> Any:
        await trio.sleep(at)
        with trial.steps.scope:
            return await call_of(tool, arguments, context, trial.steps)

    trial.before = trial.looks()
    execution = sim.run(program)
    trial.after = trial.looks()
    error = execution.error
    if not trial.steps.blocked:
        # A call that blocks the loop is reported instead.
        refuse_unsimulated(error)
    if isinstance(error, SimulationStopped):
        trial.stuck = str(error)
    trial.answer = answer_of(execution.value, error)
    if isinstance(execution.value, ToolOutput):
        trial.modifiers = tuple(execution.value.modifiers)
    trial.swapped = context.state is not state
    trial.parallel = len(set(execution.schedule.tasks)) > 1
    trial.cells += [named(resource) for resource, write in memory_of(execution.trace.steps).items() if write]


def memory_of(steps: Iterable[Step]) -> dict[tuple[Any, ...], bool]:
    """The cells and watched things that `steps` touched, each with whether it was written."""
    found: dict[tuple[Any, ...], bool] = {}
    for step in steps:
        for access in step.accesses:
            if is_memory(access.resource):
                found[access.resource] = found.get(access.resource, False) or access.write
    return found


def is_memory(resource: tuple[Any, ...]) -> bool:
    """Whether it is a cell, or a part of a watched thing."""
    return resource[:1] in (("cell",), ("watched",))


def named(resource: tuple[Any, ...]) -> str:
    """The resource as it is shown."""
    return " ".join(map(str, resource))


def kept_by(tool: Tool) -> dict[str, Any]:
    """What the tool's function, and the functions that it has, keep in closures, bound arguments and objects, as JSON.

    That is plain data, and the attributes of objects whose classes are the author's, from the package of the function.
    A module's globals are not looked at: they belong to every run.
    """
    found: dict[str, Any] = {}
    with probe.observed_by(None):  # to look is no access of the tool's
        _keep(tool.function, found, set())
        return {name: plain(value) for name, value in found.items() if isinstance(value, _DATA)}


def _keep(function: Any, found: dict[str, Any], seen: set[int]) -> None:
    """Add to `found` what `function` keeps, by name, and what the functions do that it keeps."""
    if id(function) in seen:
        return
    seen.add(id(function))
    kept: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        kept |= {f"argument {at}": value for at, value in enumerate(function.args)}
        kept |= function.keywords
        function = function.func
    owner = getattr(function, "__self__", None if inspect.isroutine(function) else function)
    if not isinstance(owner, ModuleType | type):
        kept |= attributes_of(owner) or {}
    names, cells = getattr(getattr(function, "__code__", None), "co_freevars", ()), getattr(function, "__closure__", ())
    for name, cell in zip(names, cells or (), strict=False):
        with contextlib.suppress(ValueError):  # not bound yet
            kept[name] = cell.cell_contents
    for name, value in kept.items():
        if inspect.isroutine(value) or isinstance(value, functools.partial):
            _keep(value, found, seen)
        else:
            at = name if name not in found else f"{name} of {getattr(function, '__qualname__', 'it')}"
            found[at] = _shown(value, _package(function))


#: What a function keeps that has a value to compare.
_DATA = (dict, list, set, deque, bytearray, array, int, float, str, sim.Cell)


def _package(thing: Any) -> str:
    return str(getattr(thing, "__module__", None)).partition(".")[0]


def _shown(value: Any, package: str, above: tuple[int, ...] = ()) -> Any:
    """Give the value with the attributes of each object of the package in its place."""
    if id(value) in above:
        return "again"
    above = (*above, id(value))
    if isinstance(value, dict):
        return {key: _shown(item, package, above) for key, item in value.items()}
    if isinstance(value, list | tuple | deque):
        return [_shown(item, package, above) for item in value]
    kind = type(value)
    if kind is SimpleNamespace or (_package(kind) == package != "toolrt" and not isinstance(value, type)):
        found = attributes_of(value)
        return value if found is None else {kind.__name__: _shown(found, package, above)}
    return value


def refuse_unsimulated(error: BaseException | None) -> None:
    """Raise the `NotSimulated` in `error`, if there is one."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            refuse_unsimulated(inner)
    elif isinstance(error, NotSimulated):
        raise error
