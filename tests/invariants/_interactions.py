"""Wrong runtimes that are wrong only where two or three features meet: what a review from outside wrote, written anew.

Random examples missed most of them before calls were drawn that meet (`toolrt.testing._strategies_meetings`).
"""

from __future__ import annotations

import inspect
from typing import Any

import attrs
import trio

from toolrt.invariants import Mix, Mutant
from toolrt.invariants.mutants._mutant import Function, instead
from toolrt.invariants.script import (
    AddCell,
    AddCells,
    ChangeState,
    Fail,
    OverwriteState,
    ReadCells,
    Scripted,
    SeeState,
    Sleep,
    SubBatch,
)
from toolrt.model._watched_state import StateReads
from toolrt.order import ClaimTable, StateKeys, Status, _tickets
from toolrt.order._admission import Admission
from toolrt.order._merge import applied
from toolrt.runtime import Allow, Deny, _approval, _execution
from toolrt.runtime._approval import Approval


def _narrows_nothing(narrow: Function, self: Any, call: Any, within: Any) -> Any:
    return None


def _asks_twice(asked: Function, *args: Any) -> Any:
    answer = asked(*args)
    if not inspect.iscoroutine(answer):
        return asked(*args)
    answer.close()
    return asked(*args)


def _sees_no_absence(has_looked_for: Function, self: Any, key: Any) -> Any:
    return False


def _forgets_who_stands_before(bypass: Function, self: ClaimTable, ghosts: list[Any], ready: list[Any]) -> None:
    for ghost in ghosts:
        for dependent in ghost.dependents:
            dependent.predecessors.discard(ghost)
            if not dependent.predecessors and not dependent.ghost:
                self._granted(dependent, ready, [])


def _one_claim_for_a_subtree(reduced: Function, claims: Any) -> Any:
    wide = [claim.resource for claim in claims if claim.subtree]
    below = [
        claim
        for claim in claims
        if claim.subtree or not any(claim.resource[: len(resource)] == resource for resource in wide)
    ]
    return reduced(below)


def _keys_by_name_alone(admits: Function, self: StateKeys, claims: Any, *rest: Any, **how: Any) -> bool:
    answer: bool = admits(self, [claim for claim in claims if claim.resource], *rest, **how)
    return answer


def _joins_unasked(welcome: Function, self: Any, lane: Any, call: Any, refusal: str | None) -> None:
    if refusal is None and self._host.approves and call.status is Status.QUEUED:
        self._host.allowed(lane, call)
    else:
        welcome(self, lane, call, refusal)


def _leaks_into_snapshots(context: Function, call: Any, state: Any, run: Any) -> Any:
    for other in run.machine.lanes[run.machine.current].modified:
        state = applied(other.modifiers, state, other.tool).after
    return context(call, state, run)


def _forgets_late_denials(answered: Function, self: Approval, call: Any, verdict: Any) -> None:
    answered(self, call, Allow() if trio.current_time() > 0 and isinstance(verdict, Deny) else verdict)


def _no_subtrees(take: Function, self: ClaimTable, claims: Any, *rest: Any, **more: Any) -> Any:
    kept = [attrs.evolve(claim, subtree=False) if claim.resource else claim for claim in claims]
    return take(self, kept, *rest, **more)


_NARROWED = Scripted(
    [SubBatch([Scripted([AddCell("a", "x")]), Scripted([AddCell("b", "y")])])],
    approval="narrow",
)
_FILLS = Scripted([OverwriteState("y", "a", False, True)], says="safe")

#: The wrong runtimes.
INTERACTIONS: tuple[Mutant, ...] = (
    Mutant(
        "narrowing is ignored",
        "same_as_oracle",
        "A call that an approval narrows lends its sub-batch all that it claimed.",
        instead(Approval, "_narrow", _narrows_nothing),
        Mix([_NARROWED]),
    ),
    Mutant(
        "asks twice",
        "same_as_oracle",
        "The approval check is asked twice for one call.",
        instead(_approval, "asked", _asks_twice),
        Mix([Scripted([AddCell("a", "x")], approval="allow")]),
    ),
    Mutant(
        "absence is no read",
        "no_write_lost",
        "A call that only asked whether a key is there is not stale when it was set meanwhile.",
        instead(StateReads, "has_looked_for", _sees_no_absence),
        Mix([_FILLS, _FILLS]),
    ),
    Mutant(
        "who leaves the line takes the line along",
        "same_file_in_call_order",
        "A call that waited behind one that ended while it waited starts, though others stand before that one.",
        instead(ClaimTable, "_bypass", _forgets_who_stands_before),
        Mix(
            [
                Scripted([AddCell("a", "x"), Sleep(2)]),
                Scripted([AddCell("a", "y")], approval="deny", approval_after=1.0),
                Scripted([AddCell("a", "z")]),
            ]
        ),
    ),
    Mutant(
        "a subtree that is read hides a write below",
        "same_file_in_call_order",
        "Of a call that reads a subtree and writes below it only the read takes a ticket.",
        instead(_tickets, "_reduced", _one_claim_for_a_subtree),
        Mix([Scripted([ReadCells("t"), Sleep(1), AddCell("t/a", text)]) for text in "xy"]),
    ),
    Mutant(
        "everything is no key",
        "same_as_serial",
        "A call that claims everything shares the lane of one that claims a key of the state.",
        instead(StateKeys, "admits", _keys_by_name_alone),
        Mix([Scripted([OverwriteState("x", "a", True)]), Scripted([AddCells("", "b"), OverwriteState("x", "b")])]),
    ),
    Mutant(
        "late is not asked",
        "same_as_oracle",
        "A call that joins a lane which runs is not shown to the approval check.",
        instead(Admission, "_welcome", _joins_unasked),
        Mix(
            [Scripted([Sleep(3)], says="safe"), Scripted([Fail()], says="safe", approval="deny")],
            delays=(0.0, 1.0),
        ),
    ),
    Mutant(
        "leaks into snapshots",
        "same_as_oracle",
        "A call sees what calls of its own lane have changed by then.",
        instead(_execution, "ToolContext", _leaks_into_snapshots),
        Mix(
            [
                Scripted([ChangeState("x", "a")], says="safe"),
                Scripted([AddCell("a", "x"), Sleep(1)]),
                Scripted([AddCell("a", "y"), SeeState("x")]),
            ]
        ),
    ),
    Mutant(
        "late denials are forgotten",
        "same_as_oracle",
        "A denial that takes its time is taken for a permission.",
        instead(Approval, "_answered", _forgets_late_denials),
        Mix([Scripted([AddCell("a", "x")], approval="deny", approval_after=1.0)]),
    ),
    Mutant(
        "subtrees are roots",
        "same_file_in_call_order",
        "A claim on a subtree is taken for one on its root.",
        instead(ClaimTable, "take", _no_subtrees),
        Mix([Scripted([AddCells("t", "x"), Sleep(1)]), Scripted([AddCell("t/a", "y")])]),
    ),
)
