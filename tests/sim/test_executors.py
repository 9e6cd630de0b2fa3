"""Explorations on an executor show what one process shows, also when a worker is lost."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from trio.lowlevel import checkpoint

from tests.sim._campaigns import KILLED, always_killed, arrivals, fine, keeps_all, killed_once, lost_update
from tests.sim._divided import STRATEGIES, reduced, shown
from toolrt import sim
from toolrt.errors import DefinitionRefused, MissingExtra
from toolrt.sim.exploring import _executors

# Test runners have threads of their own; a worker runs nothing but the simulator.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

_FORK = multiprocessing.get_context("fork")


def _processes(workers: int = 2) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, _FORK)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_threads_show_what_one_process_shows(strategy: sim.Strategy) -> None:
    """The same verdict, claim, counts, outcomes in their order, and failures in theirs."""
    with ThreadPoolExecutor(2) as executor:
        report = sim.explore(arrivals, strategy, fine, jobs=executor)
    assert shown(report) == shown(sim.explore(arrivals, strategy, fine))


def test_threads_take_what_no_process_could() -> None:
    """A local program with local outcomes: it is there already."""
    lock = threading.Lock()

    async def program() -> threading.Lock:
        await checkpoint()
        return lock

    with ThreadPoolExecutor(2) as executor:
        assert list(sim.explore(program, sim.Exhaustive(), jobs=executor).outcomes) == [lock]


@pytest.mark.seldom
@pytest.mark.process
def test_processes_show_what_one_process_shows() -> None:
    """The same executor serves one exploration after the other, reduced or not, and is still the caller's."""
    with _processes() as executor:
        for strategy in (sim.DPOR(), sim.Portfolio(200)):
            report = sim.explore(lost_update, strategy, keeps_all, jobs=executor)
            assert reduced(report) == reduced(sim.explore(lost_update, strategy, keeps_all))
        assert executor.submit(int, "7").result() == 7
    assert report.failures[0].minimal.switches >= 1


@pytest.mark.process
@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.DPOR()], ids=str)
def test_part_of_a_lost_worker_is_run_again(
    strategy: sim.Strategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker is killed in the midst: the same verdict, claim and counts as one process."""
    monkeypatch.setenv(KILLED, str(tmp_path / "killed"))
    with _processes() as executor:
        report = sim.explore(killed_once, strategy, fine, jobs=executor)
    assert (tmp_path / "killed").exists()
    assert reduced(report) == reduced(sim.explore(arrivals, strategy, fine))
    assert report.verdict is sim.PASS


@pytest.mark.process
def test_part_whose_workers_are_always_lost_is_no_pass() -> None:
    """It is begun three times; the report is of what was run before."""
    with _processes() as executor:
        report = sim.explore(always_killed, sim.Exhaustive(), jobs=executor)
    assert (report.verdict, report.executions) == (sim.INCONCLUSIVE, 1)
    assert "its worker was lost 3 times: BrokenProcessPool" in str(report.unfinished)


@pytest.mark.process
def test_large_program_is_sent_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not along with every order."""
    monkeypatch.setattr(_executors, "_SMALL", 0)
    with _processes() as executor:
        report = sim.explore(arrivals, sim.Portfolio(20), fine, jobs=executor)
    assert shown(report) == shown(sim.explore(arrivals, sim.Portfolio(20), fine))


@pytest.mark.seldom
@pytest.mark.process
def test_sittings_on_an_executor_end_as_one_sitting(tmp_path: Path) -> None:
    """A checkpoint is gone on with, and progress is reported."""
    path, sittings = tmp_path / "search", 0
    told: list[sim.ExplorationProgress] = []
    with _processes() as executor:
        while not sittings or path.exists():
            report = sim.explore(lost_update, sim.DPOR(), fine, 300, executor, checkpoint=path, progress=told.append)
            sittings += 1
    assert sittings == 3
    assert reduced(report) == reduced(sim.explore(lost_update, sim.DPOR(), fine))
    assert told[-1].executions == report.executions == 762


def test_interrupt_gives_the_report_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the master; the workers end what they do."""
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.default_int_handler)

    def interrupt(progress: sim.ExplorationProgress) -> None:
        if progress.executions > 1:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ThreadPoolExecutor(2) as executor:
            report = sim.explore(lost_update, sim.Exhaustive(), fine, jobs=executor, progress=_once(interrupt))
    finally:
        signal.signal(signal.SIGINT, before)
    assert (report.verdict, report.interrupted, report.unfinished is not None) == (sim.INCONCLUSIVE, True, True)
    assert report.executions > 1


def _once(function: Any) -> Any:
    calls: list[sim.ExplorationProgress] = []

    def progress(now: sim.ExplorationProgress) -> None:
        if now.executions > 1 and not calls:
            calls.append(now)
            function(now)

    return progress


# ---------------------------------------------------------------- what is refused


@pytest.mark.process
def test_program_without_an_import_path_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without cloudpickle a local function cannot be sent; the message says what can."""
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)

    async def local() -> None:
        await checkpoint()

    with _processes() as executor, pytest.raises(DefinitionRefused, match="functions of a module") as raised:
        sim.explore(local, sim.Exhaustive(), jobs=executor)
    assert "local" in str(raised.value)


def test_worker_that_cannot_load_the_program_refuses_it() -> None:
    """It says why, and nothing is run; without a program it asks for it."""
    answer = _executors.do_order("campaign", b"nonsense", b"", 1.0)
    assert "UnpicklingError" in str(answer)
    assert _executors.do_order("campaign", b"", b"", 1.0) == _executors._NotLoaded("")


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same choices need not lead to the same schedule there."""
    payload = _executors._payload(_executors.ExplorationBench, None, by_value=False)
    monkeypatch.setattr(_executors, "_versions", lambda: "toolrt 99")
    answer = _executors.do_order("campaign", payload, b"", 1.0)
    assert "a worker with toolrt 99, for a program sent with toolrt " in str(answer)


def test_cluster_without_the_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install "toolrt[cluster]"`."""
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtra, match="cluster"):
        _executors.cluster_at("tcp://127.0.0.1:1")
