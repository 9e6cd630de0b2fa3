"""Three calls that meet: one that holds a thing, one that ends early, and a third behind them.

Rules.
    1. A cell of the table is how the call ends early, where it is then, and what the other two claim.  Each of these
       is drawn by itself, so pairs of them are equally likely; what stands twice is drawn twice as often.
    2. What lasts how long, and what else the batch has, is drawn as in every mix.

Theory.  Most failures need two parameters to meet, few need three (Kuhn, Wallace, Gallo, "Software fault interactions",
IEEE TSE 2004).  Features that are drawn for each call alone seldom meet at one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from toolrt.invariants import script
from toolrt.invariants.script import Scripted
from toolrt.testing._strategies_calls import Draw, Palette, one_of

#: How many calls meet.
COUNT = 3

#: How a call ends early, and the features that it needs.
_EARLY = (
    ("raising", "fail"),
    ("denied", "approvals"),
    ("denied", "approvals"),
    ("timed out", "timeouts"),
    ("invalid", "invalid"),
    ("stopping", "stops"),
    ("stale", "overwrite"),
    ("asking", "overwrite"),
    ("narrowed", "approvals, sub-batches"),
    ("leaving", "leave"),
    ("breaking", "broken"),
)

#: Where it is then: it waits for the one before it, runs beside it, has returned before it, or holds the thing itself.
_WHERE = ("waiting", "running", "returned", "first", "waiting")

#: What the first call claims, and the third: the thing, what is above and below it, what is known late, everything, a
#: key of the state; and whether the third is approved.
_CLAIMS = (
    ("same", "same"),
    ("same", "above"),
    ("key", "everything"),
    ("below", "below"),
    ("same", "late"),
    ("everything", "key"),
    ("above", "same"),
    ("same", "approved"),
    ("late", "everything"),
    ("key", "key"),
    ("below", "above"),
)

#: The same where no key of the state is.
_WITHOUT_KEYS = tuple(pair for pair in _CLAIMS if not {"key", "everything"} & {*pair})

_THING = "t/a"
_SECONDS = (2.0, 1.0, 3.0)
_LATER = (1.0, None, 0.0, 2.0)
_EITHER = (False, True)
_NESTED = (False, False, False, True)


def meeting(draw: Draw, palette: Palette) -> list[Scripted]:
    """Three calls that meet, or one that opens them as a sub-batch, and two beside it."""
    has = palette.features
    approvals, nests, keys = "approvals" in has, "sub-batches" in has, "overwrite" in has

    # One draw for each, so that no batch of three is a shorter list of choices, and so simpler, than one of a call.
    def pick(options: Sequence[Any]) -> Any:
        return one_of(draw, options)

    known = [name for name, features in _EARLY if all(feature in has for feature in features.split(", "))]
    early = pick(known or ["returning"])
    where, (first, third) = pick(_WHERE), pick(_CLAIMS if keys else _WITHOUT_KEYS)
    seconds, later, either = pick(_SECONDS), pick(_LATER), pick(_EITHER)
    nested = pick(_NESTED) and nests
    if where == "waiting" and approvals and either:
        early = "denied"  # hardly anything else ends a call while it waits
    if early == "stopping" and not palette.fails:
        early = "returning"
    holder = _claiming(first, "p", later if approvals else None, approvals)
    holder = attrs.evolve(holder, does=(*holder.does, script.Sleep(seconds)))
    if early in ("stale", "asking"):
        holder = attrs.evolve(holder, does=(*holder.does, script.OverwriteState("y", "p", either)))
    ending = _early(early, where if keys or where != "returned" else "running", later, either)
    behind = _claiming(third, "r", later, approvals)
    calls = [ending, holder, behind] if where == "first" else [holder, ending, behind]
    if not nested:
        return calls
    # The thing is lent, and a call beside the parent waits for it.
    parent = Scripted([script.SubBatch(calls, True, True)], approval="narrow" if early == "narrowed" else None)
    beside = _claiming("key" if keys else "below", "t"), parent, _claiming("same", "t")
    return [*beside] if either else [parent, *beside[::2]]


def _early(early: str, where: str, later: float | None, either: bool) -> Scripted:
    cell = "b" if where == "running" else _THING
    does: list[script.Action] = [script.AddCell(cell, "q"), script.Sleep(1.0)]
    if where == "returned":
        does = [script.ChangeState("x", "q"), script.SeeState("y")]
    says: script.Promise = "safe" if where == "returned" else "claims"
    if early == "raising":
        return Scripted([*does, script.Fail("q")], says=says)
    if early == "stopping":
        return Scripted([*does, script.Fail("q")], says=says, stops=True)
    if early == "leaving":
        return Scripted([*does, script.LeaveOpen("scope" if either else "nursery")], says=says)
    if early == "breaking":
        return Scripted([*does, script.BreakState(), script.ChangeState("x", "q")], says=says)
    if early in ("stale", "asking"):
        return Scripted([*does, script.OverwriteState("y", "q", False, early == "asking")], says=says)
    if early == "timed out":
        # A thread goes on when its time is over: what it does then comes late.
        does = [script.Sleep(3.0), *does] if either else [*does, script.Sleep(2.0)]
        return Scripted(does, says=says, timeout=1.5, sync=either, thread=either)
    if early == "invalid":
        return Scripted(does, says=says, invalid="input" if either else "unknown")
    if early == "denied":
        return Scripted(does, says=says, approval="deny", approval_after=later)
    if early == "narrowed":
        inside = script.SubBatch([Scripted([script.AddCell("b", "r")]), Scripted([script.AddCell(_THING, "s")])])
        return Scripted([inside], approval="narrow", approval_after=later)
    return Scripted(does, says=says)


def _claiming(claims: str, text: str, later: float | None = None, approvals: bool = False) -> Scripted:
    if claims == "above":
        return Scripted([script.AddCells("t", text)])
    if claims == "below":
        return Scripted([script.ReadCells("t"), script.AddCell(f"{_THING}/c", text)])
    if claims == "late":
        return Scripted([script.FollowCell(_THING, text)], says="after")
    if claims == "approved" and approvals:
        return Scripted([script.AddCell(_THING, text)], approval="allow", approval_after=later)
    if claims == "everything":
        return Scripted([script.AddCells("", text), script.OverwriteState("y", text)])
    if claims == "key":
        return Scripted([script.OverwriteState("y", text, True), script.SeeState("y")])
    return Scripted([script.AddCell(_THING, text)])
