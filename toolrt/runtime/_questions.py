"""What tools and their authors are asked for a batch: claims, what these look at, modifiers; and its slot policy.

Rules.
    1. Each answer goes back to the machine as a value.
    2. What an author's function raises is an answer, too; Ctrl-C and an exit in it end the batch.
    3. Claims are asked with the state as of the lane's start, and nothing notes what is read of it.
    4. A call of a sub-batch may claim what its parent covers.
"""

from __future__ import annotations

from typing import Any, cast

import attrs

from toolrt import probe
from toolrt.events import ClaimsStale, observer
from toolrt.model import Claim, Outcome, State, Tool, covers
from toolrt.model._claim import claims_in_words
from toolrt.order import (
    CallRecord,
    ClaimTable,
    FoundClaims,
    LaneRecord,
    MergedCall,
    applied,
    by_owner,
    claims_of,
    looked_at_by,
    stale_claims_text,
    touched_by,
)
from toolrt.runtime._host import FixesResults
from toolrt.runtime._lease import Lease
from toolrt.runtime._policies import BatchPolicies


@attrs.define(eq=False)
class ToolQuestions:
    """Finds out what the machine of one batch wants to know: see `toolrt.order.Questions`."""

    #: The batch's engine: ends the batch, and knows the time.
    _engine: FixesResults
    #: What the call lends inside which the batch runs; None for a batch that is no sub-batch.
    _lease: Lease | None
    #: What the batch's policies are asked; None where they are just a function of tool and input.
    _policies: BatchPolicies | None
    #: The claim tables of the runtime.
    _tables: tuple[ClaimTable, ...]

    # Claims

    def looks_at(self, lane: LaneRecord, call: CallRecord) -> tuple[Claim, ...]:
        """What the call's claims look at."""
        return looked_at_by(cast(Tool, call.tool), call.input, lane.bare, lane.shared)

    def claims(self, lane: LaneRecord, call: CallRecord) -> FoundClaims:
        """What the call claims, what its tool says, and why it may not have that, or None."""
        tool: Any = call.tool
        claims = claims_of(tool, call.input, lane.bare, lane.shared)
        refusal = None if self._lease is None else self._uncovered(lane, call, claims)
        said = claims if lane.shared and not tool.alone else tool.claims_for(call.input, lane.bare)
        return claims, said, refusal

    def stale(self, lane: LaneRecord, call: CallRecord) -> tuple[Outcome, str] | None:
        """How the call, granted after a wait, ends because it claims what it does not hold; None: it holds that.

        An exit in a function of its author's cancels the batch, and with it the call.
        """
        try:
            missing = self.stale_claims(lane, call, refused=True)
        except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
            self._engine.exit_or_raise(error)
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
        return self._engine.now(), self._engine.token

    def prefer(self, lane: LaneRecord, ready: list[CallRecord], more_may_come: bool) -> CallRecord:
        """Which ready call takes the next slot."""
        try:
            if self._policies is not None:
                return self._policies.prefer(ready, more_may_come)
        except BaseException as error:  # noqa: ASYNC103  nothing is awaited, so no Cancelled
            self._engine.exit_or_raise(error)
        return ready[0]

    def _uncovered(self, lane: LaneRecord, call: CallRecord, claims: tuple[Claim, ...]) -> str | None:
        """Why a child may not have these claims; None if its parent covers them."""
        tool = cast(Tool, call.tool)
        touched = call.allowed = touched_by(tool, call.input, lane.bare, lane.shared)
        wanted = by_owner(self._tables, tool.owner, claims if touched is None else touched)
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

    def applied(self, call: CallRecord, state: State) -> MergedCall:
        """What the modifiers that the call returned do to `state`."""
        return applied(call.modifiers, state, call.tool)
