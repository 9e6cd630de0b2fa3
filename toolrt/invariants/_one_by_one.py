"""What a tool is given where the calls of a batch run one by one: the same names as in `toolrt.ToolContext`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import attrs
import trio

from toolrt import probe
from toolrt.model import NO_SERVICES, SILENT, Arguments, Claim, Event, Registry, Services, State, Tool, ToolCall
from toolrt.model._claim import agree, two_capacities_text
from toolrt.model._watched_state import bare_state

#: How many places resources have, each by the claim that said so and the call that made it.
Said = dict[tuple[Any, ...], tuple[Claim, str]]


async def called(tool: Tool, context: OneByOneContext, arguments: Arguments) -> Any:
    """Call the tool, and give what it gives; a thread is waited for although the call's time is over.

    Checkpoint: as the tool does.
    """
    positional, named = arguments
    if not probe.in_thread(tool):
        value = tool.function(context, *positional, **named)
        return await value if isinstance(value, Awaitable) else value
    try:
        with trio.CancelScope(shield=True):
            return await trio.to_thread.run_sync(lambda: tool.function(context, *positional, **named))
    finally:
        await trio.lowlevel.checkpoint_if_cancelled()  # noqa: ASYNC102  for this its time is looked at


def disagreement(said: Said, claims: Sequence[Claim], call: ToolCall, index: int, batch_id: str) -> str | None:
    """The error of a `call` whose `claims` give a resource another number of places than was `said`.

    None: they do not, and from now on they have said it, too.
    """
    who = f"call {index} ({call.name}) of batch {batch_id}"
    mine: Said = {}
    for claim in claims:
        if claim.slots is not None:
            other, by = said.get(claim.resource) or mine.setdefault(claim.resource, (claim, who))
            if not agree(other, claim):
                return two_capacities_text(claim, other, by)
    said.update(mine)
    return None


class OneByOnePlan(Protocol):
    """How the batches of a call are run."""

    @property
    def registry(self) -> Registry:
        """The tools that may be called."""

    async def run_inside(
        self, context: OneByOneContext, calls: Sequence[ToolCall], state: State, registry: Registry | None
    ) -> Any:
        """Run a batch inside the call of `context`.

        Checkpoint: as the tools do.
        """


@attrs.define
class OneByOneContext:
    """What a tool is given; the names are those of `ToolContext`."""

    #: As of `ToolContext`.
    call_id: str
    batch_id: str
    call_index: int
    state: State
    claims: tuple[Claim, ...]

    #: How its sub-batches are run.
    plan: OneByOnePlan = attrs.field(repr=False, eq=False)
    sub_batches: int = 0
    #: Whether no other call shares its lane.
    alone: bool = True
    #: Whether nothing runs beside it nor beside the calls around it: then a child may declare nothing.
    lends_all: bool = True
    #: How many tokens one read may answer; None is any number.
    read_budget: int | None = None
    services: Services = attrs.field(default=NO_SERVICES, repr=False, eq=False)
    #: How many places each resource has, by the calls of its sub-batches.
    said: Said = attrs.field(factory=dict, repr=False, eq=False)

    def progress(self, message: Any) -> None:
        """Drop the message: no oracle has a reader."""

    def emit(self, event: Event) -> None:
        """Do nothing: no oracle has an observer."""

    def note(self, kind: Callable[..., Event], *values: Any) -> None:
        """Do nothing: no oracle has an observer."""

    def changes_no_file(self) -> None:
        """Do nothing: no oracle has a listener that follows files."""

    @property
    def registry(self) -> Registry:
        """The tools that may be called."""
        return self.plan.registry

    @property
    def files(self) -> Any:
        """The files of the tool's owner."""
        return self.services.files

    @property
    def history(self) -> Any:
        """The versions of those files."""
        return self.services.history

    @property
    def search(self) -> Any:
        """Search, where there is one."""
        return self.services.search

    @property
    def graph(self) -> Any:
        """The code graph, where there is one."""
        return self.services.graph

    @property
    def lsp(self) -> Any:
        """Language servers, where there are some."""
        return self.services.lsp

    @property
    def telemetry(self) -> Any:
        """No telemetry."""
        return SILENT

    async def run(
        self, calls: Sequence[ToolCall], state: State | None = None, *, registry: Registry | None = None
    ) -> Any:
        """Run a sub-batch, one call at a time, inside what this call holds."""
        self.sub_batches += 1
        return await self.plan.run_inside(self, calls, self.state if state is None else state, registry)

    def open_batch(self, state: State | None = None, *, registry: Registry | None = None, **options: Any) -> _Opened:
        """As `run`, call by call: the calls run when the batch is read or the block left; `options` change nothing."""
        return _Opened(self, state, registry)

    def isolate(self, **fields: Any) -> OneByOneContext:
        """The same call with a working directory and budgets of its own, changed by `fields`."""
        state = self.state.replace(**fields)
        budget = bare_state(state).context_budget
        return attrs.evolve(self, state=state, read_budget=None if budget is None else max(2000, budget // 5))


class _Opened:
    """A sub-batch for tools that open one."""

    def __init__(self, context: OneByOneContext, state: State | None, registry: Registry | None) -> None:
        self._context = context
        self._state = state
        self._registry = registry
        self._calls: list[ToolCall] = []
        #: What came of it, once it was run.
        self.outcome: Any = None

    async def __aenter__(self) -> _Opened:
        return self

    def submit(self, call: ToolCall) -> None:
        self._calls.append(call)

    def seal(self) -> None:
        """Do nothing: reading or leaving the batch seals it."""

    def __aiter__(self) -> _Opened:
        return self

    async def __anext__(self) -> Any:
        await self._run()
        raise StopAsyncIteration

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        if error is None:
            await self._run()  # noqa: ASYNC102  it is the block's own work, not its clean-up

    async def _run(self) -> None:
        if self.outcome is None:
            self.outcome = await self._context.run(self._calls, self._state, registry=self._registry)
