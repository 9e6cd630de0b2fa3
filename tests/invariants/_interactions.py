"""Wrong runtimes that are wrong only where two or three features meet: what a review from outside wrote, written anew.

Random examples missed most of them before calls were drawn that meet (`toolrt.testing._strategies_meetings`).
"""

from __future__ import annotations

import inspect
from typing import Any

import attrs
import trio

from toolrt.invariants import Mix, Mutant
from toolrt.invariants.mutants._mutant import Function, MutantList
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

_NARROWED = Scripted(
    [SubBatch([Scripted([AddCell("a", "x")]), Scripted([AddCell("b", "y")])])],
    approval="narrow",
)


_FILLS = Scripted([OverwriteState("y", "a", False, True)], says="safe")

_declared = MutantList()


@_declared.instead("narrowing is ignored", "same_as_oracle", Approval, "_narrow").on(Mix([_NARROWED]))
def _narrows_nothing(narrow: Function, self: Any, call: Any, within: Any) -> Any:
    """A call that an approval narrows lends its sub-batch all that it claimed."""
    return None


@_declared.instead("asks twice", "same_as_oracle", _approval, "asked").on(
    Mix([Scripted([AddCell("a", "x")], approval="allow")])
)
def _asks_twice(asked: Function, *args: Any) -> Any:
    """The approval check is asked twice for one call."""
    answer = asked(*args)
    if not inspect.iscoroutine(answer):
        return asked(*args)
    answer.close()
    return asked(*args)


@_declared.instead("absence is no read", "no_write_lost", StateReads, "has_looked_for").on(Mix([_FILLS, _FILLS]))
def _sees_no_absence(has_looked_for: Function, self: Any, key: Any) -> Any:
    """A call that only asked whether a key is there is not stale when it was set meanwhile."""
    return False


@_declared.instead("who leaves the line takes the line along", "same_file_in_call_order", ClaimTable, "_bypass").on(
    Mix(
        [
            Scripted([AddCell("a", "x"), Sleep(2)]),
            Scripted([AddCell("a", "y")], approval="deny", approval_after=1.0),
            Scripted([AddCell("a", "z")]),
        ]
    )
)
def _forgets_who_stands_before(bypass: Function, self: ClaimTable, ghosts: list[Any], ready: list[Any]) -> None:
    """A call that waited behind one that ended while it waited starts, though others stand before that one."""
    for ghost in ghosts:
        for dependent in ghost.dependents:
            dependent.predecessors.discard(ghost)
            if not dependent.predecessors and not dependent.ghost:
                self._granted(dependent, ready, [])


@_declared.instead("a subtree that is read hides a write below", "same_file_in_call_order", _tickets, "_reduced").on(
    Mix([Scripted([ReadCells("t"), Sleep(1), AddCell("t/a", text)]) for text in "xy"])
)
def _one_claim_for_a_subtree(reduced: Function, claims: Any) -> Any:
    """Of a call that reads a subtree and writes below it only the read takes a ticket."""
    wide = [claim.resource for claim in claims if claim.subtree]
    below = [
        claim
        for claim in claims
        if claim.subtree or not any(claim.resource[: len(resource)] == resource for resource in wide)
    ]
    return reduced(below)


@_declared.instead("everything is no key", "same_as_serial", StateKeys, "admits").on(
    Mix([Scripted([OverwriteState("x", "a", True)]), Scripted([AddCells("", "b"), OverwriteState("x", "b")])])
)
def _keys_by_name_alone(admits: Function, self: StateKeys, claims: Any, *rest: Any, **how: Any) -> bool:
    """A call that claims everything shares the lane of one that claims a key of the state."""
    answer: bool = admits(self, [claim for claim in claims if claim.resource], *rest, **how)
    return answer


@_declared.instead("late is not asked", "same_as_oracle", Admission, "_welcome").on(
    Mix([Scripted([Sleep(3)], says="safe"), Scripted([Fail()], says="safe", approval="deny")], delays=(0.0, 1.0))
)
def _joins_unasked(welcome: Function, self: Any, lane: Any, call: Any, refusal: str | None) -> None:
    """A call that joins a lane which runs is not shown to the approval check."""
    if refusal is None and self._host.approves and call.status is Status.QUEUED:
        self._host.allowed(lane, call)
    else:
        welcome(self, lane, call, refusal)


@_declared.instead("leaks into snapshots", "same_as_oracle", _execution, "ToolContext").on(
    Mix(
        [
            Scripted([ChangeState("x", "a")], says="safe"),
            Scripted([AddCell("a", "x"), Sleep(1)]),
            Scripted([AddCell("a", "y"), SeeState("x")]),
        ]
    )
)
def _leaks_into_snapshots(context: Function, call: Any, state: Any, run: Any) -> Any:
    """A call sees what calls of its own lane have changed by then."""
    for other in run.machine.lanes[run.machine.current].modified:
        state = applied(other.modifiers, state, other.tool).after
    return context(call, state, run)


@_declared.instead("late denials are forgotten", "same_as_oracle", Approval, "_answered").on(
    Mix([Scripted([AddCell("a", "x")], approval="deny", approval_after=1.0)])
)
def _forgets_late_denials(answered: Function, self: Approval, call: Any, verdict: Any) -> None:
    """A denial that takes its time is taken for a permission."""
    answered(self, call, Allow() if trio.current_time() > 0 and isinstance(verdict, Deny) else verdict)


@_declared.instead("subtrees are roots", "same_file_in_call_order", ClaimTable, "take").on(
    Mix([Scripted([AddCells("t", "x"), Sleep(1)]), Scripted([AddCell("t/a", "y")])])
)
def _no_subtrees(take: Function, self: ClaimTable, claims: Any, *rest: Any, **more: Any) -> Any:
    """A claim on a subtree is taken for one on its root."""
    kept = [attrs.evolve(claim, subtree=False) if claim.resource else claim for claim in claims]
    return take(self, kept, *rest, **more)


@_declared.instead("threads are not waited for", "nothing_left", _execution, "_failed").on(
    Mix([Scripted([Sleep(2), AddCell("a", "x")], sync=True, thread=True, timeout=0.5), Scripted([AddCell("a", "y")])])
)
async def _waits_for_no_thread(
    failed: Function, run: Any, lane: Any, call: Any, error: Any, caught: Any, _: Any
) -> None:
    """A call whose time is over gives its tickets back while its thread runs on."""
    await failed(run, lane, call, error, caught, None)


#: The wrong runtimes.
INTERACTIONS: tuple[Mutant, ...] = tuple(_declared.mutants)
