"""What can happen beside the tasks' steps: the clock moves early, a named scope is cancelled, something is chosen."""

from __future__ import annotations

import errno
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing
from trio.lowlevel import checkpoint

from tests.sim._programs import faulty_change, faulty_work, timed, two_scopes
from toolrt import sim
from toolrt.errors import Deadlock, DefinitionRefused, ReplayDiverged


def _any(execution: sim.Execution) -> bool:
    return True


# ---------------------------------------------------------------------- the clock


@pytest.mark.seldom
def test_clock_that_waits_for_idleness_never_cuts_busy_work() -> None:
    """Without an explored clock no time passes while anything can run."""
    assert set(sim.explore(timed, sim.Exhaustive()).outcomes) == {(3, False, 0.0)}


@pytest.mark.seldom
def test_clock_may_move_before_any_step() -> None:
    """The timeout comes before each of the three steps, or never."""
    report = sim.explore(timed, sim.Exhaustive(), clock="explored", clock_moves=1)
    assert report.outcomes == {(3, False, 0.0): 1, (0, True, 1.0): 1, (1, True, 1.0): 1, (2, True, 1.0): 1}
    assert report.claim == "exhaustive(schedules=4) with clock_moves<=1"
    assert report.verdict is sim.PASS


def test_clock_is_the_last_choice() -> None:
    """The schedule of zeros has no early move, and the clock is offered after every task."""
    execution = sim.run(timed, sim.Choices(), clock="explored")
    assert execution.value == (3, False, 0.0)
    offered = [enabled for enabled in execution.enabled if "clock" in enabled]
    assert offered
    assert {enabled[-1] for enabled in offered} == {"clock"}


def test_clock_is_not_offered_without_a_deadline() -> None:
    """Before the scope is entered and after it is left there is no time to move to."""
    enabled = sim.run(timed, sim.Choices(), clock="explored").enabled
    assert enabled[0] == ("main",)

    async def none() -> None:
        await checkpoint()

    assert all("clock" not in names for names in sim.run(none, clock="explored").enabled)


@pytest.mark.parametrize("moves", [1, 2, 3])
def test_clock_moves_are_bounded_and_the_bound_is_reached(moves: int) -> None:
    """So many early moves there are, never more; moves while nothing can run do not count."""

    async def program() -> float:
        for seconds in (1, 1, 1, 1):
            with trio.move_on_after(seconds):
                await checkpoint()
        busy = trio.current_time()
        await trio.sleep(10)
        return busy

    report = sim.explore(program, sim.Exhaustive(), clock="explored", clock_moves=moves)
    assert set(report.outcomes) == {float(move) for move in range(moves + 1)}


def test_clock_does_not_move_while_someone_waits_for_idleness() -> None:
    """wait_all_tasks_blocked comes before any move of the clock."""

    async def program() -> float:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
            nursery.start_soon(checkpoint)
            await trio.testing.wait_all_tasks_blocked()
            blocked = trio.current_time()
        return blocked

    offered = 0
    for execution in (sim.run(program, sim.RandomWalk(seed), clock="explored") for seed in range(20)):
        steps = execution.schedule.steps
        resumed = next(step.index for step in steps[1:] if "main" in step.enabled)
        assert not [step for step in steps[1:resumed] if "clock" in step.enabled]
        offered += any("clock" in step.enabled for step in steps[resumed:])
    assert offered


def test_schedule_with_a_clock_is_replayed_in_every_form() -> None:
    """A move of the clock has a name in the long form and in the short one."""
    report = sim.explore(timed, sim.Exhaustive(), lambda e: e.value != (1, True, 1.0), clock="explored", clock_moves=1)
    schedule = report.failures[0].minimal
    assert "clock" in schedule.short.split()
    for form in (schedule, schedule.to_json(), schedule.short):
        assert sim.replay(timed, form, clock="explored", clock_moves=1).value == (1, True, 1.0)
    with pytest.raises(ReplayDiverged):
        sim.replay(timed, schedule)
    assert 'clock="explored", clock_moves=1)' in report.failures[0].explain()


@pytest.mark.parametrize(
    "policy", [sim.Fifo(), sim.RandomWalk(1), sim.PCT(3, 1), sim.POS(1), sim.URW(1)], ids=lambda policy: repr(policy)
)
def test_every_policy_can_move_the_clock(policy: sim.Policy) -> None:
    """A sample by any policy has executions in which time moved early."""
    report = sim.explore(timed, sim.Random(policy, 50), clock="explored")
    assert any(cut for _, cut, _ in report.outcomes)


# ---------------------------------------------------------------------- scopes


async def _two_scopes() -> tuple[str, ...]:
    log: list[str] = []
    for name in ("first", "second"):
        with sim.scope(name) as scope:
            await checkpoint()
            await checkpoint()
        log.append(f"{name} {'cut' if scope.cancelled_caught else 'done'}")
    return tuple(log)


def test_named_scope_is_cancelled_before_each_of_its_steps() -> None:
    """Of two scopes the one that is named is cut, before its first checkpoint and its second, or not at all."""
    for name, cut in (("first", ("first cut", "second done")), ("second", ("first done", "second cut"))):
        report = sim.explore(_two_scopes, sim.Exhaustive(), cancel_at=name)
        assert report.outcomes == {("first done", "second done"): 1, cut: 2}
        assert report.claim == f"exhaustive(schedules=3) with cancel_at={name}"
        assert report.verdict is sim.PASS


def test_scopes_of_one_name_are_cancelled_one_in_each_execution() -> None:
    """Two tasks have each a scope of that name: either is cut, never both."""
    report = sim.explore(two_scopes, sim.Exhaustive(), cancel_at="work")
    assert set(report.outcomes) == {(False, False), (True, False), (False, True)}
    assert all(len(names) <= 4 for execution in [sim.run(two_scopes, cancel_at="work")] for names in execution.enabled)


def test_scope_does_not_change_what_tasks_are_called() -> None:
    """A schedule without a cancel is the same with and without cancel_at."""
    with_ = sim.run(_two_scopes, sim.Choices(), cancel_at="first").schedule.short
    assert with_ == sim.run(_two_scopes, sim.Choices()).schedule.short


def test_scope_that_waits_is_cancelled_too() -> None:
    """When nothing can run, time passing comes first and the cancel is beside it; a deadlock stays one."""

    async def sleeps() -> float:
        with sim.scope("nap"):
            await trio.sleep(2)
        return trio.current_time()

    assert sim.explore(sleeps, sim.Exhaustive(), cancel_at="nap").outcomes == {2.0: 2, 0.0: 1}

    async def waits() -> None:
        with sim.scope("wait"):
            await trio.sleep_forever()

    report = sim.explore(waits, sim.Exhaustive(), _any, cancel_at="wait")
    assert report.outcomes == {"Deadlock": 1, None: 1}
    assert isinstance(sim.run(waits, sim.Choices(), cancel_at="wait").error, Deadlock)


def test_name_that_is_no_scope_is_no_pass() -> None:
    """What was cancelled nowhere has shown nothing."""
    report = sim.explore(_two_scopes, sim.Exhaustive(), cancel_at="third")
    assert report.verdict is sim.INCONCLUSIVE
    assert report.unfinished == "the simplest schedule enters no scope named 'third'"


@pytest.mark.seldom
def test_cancelled_scope_is_replayed() -> None:
    """The cancel has a name in every form of a schedule."""
    report = sim.explore(_two_scopes, None, lambda e: e.value[1] == "second done", cancel_at="second")
    schedule = report.failures[0].minimal
    assert "cancel.0" in schedule.short.split()
    for form in (schedule, schedule.to_json(), schedule.short):
        assert sim.replay(_two_scopes, form, cancel_at="second").value[1] == "second cut"
    assert "cancels its scope" in report.failures[0].explain()


def test_scope_outside_a_simulation_is_a_cancel_scope() -> None:
    """A program runs as it is in production too."""
    assert trio.run(_two_scopes) == ("first done", "second done")


# ---------------------------------------------------------------------- choices and faults


def test_choose_gives_every_number_in_every_order() -> None:
    """Choices of two tasks are combined with each other and with every order of steps."""

    async def program() -> tuple[tuple[str, int], ...]:
        log: list[tuple[str, int]] = []

        async def pick(name: str, n: int) -> None:
            log.append((name, sim.choose(n)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pick, "a", 2)
            nursery.start_soon(pick, "b", 3)
        return tuple(log)

    report = sim.explore(program, sim.Exhaustive())
    wanted = {order for a in range(2) for b in range(3) for order in ((("a", a), ("b", b)), (("b", b), ("a", a)))}
    assert report.outcomes == dict.fromkeys(wanted, 1)
    assert report.verdict is sim.PASS


def test_choose_divides_the_step_it_is_in() -> None:
    """What was touched before belongs to the first part, what is touched after to the last; events too."""
    from toolrt import probe

    async def program() -> None:
        before, after = sim.Cell(0, name="before"), sim.Cell(0, name="after")
        before.set(1)
        probe.event("early")
        sim.choose(3)
        probe.event("late")
        after.set(1)

    execution = sim.run(program, sim.Choices([0, 2]))
    assert execution.schedule.short == "main main.=2 main".replace(".=", "=")
    first, chosen, last = execution.schedule.steps
    assert [str(access) for access in first.accesses] == ["writes cell before"]
    assert (chosen.enabled, chosen.choice, chosen.accesses) == (("main=0", "main=1", "main=2"), 2, ())
    assert [str(access) for access in last.accesses] == ["writes cell after"]
    assert [(event.kind, event.step, event.task) for event in execution.trace.events] == [
        ("early", 0, "main"),
        ("late", 2, "main"),
    ]


def test_what_a_divided_step_spawns_comes_after_it() -> None:
    """The last part of the step is the cause of what it wakes and spawns."""

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            sim.choose(2)
            nursery.start_soon(checkpoint)

    steps = sim.run(program, sim.Choices()).trace.steps
    child = next(step for step in steps if step.task == "main.0")
    assert [steps[cause].index for cause in child.causes] == [2]


def test_choose_is_replayed_and_shrunk() -> None:
    """A choice that does not matter is 0 in the minimal schedule, and every form replays."""

    async def program() -> int:
        sim.choose(5)
        await checkpoint()
        return sim.choose(4)

    report = sim.explore(program, sim.Random(sim.RandomWalk(3), 50), lambda execution: execution.value < 2)
    schedule = report.failures[0].minimal
    assert schedule.short == "main main=0 main*2 main=2 main"
    for form in (schedule, schedule.to_json(), schedule.short):
        assert sim.replay(program, form).value == 2
    assert "chooses 2 of 0 to 3" in report.failures[0].explain()


def test_choose_outside_a_simulation_is_zero() -> None:
    """A program that chooses runs in production too, where nobody does."""

    async def program() -> int:
        return sim.choose(9)

    assert sim.choose(3) == 0
    assert trio.run(program) == 0


def test_choose_while_unwinding_is_zero_and_not_kept() -> None:
    """What is chosen after the end belongs to no schedule."""
    chosen: list[int] = []

    async def program() -> None:
        try:
            await trio.sleep_forever()
        finally:
            chosen.append(sim.choose(7))

    execution = sim.run(program, sim.RandomWalk(1))
    assert isinstance(execution.error, Deadlock)
    assert (len(execution.choices), chosen) == (1, [0])


def test_policy_that_raises_in_a_choice_is_raised() -> None:
    """What a policy raises within a step reaches the caller as at any other choice."""

    class Raises:
        def start(self, info: sim.RunInfo) -> None:
            pass

        def choose(self, enabled: tuple[str, ...], step: int) -> int:
            return 0 if len(enabled) == 1 else len(enabled)

    async def program() -> int:
        return sim.choose(2)

    with pytest.raises(DefinitionRefused, match="choose"):
        sim.run(program, Raises())
    assert sim.run(program).value in (0, 1)


def test_faults_come_at_every_place_and_no_more_than_allowed() -> None:
    """Of three operations one fails, or two, or none; each execution counts anew."""

    async def program(fault: Any) -> tuple[bool, ...]:
        failed = []
        for _ in range(3):
            try:
                fault("write", "a.txt")
                failed.append(False)
            except OSError as error:
                failed.append(error.errno == errno.ENOSPC)
        return tuple(failed)

    for at_most, count in ((1, 4), (2, 7), (3, 8)):
        fault = sim.faults(OSError(errno.ENOSPC, "full"), at_most=at_most)
        report = sim.explore(lambda fault=fault: program(fault), sim.Exhaustive())  # type: ignore[misc]
        assert len(report.outcomes) == report.executions == count
        assert max(map(sum, report.outcomes)) == at_most


def test_faults_only_where_they_are_wanted() -> None:
    """A place that is ruled out is no choice."""

    async def program() -> str:
        fault = sim.faults(TimeoutError, ConnectionError("gone"), where=lambda operation: operation == "send")
        try:
            fault("open")
            fault("send")
        except OSError as error:
            return repr(error)
        return "sent"

    report = sim.explore(program, sim.Exhaustive())
    assert report.outcomes == {"sent": 1, "TimeoutError()": 1, "ConnectionError('gone')": 1}


def test_faults_of_the_disk_twin_are_choices() -> None:
    """Every effect of a change on the disk in memory may fail; what it leaves is the old file, never half a one."""
    report = sim.explore(faulty_change, sim.Exhaustive())
    assert report.verdict is sim.PASS
    assert report.outcomes == {
        ("changed", "new"): 1,
        ("failed at read", "old"): 1,
        ("failed at write", "old"): 1,
        ("failed at move", "old"): 1,
    }


# ---------------------------------------------------------------------- all together


def test_clock_cancel_and_faults_are_combined_and_replayed() -> None:
    """A fault, a cancel and a timeout come in every combination, and each schedule is exact."""
    settings: dict[str, Any] = {"cancel_at": "work", "clock": "explored", "clock_moves": 1}
    executions: list[sim.Execution] = []
    report = sim.explore(faulty_work, sim.Exhaustive(), lambda e: executions.append(e) or True, **settings)
    assert report.claim.endswith(" with cancel_at=work, clock_moves<=1")
    assert set(report.outcomes) >= {(failed, cut, False) for failed in (False, True) for cut in (False, True)} | {
        (False, False, True),
        (True, False, True),
    }
    # The first is also run once more, at the end.
    for execution in executions:
        for form in (execution.schedule, execution.schedule.short):
            again = sim.replay(faulty_work, form, **settings)
            assert (again.value, again.schedule) == (execution.value, execution.schedule)


def test_stepping_in_trios_own_loop_offers_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step per pass of Trio's loop gives the same schedules and outcomes."""
    from toolrt.sim.engine import _scheduler

    settings: dict[str, Any] = {"cancel_at": "work", "clock": "explored", "clock_moves": 1}
    inside = sim.explore(faulty_work, sim.Exhaustive(), **settings)
    monkeypatch.setattr(_scheduler, "can_step_inside", lambda: False)
    outside = sim.explore(faulty_work, sim.Exhaustive(), **settings)
    assert (outside.outcomes, outside.claim) == (inside.outcomes, inside.claim)


def test_portfolio_finds_what_needs_all_three() -> None:
    """Time that has passed, then a fault, then a cancel: the portfolio finds it; it is shrunk, and replayed."""

    async def program() -> str:
        fault = sim.faults(ValueError("broken"))
        late = failed = False
        with trio.move_on_after(1) as timeout:
            await checkpoint()
            await checkpoint()
        late = timeout.cancelled_caught
        with sim.scope("work") as scope:
            await checkpoint()
            try:
                fault()
            except ValueError:
                failed = True
            await checkpoint()
        return "all" if late and failed and scope.cancelled_caught else "fine"

    settings: dict[str, Any] = {"cancel_at": "work", "clock": "explored", "clock_moves": 1}
    report = sim.explore(program, check=lambda execution: execution.value == "fine", **settings)
    assert report.verdict is sim.FAIL
    failure = report.failures[0]
    assert [name for name in failure.minimal.tasks if name != "main"] == ["clock", "main=1", "cancel.0"]
    assert sim.replay(program, failure.minimal.short, **settings).value == "all"


def test_program_without_a_name_can_have_a_clock_and_a_cancel() -> None:
    """A partial has no name, and what exec made has no module."""
    space: dict[str, Any] = {"checkpoint": checkpoint, "__name__": None}
    exec("async def program():\n    await checkpoint()", space)
    for program in (space["program"], partial(timed)):
        for cancel_at in (None, "any"):
            assert sim.run(program, sim.Choices(), cancel_at=cancel_at, clock="explored").error is None
