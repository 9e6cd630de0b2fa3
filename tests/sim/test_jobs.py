"""Explorations by several processes, over several sittings, within a time, and interrupted."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import select
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

from toolrt import sim
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.sim import _divided, _workers

# Test runners have threads of their own; a worker runs nothing but the simulator.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

STRATEGIES: list[sim.Strategy] = [
    sim.Exhaustive(),
    sim.Bounded(preemptions=2),
    sim.Portfolio(120, seed=3),
    sim.Random(sim.RandomWalk(1), 120),
    sim.Random(sim.PCT(2, 1), 120),
    sim.Random(sim.POS(1), 120),
    sim.Random(sim.URW(1), 120),
]


def shown(report: sim.Report) -> dict[str, Any]:
    """Everything a report says, in an order of its own where it has one."""
    return {
        "verdict": report.verdict,
        "claim": report.claim,
        "counts": (report.executions, report.distinct, report.failed, report.undecided, report.complete),
        "outcomes": list(report.outcomes.items()),
        "failures": [failure.execution.choices for failure in report.failures],
        "unfinished": report.unfinished,
    }


async def pid() -> int:
    """Some choices; its value says who ran it."""
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(checkpoint)
    return os.getpid()


def fine(execution: sim.Execution) -> bool:
    """Say that all is well."""
    return True


# ---------------------------------------------------------------- the same as one job


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@pytest.mark.parametrize(("name", "arguments"), [("lost_update", (3, 2)), ("dining", (3,)), ("bounded_buffer", (2, 2))])
def test_jobs_show_what_one_job_shows(programs, name: str, arguments, strategy: sim.Strategy) -> None:
    """The same verdict, claim, counts, outcomes in their order, and failures in theirs."""
    program, check = getattr(programs, name)(*arguments)
    assert shown(sim.explore(program, strategy, check, jobs=3)) == shown(sim.explore(program, strategy, check))


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.sampled_from([sim.Exhaustive(), sim.Bounded(1)]))
def test_jobs_run_every_schedule_once(lengths: list[int], strategy: sim.Strategy) -> None:
    """Whatever the tree, also when there is less to do than there are processes."""

    async def program() -> None:
        async def steps(count: int) -> None:
            for _ in range(count - 1):
                await checkpoint()

        async with trio.open_nursery() as nursery:
            for length in lengths:
                nursery.start_soon(steps, length)

    assert shown(sim.explore(program, strategy, jobs=2)) == shown(sim.explore(program, strategy))


def reduced(report: sim.Report) -> dict[str, Any]:
    """What a reduction shows whoever runs which trace: not which of its schedules, nor in which order."""
    counts = (report.executions, report.failed, report.undecided, report.complete)
    return {**shown(report), "counts": counts, "outcomes": report.outcomes, "failures": len(report.failures)}


@pytest.mark.parametrize("strategy", [sim.DPOR(), sim.DPOR("declared")], ids=str)
@pytest.mark.parametrize(
    ("name", "arguments"), [("lost_update", (3, 1)), ("reorder", (4,)), ("dining", (3,)), ("bounded_buffer", (2, 2))]
)
def test_jobs_reduce_as_one_job_does(programs, name: str, arguments, strategy: sim.Strategy) -> None:
    """One execution of each trace whoever runs it: the same verdict, claim, counts and outcomes."""
    program, check = getattr(programs, name)(*arguments)
    assert reduced(sim.explore(program, strategy, check, jobs=3)) == reduced(sim.explore(program, strategy, check))


def test_jobs_reduce_with_a_cancel_and_a_clock() -> None:
    """What else can happen is divided like anything else."""

    async def program() -> tuple[int, bool]:
        cell = sim.Cell(0, "x")

        async def add() -> None:
            seen = cell.get()
            await checkpoint()
            cell.set(seen + 1 + sim.choose(2))

        with trio.move_on_after(1) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(add)
                nursery.start_soon(add)
        return cell.get(), scope.cancelled_caught

    for actors in ({"cancel_at": "any"}, {"clock": "explored", "clock_moves": 1}):
        one, two = (sim.explore(program, sim.DPOR(), fine, jobs=jobs, **actors) for jobs in (1, 2))  # type: ignore[arg-type]
        assert reduced(one) == reduced(two)
        assert one.complete


def test_jobs_share_the_traces() -> None:
    """Each of the processes runs some of them."""

    async def program() -> int:
        cell = sim.Cell(0, "x")

        async def add() -> None:
            for _ in range(2):
                seen = cell.get()
                await checkpoint()
                cell.set(seen + 1)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(add)
        return os.getpid()

    report = sim.explore(program, sim.DPOR(), fine, jobs=2)
    assert report.claim == "exhaustive(traces=762)"
    assert len(report.outcomes) == 3
    assert report.outcomes[os.getpid()] == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_reduction_is_gone_on_with(jobs: int, programs, tmp_path: Path) -> None:
    """Sittings of 100 executions show in the end what one sitting does; then the file is gone."""
    program, _ = programs.reorder(4)
    path = tmp_path / "search"
    sittings = 0
    while not sittings or path.exists():
        report = sim.explore(program, sim.DPOR(), fine, 100, jobs, checkpoint=path)
        sittings += 1
    assert sittings > 2
    assert reduced(report) == reduced(sim.explore(program, sim.DPOR(), fine))


def test_jobs_leave_out_no_outcome_where_a_step_withholds_what_decides() -> None:
    """Whether it is noticed depends on which process sees what; the outcomes do not."""

    async def program() -> None:
        cell, queue, waiting = sim.Cell(0, "x"), [], []

        async def take() -> None:
            while not queue:
                event = trio.Event()
                waiting.append(event)
                await event.wait()
            queue.pop()
            await checkpoint()

        async def put() -> None:
            queue.append(1)
            if waiting:
                waiting.pop().set()

        async def write() -> None:
            cell.set(1)

        async with trio.open_nursery() as nursery:
            for task in (take, put, write):
                nursery.start_soon(task)

    report = sim.explore(program, sim.DPOR(), fine, jobs=2)
    assert report.complete
    assert report.claim.startswith("exhaustive(")
    assert report.outcomes.keys() == sim.explore(program, sim.DPOR(), fine).outcomes.keys()


def test_jobs_take_the_cancel_along(programs) -> None:
    """Exploring cancels is divided like anything else."""
    program, _ = programs.lost_update(2, 1)
    one, two = (sim.explore(program, sim.Exhaustive(), fine, jobs=jobs, cancel_at="any") for jobs in (1, 2))
    assert shown(one) == shown(two)
    assert sim.CANCELLED in two.outcomes
    assert two.claim.endswith("with cancel_at=any")


def test_all_processes_work() -> None:
    """Each takes its share: the master runs the first schedule only."""
    report = sim.explore(pid, sim.Exhaustive(), fine, jobs=2)
    assert len(report.outcomes) == 3
    assert report.outcomes[os.getpid()] == 1
    assert report.executions == 2520


def test_nothing_is_left_of_the_processes() -> None:
    """Also when the exploration was refused or broken off."""
    sim.explore(pid, sim.Portfolio(20), jobs=2)
    assert multiprocessing.active_children() == []


def test_outcomes_of_any_kind_are_counted() -> None:
    """A value that no other process could send is made again here; equal ones are one outcome."""

    class Odd:
        def __init__(self, value: int) -> None:
            self.value = value
            self.lock = threading.Lock()

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Odd) and other.value == self.value

        def __hash__(self) -> int:
            return self.value

        def __repr__(self) -> str:
            return f"Odd({self.value})"

    async def program() -> Odd:
        order: list[int] = []

        async def arrive(number: int) -> None:
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(arrive, number)
        return Odd(order[0])

    one, two = (sim.explore(program, sim.Exhaustive(), fine, jobs=jobs) for jobs in (1, 2))
    assert one.outcomes == two.outcomes == {Odd(number): 6 for number in range(4)}
    assert list(map(str, one.outcomes)) == list(map(str, two.outcomes))


def test_failures_of_jobs_can_be_explained(programs) -> None:
    """A failure is an execution of this process, whoever found it."""
    program, check = programs.lost_update(2, 1)
    (failure, *_) = sim.explore(program, sim.Exhaustive(), check, jobs=2).failures
    assert failure.minimal.switches == 1
    assert "sim.replay(program" in failure.explain()


def test_at_most_a_hundred_failures_the_first_of_all() -> None:
    """As of one job."""
    one, two = (sim.explore(pid, sim.Exhaustive(), lambda execution: False, jobs=jobs) for jobs in (1, 2))
    assert [each.schedule for each in one.failures] == [each.schedule for each in two.failures]
    assert (len(two.failures), two.failed) == (100, 2520)


# ---------------------------------------------------------------- what is refused, what breaks


class _Mine(sim.RandomWalk):
    def derive(self, index: int) -> sim.RandomWalk:
        return _Mine(index)


@pytest.mark.parametrize("more", [{"jobs": 2}, {"checkpoint": "never-made"}])
def test_strategy_that_cannot_be_divided_is_refused(more: dict[str, Any]) -> None:
    """Nobody knows what a stranger's policy depends on."""
    with pytest.raises(DefinitionRefused, match="cannot be divided"):
        sim.explore(pid, sim.Random(_Mine(1), 10), **more)


def test_program_that_cannot_be_sent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no fork a local function cannot reach a worker."""
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])

    async def local() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(checkpoint)
            nursery.start_soon(checkpoint)

    with pytest.raises(DefinitionRefused, match="can be pickled"):
        sim.explore(local, sim.Exhaustive(), jobs=2)


def test_program_that_can_be_sent_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without fork the functions of a module do."""
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    strategy = sim.Random(sim.RandomWalk(1), 200)
    report = sim.explore(pid, strategy, fine, jobs=2)
    assert report.claim == sim.explore(pid, strategy).claim
    assert len(report.outcomes) == 3


def test_what_a_check_raises_in_a_worker_is_raised_here() -> None:
    """It is the caller's error, as with one job, and comes with its own traceback."""

    def broken(execution: sim.Execution) -> None:
        if execution.choices[1:3] == (2, 1):
            raise LookupError("broken check")

    with pytest.raises(LookupError, match="broken check") as raised:
        sim.explore(pid, sim.Exhaustive(), broken, jobs=2)
    assert raised.traceback[-1].name == "broken"
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("strategy", [sim.Exhaustive(), sim.Portfolio(100)], ids=str)
def test_worker_that_dies_is_no_pass(strategy: sim.Strategy) -> None:
    """What it was to run was not run, and the report says so; the others go on."""
    master = os.getpid()

    async def program() -> None:
        order = []

        async def arrive(number: int) -> None:
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(arrive, number)
        if os.getpid() != master and order == [2, 0, 3, 1]:
            os._exit(9)

    report = sim.explore(program, strategy, jobs=2)
    assert (report.verdict, report.complete) == (sim.INCONCLUSIVE, False)
    assert "a process came to its end (exit code 9)" in str(report)


def test_all_workers_dead_is_no_pass() -> None:
    """The report is of what was run before."""
    master = os.getpid()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(checkpoint)
        if os.getpid() != master:
            os.kill(os.getpid(), signal.SIGKILL)

    report = sim.explore(program, sim.Exhaustive(), jobs=2)
    assert (report.verdict, report.executions) == (sim.INCONCLUSIVE, 1)
    assert "exit code -9" in str(report.unfinished)


def test_program_that_depends_on_its_process_is_found_out() -> None:
    """An execution that fails there and not here decides nothing."""
    master = os.getpid()

    async def program() -> bool:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(checkpoint)
        return os.getpid() == master

    report = sim.explore(program, sim.Exhaustive(), lambda execution: execution.value, jobs=2)
    assert report.failures == []
    assert "not here" in str(report.unfinished)


def test_uncontrolled_program_is_found_out_by_workers() -> None:
    """As with one job: a prefix that leads somewhere else at its second visit."""
    dice = random.Random(1)

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(dice.randint(2, 4)):
                nursery.start_soon(checkpoint)

    report = sim.explore(program, sim.Exhaustive(), jobs=2)
    assert (report.verdict, report.complete) == (sim.INCONCLUSIVE, False)
    assert "something the simulator does not control" in str(report)


# ---------------------------------------------------------------- budgets and progress


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


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_is_told(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end at least, with how many there were."""
    told: list[sim.Progress] = []
    sim.explore(pid, sim.Exhaustive(), fine, jobs=jobs, progress=told.append)
    assert (told[-1].executions, told[-1].expected, told[-1].left) == (2520, 2520, 0)
    assert str(told[-1]).startswith("2,520 executions of about 2,520")
    sim.explore(pid, sim.Portfolio(9), lambda execution: False, jobs=jobs, progress=told.append)
    assert (told[-1].executions, told[-1].expected, told[-1].failed) == (9, 9, 9)
    sim.explore(pid, sim.Bounded(1), fine, jobs=jobs, progress=told.append)
    assert (told[-1].expected, told[-1].left) == (None, None)


def test_progress_foresees_the_end() -> None:
    """From the share of the tree that was run; for a tree whose branches are alike that is exact."""
    told: list[sim.Progress] = []
    sim.explore(pid, sim.Exhaustive(), fine, 630, progress=told.append)
    assert told[-1].expected == pytest.approx(2520)
    assert "630 executions of about 2,520" in str(told[-1])


# ---------------------------------------------------------------- checkpoints


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


def test_checkpoint_is_written_while_the_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, programs
) -> None:
    """With what is lent out in it: who goes on from there misses nothing."""
    monkeypatch.setattr(_divided, "_SAVE", 0.0)
    monkeypatch.setattr(_workers, "_LONG", 0.01)
    program, _ = programs.reorder(4)
    path, kept = tmp_path / "search", tmp_path / "kept"

    def keep(progress: sim.Progress) -> None:
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


def test_checkpoint_keeps_what_a_dead_worker_had(tmp_path: Path) -> None:
    """Its part is run in the next sitting."""
    path, flag = tmp_path / "search", tmp_path / "once"
    master = os.getpid()

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(checkpoint)
        if os.getpid() != master and not flag.exists():
            flag.touch()
            os._exit(1)

    first = sim.explore(program, sim.Exhaustive(), jobs=2, checkpoint=path)
    assert (first.verdict, first.executions < 90, path.exists()) == (sim.INCONCLUSIVE, True, True)
    second = sim.explore(program, sim.Exhaustive(), jobs=2, checkpoint=path)
    assert (second.verdict, second.executions) == (sim.PASS, 90)


def test_checkpoint_of_another_exploration_is_refused(tmp_path: Path, programs) -> None:
    """Another strategy, another program, another step limit; and it stays as it is."""
    path = tmp_path / "search"
    program, _ = programs.dining(3)
    sim.explore(program, sim.Exhaustive(), fine, 10, checkpoint=path)
    before = path.read_bytes()
    arguments: list[tuple[Any, sim.Strategy, dict[str, Any]]] = [
        (program, sim.Bounded(1), {}),
        (pid, sim.Exhaustive(), {}),
        (program, sim.Exhaustive(), {"step_limit": 99}),
        (program, sim.Exhaustive(), {"cancel_at": "any"}),
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


@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupt_gives_the_report_so_far(jobs: int, tmp_path: Path, programs) -> None:
    """The first Ctrl-C ends the search; the checkpoint is there to go on with, and workers are gone."""
    program, _ = programs.reorder(5)
    path = tmp_path / "search"

    def press(progress: sim.Progress) -> None:
        if progress.executions > 1 and not path.exists():
            signal.raise_signal(signal.SIGINT)

    report = sim.explore(program, sim.Exhaustive(), fine, jobs=jobs, progress=press, checkpoint=path)
    assert (report.verdict, report.interrupted) == (sim.INCONCLUSIVE, True)
    assert 1 < report.executions < 113_400
    assert "Interrupted" in str(report)
    assert path.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert multiprocessing.active_children() == []


def test_interrupt_of_the_whole_group_is_the_masters_to_answer(tmp_path: Path) -> None:
    """A terminal sends it to all processes: nobody prints a traceback, and the report comes."""
    script = tmp_path / "search.py"
    script.write_text(
        textwrap.dedent("""
        import trio
        from toolrt import sim

        async def program():
            async with trio.open_nursery() as nursery:
                for _ in range(9):
                    nursery.start_soon(trio.lowlevel.checkpoint)

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


def test_workers_end_when_their_master_is_killed(tmp_path: Path) -> None:
    """Nothing is left running."""
    script = tmp_path / "search.py"
    script.write_text(
        textwrap.dedent("""
        import multiprocessing, trio
        from toolrt import sim

        async def program():
            async with trio.open_nursery() as nursery:
                for _ in range(9):
                    nursery.start_soon(trio.lowlevel.checkpoint)

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
