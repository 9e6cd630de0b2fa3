"""Mixes that cover the fine print together.  The runtime has to run them without tripping a law."""

from __future__ import annotations

from toolrt.invariants.mixes._mix import Mix
from toolrt.invariants.script import (
    AddCell,
    AppendFile,
    BreakState,
    ChangeState,
    Fail,
    FollowCell,
    Pause,
    ReadCell,
    ReadFile,
    Refuse,
    Say,
    Scripted,
    SeeState,
    Shield,
    Sleep,
    SubBatch,
    WriteFile,
)

__all__ = ["WORKLOADS"]

_FILES = (
    Scripted([AppendFile("f", "a"), Sleep(1)]),
    Scripted([ReadFile("f"), Say("read")]),
    Scripted([WriteFile("g", "b"), Pause()]),
    Scripted([AppendFile("f", "c"), ReadFile("g")], says="by input"),
    Scripted([ReadFile("f"), ReadFile("g")], sync=True),
)

_STATE = (
    Scripted([Sleep(2), ChangeState("x", "a"), ChangeState("x", "b")], says="safe"),
    Scripted([SeeState("x"), BreakState(), ChangeState("x", "c")], says="safe"),
    Scripted([SeeState("x"), ChangeState("y", "d")], says="nothing"),
    Scripted([SeeState("x"), SeeState("y"), Refuse("no"), ChangeState("x", "e")], says="safe"),
)

_FAILING = (
    Scripted([ReadCell("a"), Sleep(1)]),
    Scripted([Sleep(1), Fail("broken")], stops=True),
    Scripted([ReadCell("a"), Sleep(2)]),
    Scripted([AddCell("a", "x")]),
    Scripted(invalid="unknown"),
    Scripted([AddCell("b", "y")], says="nothing"),
)

_ASKING = (
    Scripted([AddCell("a", "x")], approval="deny"),
    Scripted([AddCell("a", "y")], approval="rewrite", approval_after=1.0),
    Scripted([AddCell("b", "z")], approval="raise", approval_after=0.0),
    Scripted([ReadCell("a"), ReadCell("b")], approval="allow"),
)

_MANY = (
    *(Scripted([AddCell("ab"[number % 2], str(number)), Sleep(1), Say("done")]) for number in range(6)),
    Scripted([Sleep(3)], says="safe", timeout=1.5, call_id="twice"),
    Scripted([Shield(2), Sleep(1)], says="safe", timeout=0.5, call_id="twice"),
    Scripted([ReadCell("a"), ReadCell("b")], invalid="input"),
)

#: One end frees a file and the control claim: what waits for the second comes first by call_index.
_TWO_CLAIMS = (
    Scripted([AddCell("f", "x"), Sleep(1)], stops=True),
    Scripted([AddCell("a", "x"), Sleep(1)]),
    Scripted([AddCell("b", "x"), Sleep(1)]),
    Scripted([ReadCell("f"), Sleep(1)]),
    Scripted([ReadCell("f"), Sleep(1)]),
)

#: Sub-batches: on files, with a state of their own, refused, one inside another, and of calls that fail.
_INSIDE = (
    Scripted(
        [
            SubBatch(
                [
                    Scripted([AppendFile("f", "a"), Sleep(1), Say("half")]),
                    Scripted([AppendFile("g", "b"), Sleep(1)]),
                    Scripted([ReadFile("f"), AddCell("a", "z")], says="nothing"),
                    Scripted([ReadFile("f")]),
                ],
                reads=True,
            ),
        ]
    ),
    Scripted([AppendFile("f", "c")]),
    Scripted([ReadFile("g"), Sleep(1)]),
    Scripted(
        [
            SubBatch(
                [
                    Scripted([ChangeState("x", "a"), SeeState("x")], says="safe"),
                    Scripted([SubBatch([Scripted([AddCell("a", "x"), Sleep(1)]), Scripted([Fail()], stops=True)])]),
                    Scripted([SeeState("x")], says="nothing"),
                ],
                hands_on=True,
            )
        ],
        says="nothing",
    ),
    Scripted([SeeState("x")], says="safe"),
)

#: Calls whose claims depend on what earlier calls change: declared so, inside another one, and behind.
_POINTERS = (
    Scripted([AddCell("a", "x"), Sleep(1)]),
    Scripted([FollowCell("a", "1"), Sleep(1)], says="after"),
    Scripted([FollowCell("a", "2")], says="after"),
    Scripted([AddCell("a", "y"), FollowCell("b", "3")], says="after"),
    Scripted([ReadCell("b"), Sleep(2)], says="safe"),
    Scripted(
        [
            SubBatch([Scripted([AddCell("b", "z")]), Scripted([FollowCell("b", "4")], says="after")]),
            FollowCell("a", "5"),
        ]
    ),
)

#: Each is small, together they reach every outcome, policy and reader.
WORKLOADS: tuple[Mix, ...] = (
    Mix(_FILES, files={"f": "start "}),
    Mix(_FILES, lanes="by_safety", reader="slow"),
    Mix(_FILES, lanes="parallel", limit=2, delays=(0, 1, 0, 1)),
    Mix(_FILES, cancel_after=0.0, cancel_outside=True),
    Mix(_STATE, state={"x": "0"}),
    Mix(_STATE, lanes="serial", state={"x": "0"}),
    Mix(_STATE, lanes="parallel", cancel_after=1.25, state={"x": "0"}),
    Mix(_FAILING),
    Mix(_FAILING, lanes="parallel", delays=(0, 0, 1, 1)),
    Mix(_FAILING, limit=1, reader="none"),
    Mix(_FAILING, cancel_after=1.0),
    Mix(_ASKING),
    Mix(_ASKING, lanes="serial", limit=1),
    Mix(_TWO_CLAIMS, limit=3),
    Mix(_POINTERS),
    Mix(_POINTERS, limit=1, reader="slow"),
    Mix([call for call in _POINTERS if call.says == "after" or not call.follows], delays=(0, 0.5, 1, 0)),
    Mix(_POINTERS, lanes="parallel", cancel_after=1.0),
    Mix(_MANY, limit=3),
    Mix(_MANY, lanes="by_safety", reader="slow"),
    Mix(_MANY, cancel_after=1.25, cancel_outside=True),
    Mix(_INSIDE, state={"x": "0"}),
    Mix(_INSIDE, limit=1, reader="slow"),
    Mix(_INSIDE, lanes="parallel", limit=2, state={"x": "0"}),
    Mix(_INSIDE, limit=2, cancel_after=1.25),
)
