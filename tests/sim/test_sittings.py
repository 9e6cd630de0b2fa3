"""Explorations within a budget, over several sittings, and interrupted."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from tests.sim._divided import STRATEGIES, fine, pid, shown
from toolrt import sim
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.sim.exploring import _divided, _workers

# Test runners have threads of their own; a worker runs nothing but the simulator.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

# ---------------------------------------------------------------- budgets and progress


@pytest.mark.drawn(3)
@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("budget", [1, 2, 50])
def test_budget_of_executions_is_kept_to_the_number(jobs: int, budget: int) -> None:
    """However many processes there are."""
    report = sim.explore(pid, sim.Exhaustive(), fine, budget, jobs)
    assert (report.executions, report.verdict) == (budget, sim.INCONCLUSIVE)
    assert sim.explore(pid, sim.Exhaustive(), fine, 2520, jobs).verdict is sim.PASS


@pytest.mark.parametrize("strategy", STRATEGIES[2:], ids=str)
def test_budget_takes_the_first_of_a_sample(strategy: sim.Strategy, programs) -> None:
    """The same that one job would have run."""
    program, check = programs.lost_update(3, 1)
    one, two = (shown(sim.explore(program, strategy, check, 33, jobs)) for jobs in (1, 2))
    assert one == two


@pytest.mark.parametrize("jobs", [1, 2])
def test_time_that_is_up_ends_the_search(jobs: int, programs) -> None:
    """At least one schedule is run, and the verdict is none."""
    program, _ = programs.reorder(5)
    report = sim.explore(program, sim.Exhaustive(), fine, jobs=jobs, seconds=0.01)
    assert report.verdict is sim.INCONCLUSIVE
    assert 1 <= report.executions < 113_400
    assert "the budget ran out" in str(report)
    assert not report.interrupted


@pytest.mark.seldom
@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_is_told(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end at least, with how many there were."""
    told: list[sim.ExplorationProgress] = []
    sim.explore(pid, sim.Exhaustive(), fine, jobs=jobs, progress=told.append)
    assert (told[-1].executions, told[-1].expected, told[-1].left) == (2520, 2520, 0)
    assert str(told[-1]).startswith("2,520 executions of about 2,520")
    sim.explore(pid, sim.Portfolio(9), lambda execution: False, jobs=jobs, progress=told.append)
    assert (told[-1].executions, told[-1].expected, told[-1].failed) == (9, 9, 9)
    sim.explore(pid, sim.Bounded(1), fine, jobs=jobs, progress=told.append)
    assert (told[-1].expected, told[-1].left) == (None, None)


def test_progress_foresees_the_end() -> None:
    """From the share of the tree that was run; for a tree whose branches are alike that is exact."""
    told: list[sim.ExplorationProgress] = []
    sim.explore(pid, sim.Exhaustive(), fine, 630, progress=told.append)
    assert told[-1].expected == pytest.approx(2520)
    assert "630 executions of about 2,520" in str(told[-1])


# ---------------------------------------------------------------- checkpoints


@pytest.mark.drawn(5)
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_checkpoint_is_gone_on_with(jobs: int, strategy: sim.Strategy, programs, tmp_path: Path) -> None:
    """Sittings of 50 executions show in the end what one sitting does; then the file is gone."""
    program, check = programs.dining(3)
    path = tmp_path / "search"
    sittings = 0
    while not sittings or path.exists():
        report = sim.explore(program, strategy, check, 50, jobs, checkpoint=path)
        sittings += 1
    assert sittings > 2
    assert shown(report) == shown(sim.explore(program, strategy, check))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.seldom
@pytest.mark.process
def test_checkpoint_is_written_while_the_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs
) -> None:
    """With what is lent out in it: who goes on from there misses nothing."""
    monkeypatch.setattr(_divided, "_SAVE", 0.0)
    monkeypatch.setattr(_workers, "_LONG", 0.01)
    program, _ = programs.reorder(4)
    path, kept = tmp_path / "search", tmp_path / "kept"

    def keep(progress: sim.ExplorationProgress) -> None:
        if path.exists():
            kept.write_bytes(path.read_bytes())

    monkeypatch.setattr(_divided, "PROGRESS_EVERY", 0.0)
    sim.explore(program, sim.Exhaustive(), fine, jobs=2, checkpoint=path, progress=keep)
    before: list[int] = []
    report = sim.explore(
        program, sim.Exhaustive(), fine, checkpoint=kept, progress=lambda progress: before.append(progress.executions)
    )
    assert (report.claim, report.verdict) == ("exhaustive(schedules=2520)", sim.PASS)
    assert before[0] > 1


@pytest.mark.seldom
@pytest.mark.process
def test_checkpoint_keeps_what_a_dead_worker_had(tmp_path: Path) -> None:
    """Its part is run in the next sitting."""
    path, flag = tmp_path / "search", tmp_path / "once"
    master = os.getpid()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(checkpoint)
        if os.getpid() != master and not flag.exists():
            os.kill(os.getpid(), signal.SIGKILL)

    first = sim.explore(program, sim.Exhaustive(), jobs=2, checkpoint=path)
    flag.touch()
    assert (first.verdict, first.executions < 90, path.exists()) == (sim.INCONCLUSIVE, True, True)
    second = sim.explore(program, sim.Exhaustive(), jobs=2, checkpoint=path)
    assert (second.verdict, second.executions) == (sim.PASS, 90)


def test_checkpoint_of_another_exploration_is_refused(tmp_path: Path, programs) -> None:
    """Another strategy, another program or what it is made from, another step limit; and it stays as it is."""
    path = tmp_path / "search"
    program, _ = programs.dining(3)
    sim.explore(program, sim.Exhaustive(), fine, 10, checkpoint=path)
    before = path.read_bytes()
    arguments: list[tuple[Any, sim.Strategy, dict[str, Any]]] = [
        (program, sim.Bounded(1), {}),
        (pid, sim.Exhaustive(), {}),
        (program, sim.Exhaustive(), {"step_limit": 99}),
        (program, sim.Exhaustive(), {"cancel_at": "any"}),
        (program, sim.Exhaustive(), {"made_from": "other input"}),
    ]
    for other, strategy, more in arguments:
        with pytest.raises(InputRefused, match="expected one of"):
            sim.explore(other, strategy, fine, checkpoint=path, **more)
    assert path.read_bytes() == before


def test_checkpoint_of_a_program_that_has_changed_is_refused(tmp_path: Path) -> None:
    """Its first schedule is run again before anything is believed."""
    path = tmp_path / "search"
    tasks = 3

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(tasks):
                nursery.start_soon(checkpoint)

    sim.explore(program, sim.Exhaustive(), max_executions=2, checkpoint=path)
    tasks = 4
    with pytest.raises(InputRefused, match="no longer does what it did"):
        sim.explore(program, sim.Exhaustive(), checkpoint=path)


class _Bomb:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.putenv, ("TOOLRT_BOMB", "1")


@pytest.mark.process
@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps(1), pickle.dumps(_Bomb())])
def test_file_that_is_no_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    """And nothing in it is run."""
    path = tmp_path / "search"
    path.write_bytes(content)
    with pytest.raises(InputRefused, match="no checkpoint"):
        sim.explore(pid, sim.Exhaustive(), checkpoint=path)
    assert path.read_bytes() == content
    assert subprocess.run(["printenv", "TOOLRT_BOMB"], check=False).returncode == 1


def test_checkpoint_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """Its directory has to be there."""
    with pytest.raises(InputRefused, match="directory is not there"):
        sim.explore(pid, sim.Exhaustive(), checkpoint=tmp_path / "none" / "search")
    with pytest.raises(DefinitionRefused, match="checkpoint"):
        sim.explore(pid, sim.Exhaustive(), checkpoint=3)  # type: ignore[arg-type]


# ---------------------------------------------------------------- Ctrl-C


@pytest.mark.process
@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupt_gives_the_report_so_far(jobs: int, tmp_path: Path, programs) -> None:
    """The first Ctrl-C ends the search; the checkpoint is there to go on with, and workers are gone."""
    program, _ = programs.reorder(5)
    path = tmp_path / "search"

    def press(progress: sim.ExplorationProgress) -> None:
        if progress.executions > 1 and not path.exists():
            signal.raise_signal(signal.SIGINT)

    report = sim.explore(program, sim.Exhaustive(), fine, jobs=jobs, progress=press, checkpoint=path)
    assert (report.verdict, report.interrupted) == (sim.INCONCLUSIVE, True)
    assert 1 < report.executions < 113_400
    assert "Interrupted" in str(report)
    assert path.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupt_loses_no_execution_that_was_judged(jobs: int, tmp_path: Path, programs) -> None:
    """Also those of the part that is being done when it comes."""
    program, _ = programs.reorder(5)
    path = tmp_path / "search"
    master = os.getpid()

    def press(execution: sim.Execution) -> bool:
        if execution.index == 30:
            # Two workers may have an execution of that number.
            with contextlib.suppress(FileExistsError):
                (tmp_path / "pressed").touch(exist_ok=False)
                os.kill(master, signal.SIGINT)
        return True

    report = sim.explore(program, sim.Exhaustive(), press, jobs=jobs, checkpoint=path)
    assert report.interrupted
    assert report.executions > 30
    told: list[sim.ExplorationProgress] = []
    sim.explore(program, sim.Exhaustive(), press, 1, jobs, checkpoint=path, progress=told.append)
    assert told[-1].earlier == report.executions
    assert told[-1].executions == report.executions + 1


#: A program with more schedules than a test waits for.
_LONG = """
import multiprocessing
import trio
from toolrt import sim

async def program():
    async with trio.open_nursery() as nursery:
        for _ in range(9):
            nursery.start_soon(trio.lowlevel.checkpoint)
"""


@pytest.mark.seldom
@pytest.mark.process
def test_interrupt_of_the_whole_group_is_the_masters_to_answer(tmp_path: Path) -> None:
    """A terminal sends it to all processes: nobody prints a traceback, and the report comes."""
    script = tmp_path / "search.py"
    script.write_text(
        _LONG
        + textwrap.dedent("""
        def tell(progress):
            if progress.executions > 1:
                print("ready", flush=True)

        print(sim.explore(program, sim.Exhaustive(), jobs=2, progress=tell))
        """)
    )
    process = subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            os.killpg(process.pid, signal.SIGINT)
            printed, complaint = process.communicate(timeout=100)
        finally:
            process.kill()
    assert (complaint, "came to its end" in printed) == ("", False)
    assert "INCONCLUSIVE: incomplete(" in printed
    assert "Interrupted" in printed


@pytest.mark.process
def test_workers_end_when_their_master_is_killed(tmp_path: Path) -> None:
    """Nothing is left running."""
    script = tmp_path / "search.py"
    script.write_text(
        _LONG
        + textwrap.dedent("""
        def tell(progress):
            if progress.executions > 1:
                print(*(child.pid for child in multiprocessing.active_children()), flush=True)

        sim.explore(program, sim.Exhaustive(), jobs=2, progress=tell)
        """)
    )
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            assert process.stdout is not None
            workers = [int(word) for word in process.stdout.readline().split()]
        finally:
            process.kill()
    assert len(workers) == 2
    assert all(_has_ended(worker) for worker in workers)


def _has_ended(process: int) -> bool:
    """Wait for the end of a process that is nobody's child here; False when it does not come."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 30)[0])
    finally:
        os.close(descriptor)
