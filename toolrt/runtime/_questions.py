"""What tools and their authors are asked for a batch: claims, what these look at, modifiers; and its slot policy.

Rules.
    1. Each answer goes back to the machine as a value, or fixes the call's result.
    2. What an author's function raises is an answer, too; Ctrl-C and an exit in it end the batch.
    3. Claims are asked with the state as of the lane's start, and nothing notes what is read of it.
    4. A call of a sub-batch may claim what its parent covers.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import attrs
import trio

from toolrt import probe
from toolrt.events import ClaimsStale, ModifiersRefused, observer
from toolrt.model import Claim, Outcome, Tool, ToolOutput, covers
from toolrt.model._claim import claims_in_words
from toolrt.model._watched_state import parts_json
from toolrt.order import (
    CallRecord,
    FoundClaims,
    LaneRecord,
    Machine,
    applied,
    claims_of,
    looked_at_by,
    stale_claims_text,
    stale_part,
    stale_text,
    touched_by,
)
from toolrt.runtime._lease import Lease
from toolrt.runtime._policies import BatchPolicies


class FixesResults(Protocol):
    """What fixes the results of a batch's calls, and ends the batch."""

    def settle(self, call: CallRecord, outcome: Outcome, content: Any, error: str | None) -> None:
        """Fix the call's result."""

    def fix_result(self, call: CallRecord, output: ToolOutput) -> None:
        """Fix the result of a call that returned `output`."""

    def abort(self, error: BaseException) -> None:
        """Cancel the batch, and let `error` out when it is left."""

    def exit_or_raise(self, error: BaseException) -> None:
        """The same, where `error` is Ctrl-C or asks to exit; else raise it."""

    def now(self) -> float:
        """The time on Trio's clock."""

    #: The Trio run that the batch belongs to.
    token: trio.lowlevel.TrioToken


@attrs.define(eq=False)
class ToolQuestions:
    """Finds out what the machine of one batch wants to know: see `toolrt.order.Questions`."""

    #: Fixes the results of the batch's calls.
    _results: FixesResults
    #: What the call lends inside which the batch runs; None for a batch that is no sub-batch.
    _lease: Lease | None
    #: What the batch's policies are asked; None where they are just a function of tool and input.
    _policies: BatchPolicies | None
    #: Made after its questions, so the engine sets it.
    machine: Machine = attrs.field(init=False)

    # Claims

    def looks_at(self, lane: LaneRecord, call: CallRecord) -> tuple[Claim, ...]:
        """What the call's claims look at."""
        return looked_at_by(cast(Tool, call.tool), call.input, lane.bare, lane.shared)

    def claims(self, lane: LaneRecord, call: CallRecord) -> FoundClaims:
        """What the call claims, what its tool says, and why it may not have that, or None."""
        tool: Any = call.tool
        claims = claims_of(tool, call.input, lane.bare, lane.shared)
        refusal = None if self._lease is None else self._uncovered(lane, call, claims)
        return claims, claims if lane.shared else tool.claims_for(call.input, lane.bare), refusal

    def stale(self, lane: LaneRecord, call: CallRecord) -> tuple[Outcome, str] | None:
        """How the call, granted after a wait, ends because it claims what it does not hold; None: it holds that.

        An exit in a function of its author's cancels the batch, and with it the call.
        """
        try:
            missing = self.stale_claims(lane, call, refused=True)
        except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
            self._results.exit_or_raise(error)
            return None  # noqa: ASYNC104  the batch lets it out when it is left
        if not missing:
            return None
        if call.rewritten:
            holds = claims_in_words(*call.claims)
            why = f"denied: the rewritten input claims {claims_in_words(missing[0])}, the call holds {holds}"
            return Outcome.DENIED, why
        return Outcome.ERROR, stale_claims_text(call.claims, missing[0])

    def time(self) -> tuple[float, object]:
        """The time on Trio's clock, and the run."""
        return self._results.now(), self._results.token

    def prefer(self, lane: LaneRecord, ready: list[CallRecord]) -> CallRecord:
        """Which ready call takes the next slot."""
        try:
            if self._policies is not None:
                return self._policies.prefer(ready, not self.machine.is_complete)
        except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
            self._results.exit_or_raise(error)
        return ready[0]

    def _uncovered(self, lane: LaneRecord, call: CallRecord, claims: tuple[Claim, ...]) -> str | None:
        """Why a child may not have these claims; None if its parent covers them."""
        tool = cast(Tool, call.tool)
        touched = call.allowed = touched_by(tool, call.input, lane.bare, lane.shared)
        wanted = self.machine.admission.by_owner(tool.owner, claims if touched is None else touched)
        lease = cast(Lease, self._lease)
        refusal = lease.refusal(wanted)
        if refusal is None and touched is None and not lane.shared and not lease.is_alone:
            return "it declares nothing, so it runs alone, and the call inside which it would run does not"
        return refusal

    def stale_claims(self, lane: LaneRecord, call: CallRecord, refused: bool) -> list[Claim]:
        """What the call would claim now and does not hold; a recorder hears of it, and what its claims look at.

        Args:
            refused: whether the call is not run because of it.
        """
        tool: Any = call.tool
        about = tool, call.input, lane.bare, lane.shared
        if probe.sink is None:
            claims, looked_at = claims_of(*about), {}
        else:
            with probe.looking() as looked_at:
                claims = claims_of(*about)
        if claims == call.claims:
            return []
        held = (*call.claims, *call.after)
        missing = [claim for claim in claims if not covers(held, claim)]
        if missing and probe.sink is not None:
            holds, claims_now = list(map(str, held)), list(map(str, missing))
            reads = list(map(list, looked_at))
            observer.tell(ClaimsStale(call.batch_id, call.call_index, refused, holds, claims_now, reads))
        return missing

    # Modifiers

    def decide(self, lane: LaneRecord, call: CallRecord) -> str | None:
        """Fix the result of a call whose earlier calls have theirs, unless it is stale and may run again.

        Returns: the error that it gets if it cannot run again; None: its result is fixed.
        """
        output, decisions = cast(ToolOutput, call.undecided), lane.decisions
        assert decisions is not None
        before = decisions.state
        stale = None
        call.merged = applied(call.modifiers, before, call.tool)
        if call.merged.exit_asked is not None:
            self._results.abort(call.merged.exit_asked)
        if call.reads is not None:
            stale = stale_part(call.merged, call.reads, lane.start if call.saw is None else call.saw)
        if stale is None:
            self._results.fix_result(call, output)
            return None
        earlier = ((one.call_index, one.name, one.merged) for one in lane.calls[: decisions.fixed])
        text = stale_text(stale, lane.start, earlier)
        if cast(Tool, call.tool).pure and self.machine.cancel_reason is None:
            return text
        if observer.records and call.merged is not None:
            sets = frozenset(part for modifier in call.merged.modifiers for part in modifier.sets)
            [part] = parts_json([stale])
            observer.tell(ModifiersRefused(call.batch_id, call.call_index, lane.index, part, parts_json(sets)))
        call.modifiers, call.merged = (), None
        lane.modified.remove(call)
        self._results.settle(call, Outcome.ERROR, None, text)
        if call.stops:
            self.machine.stop(call)
        return None
