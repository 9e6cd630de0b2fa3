"""The serial oracle: a batch, and every batch inside it, one call after the other, from what was declared alone.

Rules.
    1. Calls run in call order.  Each sees the state that all calls before it leave, and runs alone.
    2. A call whose tool is not known, or whose input does not fit, is INVALID.  One that is valid and comes when the
       conversation has used its tool up is DENIED.
    3. The approval check is asked when the call's turn comes, once.  What is no clear yes is DENIED.  So is a rewritten
       input that does not fit or touches more than the call may, or that would stop the batch where the call would not.
    4. A call may touch what its tool claims for its input and the state.  Where the tool says neither that nor that it
       is safe, the call may touch everything.  So may a call of the outermost batch, because nothing runs beside it.
       An approval may leave a call less (`Allow.within`).
    5. A call inside another one may touch nothing that the outer one may not; it is INVALID if it claims more.  A rate
       is nothing to touch.  One that gives a resource another number of places than a call before it, or a rate another
       number, is an ERROR.
    6. A tool has its own seconds, or the batch's; over them it is TIMED_OUT.  What it raises is an ERROR.
    7. The modifiers of a call that returned are applied in order.  One that fails, or gives no state, changes nothing.
    8. Where a call that stops its batch is an ERROR, INVALID, DENIED or TIMED_OUT, all that follow are SKIPPED.

Theory.  It shares the values of the model with the runtime and nothing else: no lane, no ticket, no policy, and its
own definition of a conflict.  Where both agree, two definitions agree.

Limits.  It says what a batch has to give, not what may overlap.  Of calls that were refused the texts are its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import trio

from toolrt.invariants._one_by_one import OneByOneContext, Said, called, disagreement
from toolrt.model import (
    EVERYTHING,
    NO_SERVICES,
    WRITE,
    ApprovalRequest,
    Claim,
    Deny,
    Modifier,
    Outcome,
    Rate,
    Registry,
    Rewrite,
    Services,
    State,
    Tool,
    ToolCall,
    ToolOutput,
    ToolResult,
    decision,
)

__all__ = ["SerialEnding", "SerialRun", "conflict", "lies_within", "touches"]

_STOPS = (Outcome.ERROR, Outcome.INVALID, Outcome.DENIED, Outcome.TIMED_OUT)


def touches(claim: Claim, resource: tuple[Any, ...]) -> bool:
    """Whether `resource` is the claim's own, or stands below it where the claim means what is below, too."""
    return claim.resource == resource or (claim.subtree and resource[: len(claim.resource)] == claim.resource)


def conflict(one: Claim, other: Claim) -> bool:
    """Whether there is a resource that `one` and the `other` both touch, and that one of them may change.

    A claim that takes a place of a resource goes with any other that does, and with none that takes the whole.
    """
    # Of two claims that meet at all, one touches the very resource that the other names.
    meet = touches(one, other.resource) or touches(other, one.resource)
    places = (one.slots is not None) + (other.slots is not None)
    return meet and (places == 1 or (places == 0 and WRITE in (one.mode, other.mode)))


def lies_within(claim: Claim, held: Iterable[Claim]) -> bool:
    """Whether one claim of `held` touches all that `claim` does, and may change it if `claim` may.

    A place lies within a claim that may change the whole resource, and within a place of as many.
    """
    return any(
        touches(mine, claim.resource)
        and (mine.subtree or not claim.subtree)
        and WRITE in (mine.mode, _least(claim))
        and (mine.slots == claim.slots or (mine.slots is None and mine.mode is WRITE))
        for mine in held
    )


def _least(claim: Claim) -> object:
    """What is WRITE where a claim that only looks is enough."""
    return None if claim.mode is WRITE else WRITE


@attrs.frozen
class SerialEnding:
    """How a batch ends whose calls run one after the other."""

    #: One for each call, in call order, and what they leave.
    results: tuple[ToolResult, ...]
    state: State
    #: The modifiers that were applied, in order.
    modifiers: tuple[Modifier, ...] = ()
    #: For each call the parts of the state that are other since: ``("value", key)`` or ``("field", name)``.
    sets: tuple[frozenset[tuple[str, str]], ...] = ()
    #: The calls, by call_index, whose tools say nothing of what they touch.
    alone: tuple[int, ...] = ()


@attrs.frozen
class SerialRun:
    """What a batch, and the batches inside it, have in common.

    Args:
        registry: the tools.
        approve: the approval check, or None.
        timeout: seconds for tools that name none, or None.
        services: what tools are given beside what their owners have.
        tree: takes how each batch has ended, by its id: this one, and those inside.
        denied: the outermost calls, by call_index, that come when the conversation has used their tools up.
    """

    registry: Registry
    approve: Callable[[ApprovalRequest], Any] | None = None
    timeout: float | None = None
    services: Services = NO_SERVICES
    tree: dict[str, SerialEnding] = attrs.field(factory=dict, eq=False, repr=False)
    denied: frozenset[int] = frozenset()

    async def run(
        self,
        calls: Sequence[ToolCall],
        state: State,
        *,
        batch_id: str = "serial",
        held: tuple[Claim, ...] = (EVERYTHING,),
        outermost: bool = True,
        said: Said | None = None,
    ) -> SerialEnding:
        """Run `calls` in call order, one after the other.

        Args:
            calls: the calls of one batch.
            state: what the first of them sees.
            batch_id: the id that tools see.
            held: what the call may touch inside which they run.
            outermost: whether there is no such call.
            said: how many places each resource has, by the calls before; None: none has said anything.

        Checkpoint: as the tools do.
        """
        results: list[ToolResult] = []
        done: list[Modifier] = []
        sets: list[frozenset[tuple[str, str]]] = []
        reads = self.registry.reads_in(calls)
        stopped: int | None = None
        said = {} if said is None else said
        for index, call in enumerate(calls):
            before = state
            if stopped is not None:
                result = _result(call, index, Outcome.SKIPPED, None, f"skipped: call {stopped} failed")
            else:
                one = _SerialTurn(self, call, index, state, batch_id, held, outermost, reads, said)
                result, modifiers = await one.run()
                for modifier in modifiers:
                    state, was_applied = _modified(state, modifier)
                    done += [modifier] if was_applied else []
                if one.stops and result.outcome in _STOPS:
                    stopped = index
            results.append(result)
            sets.append(_changed(before, state))
        alone = tuple(index for index, call in enumerate(calls) if self._says_nothing(call))
        ending = self.tree[batch_id] = SerialEnding(tuple(results), state, tuple(done), tuple(sets), alone)
        return ending

    def _says_nothing(self, call: ToolCall) -> bool:
        tool = self.registry.get(call.name)
        return tool is not None and tool.claims is None and not tool.is_safe(call.input)

    async def run_inside(
        self, context: OneByOneContext, calls: Sequence[ToolCall], state: State, registry: Registry | None
    ) -> SerialEnding:
        """Run a batch of `calls` from `state` on inside the call of `context`, with the tools of `registry` if given.

        Checkpoint: as the tools do.
        """
        inside = self if registry is None else attrs.evolve(self, registry=registry)
        batch_id = f"{context.batch_id}/{context.call_index}.{context.sub_batches}"
        return await inside.run(
            calls, state, batch_id=batch_id, held=context.claims, outermost=False, said=context.said
        )


@attrs.define
class _SerialTurn:
    """One call whose turn has come."""

    plan: SerialRun
    call: ToolCall
    index: int
    state: State
    batch_id: str
    held: tuple[Claim, ...]
    outermost: bool
    reads: int
    said: Said
    input: Any = attrs.field(init=False)
    stops: bool = attrs.field(default=False, init=False)

    async def run(self) -> tuple[ToolResult, Sequence[Modifier]]:
        """Give the result, and the modifiers that apply."""
        call, self.input = self.call, self.call.input
        tool = self.plan.registry.get(call.name)
        if tool is None:
            return self._ends(Outcome.INVALID, error="no such tool")
        self.stops = tool.may_stop(call.input)
        arguments: Any = tool.decode(call.input)
        if isinstance(arguments, list):
            return self._ends(Outcome.INVALID, error="the input does not fit")
        if self.outermost and self.index in self.plan.denied:
            return self._ends(Outcome.DENIED, error="the conversation has used the tool up")
        may_touch = (EVERYTHING,) if self.outermost else self._claims(tool, call.input)
        for claim in may_touch:
            if not isinstance(claim, Rate) and not lies_within(claim, self.held):
                return self._ends(Outcome.INVALID, error=f"it claims {claim}, which the call around it does not hold")
        if tool.claims is not None:
            claims = self._claims(tool, call.input)
            refusal = disagreement(self.said, claims, call, self.index, self.batch_id)
            if refusal is not None:
                return self._ends(Outcome.ERROR, error=refusal)
        if self.plan.approve is not None:
            answer = await self._asked(tool, self.plan.approve)
            if isinstance(answer, Rewrite):
                arguments = tool.decode(answer.input)
                refusal = self._refused(tool, answer.input, arguments, may_touch)
                if refusal is not None:
                    answer = Deny(refusal)
            if not isinstance(answer, Deny) and answer.within is not None:
                if not all(lies_within(claim, may_touch) for claim in answer.within):
                    answer = Deny("the approval leaves the call more than it may touch")
                else:
                    may_touch = tuple(answer.within)
            if isinstance(answer, Deny):
                return self._ends(Outcome.DENIED, error=answer.reason)
        return await self._executed(tool, arguments, may_touch)

    def _claims(self, tool: Tool, input: Mapping[str, Any]) -> tuple[Claim, ...]:
        if tool.claims is not None:
            return tool.claims_for(input, self.state)
        return () if tool.is_safe(input) and not tool.alone else (EVERYTHING,)

    async def _asked(self, tool: Tool, approve: Callable[[ApprovalRequest], Any]) -> Any:
        request = ApprovalRequest(
            self.call.call_id, self.call.name, self.call.input, self.index, self.batch_id, self.state
        )
        try:
            answer = approve(request)
            return decision(await answer if inspect.isawaitable(answer) else answer)
        except Exception as error:
            return Deny(f"the approval check raised {tool.describe_error(error)}")

    def _refused(
        self, tool: Tool, rewritten: Mapping[str, Any], arguments: Any, may_touch: tuple[Claim, ...]
    ) -> str | None:
        """Why the call may not run with the `rewritten` input; None: it runs with that."""
        if isinstance(arguments, list):
            return "the rewritten input does not fit"
        if not all(lies_within(claim, may_touch) for claim in self._claims(tool, rewritten)):
            return "the rewritten input claims more than the call may touch"
        stops = tool.may_stop(rewritten)
        if stops and not self.stops:
            return "the rewritten input stops the batch, the call's own does not"
        self.input, self.stops = rewritten, stops
        return None

    async def _executed(
        self, tool: Tool, arguments: Any, may_touch: tuple[Claim, ...]
    ) -> tuple[ToolResult, Sequence[Modifier]]:
        services = self.plan.services.filled_from(getattr(tool.owner, "services", NO_SERVICES))
        left = self.state.context_budget
        context = OneByOneContext(
            self.call.call_id,
            self.batch_id,
            self.index,
            self.state,
            may_touch,
            self.plan,
            read_budget=None if left is None else max(2_000, left // (5 * self.reads)),
            services=services,
        )
        seconds = self.plan.timeout if tool.timeout is None else tool.timeout
        try:
            with trio.CancelScope() as scope:
                if seconds is not None:
                    scope.deadline = trio.current_time() + seconds
                value = await called(tool, context, arguments)
                if not isinstance(value, ToolOutput):
                    return self._ends(Outcome.OK, value)
                outcome = Outcome.OK if value.error is None else Outcome.ERROR
                return self._ends(outcome, value.content, value.error, value.modifiers)
        except Exception as error:
            # What a tool raises beside the end of its time does not hide that its time was over.
            if not scope.cancelled_caught:
                return self._ends(Outcome.ERROR, error=tool.describe_error(error))
        return self._ends(Outcome.TIMED_OUT, error="timed out")

    def _ends(
        self, outcome: Outcome, content: Any = None, error: str | None = None, modifiers: Sequence[Modifier] = ()
    ) -> tuple[ToolResult, Sequence[Modifier]]:
        return _result(self.call, self.index, outcome, content, error), modifiers


def _result(call: ToolCall, index: int, outcome: Outcome, content: Any, error: str | None) -> ToolResult:
    return ToolResult(call.call_id, index, call.name, outcome, content, error)


def _modified(state: State, modifier: Modifier) -> tuple[State, bool]:
    """What a modifier makes of `state`, and whether it was applied."""
    try:
        after = modifier(state)
    except Exception:
        return state, False
    return (after, True) if isinstance(after, State) else (state, False)


def _changed(before: State, after: State) -> frozenset[tuple[str, str]]:
    """The parts of the state that are other."""
    if before is after:
        return frozenset()
    was, now = before.to_json(), after.to_json()
    return frozenset(
        (kind, name)
        for kind, of in (("value", "values"), ("field", "fields"))
        for name in {*was[of], *now[of]}
        if was[of].get(name, ...) != now[of].get(name, ...) or (name in was[of]) != (name in now[of])
    )
