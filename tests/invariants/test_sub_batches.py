"""The laws inside calls: every trace of small batches that open sub-batches, and traces in which something is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from toolrt import sim
from toolrt.errors import DefinitionRefused
from toolrt.invariants import Mix
from toolrt.invariants.script import (
    AddCell,
    AppendFile,
    ChangeState,
    Fail,
    ReadFile,
    Scripted,
    SeeState,
    Sleep,
    SubBatch,
)


def adds(cell: str, text: str, **more: Any) -> Scripted:
    return Scripted([AddCell(cell, text)], **more)


def opens(*calls: Scripted, says: Any = "claims", **more: Any) -> Scripted:
    return Scripted([SubBatch(calls, **more)], says=says)


FILE_A, FILE_B = Scripted([AppendFile("f", "a")]), Scripted([AppendFile("f", "b")])

#: Small enough for every trace.
SMALL = {
    "two children on one file": Mix([opens(FILE_A, FILE_B), Scripted([ReadFile("f")])], reader="none"),
    "one slot": Mix([opens(adds("a", "x"), adds("b", "y")), adds("c", "z")], limit=1),
    "one inside another": Mix([opens(opens(adds("a", "x"), adds("a", "y")), adds("b", "z"))], limit=1),
    "not covered": Mix([opens(FILE_A, claimed=False), FILE_B], reader="none"),
    "a state of its own": Mix(
        [
            opens(
                Scripted([ChangeState("x", "a")], says="safe"),
                Scripted([SeeState("x")], says="nothing"),
                says="nothing",
                hands_on=True,
            )
        ],
        state={"x": "0"},
    ),
    "a child that stops": Mix([opens(Scripted([Fail()], stops=True), adds("a", "x")), adds("a", "y")], reader="none"),
    "a parent that times out": Mix(
        [
            Scripted([SubBatch([Scripted([AddCell("a", "x"), Sleep(2)]), adds("a", "y")])], timeout=1.5),
            adds("a", "z"),
        ],
    ),
    "a cancel": Mix(
        [opens(Scripted([AddCell("a", "x"), Sleep(2)]), adds("a", "y")), adds("a", "z")],
        cancel_after=1.0,
        reader="none",
    ),
}


@pytest.mark.seldom
@pytest.mark.parametrize("name", SMALL)
def test_laws_hold_in_every_trace(name: str) -> None:
    """One execution for each order of what is dependent, each held against every law."""
    mix = SMALL[name]
    report = sim.explore(mix.program(), sim.DPOR(), mix.check)
    assert report.verdict is sim.PASS, report.failures[0].explain()
    assert report.claim.startswith("exhaustive")
    assert len(report.outcomes) == 1


@pytest.mark.parametrize("name", ["two children on one file", "one slot", "one inside another", "a state of its own"])
def test_laws_hold_with_a_cancel_before_any_step(name: str) -> None:
    """Wherever a cancel comes, children end with their parents, and what is said is true."""
    mix = SMALL[name]
    report = sim.explore(mix.program(), sim.Portfolio(80), mix.check, cancel_at="any")
    assert not report.failures, report.failures[0].explain()


def test_sync_call_opens_nothing() -> None:
    """A plain def cannot wait for a sub-batch."""
    with pytest.raises(DefinitionRefused, match="an async call"):
        Scripted([SubBatch([Scripted()])], sync=True)


@pytest.mark.parametrize("mix", SMALL.values(), ids=SMALL)
def test_mix_with_sub_batches_is_pasted_back(mix: Mix) -> None:
    """The `repr` of a mix is the mix."""
    from toolrt.invariants import script

    assert eval(repr(mix), {"Mix": Mix, **vars(script)}) == mix
