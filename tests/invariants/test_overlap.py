"""Laws 4 to 6 on traces written by hand."""

from __future__ import annotations

from typing import Any

from tests.invariants._tapes import over
from toolrt.invariants import Mix, check, simulate
from toolrt.invariants.script import Fail, FollowCell, ReadCell, Scripted, Sleep

W, R = ("write", ["f"]), ("read", ["f"])


def mutate(made: Any, call: int, version: str = "v") -> None:
    """One whole mutation of the file."""
    made.event("file.mutation_began", call=call, file="f")
    made.event("file.mutation_ended", call=call, file="f", version=version, ok=True)


def test_same_file_in_call_order_sees_an_overlap(running: Any, broken: Any) -> None:
    """One mutation begins while another lasts."""
    made = running()
    made.event("file.mutation_began", call=0, file="f")
    made.event("file.mutation_began", call=1, file="f")
    made.event("file.mutation_ended", call=1, file="f", version="b", ok=True)
    made.event("file.mutation_ended", call=0, file="f", version="a", ok=True)
    found = broken(over(made, 0, 1))
    assert list(found) == ["same_file_in_call_order"]
    assert "one at a time" in found["same_file_in_call_order"][0]


def test_same_file_in_call_order_sees_another_order(running: Any, broken: Any) -> None:
    """Call 1 before call 0 is the wrong order."""
    made = running()
    mutate(made, 1)
    mutate(made, 0)
    found = broken(over(made, 0, 1))
    assert list(found) == ["same_file_in_call_order"]
    assert "by call 0 after call 1" in found["same_file_in_call_order"][0]


def test_same_file_in_call_order_leaves_other_files_alone(running: Any, broken: Any) -> None:
    """Two files have nothing to do with each other."""
    made = running()
    mutate(made, 1)
    made.event("file.mutation_began", call=0, file="g")
    made.event("file.mutation_ended", call=0, file="g", version="a", ok=True)
    assert broken(over(made, 0, 1)) == {}


def test_same_file_in_call_order_sees_a_read_of_what_comes_later(running: Any, broken: Any) -> None:
    """A read does not see the mutation of a higher call."""
    made = running()
    mutate(made, 1, "v1")
    made.event("file.read", call=0, file="f", version="v1")
    assert "expected not to see the mutation by call 1" in broken(over(made, 0, 1))["same_file_in_call_order"][0]


def test_same_file_in_call_order_sees_a_read_that_misses_what_came_before(running: Any, broken: Any) -> None:
    """A read sees the mutation of a lower call."""
    made = running()
    made.event("file.read", call=1, file="f", version="v0")
    mutate(made, 0, "v1")
    assert "read before it had ended" in broken(over(made, 0, 1))["same_file_in_call_order"][0]


def test_same_file_in_call_order_sees_a_version_nobody_wrote(running: Any, broken: Any) -> None:
    """What is read is what was written last."""
    made = running()
    mutate(made, 0, "v1")
    made.event("file.read", call=1, file="f", version="v9")
    assert "expected version v1" in broken(over(made, 0, 1))["same_file_in_call_order"][0]


def test_exclusive_alone_sees_company(tape: Any, broken: Any) -> None:
    """A call that runs alone runs beside another."""
    made = tape()
    made.submit(0, 1)
    made.event("batch.sealed")
    made.begin(0, shared=False)
    made.take(0, shared=False)
    made.start(0)
    made.next_lane()
    made.begin(1)
    made.take(1)
    made.start(1)
    for call in (0, 1):
        made.settle(call)
        made.end(call)
    made.event("lane.merged", lane=0, state={"values": {}}, applied=[], rejected=[])
    made.merge()
    made.leave()
    found = broken(made)
    assert list(found) == ["exclusive_alone"]


def test_no_needless_wait_sees_a_call_that_could_run(simple: Any, broken: Any) -> None:
    """Call 1 conflicts with nothing, and waits for call 0."""
    made = simple()
    made.run(0, 1)
    made.run(1, 1)
    made.merge()
    made.leave()
    found = broken(made)
    assert list(found) == ["no_needless_wait"]
    assert "a slot is free" in found["no_needless_wait"][0]


def test_no_needless_wait_allows_a_wait_for_a_conflict(tape: Any, broken: Any) -> None:
    """Call 1 claims what call 0 holds."""
    made = tape()
    made.submit(0, 1)
    made.event("batch.sealed")
    made.begin(0, 1)
    made.take(0, W)
    made.take(1, R)
    made.run(0, 1)
    made.run(1, 1)
    made.merge()
    made.leave()
    assert broken(made) == {}


def test_no_needless_wait_allows_a_wait_for_the_limit(simple: Any, broken: Any) -> None:
    """With a limit of one, one runs."""
    made = simple(limit=1)
    made.run(0, 1)
    made.run(1, 1)
    made.merge()
    made.leave()
    assert broken(made) == {}


def test_no_needless_wait_allows_a_wait_for_an_approval(simple: Any, broken: Any) -> None:
    """Who has not been allowed yet cannot run."""
    made = simple()
    for call in (0, 1):
        made.event("approval.asked", call=call)
    made.event("approval.answered", call=0, answer="allow")
    made.run(0, 1)
    made.event("approval.answered", call=1, answer="allow")
    made.run(1, 1)
    made.merge()
    made.leave()
    assert broken(made) == {}


def test_no_needless_wait_sees_a_slot_given_out_of_order(tape: Any, broken: Any) -> None:
    """The lowest ready call takes the slot."""
    made = tape(limit=1)
    made.submit(0, 1)
    made.event("batch.sealed")
    made.begin(0, 1)
    made.take(0)
    made.take(1)
    made.run(1, 1)
    made.run(0, 1)
    made.merge()
    made.leave()
    found = broken(made)
    assert list(found) == ["no_needless_wait"]
    assert "by call_index" in found["no_needless_wait"][0]


def test_no_needless_wait_sees_more_than_the_limit(running: Any, broken: Any) -> None:
    """Two run where one may."""
    made = running(limit=1)
    assert "at most 1" in broken(over(made, 0, 1))["no_needless_wait"][0]


def test_no_needless_wait_sees_a_lane_that_starts_late(tape: Any, broken: Any) -> None:
    """The next lane starts when the one before has ended."""
    made = tape()
    made.submit(0, 1)
    made.event("batch.sealed")
    made.begin(0)
    made.take(0)
    made.run(0, 1)
    made.merge()
    made.wait(1)
    made.next_lane()
    made.begin(1)
    made.take(1)
    made.run(1, 1)
    made.merge()
    made.leave()
    assert "expected its lane to start" in broken(made)["no_needless_wait"][0]


def test_no_needless_wait_sees_approval_asked_late(simple: Any, broken: Any) -> None:
    """All calls of a lane are asked about as it starts."""
    made = simple()
    made.event("approval.asked", call=0)
    made.event("approval.answered", call=0, answer="allow")
    made.start(0)
    made.start(1)
    made.wait(1)
    made.event("approval.asked", call=1)
    assert "expected approval to be asked at 0 s" in broken(over(made, 0, 1))["no_needless_wait"][0]


def test_no_needless_wait_allows_a_wait_of_late_claims_for_one_that_stops() -> None:
    """Call 2's claims depend on call 0, so it is told of before its lane's tickets; it has to wait for call 1 too."""
    mix = Mix(
        [
            Scripted([ReadCell("b")], says="nothing"),
            Scripted([Sleep(1.0), Fail("s")], says="safe", stops=True),
            Scripted([FollowCell("a", "p")], says="after"),
        ],
        lanes="parallel",
    )
    execution = simulate(mix)
    kinds = [event.kind for event in execution.trace.events if event.fields.get("call") == 2]
    assert "claims.awaited" in kinds
    assert not check(execution.trace)
