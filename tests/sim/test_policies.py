"""PCT, POS and URW: what each draws, and what it measures."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import trio
from trio.lowlevel import checkpoint

from toolrt import sim

_SEEDED = [lambda seed: sim.PCT(depth=2, seed=seed), sim.POS, sim.URW, sim.RandomWalk]
_NAMES = ["PCT", "POS", "URW", "RandomWalk"]


def _any(execution: sim.Execution) -> bool:
    return True


def _schedules(program, strategy: sim.Strategy) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    sim.explore(program, strategy, lambda execution: found.append(execution.choices) or True)
    return found


def _failing(program, check, policy: sim.Policy, n: int) -> float:
    """The share of failing executions."""
    return sim.explore(program, sim.Random(policy, n), check).failed / n


@pytest.mark.parametrize("policy", _SEEDED, ids=_NAMES)
def test_sample_depends_on_the_seed_alone(programs, policy) -> None:
    """One seed is one sample, however often it is drawn and whatever was explored between."""
    program, _ = programs.reorder(4)
    once = policy(1)
    first = _schedules(program, sim.Random(once, 30))
    _schedules(programs.lost_update(3, 2)[0], sim.Random(once, 30))
    assert _schedules(program, sim.Random(once, 30)) == first
    assert _schedules(program, sim.Random(policy(2), 30)) != first


@pytest.mark.parametrize("policy", _SEEDED, ids=_NAMES)
def test_single_run_replays(programs, policy) -> None:
    """A policy drives one run as well as a sample, and its schedule replays."""
    program, _ = programs.dining(3)
    execution = sim.run(program, policy(5))
    assert sim.run(program, policy(5)).schedule == execution.schedule
    assert sim.replay(program, execution.schedule).schedule == execution.schedule


class _ByTuples:
    """A policy that is handed a tuple of names at each step, as one of a user's is."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.seed = policy, policy.seed

    def start(self, info: Any) -> None:
        self.policy.start(info)

    def choose(self, enabled: tuple[str, ...], step: int) -> int:
        return self.policy.choose(enabled, step)

    def finish(self, steps: int) -> None:
        getattr(self.policy, "finish", int)(steps)

    def derive(self, index: int) -> Any:
        return _ByTuples(self.policy.derive(index))


async def _crowd() -> None:
    """Forty tasks that come in groups: they wait, choose, touch a cell of some or of all, or report nothing."""
    cells, lock = [sim.Cell(0) for _ in range(4)], trio.Lock()

    async def one(number: int) -> None:
        for _ in range(number % 3):
            await checkpoint()
        for _ in range(number % 4):
            cells[number % 3].set(cells[3].get() + number)
            await checkpoint()
        async with lock:
            cells[3].set(number if number % 10 else sim.choose(2))

    async with trio.open_nursery() as nursery:
        for number in range(40):
            nursery.start_soon(one, number)
            if number % 8 == 7:
                await checkpoint()


@pytest.mark.seldom
@pytest.mark.parametrize("policy", _SEEDED, ids=_NAMES)
def test_kept_lists_give_the_schedules_that_tuples_give(programs, policy) -> None:
    """A policy draws the same whether it follows the scheduler's list of names or is handed a tuple at each step."""
    made = programs.lost_update(3, 2), programs.dining(3), programs.bounded_buffer(2, 2), programs.uneven()
    for program in [*(program for program, _ in made), _crowd]:
        for seed in range(3):
            fresh = getattr(policy(seed), "sample", lambda seed=seed: policy(seed))
            by_tuples = _schedules(program, sim.Random(_ByTuples(fresh()), 8))
            assert _schedules(program, sim.Random(policy(seed), 8)) == by_tuples


@pytest.mark.parametrize("policy", _SEEDED, ids=_NAMES)
def test_policies_share_every_schedule(programs, policy) -> None:
    """A small program's six schedules all come up, but for PCT, which makes no more changes than its depth allows."""
    program, _ = programs.lost_update(2, 1)
    wanted = 4 if isinstance(policy(0), sim.PCT) else 6
    assert len(set(_schedules(program, sim.Random(policy(0), 300)))) >= wanted


# ---------------------------------------------------------------- PCT


def test_pct_of_depth_1_never_preempts(programs) -> None:
    """Without changes of priority a task goes on until it is done or has to wait."""
    program, _ = programs.lost_update(3, 2)
    schedules: set[str] = set()

    def note(execution: sim.Execution) -> bool:
        assert execution.schedule.switches == 0
        schedules.add(execution.schedule.short)
        return True

    sim.explore(program, sim.Random(sim.PCT(depth=1, seed=0), 100), note)
    assert len(schedules) == 6


def test_pct_changes_as_often_as_its_depth_allows(programs) -> None:
    """At depth d a run has at most d - 1 preemptions, and as many do come up."""
    program, _ = programs.lost_update(3, 2)
    switches: Counter[int] = Counter()
    for depth in (2, 3):
        switches.clear()
        sim.explore(
            program,
            sim.Random(sim.PCT(depth=depth, seed=0), 200),
            lambda execution: switches.update([execution.schedule.switches]) or True,
        )
        assert max(switches) == depth - 1


def test_pct_measures_tasks_and_steps(programs) -> None:
    """The bound is quoted with the measured numbers, for the executions drawn with them: all but the first."""
    program, _ = programs.uneven()
    report = sim.explore(program, sim.Random(sim.PCT(depth=2, seed=0), 100), _any)
    distinct = report.distinct
    assert report.claim == (
        f"sampled(n=100, distinct={distinct}, bugs of depth 2 with p>=0.012 in each of 99 (tasks=3, steps=28))"
    )


def test_pct_quotes_no_bound_before_it_has_measured(programs) -> None:
    """One execution measures; nothing was drawn with what it found."""
    program, _ = programs.uneven()
    report = sim.explore(program, sim.Random(sim.PCT(depth=2, seed=0), 1), _any)
    assert report.claim == "sampled(n=1, distinct=1)"


def test_pct_does_not_measure_what_was_stopped() -> None:
    """An execution that the step limit ended says nothing about how long the program is."""

    async def spin() -> None:
        while True:
            await checkpoint()

    report = sim.explore(spin, sim.Random(sim.PCT(depth=2, seed=0), 5), _any, step_limit=50)
    assert report.claim == "sampled(n=5, distinct=1)"


def test_pct_keeps_its_bound(programs) -> None:
    """A bug of depth 1 that needs one task after another is found about every other time: p >= 1/3 is promised."""
    program, check = programs.uneven()
    assert _failing(program, check, sim.PCT(depth=1, seed=0), 400) > 0.4


@pytest.mark.seldom
def test_pct_of_a_single_run_changes_as_often_as_its_depth_allows(programs) -> None:
    """One run has its changes although nothing was measured: a lost update needs one, and one is enough."""
    program, _ = programs.lost_update(2, 1)
    for depth, wanted in ((1, {2}), (2, {1, 2})):
        policies = [sim.PCT(depth=depth, seed=seed) for seed in range(100)]
        executions = [sim.run(program, policy) for policy in policies]
        assert {execution.value for execution in executions} == wanted
        assert max(execution.schedule.switches for execution in executions) == depth - 1


@pytest.mark.seldom
@pytest.mark.parametrize(("step_limit", "latest"), [(8, 4), (300, 150)])
def test_pct_of_a_single_run_knows_no_length(step_limit: int, latest: int) -> None:
    """A change comes early or late alike, up to the step limit, because nobody knows how long the program is."""

    async def program() -> None:
        async def go_on(rounds: sim.Cell[int]) -> None:
            while True:
                rounds.set(rounds.get() + 1)
                await checkpoint()

        async with trio.open_nursery() as nursery:
            for name in "ab":
                nursery.start_soon(go_on, sim.Cell(0, name=name))

    changes: set[int] = set()
    for seed in range(150):
        ran = [step.task for step in sim.run(program, sim.PCT(2, seed), step_limit=step_limit).schedule.steps]
        changes.update(place for place in range(2, len(ran)) if ran[place] != ran[place - 1])
    assert min(changes) == 2
    assert max(changes) > latest


def test_pct_measures_single_runs_too(programs) -> None:
    """One policy for several runs has what the first ones measured, and is what it is in a sample."""
    program, _ = programs.uneven()
    policy = sim.PCT(depth=2, seed=0)
    assert policy.bound == ""
    sim.run(program, policy)
    sim.run(program, policy)
    assert policy.bound == "bugs of depth 2 with p>=0.012 in each of 1 (tasks=3, steps=28)"


# ---------------------------------------------------------------- URW


@pytest.mark.seldom
def test_urw_of_single_runs_is_uniform_once_it_has_measured(programs) -> None:
    """A single run is a random walk; the fourth of one policy draws the last of 26 orders as often as any other."""
    program, check = programs.uneven()
    late = 0
    for seed in range(100):
        policy = sim.URW(seed)
        runs = [sim.run(program, policy) for _ in range(4)]
        assert all(check(execution) for execution in runs[:3])
        late += not check(runs[3])
    assert 1 <= late <= 12


@pytest.mark.seldom
def test_urw_is_uniform_over_schedules(programs) -> None:
    """The 26 orders of a task of one step and one of 25 come up about equally often; a walk finds the last never."""
    program, check = programs.uneven()
    counts: Counter[object] = Counter()
    report = sim.explore(program, sim.Random(sim.URW(seed=0), 2_600), _any)
    counts.update(report.outcomes)
    assert len(counts) == 26
    assert 60 < min(counts.values()) < max(counts.values()) < 140
    assert _failing(program, check, sim.RandomWalk(seed=0), 300) == 0


def test_urw_counts_what_is_to_be_spawned() -> None:
    """A task that is going to spawn others weighs as much as they will: else the last place is all but never drawn."""

    async def program() -> int:
        length = sim.Cell(0, name="length")
        seen = []

        async def grow(more: int) -> None:
            length.set(length.get() + 1)
            if more:
                nursery.start_soon(grow, more - 1)

        async def look() -> None:
            seen.append(length.get())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(grow, 11)
            nursery.start_soon(look)
        return seen[0]

    outcomes = sim.explore(program, sim.Random(sim.URW(seed=0), 1_300), _any).outcomes
    assert set(outcomes) == set(range(13))
    assert 60 < min(outcomes.values()) < max(outcomes.values()) < 140


def test_urw_does_not_measure_what_was_stopped() -> None:
    """A task that once span up to the step limit is not taken for a long one."""
    spins = [True]

    async def program() -> str:
        order: list[str] = []

        async def arrive(name: str) -> None:
            order.append(name)
            while name == "a" and spins:
                await checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(arrive, "a")
            nursery.start_soon(arrive, "b")
        return "".join(order)

    def check(execution: sim.Execution) -> bool:
        spins.clear()
        return True

    outcomes = sim.explore(program, sim.Random(sim.URW(seed=0), 200), check, step_limit=300).outcomes
    assert outcomes["ab"] > 70
    assert outcomes["ba"] > 70


def test_urw_is_not_misled_by_a_short_trial() -> None:
    """A first execution that returned early does not weigh a task zero: the largest length counts."""

    async def program() -> int:
        cell = sim.Cell(0, name="x")
        stop = trio.CancelScope()

        async def work() -> None:
            with stop:
                for _ in range(6):
                    await checkpoint()
                    cell.set(cell.get() + 1)

        async def end() -> None:
            stop.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            nursery.start_soon(end)
        return cell.get()

    outcomes = sim.explore(program, sim.Random(sim.URW(seed=3), 400), _any).outcomes
    assert set(outcomes) == set(range(7))
    assert min(outcomes.values()) > 15


# ---------------------------------------------------------------- POS


@pytest.mark.seldom
def test_pos_draws_partial_orders_not_schedules(programs) -> None:
    """Steps that conflict with nothing do not dilute it: a torn read among ten tasks comes up more than by walking."""
    program, check = programs.reorder(10)
    assert _failing(program, check, sim.POS(seed=0), 1_000) > 1.1 * _failing(
        program, check, sim.RandomWalk(seed=0), 1_000
    )


def test_pos_learns_what_steps_touch() -> None:
    """Once footprints are known, steps that touch nothing in common dilute nothing: seven are first once in eight."""

    async def program() -> str:
        first, own = sim.Cell("", name="first"), sim.Cell(0, name="own")

        async def early() -> None:
            first.set(first.get() or "early")

        async def late() -> None:
            for _ in range(6):
                own.set(1)
                await checkpoint()
            first.set(first.get() or "late")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(early)
            nursery.start_soon(late)
        return first.get()

    # One draw against the highest of seven: 75 of 600.  Where each step were a draw of its own it would be 5.
    outcomes = sim.explore(program, sim.Random(sim.POS(seed=0), 600), _any).outcomes
    assert set(outcomes) == {"early", "late"}
    assert 45 < outcomes["late"] < 110


def _draws_again(touched: tuple[tuple[tuple[str, ...], bool], ...]) -> bool:
    """Say whether a task that was woken from a lock draws again after another task's step."""
    policy = sim.POS(seed=3)
    steps: list[Any] = []
    policy.start(sim.RunInfo(0, 100, steps))

    def step(enabled: tuple[str, ...], name: str, *accesses: tuple[tuple[str, ...], bool]) -> None:
        policy._priorities[name] = 2.0
        assert enabled[policy.choose(enabled, len(steps))] == name
        steps.append((None, enabled, 0, accesses, 0.0, ()))

    step(("main.0", "main.1"), "main.0", (("Lock", "main", "0"), True))
    # It is woken by what comes next.
    step(("main.1",), "main.1", (("Lock", "main", "0"), True))
    step(("main.0", "main.1"), "main.1", *touched)
    before = policy._priorities["main.0"]
    policy.choose(("main.0", "main.1"), len(steps))
    return bool(policy._priorities["main.0"] != before)


def test_pos_knows_what_a_task_has_waited_for() -> None:
    """A step that was never seen is not taken to conflict with all when its task goes on with a lock."""
    assert not _draws_again(((("cell", "x"), True),))
    assert _draws_again(((("Lock", "main", "0"), True),))
    # Nobody knows what a silent step does.
    assert _draws_again(())


@pytest.mark.parametrize("reported", [True, False])
def test_pos_draws_anew_where_steps_race(reported: bool) -> None:
    """A step that races with each of ten others comes last about once in 2**10, not once in 11; so does one that
    races with all as far as anybody knows.
    """

    async def program() -> int:
        cell = sim.Cell(0, name="x")
        made, seen = [], []

        async def many() -> None:
            for _ in range(10):
                if reported:
                    cell.set(1)
                made.append(1)
                await checkpoint()

        async def one() -> None:
            if reported:
                cell.get()
            seen.append(len(made))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(many)
            nursery.start_soon(one)
        return seen[0]

    outcomes = sim.explore(program, sim.Random(sim.POS(seed=0), 600), _any).outcomes
    assert outcomes.get(10, 0) < 15
    assert outcomes[0] > 200
