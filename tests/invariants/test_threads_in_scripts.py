"""Scripted calls in threads that are threads, in the simulator as outside of it."""

from __future__ import annotations

import threading
from typing import Any

import attrs
import pytest
import trio

from toolrt import sim
from toolrt.errors import DefinitionRefused
from toolrt.invariants import Mix, check, simulate
from toolrt.invariants.script import AddCell, Say, Scripted, Sleep
from toolrt.runtime import _execution

IN_THREAD = Scripted([Sleep(2.0), AddCell("a", "x"), Say("done")], sync=True, thread=True)
BEHIND = Scripted([AddCell("a", "y")])


def started(mix: Mix, index: int) -> float:
    """When the call of that index starts, in virtual seconds."""
    trace = simulate(mix, replayed=True).trace
    assert check(trace) == []
    return next(e.time for e in trace.events if e.kind == "call.started" and e.fields["call"] == index)


def test_a_thread_takes_its_time_and_a_call_behind_it_waits() -> None:
    """A plain call that is no thread is over at once, although its script sleeps."""
    assert started(Mix([IN_THREAD, BEHIND]), 1) == 2.0
    assert started(Mix([attrs.evolve(IN_THREAD, thread=False), BEHIND]), 1) == 0.0


def test_a_thread_whose_time_is_over_keeps_its_claims_until_it_ends() -> None:
    """Its result is there at once, and says that the thread still runs."""
    mix = Mix([attrs.evolve(IN_THREAD, timeout=0.5), BEHIND])
    assert started(mix, 1) == 2.0
    execution = simulate(mix)
    assert execution.value.outcomes == ("timed_out", "ok")
    settled = next(e for e in execution.trace.events if e.kind == "call.settled" and e.fields["call"] == 0)
    assert settled.time == 0.5
    assert "its thread cannot be stopped and still runs" in settled.fields["error"]


def test_both_oracles_wait_for_a_thread_whose_time_is_over() -> None:
    """What it changes is there before the next call begins, and it is timed out all the same."""
    mix = Mix([attrs.evolve(IN_THREAD, timeout=0.5), BEHIND])
    serial = mix.serial()
    assert serial is not None
    for told in (serial, mix.oracle()):
        assert [result["outcome"] for result in told["results"]] == ["timed_out", "ok"]


def test_a_cancel_waits_for_the_thread() -> None:
    """The batch is left when the thread has ended, and the call behind it has never started."""
    execution = simulate(Mix([IN_THREAD, BEHIND], cancel_after=1.0))
    assert check(execution.trace) == []
    assert execution.value.outcomes == ("interrupted", "not_started")
    left = next(event for event in execution.trace.events if event.kind == "batch.left")
    assert left.time == 2.0


def test_a_runtime_that_does_not_wait_for_threads_breaks_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the batch is over before the thread is; nothing that the runtime itself counts says so."""
    failed = _execution._failed

    async def waits_for_none(*arguments: Any) -> None:
        await failed(*arguments[:-1], None)

    monkeypatch.setattr(_execution, "_failed", waits_for_none)
    late = attrs.evolve(IN_THREAD, timeout=0.5)
    for beside in ([BEHIND], [BEHIND, Scripted([Sleep(4.0)], says="safe")]):
        found = check(simulate(Mix([late, *beside])).trace)
        assert {one.law for one in found} == {"nothing_left"}


def test_outside_of_the_simulator_it_is_a_thread_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same mix, run by Trio alone."""
    names: list[str] = []
    monkeypatch.setattr("time.sleep", lambda seconds: names.append(threading.current_thread().name))
    ending = trio.run(Mix([IN_THREAD, BEHIND]).program())
    assert ending.outcomes == ("ok", "ok")
    assert names != []
    assert names[0] != threading.main_thread().name


@pytest.mark.seldom
def test_all_interleavings_of_a_thread_and_a_task_are_explored() -> None:
    """A thread is an actor, so the laws hold in every trace of it and of the call beside it."""
    beside = Scripted([Say("beside")], says="safe")
    mix = Mix([Scripted([Say("in thread")], says="safe", sync=True, thread=True), beside])
    report = sim.explore(mix.program(), sim.DPOR(), check=mix.check, max_executions=1_000)
    assert report.verdict is sim.PASS
    assert report.executions > 100


def test_only_a_plain_call_runs_in_a_thread() -> None:
    """An async one is refused."""
    with pytest.raises(DefinitionRefused, match="sync=True as well"):
        Scripted([], thread=True)
