"""The oracle: the same plan, one call at a time.

Rules.
    1. The lanes are those of the batch: the lane policy, closed by a call that cannot join, and the rule of the
       state keys (RULES 2 to 5).  A lane's calls all see the state it starts with.
    2. Within a lane the calls run in call order, one after the other, each under its own timeout; the modifiers
       of those that returned apply at the lane's end.
    3. A call whose modifiers would set from an old value what an earlier call of its lane has changed is an error, and
       none of its modifiers apply.
    4. A call that stops the batch and fails skips everything after it.
    5. There is no limit, no ticket, no reader and no cancel.
    6. Where a call declares what its claims look at, they are asked for when all calls before it are over.  Others are
       asked as the lane begins, and again at their turn; one that claims something else by then is refused (law 17).
    7. A sub-batch is run in the same way, inside its parent, on what its parent's claims cover (RULE 20).

Theory.  Deterministic ordering promises that every schedule is equal to this one (Thomson et al., SIGMOD 2012).
So the oracle is written from the rules.  It shares with the runtime the values of the model, the lane policies and the
rule of stale writes; it uses no batch, lane, ticket or cursor of the runtime.

Limits.  The oracle does not reproduce the runtime's own error texts (a timeout, a refusal): of those calls the laws
compare only the outcome.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import attrs
import trio

from toolrt.model import (
    NO_SERVICES,
    SILENT,
    Arguments,
    Claim,
    Event,
    Modifier,
    Outcome,
    Registry,
    Services,
    State,
    Tool,
    ToolCall,
    ToolOutput,
    ToolResult,
    covers,
)
from toolrt.model._watched_state import Part, StateReads, bare_state
from toolrt.order import (
    LaneChoice,
    LanePlacing,
    LanePolicy,
    MergedCall,
    PolicyCall,
    StateKeys,
    applied,
    by_claims,
    claims_of,
    looked_at_by,
    may_go_stale,
    parallel,
    stale_claims_text,
    stale_part,
    stale_text,
    touched_by,
)
from toolrt.runtime import Allow, ApprovalRequest, Deny, Rewrite

__all__ = ["OracleContext", "Sequential", "run_one_by_one"]

#: How a call may end that makes its batch stop, if its tool says so.
_STOPPING = (Outcome.ERROR, Outcome.INVALID, Outcome.DENIED, Outcome.TIMED_OUT)


@attrs.frozen
class Sequential:
    """What one call at a time gives."""

    #: One result for each call, in call order.
    results: tuple[ToolResult, ...]
    #: The state after the last lane.
    state: State
    #: The modifiers that were applied, in order.
    modifiers: tuple[Modifier, ...] = ()
    #: For each call the parts of the state that its modifiers set.
    sets: tuple[frozenset[Part], ...] = ()
    #: The calls that were refused, or ran again, because an earlier call of their lane had changed what they set.
    stale: tuple[int, ...] = ()


@attrs.define
class OracleContext:
    """What a tool is given; the names are those of `ToolContext`."""

    #: As of `ToolContext`.
    call_id: str
    batch_id: str
    call_index: int
    state: State
    claims: tuple[Claim, ...]

    #: How its sub-batches are run; None: by claims, with the tools that they bring along.
    plan: _SerialRun | None = attrs.field(default=None, repr=False, eq=False)
    sub_batches: int = 0
    #: Whether no other call shares its lane.
    alone: bool = True
    #: How many tokens one read may answer; None is any number.
    read_budget: int | None = None
    services: Services = attrs.field(default=NO_SERVICES, repr=False, eq=False)

    def progress(self, message: Any) -> None:
        """Drop the message: the oracle has no reader."""

    def emit(self, event: Event) -> None:
        """Do nothing: the oracle has no observer."""

    def note(self, kind: Callable[..., Event], *values: Any) -> None:
        """Do nothing: the oracle has no observer."""

    def changes_no_file(self) -> None:
        """Do nothing: the oracle has no listener that follows files."""

    @property
    def registry(self) -> Registry | None:
        """The tools that may be called."""
        return None if self.plan is None else self.plan.registry

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
    ) -> Sequential:
        """Run a sub-batch, one call at a time, inside what this call holds."""
        self.sub_batches += 1
        plan = _SerialRun(Registry(), by_claims, None, None, self.services) if self.plan is None else self.plan
        plan = attrs.evolve(plan, expected_reads=None, registry=plan.registry if registry is None else registry)
        name = f"{self.batch_id}/{self.call_index}.{self.sub_batches}"
        return await plan.run(calls, self.state if state is None else state, name, self.claims)

    def open_batch(self, state: State | None = None, *, registry: Registry | None = None, **options: Any) -> _Opened:
        """As `run`, call by call: the calls run when the batch is read or the block left; `options` change nothing."""
        return _Opened(self, state, registry)

    def isolate(self, **fields: Any) -> OracleContext:
        """The same call with a working directory and budgets of its own, changed by `fields`."""
        state = self.state.replace(**fields)
        budget = bare_state(state).context_budget
        return attrs.evolve(self, state=state, read_budget=None if budget is None else max(2000, budget // 5))


class _Opened:
    """A sub-batch of the oracle, for tools that open one."""

    def __init__(self, context: OracleContext, state: State | None, registry: Registry | None) -> None:
        self._context = context
        self._state = state
        self._registry = registry
        self._calls: list[ToolCall] = []
        #: What came of it, once it was run.
        self.outcome: Sequential | None = None

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


@attrs.frozen
class _SerialRun:
    """What a batch and its sub-batches have in common."""

    registry: Registry
    lanes: LanePolicy
    approve: Callable[[ApprovalRequest], Any] | None
    default_timeout: float | None
    services: Services = NO_SERVICES
    expected_reads: int | None = None

    def read_budget(self, calls: Sequence[ToolCall], state: State) -> int | None:
        """A fifth of what is left, in as many parts as there are reads, at least 2,000 (RULES 23)."""
        reads = self.registry.reads_in(calls) if self.expected_reads is None else self.expected_reads
        left = bare_state(state).context_budget
        return None if left is None else max(2000, left // (5 * reads))

    async def run(
        self, calls: Sequence[ToolCall], state: State, batch_id: str, held: tuple[Claim, ...] | None
    ) -> Sequential:
        """Run `calls` one by one; in a sub-batch each must be covered by what its parent `held`."""
        placing = LanePlacing(self.lanes)
        waiting = [_looked_up(index, call, self.registry, placing) for index, call in enumerate(calls)]
        results: dict[int, ToolResult] = {}
        handed_on: list[Modifier] = []
        sets: dict[int, frozenset[Part]] = {}
        after_others: list[int] = []
        budget = self.read_budget(calls, state)
        at = 0
        while at < len(waiting):
            known = bare_state(state)
            for call in waiting[at:]:
                if (call.opens and call is not waiting[at]) or not _asked_first(call, known):
                    break
            keys, so_far = StateKeys(self.lanes is not parallel), state
            merges: list[tuple[int, str, MergedCall]] = []
            shared: bool | None = None
            while at < len(waiting):
                call = waiting[at]
                if call.tool is not None and call.arguments is not None:
                    if shared is not None and not (shared and call.shared and not call.opens):
                        break
                    if not _enters(call, call.tool, known, held, keys):
                        break
                    shared = call.shared
                at += 1
                reads = StateReads()
                result, mine = await _run(call, reads.watching(state), self, batch_id, budget)
                merge = applied(mine, so_far, call.tool)
                stale = stale_part(merge, reads, state)
                if stale is not None:
                    after_others.append(call.index)
                if stale is not None and call.tool is not None and call.tool.pure:
                    result, mine = await _run(call, StateReads().watching(so_far), self, batch_id, budget)
                    merge, stale = applied(mine, so_far, call.tool), None
                if stale is None:
                    so_far = merge.after
                    merges.append((call.index, call.call.name, merge))
                    sets[call.index] = frozenset(part for one in merge.modifiers for part in one.sets)
                    done = zip(mine, merge.modifiers, strict=True)
                    handed_on += [modifier for modifier, one in done if one.refused is None]
                else:
                    result = call.result(Outcome.ERROR, None, stale_text(stale, state, merges))
                results[call.index] = result
                if call.stops and result.outcome in _STOPPING:
                    for skipped in waiting[at:]:
                        text = f"skipped: call {call.index} failed"
                        results[skipped.index] = skipped.result(Outcome.SKIPPED, None, text)
                    at = len(waiting)
            state = so_far
        every = range(len(calls))
        parts = tuple(sets.get(index, frozenset()) for index in every)
        answers = tuple(results[index] for index in every)
        return Sequential(answers, state, tuple(handed_on), parts, tuple(after_others))


@attrs.define
class _SerialCall:
    """One call, and what is known of it before it runs."""

    index: int
    call: ToolCall
    tool: Tool | None = None
    #: None: the call is invalid.
    arguments: Arguments | None = None
    input: Any = None
    shared: bool = False
    #: Whether it begins another lane, though it shares that.
    opens: bool = False
    stops: bool = False
    claims: tuple[Claim, ...] = ()
    #: What these look at, as declared.
    after: tuple[Claim, ...] = ()
    #: What of that it may touch.
    touched: tuple[Claim, ...] = ()
    #: Whether that is more than its parent holds.
    uncovered: bool = False

    def result(self, outcome: Outcome, content: Any = None, error: str | None = None) -> ToolResult:
        return ToolResult(self.call.call_id, self.index, self.call.name, outcome, content, error)


async def run_one_by_one(
    calls: Sequence[ToolCall],
    registry: Registry,
    state: State,
    *,
    lanes: LanePolicy = by_claims,
    approve: Callable[[ApprovalRequest], Any] | None = None,
    default_timeout: float | None = None,
    batch_id: str = "oracle",
    services: Services = NO_SERVICES,
    expected_reads: int | None = None,
) -> Sequential:
    """Run `calls` in call order, one at a time, and return what every schedule has to give.

    Args:
        calls: the calls of one batch.
        registry: their tools.
        state: the batch's first state.
        lanes: the lane policy.
        approve: the approval check, or None.
        default_timeout: seconds for tools that name none, or None.
        batch_id: the batch id that the tools see.
        services: what they are given beside what their owners have.
        expected_reads: how many reads share the read budget; None: as many as `calls` has.

    Checkpoint: as the tools do.
    """
    plan = _SerialRun(registry, lanes, approve, default_timeout, services, expected_reads)
    return await plan.run(calls, state, batch_id, None)


def _looked_up(index: int, call: ToolCall, registry: Registry, placing: LanePlacing) -> _SerialCall:
    tool = registry.get(call.name)
    known = _SerialCall(index, call, tool, input=call.input)
    if tool is not None:
        known.stops = tool.may_stop(call.input)
        arguments = tool.decode(call.input)
        if not isinstance(arguments, list):
            known.arguments = arguments
            choice = placing.place(PolicyCall(index, call.name, call.input, tool))
            known.shared, known.opens = choice is not LaneChoice.ALONE, choice is LaneChoice.OPEN
    return known


def _asked_first(call: _SerialCall, state: State) -> bool:
    """Ask for the call's claims as a lane begins; False if no later call can share that lane."""
    if call.tool is None or call.arguments is None:
        return True
    call.claims = claims_of(call.tool, call.input, state, call.shared)
    return call.shared


def _enters(call: _SerialCall, tool: Tool, state: State, held: tuple[Claim, ...] | None, keys: StateKeys) -> bool:
    """Whether the call, whose turn has come, may share the lane of those before it."""
    call.after = looked_at_by(tool, call.input, state, call.shared)
    if call.after:
        call.claims = claims_of(tool, call.input, state, call.shared)
    call.touched = call.claims
    if held is not None:
        touched = touched_by(tool, call.input, state)
        call.touched = call.claims if touched is None else touched
        call.uncovered = not all(covers(held, claim) for claim in call.touched)
    return call.uncovered or keys.admits((*call.claims, *call.after))


async def _run(
    call: _SerialCall, state: State, plan: _SerialRun, batch_id: str, read_budget: int | None
) -> tuple[ToolResult, tuple[Modifier, ...]]:
    tool = call.tool
    if tool is None or call.arguments is None or call.uncovered:
        return call.result(Outcome.INVALID, None, "invalid"), ()
    if plan.approve is not None:
        refusal = await _refusal(call, tool, state, plan.approve, batch_id)
        if refusal is not None:
            return call.result(Outcome.DENIED, None, refusal), ()
    if may_go_stale(tool, call.shared):
        now = claims_of(tool, call.input, bare_state(state), call.shared)
        missing = [claim for claim in now if not covers((*call.claims, *call.after), claim)]
        if missing:
            return call.result(Outcome.ERROR, None, stale_claims_text(call.claims, missing[0])), ()
    services = plan.services.filled_from(getattr(tool.owner, "services", NO_SERVICES))
    context = OracleContext(
        call.call.call_id,
        batch_id,
        call.index,
        state,
        call.touched,
        plan,
        alone=not call.shared,
        read_budget=read_budget,
        services=services,
    )
    seconds = plan.default_timeout if tool.timeout is None else tool.timeout
    positional, named = call.arguments
    try:
        with trio.CancelScope() as scope:
            if seconds is not None:
                scope.deadline = trio.current_time() + seconds
            value = tool.function(context, *positional, **named)
            if isinstance(value, Awaitable):
                value = await value
            if not isinstance(value, ToolOutput):
                return call.result(Outcome.OK, value), ()
            outcome = Outcome.OK if value.error is None else Outcome.ERROR
            return call.result(outcome, value.content, value.error), value.modifiers
    except Exception as error:
        # What a tool raises beside the end of its time does not hide that its time was over.
        if not scope.cancelled_caught:
            return call.result(Outcome.ERROR, None, tool.describe_error(error)), ()
    return call.result(Outcome.TIMED_OUT, None, "timed out"), ()


async def _refusal(
    call: _SerialCall, tool: Tool, state: State, approve: Callable[[ApprovalRequest], Any], batch_id: str
) -> str | None:
    """Why the call may not run, or None; a rewrite replaces its arguments."""
    request = ApprovalRequest(call.call.call_id, call.call.name, call.input, call.index, batch_id, bare_state(state))
    try:
        answer = approve(request)
        if inspect.isawaitable(answer):
            answer = await answer
    except Exception as error:
        return f"the approval check raised {error}"
    if isinstance(answer, Rewrite):
        answer = answer.input
    if answer is True or isinstance(answer, Allow):
        return None
    if isinstance(answer, Mapping):
        arguments = tool.decode(answer)
        if isinstance(arguments, list):
            return "the rewritten input does not fit"
        looked_at = looked_at_by(tool, answer, bare_state(state), call.shared)
        wanted = (*claims_of(tool, answer, bare_state(state), call.shared), *looked_at)
        if not all(covers((*call.claims, *call.after), claim) for claim in wanted):
            return "the rewritten input claims more"
        call.arguments, call.input = arguments, answer
        return None
    return answer.reason if isinstance(answer, Deny) else str(answer)
