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


# Traces written by hand


class Inside:
    """Call 0 of a batch, which runs, beside call 1, and a sub-batch that call 0 opened."""

    def __init__(self, tape: Any, *, interrupt: str = "cancel") -> None:
        self.tape = tape
        tape.submit(0, 1)
        tape.event("batch.sealed")
        tape.begin(0, 1)
        tape.take(0, ("write", ["a"]))
        tape.take(1, ("write", ["b"]))
        tape.event("call.started", call=0, lane=0, thread=False, timeout=None, interrupt=interrupt)
        self.event("batch.opened", policy="by_claims", limit=10, state={"values": {}}, parent=["b", 0])

    def event(self, kind: str, **fields: Any) -> None:
        """An event of the sub-batch."""
        self.tape.event(kind, **{"batch": "b/0.1", **fields})

    def ready(self, *calls: int) -> None:
        """Children are submitted and have their tickets."""
        for call in calls:
            self.event("call.submitted", call=call, call_id=f"id{call}", name="t", input={})
        self.event("lane.started", lane=0, shared=True, calls=list(calls), state={"values": {}})
        for call in calls:
            more = {"shared": True, "stops": False, "reads_only": False}
            self.event("ticket.taken", call=call, lane=0, claims=[["write", ["a", call], False]], **more)

    def start(self, *calls: int) -> None:
        for call in calls:
            self.event("call.started", call=call, lane=0, thread=False, timeout=None, interrupt="cancel")

    def end(self, *calls: int, outcome: str = "ok") -> None:
        for call in calls:
            error = None if outcome == "ok" else "why"
            self.event("call.settled", call=call, outcome=outcome, content=None, error=error, modifiers=0)
            self.event("call.ended", call=call)


def test_exclusive_alone_sees_a_child_that_outlives_its_parent(tape: Any, broken: Any) -> None:
    """What runs inside a call ends with it."""
    inside = Inside(tape())
    inside.ready(0)
    inside.start(0)
    inside.tape.settle(0)
    inside.tape.end(0)
    inside.end(0)
    assert "inside call 0 of batch b" in broken(inside.tape)["exclusive_alone"][0]


def test_exclusive_alone_sees_two_sub_batches_of_one_call(tape: Any, broken: Any) -> None:
    """They are one set of calls: one that runs alone is alone among them, and its parent is no overlap."""
    inside = Inside(tape())
    inside.ready(0)
    inside.start(0)
    inside.event("batch.opened", batch="b/0.2", policy="by_claims", limit=10, state={"values": {}}, parent=["b", 0])
    more = {"claims": [], "shared": False, "stops": False, "reads_only": False}
    inside.event("ticket.taken", batch="b/0.2", call=0, lane=0, **more)
    inside.event("call.started", batch="b/0.2", call=0, lane=0, thread=False, timeout=None)
    assert broken(inside.tape)["exclusive_alone"] == ["call 0 runs alone: expected nothing beside it, got call 0"]


def behind_a_later_call(tape: Any) -> Inside:
    """A child of call 0 runs when call 1 has changed the file."""
    inside = Inside(tape())
    inside.ready(0)
    inside.start(0)
    inside.tape.start(1)
    inside.tape.event("file.mutation_began", call=1, file="f")
    inside.tape.event("file.mutation_ended", call=1, file="f", version="b", ok=True)
    return inside


def test_same_file_in_call_order_sees_a_child_behind_a_later_call(tape: Any, broken: Any) -> None:
    """What a child changes its parent changes, in the parent's place."""
    inside = behind_a_later_call(tape)
    inside.event("file.mutation_began", call=0, file="f")
    inside.event("file.mutation_ended", call=0, file="f", version="a", ok=True)
    assert broken(inside.tape)["same_file_in_call_order"] == [
        "f: expected mutations by call_index, got one by call 0 after call 1"
    ]


def test_same_file_in_call_order_sees_a_child_that_reads_too_late(tape: Any, broken: Any) -> None:
    """And what it reads its parent reads."""
    inside = behind_a_later_call(tape)
    inside.event("file.read", call=0, file="f", version="b")
    assert "expected not to see the mutation by call 1" in broken(inside.tape)["same_file_in_call_order"][0]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_no_needless_wait_counts_slots_inside(tape: Any, broken: Any, limit: int) -> None:
    """A call with two running children takes two slots, its own and one more."""
    inside = Inside(tape(limit=limit))
    inside.tape.start(1)
    inside.ready(0, 1)
    inside.start(0, 1)
    found = [detail for detail in broken(inside.tape).get("no_needless_wait", ()) if "at most" in detail]
    assert bool(found) is (limit < 3)


@pytest.mark.parametrize(("limit", "started", "late"), [(1, (), 1), (2, (0,), 0), (3, (0,), 1), (3, (0, 1), 0)])
def test_no_needless_wait_sees_a_child_that_could_run(
    tape: Any, broken: Any, limit: int, started: tuple[int, ...], late: int
) -> None:
    """In its parent's slot, which one child can always have, or in one that is free."""
    inside = Inside(tape(limit=limit))
    inside.ready(0, 1)
    inside.start(*started)
    if limit > 1:
        inside.tape.start(1)
    inside.tape.wait(1)
    inside.tape.event("reader.asked")
    found = [detail for detail in broken(inside.tape).get("no_needless_wait", ()) if "expected it to run" in detail]
    assert len(found) == late


@pytest.mark.parametrize(("interrupt", "seen"), [("cancel", True), ("finish", False)])
def test_cancel_truthful_sees_children_that_go_on(tape: Any, broken: Any, interrupt: str, seen: bool) -> None:
    """Unless the parent may finish: then so may they."""
    inside = Inside(tape(), interrupt=interrupt)
    inside.ready(0, 1)
    inside.start(0)
    inside.tape.event("batch.cancelled", reason="enough", outside=False)
    inside.start(1)
    inside.tape.wait(1)
    inside.end(0, 1)
    details = broken(inside.tape).get("cancel_truthful", [])
    assert any("started after batch b" in detail for detail in details) is seen
    assert any("it went on until 1 s" in detail for detail in details) is seen


def test_timeout_own_time_allows_what_a_child_shields(tape: Any, broken: Any) -> None:
    """A call ends when those inside it have; a child that goes on says so."""
    made = tape()
    made.submit(0)
    made.begin(0)
    made.take(0)
    made.start(0, timeout=1.0)
    made.event("batch.opened", batch="in", policy="by_claims", limit=10, state={"values": {}}, parent=["b", 0])
    made.event("call.started", batch="in", call=0, lane=0, thread=False, timeout=None, interrupt="cancel")
    made.event("tool.effect", batch="in", call=0, effect="shield")
    made.wait(3)
    made.settle(0, "timed_out")
    assert "timeout_own_time" not in broken(made)
