"""All laws in every trace of every small batch."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from toolrt import sim
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.invariants import KINDS, LAWS, MUTANTS, BatchProgress, Mix, all_batches, exhaust, exhaust_each
from toolrt.invariants._exhaustive import DIMENSIONS, left_out
from toolrt.invariants.mixes import _sittings
from toolrt.invariants.script import Fail, OverwriteState, Pause, ReadCell, Say, Scripted, SeeState

# Test runners have threads of their own; a worker runs nothing but the simulator.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

#: Batches that end soon and differ in their number of traces.
FEW = list(all_batches(2, [KINDS[name] for name in ("reads a cell", "alone", "unknown")]))


def test_batches_are_all_there_are() -> None:
    """Every sequence of kinds, in order."""
    assert len(list(all_batches(2))) == len(KINDS) ** 2


def test_dimensions_add_to_the_batches() -> None:
    """Each has batches of its own beside those that there are anyway, and what is not asked for is named."""
    plain = len(list(all_batches(2)))
    more = {name: list(all_batches(2, dimensions=[name]))[plain:] for name in DIMENSIONS}
    assert all(mix.cancel_after is not None for mix in more["cancels"])
    assert all(any(call.timeout for call in mix.calls) for mix in more["timeouts"])
    assert all(any(mix.delays) for mix in more["streams"])
    assert all(any(call.stops and len(call.does) > 1 for call in mix.calls) for mix in more["stops"])
    assert all(mix.crash_after == 0.5 for mix in more["crashes"])
    assert all(more.values())
    assert "streams" in left_out(["cancels"])
    assert "cancels" not in left_out(["cancels"]).split(", ")
    with pytest.raises(DefinitionRefused, match="cancels, timeouts, streams"):
        all_batches(1, dimensions=["weather"])


@pytest.mark.seldom
def test_laws_hold_where_one_call_is_cancelled_times_out_or_stops() -> None:
    """All traces of the batches that the dimensions add."""
    plain = len(list(all_batches(1)))
    found = exhaust(list(all_batches(1, dimensions=[name for name in DIMENSIONS if name != "crashes"]))[plain:])
    assert found.ok, str(found)
    assert found.batches == 8


@pytest.mark.seldom
def test_laws_hold_where_the_process_crashes_before_any_step() -> None:
    """All traces of one call; a journal that writes too late breaks one in some of them."""
    kinds = [KINDS["sleeps, then writes the cell"]]
    crashes = [mix for mix in all_batches(1, kinds, dimensions=["crashes"]) if mix.crash_after is not None]
    assert {mix.crash_after for mix in crashes} == {0.0, 0.5}
    assert exhaust(crashes).ok
    with MUTANTS["an intent is written late"].apply():
        alarms = exhaust(crashes, {"answered_once": LAWS["answered_once"]}).alarms
    assert len(alarms) == 2


@pytest.mark.seldom
def test_every_call_of_a_cancelled_batch_is_answered() -> None:
    """In every trace; and where the reader of a batch that is cancelled from inside is told nothing, law 1 says so."""
    cancelled = [mix for mix in all_batches(2, dimensions=["cancels"]) if mix.cancel_after is not None]
    chosen = [mix for mix in cancelled if all(call.seconds for call in mix.calls)]
    assert {mix.cancel_outside for mix in chosen} == {False, True}
    only = {"answered_once": LAWS["answered_once"]}
    found = exhaust(chosen, only)
    assert found.ok, str(found)
    with MUTANTS["a cancel silences the reader"].apply():
        alarmed = [alarm.mix for alarm in exhaust(chosen, only).alarms]
        assert [(mix.cancel_outside, mix.cancel_call) for mix in alarmed] == [(False, None)]


@pytest.mark.seldom
def test_laws_hold_in_every_trace_of_one_call() -> None:
    """Ten batches of one call each."""
    found = exhaust(all_batches(1))
    assert found.ok, str(found)
    assert found.batches == len(KINDS)
    assert found.traces >= found.batches
    assert json.loads(json.dumps(found.to_json()))["ok"]


@pytest.mark.seldom
def test_laws_hold_in_every_trace_of_two_calls_of_some_kinds() -> None:
    """Calls that conflict, that are alone, and that stop the batch."""
    kinds = [KINDS[name] for name in ("reads a cell", "writes the cell", "alone", "fails and stops")]
    found = exhaust(all_batches(2, kinds))
    assert found.ok, str(found)
    assert found.batches == 16


@pytest.mark.seldom
def test_a_broken_runtime_is_found() -> None:
    """Where a claim does not wait for the one before it, some trace breaks a law."""
    calls = list(all_batches(2, [KINDS["appends to a file"]]))
    assert exhaust(calls).ok
    with MUTANTS["files are not ordered"].apply():
        found = exhaust(calls)
    assert not found.ok
    assert "same_file_in_call_order" in str(found)


def test_a_batch_that_is_cut_short_is_unfinished() -> None:
    """With a budget that is too small, nothing was shown."""
    found = exhaust([Mix([KINDS["says something"]])], most=1)
    assert not found.ok
    assert [why for _, why in found.unfinished] == ["the budget ran out"]


def test_the_number_of_calls_is_checked() -> None:
    """No batch has no call."""
    with pytest.raises(DefinitionRefused, match="1 or more"):
        all_batches(0)


def seen(execution: sim.Execution) -> str:
    """What somebody sees of an execution: what the reader was handed, in order, all results and all files."""
    told = ("result.delivered", "merge.delivered", "progress.delivered")
    handed = [(event.kind, sorted(event.fields.items())) for event in execution.trace.events if event.kind in told]
    settled = sorted(str(event.fields) for event in execution.trace.events if event.kind == "call.settled")
    return repr((handed, settled, execution.value, execution.error))


def all_seen(mix: Mix, strategy: sim.Strategy) -> tuple[set[str], sim.Report]:
    """All that anybody can see of a mix, by the executions of a strategy."""
    found: set[str] = set()

    def look(execution: sim.Execution) -> bool:
        found.add(seen(execution))
        return True

    report = sim.explore(mix.program(), strategy, look)
    assert report.verdict is sim.PASS, report
    return found, report


SPEAKS = Scripted([Say("one"), Pause(), Say("two")], says="safe")
STOPS = Scripted([Fail("broken")], says="safe", stops=True)
OVERWRITES = Scripted([SeeState("x"), OverwriteState("x", "b")], says="safe")


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    "mix",
    [
        Mix([KINDS["says something"], KINDS["alone"]], state={"x": "0"}),
        Mix([KINDS["says something"], KINDS["says something"]]),
        Mix([KINDS["alone"], KINDS["fails and stops"]], state={"x": "0"}),
        Mix([STOPS, KINDS["reads a cell"]]),
        Mix([SPEAKS], reader="slow"),
        Mix([KINDS["says something"], STOPS], limit=1),
        Mix([KINDS["says something"], Scripted([ReadCell("a")])], limit=1, reader="slow"),
        Mix([Scripted([Say("no")], says="safe", approval="deny"), KINDS["says something"]]),
        Mix([KINDS["reads a cell"]], cancel_after=0.0),
        Mix([KINDS["says something"], KINDS["unknown"]], delays=[0.0, 1.0]),
        Mix([KINDS["sees and changes the state"], OVERWRITES], state={"x": "0"}),
        Mix([KINDS["sees and changes the state"], STOPS], state={"x": "0"}),
    ],
    ids=str,
)
def test_reduction_shows_all_that_all_schedules_show(mix: Mix) -> None:
    """What the runtime says of its bookkeeping is enough: nothing that a reader could see is left out."""
    every, all_of_them = all_seen(mix, sim.Exhaustive())
    some, traces = all_seen(mix, sim.DPOR())
    assert some == every
    assert traces.executions <= 2 * all_of_them.executions  # twice where the space is gone through again


def test_bookkeeping_alone_orders_few_steps() -> None:
    """Two tools that meet nowhere, and a reader: 12 traces where every step that reported nothing made it 337."""
    report = sim.explore(Mix([KINDS["writes the cell"], KINDS["writes another cell"]]).program(), sim.DPOR())
    assert report.claim == "exhaustive(traces=12)"


def test_merge_of_modifiers_that_ran_before_orders_few_steps() -> None:
    """The step of the merge runs no modifier then: 4 traces where it counted as one that may do anything made it 11."""
    report = sim.explore(Mix([KINDS["sees and changes the state"]], state={"x": "0"}).program(), sim.DPOR())
    assert report.claim == "exhaustive(traces=4)"


@pytest.mark.seldom
@pytest.mark.parametrize("jobs", [1, 2])
def test_batches_are_shared_out(jobs: int) -> None:
    """What several processes show is what one shows, group by group."""
    told: list[BatchProgress] = []
    one, other = exhaust_each([FEW[:2], FEW[2:]], jobs=jobs, progress=told.append)
    alone = exhaust(FEW)
    assert (one.batches, other.batches) == (2, 7)
    assert one.traces + other.traces == alone.traces
    assert max(one.most, other.most) == alone.most
    assert one.ok
    assert other.ok
    assert (told[-1].batches, told[-1].of, told[-1].traces, told[-1].failed) == (9, 9, alone.traces, 0)
    assert str(told[-1]).startswith("9 of 9 batches, ")


@pytest.mark.seldom
@pytest.mark.process
def test_what_a_worker_finds_broken_is_shown_here() -> None:
    """An alarm is run again by whoever asked, and names law, batch and schedule."""
    with MUTANTS["files are not ordered"].apply():
        calls = list(all_batches(2, [KINDS["appends to a file"], KINDS["reads a cell"]]))
        shared, alone = exhaust(calls, jobs=2), exhaust(calls)
    assert not shared.ok
    assert shared == alone


@pytest.mark.seldom
@pytest.mark.process
def test_a_search_is_gone_on_with(tmp_path: Path) -> None:
    """What was done before Ctrl-C is not done again, and the sum is that of one sitting."""
    file = tmp_path / "laws.json"

    told: list[BatchProgress] = []

    def interrupt(progress: BatchProgress) -> None:
        told.append(progress)
        if len(told) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    first = exhaust(FEW, progress=interrupt, checkpoint=file)
    assert not first.ok
    assert 1 <= first.batches < len(FEW)
    assert first.left == len(FEW) - first.batches
    assert f"not reached: {first.left:,} batch" in str(first)
    done: list[BatchProgress] = []
    whole = exhaust(FEW, progress=done.append, checkpoint=file, jobs=2)
    assert whole == exhaust(FEW)
    assert done[0].batches > first.batches
    assert not file.exists()


def test_a_search_is_kept_when_something_is_raised(tmp_path: Path) -> None:
    """Hours may have gone into it."""
    file = tmp_path / "laws.json"

    def fail(progress: BatchProgress) -> None:
        raise RuntimeError("no room to draw")

    with pytest.raises(RuntimeError, match="no room"):
        exhaust(FEW, progress=fail, checkpoint=file)
    assert len(json.loads(file.read_text())["done"]) == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "no file that a search"),
        ("[]", "no file that a search"),
        (b"\xff\xfe", "no file that a search"),
        ('{"version": 1, "whose": "", "done": {"a": 1}}', "no file that a search"),
        ('{"version": 1, "whose": "somebody", "done": {}}', "other batches, other laws, or other code"),
    ],
)
def test_another_search_s_file_is_refused(tmp_path: Path, content: str | bytes, why: str) -> None:
    """Nothing is believed of other batches, laws or code; the file stays as it was."""
    file = tmp_path / "laws.json"
    raw = content if isinstance(content, bytes) else content.encode()
    file.write_bytes(raw)
    with pytest.raises(InputRefused, match=why):
        exhaust(FEW, checkpoint=file)
    assert file.read_bytes() == raw


def test_a_file_of_other_laws_is_refused(tmp_path: Path) -> None:
    """Fewer laws held once say nothing of the others."""
    file = tmp_path / "laws.json"

    def fail(progress: BatchProgress) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        exhaust(FEW, {"answered_once": LAWS["answered_once"]}, progress=fail, checkpoint=file)
    with pytest.raises(InputRefused, match="other laws"):
        exhaust(FEW, checkpoint=file)


def test_a_file_needs_its_directory(tmp_path: Path) -> None:
    """It is not found out after hours."""
    with pytest.raises(InputRefused, match="its directory is not there"):
        exhaust(FEW, checkpoint=tmp_path / "none" / "laws.json")


@pytest.mark.seldom
@pytest.mark.process
def test_batches_of_a_worker_that_dies_are_done_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked does them."""
    master, real = os.getpid(), _sittings._BatchSearcher.do

    def die(bench: Any, order: int) -> Any:
        if os.getpid() != master:
            os._exit(3)
        return real(bench, order)

    monkeypatch.setattr(_sittings._BatchSearcher, "do", die)
    assert exhaust(FEW, jobs=2) == exhaust(FEW)


@pytest.mark.parametrize(
    "wrong", [{"jobs": 0}, {"jobs": True}, {"progress": 3}, {"checkpoint": 3}], ids=["none", "bool", "progress", "path"]
)
def test_how_it_is_shared_out_is_checked(wrong: dict[str, Any]) -> None:
    """Nothing is run."""
    with pytest.raises(DefinitionRefused):
        exhaust(FEW, **wrong)


def test_order_of_work_reaches_every_batch() -> None:
    """Each place once, whatever their number."""
    for count in range(60):
        assert sorted(_sittings._mixed(count)) == list(range(count))
