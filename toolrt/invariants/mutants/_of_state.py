"""Mutants of laws 15 to 17: calls of one lane that set one key of the state, and stale claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from toolrt.invariants.mixes._mix import Mix
from toolrt.invariants.mutants._mutant import Mutant, patched
from toolrt.invariants.script import AddCell, FollowCell, OverwriteState, Scripted
from toolrt.order import CallRecord, LaneRecord, StateKeys
from toolrt.order._admission import Admission
from toolrt.runtime import _questions
from toolrt.runtime._questions import ToolQuestions

__all__ = ["STATE"]

Function = Callable[..., Any]


def _always_admits(admits: Function) -> Function:
    def always_admits(self: StateKeys, *claims: Any, **how: Any) -> bool:
        return True

    return always_admits


def _never_stale(stale_part: Function) -> Function:
    def never_stale(*args: Any) -> None:
        return None

    return never_stale


def _runs_stale(ask_again: Function) -> Function:
    def runs_stale(self: ToolQuestions, lane: LaneRecord, call: CallRecord) -> None:
        self.machine.holds(lane, call)

    return runs_stale


@contextmanager
def _asked_at_once() -> Iterator[None]:
    with patched(Admission, "must_wait", _waits_for_nothing), patched(ToolQuestions, "ask_again", _runs_stale):
        yield


def _waits_for_nothing(must_wait: Function) -> Function:
    def waits_for_nothing(self: Admission, *looks: Any) -> bool:
        return False

    return waits_for_nothing


#: A call changes what the claims of the next one look at; that one claims to look, so it waits.
_POINTS_ELSEWHERE = Mix([Scripted([AddCell("a", "x")]), Scripted([FollowCell("a", "1")])])

#: Laws 15 to 17.
STATE: tuple[Mutant, ...] = (
    Mutant(
        "state keys share a lane",
        "same_as_serial",
        "A call joins a lane although it claims a key of the state that an earlier call of the lane claims.",
        lambda: patched(StateKeys, "admits", _always_admits),
        Mix([Scripted([OverwriteState("x", "a", True)]), Scripted([OverwriteState("x", "b", True)])], state={"x": "0"}),
    ),
    Mutant(
        "stale writes apply",
        "no_write_lost",
        "A modifier that sets a key from an old value is applied.",
        lambda: patched(_questions, "stale_part", _never_stale),
        Mix(
            [Scripted([OverwriteState("x", "a")], says="safe"), Scripted([OverwriteState("x", "b")], says="safe")],
            state={"x": "0"},
        ),
    ),
    Mutant(
        "stale claims run",
        "claims_hold",
        "A call that was granted after a wait is not asked for its claims again.",
        lambda: patched(ToolQuestions, "ask_again", _runs_stale),
        _POINTS_ELSEWHERE,
    ),
    Mutant(
        "claims are asked for at once",
        "claims_hold",
        "What claims look at is not waited for before they are asked for.",
        _asked_at_once,
        Mix([Scripted([AddCell("a", "x")]), Scripted([FollowCell("a", "1")], says="after")]),
    ),
)
