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
    7. A call that gives a resource another number of places (`Claim.slots`) than a call before it did is an error.
    8. A sub-batch is run in the same way, inside its parent, on what its parent's claims cover (RULE 20).  A rate is
       no resource: its calls need none of their parent's.

Theory.  Deterministic ordering promises that every schedule is equal to this one (Thomson et al., SIGMOD 2012).
So the oracle is written from the rules.  It shares with the runtime the values of the model, the lane policies and the
rule of stale writes; it uses no batch, lane, ticket or cursor of the runtime.

Limits.  The oracle does not reproduce the runtime's own error texts (a timeout, a refusal): of those calls the laws
compare only the outcome.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import trio

from toolrt.invariants._one_by_one import OneByOneContext, Said, called, disagreement
from toolrt.model import (
    NO_SERVICES,
    Arguments,
    Claim,
    Modifier,
    Outcome,
    Rate,
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

__all__ = ["Sequential", "run_one_by_one"]

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


@attrs.frozen
class _SerialRun:
    """What a batch and its sub-batches have in common."""

    registry: Registry
    lanes: LanePolicy
    approve: Callable[[ApprovalRequest], Any] | None
    services: Services = NO_SERVICES
    denied: frozenset[int] = frozenset()

    def read_budget(self, calls: Sequence[ToolCall], state: State) -> int | None:
        """A fifth of what is left, in as many parts as there are reads, at least 2,000 (RULES 23)."""
        left = bare_state(state).context_budget
        return None if left is None else max(2000, left // (5 * self.registry.reads_in(calls)))

    async def run_inside(
        self, context: OneByOneContext, calls: Sequence[ToolCall], state: State, registry: Registry | None
    ) -> Sequential:
        """Run a sub-batch inside the call of `context`."""
        registry = self.registry if registry is None else registry
        plan = attrs.evolve(self, registry=registry, denied=frozenset())
        name = f"{context.batch_id}/{context.call_index}.{context.sub_batches}"
        return await plan.run(calls, state, name, context.claims, context.lends_all, context.said)

    async def run(
        self,
        calls: Sequence[ToolCall],
        state: State,
        batch_id: str,
        held: tuple[Claim, ...] | None,
        lends_all: bool = True,
        said: Said | None = None,
    ) -> Sequential:
        """Run `calls` one by one; in a sub-batch each must be covered by what its parent `held`.

        Args:
            lends_all: whether the parent, and the calls around it, run alone.
            said: how many places each resource has, by other calls inside the parent; None: there is no parent.
        """
        said = {} if said is None else said
        placing = LanePlacing(self.lanes)
        waiting = [
            _looked_up(index, call, self.registry, placing, index in self.denied) for index, call in enumerate(calls)
        ]
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
                    if not _enters(call, call.tool, known, held, lends_all, keys, shared is None, said, batch_id):
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
                    # It was approved, so the check is not asked again.
                    again = attrs.evolve(self, approve=None)
                    result, mine = await _run(call, StateReads().watching(so_far), again, batch_id, budget)
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
    #: Whether it comes when the conversation has used its tool up.
    used_up: bool = False
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
    #: Its error, if it gives a resource another number of places than a call before it.
    disagreement: str | None = None
    #: Whether nothing runs beside it, nor beside the calls around it.
    lends_all: bool = True

    def result(self, outcome: Outcome, content: Any = None, error: str | None = None) -> ToolResult:
        return ToolResult(self.call.call_id, self.index, self.call.name, outcome, content, error)


async def run_one_by_one(
    calls: Sequence[ToolCall],
    registry: Registry,
    state: State,
    *,
    lanes: LanePolicy = by_claims,
    approve: Callable[[ApprovalRequest], Any] | None = None,
    batch_id: str = "oracle",
    services: Services = NO_SERVICES,
    denied: frozenset[int] = frozenset(),
) -> Sequential:
    """Run `calls` in call order, one at a time, and return what every schedule has to give.

    Args:
        calls: the calls of one batch.
        registry: their tools.
        state: the batch's first state.
        lanes: the lane policy.
        approve: the approval check, or None.
        batch_id: the batch id that the tools see.
        services: what they are given beside what their owners have.
        denied: the calls, by call_index, that come when the conversation has used their tools up.

    Checkpoint: as the tools do.
    """
    return await _SerialRun(registry, lanes, approve, services, denied).run(calls, state, batch_id, None)


def _looked_up(index: int, call: ToolCall, registry: Registry, placing: LanePlacing, used_up: bool) -> _SerialCall:
    tool = registry.get(call.name)
    known = _SerialCall(index, call, tool, input=call.input)
    if tool is not None:
        known.stops = tool.may_stop(call.input)
        arguments = tool.decode(call.input)
        if used_up:
            known.used_up = True  # as an invalid call, it has no lane
        elif not isinstance(arguments, list):
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


def _enters(
    call: _SerialCall,
    tool: Tool,
    state: State,
    held: tuple[Claim, ...] | None,
    lends_all: bool,
    keys: StateKeys,
    first: bool,
    said: Said,
    batch_id: str,
) -> bool:
    """Whether the call, whose turn has come, may share the lane of those before it."""
    call.after = looked_at_by(tool, call.input, state, call.shared)
    if call.after:
        call.claims = claims_of(tool, call.input, state, call.shared)
    call.touched = call.claims
    if held is not None:
        touched = touched_by(tool, call.input, state, call.shared)
        call.touched = call.claims if touched is None else touched
        beside = touched is None and not call.shared and not lends_all
        call.uncovered = beside or not all(isinstance(claim, Rate) or covers(held, claim) for claim in call.touched)
    own = call.claims
    if not call.shared and tool.claims is not None:
        own = tool.claims_for(call.input, state)
    call.disagreement = None if call.uncovered else disagreement(said, own, call.call, call.index, batch_id)
    claims = (*call.claims, *call.after)
    if not (
        call.uncovered
        or call.disagreement is not None
        or keys.admits(claims, first, declared=tool.claims is not None or not claims)
    ):
        return False
    call.lends_all = lends_all and (not call.shared or keys.alone)
    return True


async def _run(
    call: _SerialCall, state: State, plan: _SerialRun, batch_id: str, read_budget: int | None
) -> tuple[ToolResult, tuple[Modifier, ...]]:
    tool = call.tool
    if call.used_up:
        return call.result(Outcome.DENIED, None, "used up"), ()
    if tool is None or call.arguments is None or call.uncovered:
        return call.result(Outcome.INVALID, None, "invalid"), ()
    if call.disagreement is not None:
        return call.result(Outcome.ERROR, None, call.disagreement), ()
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
    context = OneByOneContext(
        call.call.call_id,
        batch_id,
        call.index,
        state,
        call.touched,
        plan,
        alone=not call.shared,
        lends_all=call.lends_all,
        read_budget=read_budget,
        services=services,
    )
    try:
        with trio.CancelScope() as scope:
            if tool.timeout is not None:
                scope.deadline = trio.current_time() + tool.timeout
            value = await called(tool, context, call.arguments)
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
    if answer is True:
        return None
    if isinstance(answer, Allow):
        if answer.within is None:
            return None
        if not all(covers(call.touched, claim) for claim in answer.within):
            return "the approval narrows the call to more than it holds"
        call.touched = tuple(answer.within)
        return None
    if isinstance(answer, Mapping):
        arguments = tool.decode(answer)
        if isinstance(arguments, list):
            return "the rewritten input does not fit"
        known = bare_state(state)
        looked_at = looked_at_by(tool, answer, known, call.shared)
        if call.touched is call.claims:
            claims = claims_of(tool, answer, known, call.shared)
        else:  # in a sub-batch it may do what its tool said, though it runs alone
            claims = touched_by(tool, answer, known, call.shared) or ()
        if not all(covers((*call.touched, *call.after), claim) for claim in (*claims, *looked_at)):
            return "the rewritten input claims more"
        call.arguments, call.input = arguments, answer
        return None
    return answer.reason if isinstance(answer, Deny) else str(answer)
