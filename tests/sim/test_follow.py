"""Following a schedule in a program that has changed: what is kept of it, and where it is said to part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.lowlevel import checkpoint

from toolrt import sim


def _program(*rounds: int) -> Callable[[], Any]:
    """One task for each number, of so many steps and one more; it gives who stepped, in order."""

    async def program() -> tuple[int, ...]:
        stepped: list[int] = []

        async def task(name: int, count: int) -> None:
            for _ in range(count):
                stepped.append(name)
                await checkpoint()
            stepped.append(name)

        async with trio.open_nursery() as nursery:
            for name, count in enumerate(rounds):
                nursery.start_soon(task, name, count)
        return tuple(stepped)

    return program


@given(choices=st.lists(st.integers(0, 2), max_size=12))
def test_schedule_of_the_same_program_is_followed_to_the_end(choices: list[int]) -> None:
    """In a program that has not changed it makes the same execution, strays nowhere and leaves nothing."""
    recorded = sim.run(_program(2, 1, 2), sim.Choices(choices))
    for form in (recorded.schedule, recorded.schedule.to_json(), recorded.schedule.short):
        follow = sim.Follow(form)
        assert sim.run(_program(2, 1, 2), follow).schedule == recorded.schedule
        assert (follow.strayed, follow.left) == (None, ())


@given(choices=st.lists(st.integers(0, 2), max_size=12), rounds=st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_steps_before_the_place_where_they_part_are_those_recorded(choices: list[int], rounds: list[int]) -> None:
    """Whatever has changed, the beginning is the recorded one; where they part is the first step that is not."""
    recorded = sim.run(_program(2, 1, 2), sim.Choices(choices)).schedule
    follow = sim.Follow(recorded)
    execution = sim.run(_program(*rounds), follow)
    assert execution.error is None
    place = len(recorded) if follow.strayed is None else follow.strayed.step
    assert execution.schedule.tasks[:place] == recorded.tasks[:place]
    if follow.strayed is not None:
        assert execution.schedule.tasks != recorded.tasks
        assert recorded.tasks[place : place + 1] != execution.schedule.tasks[place : place + 1]
    # What is left and what was taken is what there was.
    taken = list(recorded.tasks)
    for task in follow.left:
        taken.remove(task)
    ran = list(execution.schedule.tasks)
    for task in taken:
        ran.remove(task)


def test_order_between_tasks_is_kept_after_they_part() -> None:
    """Task 0 is longer than it was: the steps that are left still come in the recorded order."""
    recorded = sim.run(_program(1, 2), sim.Choices([0, 1, 1, 1, 1])).schedule
    assert recorded.short == "main main.1 main.0 main.1 main.0 main.1 main"
    follow = sim.Follow(recorded)
    execution = sim.run(_program(1, 2, 1), follow)
    assert execution.schedule.short == "main main.1 main.0 main.1 main.0 main.1 main.2*2 main"
    assert str(follow.strayed) == "they part at step 6: the schedule has main, the program could run main.2"
    assert follow.left == ()


def test_program_that_ends_early_is_told_of() -> None:
    """A task that is not there any more leaves its recorded steps; the program's end is where they part."""
    recorded = sim.run(_program(1, 1), sim.Choices()).schedule
    follow = sim.Follow(recorded)
    sim.run(_program(1), follow)
    assert str(follow.strayed) == "they part at step 3: the schedule has main.1, the program could run main"
    assert follow.left == ("main.1", "main.1")

    async def at_once() -> None:
        pass

    sim.run(at_once, follow)
    assert str(follow.strayed) == "they part at step 1: the schedule has main.0, the program has ended"


def test_schedule_that_ends_early_goes_on_with_the_simplest_choices() -> None:
    """Where nothing is recorded any more, each step is choice 0, and that is where they part."""
    follow = sim.Follow("main main.1")
    execution = sim.run(_program(1, 1), follow)
    assert execution.schedule.short == "main main.1*2 main.0*2 main"
    assert str(follow.strayed) == "they part at step 2: the schedule has ended, the program could run main.1, main.0"


def test_nothing_of_one_execution_is_kept_for_the_next() -> None:
    """The same policy serves any number of executions."""
    follow = sim.Follow(sim.run(_program(1, 1), sim.Choices([0, 1])).schedule)
    first = sim.run(_program(2, 2), follow).schedule
    sim.run(_program(0), follow)
    assert sim.run(_program(2, 2), follow).schedule == first
