"""Mutants of laws 15 to 17: calls of one lane that set one key of the state, and stale claims."""

from __future__ import annotations

from typing import Any

from toolrt.invariants.mixes._mix import Mix
from toolrt.invariants.mutants._mutant import Function, Mutant, MutantList, instead, together
from toolrt.invariants.script import AddCell, FollowCell, OverwriteState, Scripted
from toolrt.order import CallRecord, LaneRecord, StateKeys, _machine
from toolrt.order._admission import Admission
from toolrt.runtime._questions import ToolQuestions

_declared = MutantList()


@_declared.instead("state keys share a lane", "same_as_serial", StateKeys, "admits").on(
    Mix([Scripted([OverwriteState("x", "a", True)]), Scripted([OverwriteState("x", "b", True)])], state={"x": "0"})
)
def _always_admits(admits: Function, self: StateKeys, *claims: Any, **how: Any) -> bool:
    """A call joins a lane although it claims a key of the state that an earlier call of the lane claims."""
    return True


@_declared.instead("stale writes apply", "no_write_lost", _machine, "stale_part").on(
    Mix(
        [Scripted([OverwriteState("x", "a")], says="safe"), Scripted([OverwriteState("x", "b")], says="safe")],
        state={"x": "0"},
    )
)
def _never_stale(stale_part: Function, *args: Any) -> None:
    """A modifier that sets a key from an old value is applied."""
    return


# A call changes what the claims of the next one look at; that one claims to look, so it waits.
@_declared.instead("stale claims run", "claims_hold", ToolQuestions, "stale").on(
    Mix([Scripted([AddCell("a", "x")]), Scripted([FollowCell("a", "1")])])
)
def _runs_stale(stale: Function, self: ToolQuestions, lane: LaneRecord, call: CallRecord) -> None:
    """A call that was granted after a wait is not asked for its claims again."""
    return


def _waits_for_nothing(must_wait: Function, self: Admission, *looks: Any) -> bool:
    return False


_declared.add(
    "claims are asked for at once",
    "claims_hold",
    "What claims look at is not waited for before they are asked for.",
    together(instead(Admission, "must_wait", _waits_for_nothing), instead(ToolQuestions, "stale", _runs_stale)),
    Mix([Scripted([AddCell("a", "x")]), Scripted([FollowCell("a", "1")], says="after")]),
)


#: Laws 15 to 17.
STATE: tuple[Mutant, ...] = tuple(_declared.mutants)
